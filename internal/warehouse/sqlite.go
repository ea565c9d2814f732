package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/internal/source"
)

const sqliteScheme = "sqlite://"

// sqliteDriver is the database/sql driver that the program registers.
const sqliteDriver = "sqlite"

// catalogDB is a catalog in an SQLite file, as Java's JdbcCatalog and pyiceberg
// keep it: a table iceberg_tables of metadata locations by catalog, namespace
// (its levels joined by dots) and name. The file is opened anew at each refresh.
type catalogDB struct {
	env  *env
	path string
	name string // of the catalog

	gate   gate // guards all below
	at     time.Time
	tables map[string]map[string]string // namespace -> table -> metadata location
	err    error
}

// openSQLite opens sqlite:///relative/path.db?catalog=NAME&warehouse=DIR; four
// slashes begin an absolute path.
func openSQLite(ctx context.Context, src string, opt Options) (*Catalog, error) {
	path, rawQuery, _ := strings.Cut(strings.TrimPrefix(src, sqliteScheme), "?")
	path, ok := strings.CutPrefix(path, "/")
	if !ok || path == "" {
		return nil, fmt.Errorf("%w: %s: write sqlite:///path or sqlite:////absolute/path", ErrUnsupportedSource, src)
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnsupportedSource, src, err)
	}
	for key := range query {
		if key != "catalog" && key != "warehouse" {
			return nil, fmt.Errorf("%w: %s: unknown parameter %s", ErrUnsupportedSource, src, key)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("source %s: %w", src, err)
	}
	var roots []string
	if warehouse := query.Get("warehouse"); warehouse != "" {
		if local, ok := source.LocalPath(warehouse); ok {
			warehouse = local
		}
		roots = append(roots, warehouse)
	}
	e, err := newEnv(opt, roots...)
	if err != nil {
		return nil, err
	}
	db := &catalogDB{env: e, path: path, name: query.Get("catalog"), gate: newGate()}
	if _, err := db.read(ctx); err != nil {
		return nil, err
	}
	return &Catalog{env: e, root: newNamespace(e, dbNamespace{db: db}, false)}, nil
}

// read returns the catalog's tables, read anew if they are older than the
// refresh interval.
func (c *catalogDB) read(ctx context.Context) (map[string]map[string]string, error) {
	if err := c.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer c.gate.leave()
	if c.env.fresh(c.at) {
		return c.tables, c.err
	}
	tables, err := c.query(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("catalog %s: %w", c.path, err)
	}
	c.tables, c.err, c.at = tables, err, time.Now()
	return c.tables, c.err
}

// errNoFile is not os.ErrNotExist: a catalog that is gone is no missing folder.
var errNoFile = errors.New("there is no such file (sqlite:/// begins a path from the working folder, sqlite://// one from the root)")

// query opens the file and reads it. Where the folder cannot be written, SQLite
// may be unable to open a file in WAL mode: then it is read as it lies there.
func (c *catalogDB) query(ctx context.Context) (map[string]map[string]string, error) {
	tables, err := c.queryMode(ctx, "mode=ro")
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrUnsupportedSource) {
		return tables, err
	}
	if _, statErr := os.Stat(c.path); errors.Is(statErr, os.ErrNotExist) {
		return nil, errNoFile
	}
	if unix.Access(filepath.Dir(c.path), unix.W_OK) == nil {
		return nil, err
	}
	return c.queryMode(ctx, "mode=ro&immutable=1")
}

func (c *catalogDB) queryMode(ctx context.Context, mode string) (map[string]map[string]string, error) {
	uri := url.URL{Scheme: "file", Path: c.path, RawQuery: mode}
	db, err := sql.Open(sqliteDriver, uri.String())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := c.chooseCatalog(ctx, db); err != nil {
		return nil, err
	}
	tables := map[string]map[string]string{}
	if err := c.queryTables(ctx, db, tables); err != nil {
		return nil, err
	}
	return tables, c.queryNamespaces(ctx, db, tables)
}

