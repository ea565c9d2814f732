package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// execute runs statements on an SQLite file.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open(sqliteDriver, path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

const (
	createTables     = "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255), table_namespace VARCHAR(255), table_name VARCHAR(255), metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5))"
	createNamespaces = "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255), namespace VARCHAR(255), property_key VARCHAR(255), property_value VARCHAR(1000))"
)

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func TestRealCatalogs(t *testing.T) {
	for _, c := range []struct {
		src    string
		tables []string // among others
	}{
		{"jdbc_catalog.db?catalog=jc&warehouse=" + testdata + "/warehouse", []string{"db/v2_eq", "db/meta_gzip", "db/imported", "db/row_lineage_mor"}},
		{"jdbc_catalog.db?warehouse=file:" + absolute(t, testdata+"/warehouse"), []string{"db/one_col"}},
		{"s3_catalog.db?catalog=s3c&warehouse=" + testdata + "/object-store", []string{"sales/s3_v2"}},
	} {
		for _, src := range []string{"sqlite:///" + testdata + "/catalog/" + c.src, "sqlite:///" + absolute(t, testdata) + "/catalog/" + c.src} {
			catalog := open(t, src, Options{})
			tables := tablesOf(t, catalog)
			for _, name := range c.tables {
				if tables[name] == nil {
					t.Errorf("%s: no table %s among %v", src, name, sortedKeys(tables))
					continue
				}
				planAll(t, load(t, tables[name]))
			}
			if root, _, _ := catalog.Root(context.Background()); root.Verbatim() {
				t.Error("names of a catalog are not those of folders")
			}
		}
	}
	// A table that is not below the warehouse is found below an allowed path.
	c := open(t, "sqlite:///"+testdata+"/catalog/jdbc_catalog.db?warehouse="+testdata+"/warehouse", Options{AllowPaths: []string{testdata + "/elsewhere"}})
	planAll(t, load(t, tablesOf(t, c)["db/data_path"]))
}

func TestCatalogNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b.db")
	execute(t, path, createTables, createNamespaces,
		"INSERT INTO iceberg_tables VALUES ('c','a.b','t','/x',NULL,'TABLE'),('c','a','t.2','/x',NULL,NULL),('c','a','v','/x',NULL,'VIEW'),('c','','root','/x',NULL,'TABLE'),('c','x..y','t','/x',NULL,'TABLE'),('d','other','t','/x',NULL,'TABLE'),('c','sl/ash','na/me','/x',NULL,'TABLE')",
		"INSERT INTO iceberg_namespace_properties VALUES ('c','empty.inner','exists','true'),('d','other2','exists','true')")
	c := open(t, "sqlite:///"+path+"?catalog=c", Options{})
	want := []string{"a/b/t", "a/t.2", "root", "sl/ash/na/me", "x..y/t"}
	if got := sortedKeys(tablesOf(t, c)); !slices.Equal(got, want) {
		t.Errorf("tables %q, want %q", got, want)
	}
	root, _, _ := c.Root(context.Background())
	namespaces, err := root.Namespaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range namespaces {
		names = append(names, name)
	}
	if want := []string{"a", "empty", "sl/ash", "x..y"}; !slices.Equal(names, want) {
		t.Errorf("namespaces %q, want %q", names, want)
	}
	if _, err := Open(context.Background(), "sqlite:///"+path, Options{}); !errors.Is(err, ErrUnsupportedSource) || !strings.Contains(err.Error(), "c, d") {
		t.Errorf("a choice of catalogs: %v", err)
	}
	table := tablesOf(t, c)["root"]
	if _, err := table.Load(context.Background()); err == nil || !strings.Contains(err.Error(), "warehouse=") {
		t.Errorf("without any allowed path: %v", err)
	}
}

func TestOldCatalogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	execute(t, path, "CREATE TABLE iceberg_tables(catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, previous_metadata_location TEXT)",
		"INSERT INTO iceberg_tables VALUES ('c','db','t','/x',NULL)")
	if got := sortedKeys(tablesOf(t, open(t, "sqlite:///"+path, Options{}))); !slices.Equal(got, []string{"db/t"}) {
		t.Errorf("tables %v", got)
	}
}