// chooseCatalog takes the only catalog of the file if none was named.
func (c *catalogDB) chooseCatalog(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT DISTINCT catalog_name FROM iceberg_tables ORDER BY 1")
	if err != nil {
		return err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		names = append(names, name)
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case c.name == "" && len(names) == 1:
		c.name = names[0]
	case c.name == "":
		return fmt.Errorf("%w: choose one of its catalogs with ?catalog=: %s", ErrUnsupportedSource, strings.Join(names, ", "))
	}
	return nil
}

// queryTables reads the tables. Old files have no column iceberg_type; in those
// that have, views are left out.
func (c *catalogDB) queryTables(ctx context.Context, db *sql.DB, tables map[string]map[string]string) error {
	rows, err := db.QueryContext(ctx, "SELECT * FROM iceberg_tables WHERE catalog_name = ?", c.name)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		row := map[string]sql.NullString{}
		for i, column := range columns {
			row[strings.ToLower(column)] = values[i]
		}
		if kind := row["iceberg_type"]; kind.Valid && kind.String != "TABLE" {
			continue
		}
		namespace := row["table_namespace"].String
		if tables[namespace] == nil {
			tables[namespace] = map[string]string{}
		}
		tables[namespace][row["table_name"].String] = row["metadata_location"].String
	}
	return rows.Err()
}

// queryNamespaces adds namespaces without tables.
func (c *catalogDB) queryNamespaces(ctx context.Context, db *sql.DB, tables map[string]map[string]string) error {
	rows, err := db.QueryContext(ctx, "SELECT DISTINCT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?", c.name)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return nil // the oldest catalogs have no such table
	}
	defer rows.Close()
	for rows.Next() {
		var namespace string
		if err := rows.Scan(&namespace); err != nil {
			return err
		}
		if tables[namespace] == nil {
			tables[namespace] = map[string]string{}
		}
	}
	return rows.Err()
}

// dbNamespace lists one level of a catalog's namespaces.
type dbNamespace struct {
	db   *catalogDB
	path string // as stored; "" is the root
}

var _ lister = dbNamespace{}

func (n dbNamespace) list(ctx context.Context) ([]entry, error) {
	tables, err := n.db.read(ctx)
	if err != nil {
		return nil, err
	}
	var entries []entry
	found := n.path == ""
	levels := levelsOf(n.path)
	seen := map[string]bool{}
	for namespace := range tables {
		at := levelsOf(namespace)
		if len(at) < len(levels) || !slices.Equal(at[:len(levels)], levels) {
			continue
		}
		found = true
		if len(at) == len(levels) {
			continue
		}
		if child := at[len(levels)]; !seen[child] {
			seen[child] = true
			path := strings.Join(at[:len(levels)+1], ".")
			entries = append(entries, entry{name: child, namespace: dbNamespace{db: n.db, path: path}})
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: namespace %s", ErrGone, n.path)
	}
	for name := range tables[n.path] {
		entries = append(entries, entry{name: name, table: dbTable{db: n.db, namespace: n.path, name: name}})
	}
	return entries, nil
}

// levelsOf splits a stored namespace at its dots. One with an empty level cannot
// be told from a name with dots in it and stays whole.
func levelsOf(namespace string) []string {
	if namespace == "" {
		return nil
	}
	levels := strings.Split(namespace, ".")
	if slices.Contains(levels, "") {
		return []string{namespace}
	}
	return levels
}

// dbTable finds the metadata file that a catalog names.
type dbTable struct {
	db              *catalogDB
	namespace, name string
}

var _ finder = dbTable{}

func (t dbTable) find(ctx context.Context) (string, error) {
	tables, err := t.db.read(ctx)
	if err != nil {
		return "", err
	}
	location, ok := tables[t.namespace][t.name]
	if !ok {
		return "", fmt.Errorf("%w: table %s.%s", ErrGone, t.namespace, t.name)
	}
	reach := t.db.env.reach
	exists := func(location string) bool { return reach.Exists(ctx, location) }
	if exists(location) {
		return location, nil
	}
	if found, ok := findBelow(reach.Roots(), location, exists); ok {
		return found, nil
	}
	if len(reach.Roots()) == 0 {
		return "", fmt.Errorf("%w: %s: give the catalog's warehouse=DIR or an allowed path", source.ErrOutside, location)
	}
	_, err = reach.Open(ctx, location)
	return location, err
}