func TestCatalogIsReadAnew(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.db")
	first := write(t, filepath.Join(dir, "wh", "t", "metadata", "1.metadata.json"), string(document(2, twoSnapshots)))
	second := write(t, filepath.Join(dir, "wh", "t", "metadata", "2.metadata.json"), string(document(2, twoSnapshots, `"current-snapshot-id":2`)))
	execute(t, path, createTables, createNamespaces, "INSERT INTO iceberg_tables VALUES ('c','db','t','"+first+"',NULL,'TABLE')")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, "sqlite:///"+path+"?warehouse="+filepath.Join(dir, "wh"), Options{Refresh: -1})
	table := tablesOf(t, c)["db/t"]
	l := load(t, table)
	if l.Table().Current != -1 || load(t, table) != l {
		t.Errorf("current %d", l.Table().Current)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the catalog was written: %v", err)
	}
	execute(t, path, "UPDATE iceberg_tables SET metadata_location='file:"+second+"'")
	if got := load(t, table).Table().Current; got != 2 {
		t.Errorf("after a commit: current %d", got)
	}
	execute(t, path, "DELETE FROM iceberg_tables")
	if _, err := table.Load(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("after a drop: %v", err)
	}
	if err := os.WriteFile(path, []byte("not a database, but long enough to be looked at as one"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Load(ctx); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("of a broken file: %v", err)
	}
	if _, err := Open(ctx, "sqlite:///"+filepath.Join(dir, "none.db"), Options{}); err == nil {
		t.Error("a missing file was opened")
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("a missing file was made")
	}
}

// TestNamedSQLCatalog: a catalog by its properties, as pyiceberg has them.
func TestNamedSQLCatalog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	execute(t, path, createTables, createNamespaces, "INSERT INTO iceberg_tables VALUES ('prod','db','t','/x',NULL,'TABLE'),('other','db','u','/x',NULL,'TABLE')")
	for name, want := range map[string][]string{"prod": {"db/t"}, "other": {"db/u"}, "new": {}} {
		var log logBuffer
		c, err := OpenCatalog(context.Background(), name, map[string]string{"uri": "sqlite:///" + path}, Options{Log: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		if got := sortedKeys(tablesOf(t, c)); !slices.Equal(got, want) {
			t.Errorf("%s: tables %v, want %v", name, got, want)
		}
		if warned := strings.Contains(strings.Join(log.lines(), ""), "others=\"other, prod\""); warned != (name == "new") {
			t.Errorf("%s: log %v", name, log.lines())
		}
		c.Close()
	}
	for _, props := range []map[string]string{{}, {"type": "dynamodb"}, {"uri": "mysql://h/x"}, {"type": "sql", "uri": "mysql://h/x"}, {"type": "hadoop"}, {"uri": "ftp://x"}} {
		if _, err := OpenCatalog(context.Background(), "x", props, Options{}); !errors.Is(err, ErrUnsupportedSource) {
			t.Errorf("%v: %v", props, err)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "db", "t", "metadata", "v1.metadata.json"), versionFile("u", 1))
	c, err := OpenCatalog(context.Background(), "h", map[string]string{"type": "hadoop", "warehouse": dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sortedKeys(tablesOf(t, c)); !slices.Equal(got, []string{"db/t"}) {
		t.Errorf("a hadoop catalog: %v", got)
	}
}

type sqlState string

func (s sqlState) Error() string    { return "state " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

func TestWhatPostgresMeans(t *testing.T) {
	for err, want := range map[error]error{
		sqlState("28P01"): ErrDenied, sqlState("42501"): ErrDenied, sqlState("57P03"): ErrUnavailable, sqlState("08006"): ErrUnavailable,
		sqlState("53300"): ErrUnavailable, errors.New("connection refused"): ErrUnavailable, sqlState("42P01"): nil, sqlState("3D000"): nil,
	} {
		got := classifyPostgres(err)
		if errors.Is(got, ErrDenied) != (want == ErrDenied) || errors.Is(got, ErrUnavailable) != (want == ErrUnavailable) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	for uri, want := range map[string]string{
		"postgresql+psycopg2://u:secret@h:5/db?sslmode=require&password=secret": "postgresql://h:5/db", "postgres://u:se%zzcret@h/db": "(a database)",
	} {
		if got := redactDatabase(uri); got != want {
			t.Errorf("%s is shown as %s", uri, got)
		}
	}
}
