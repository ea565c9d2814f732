// Package engines holds the tests that read icefs mounts with engines icefs
// itself must not depend on: DuckDB from Go here, and Python's in engines.py.
// It is a module of its own, so that installing icefs stays light.
package engines

import (
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
)

const testdata = "../../testdata"

// mount builds icefs, serves testdata/warehouse from another process and
// returns the mountpoint.
func mount(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "icefs")
	build := exec.Command("go", "build", "-o", binary, "./cmd/icefs")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	mnt := t.TempDir()
	server := exec.Command(binary, "mount", "--cache-dir", t.TempDir(), testdata+"/warehouse", mnt)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { server.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			exec.Command("umount", "-l", mnt).Run()
			server.Process.Kill()
			t.Error("icefs did not stop within 20 s of SIGTERM")
		}
	})
	for range 400 {
		if _, err := os.Stat(mnt + "/.icefs/version"); err == nil {
			return mnt
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("icefs did not mount within 20 s")
	return ""
}

type index struct {
	Source    string `json:"source"`
	MountPath string `json:"mount_path"`
	MayError  []any  `json:"may_error"`
	MustError any    `json:"must_error"`
	Snapshots []struct {
		ID        int64  `json:"snapshot_id"`
		Count     *int64 `json:"count"`
		Rows      string `json:"rows"`
		MustError any    `json:"must_error"`
	} `json:"snapshots"`
}

type column struct {
	Name string          `json:"name"`
	Type json.RawMessage `json:"type"`
}

// tables returns the recorded tables whose source is testdata/warehouse.
func tables(t *testing.T) map[string]index {
	t.Helper()
	names, err := fs.Glob(os.DirFS(testdata), "expected/*/index.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recorded tables under %s: %v", testdata, err)
	}
	all := map[string]index{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			t.Fatal(err)
		}
		var x index
		if err := json.Unmarshal(b, &x); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if x.Source == "warehouse" && x.MustError == nil && len(x.MayError) == 0 {
			all[filepath.Base(filepath.Dir(name))] = x
		}
	}
	return all
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// TestDuckDBReadsSnapshots compares, for every snapshot, DuckDB's count(*) and
// its sums over integer columns with the recorded rows, over data.parquet, a
// glob of the parts, and data.csv.
func TestDuckDBReadsSnapshots(t *testing.T) {
	mnt := mount(t)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	read := 0
	for name, x := range tables(t) {
		for _, s := range x.Snapshots {
			if s.Count == nil || s.Rows == "" || s.MustError != nil {
				continue
			}
			dir := filepath.Join(mnt, x.MountPath, "snapshots", fmt.Sprint(s.ID))
			expected := filepath.Join(testdata, "expected", name)
			fields := schema(t, filepath.Join(expected, fmt.Sprintf("%d.schema.json", s.ID)))
			want := sums(t, filepath.Join(expected, s.Rows), fields)
			for _, view := range []string{
				fmt.Sprintf("read_parquet('%s/data.parquet', hive_partitioning=false)", dir),
				fmt.Sprintf("read_parquet('%s/parts/*.parquet', hive_partitioning=false)", dir),
				fmt.Sprintf(`read_csv('%s/data.csv', header=true, quote='"', escape='"', delim=',', all_varchar=true, strict_mode=true, auto_detect=false, columns={%s})`, dir, varchars(fields)),
			} {
				if parts, _ := os.ReadDir(dir + "/parts"); len(parts) == 0 && strings.Contains(view, "/parts/") {
					continue
				}
				got, err := query(db, view, fields)
				if err != nil {
					t.Errorf("%s/%d: %s: %v", name, s.ID, view, err)
				} else if got != want {
					t.Errorf("%s/%d: %s\n got %s\nwant %s", name, s.ID, view, got, want)
				}
				read++
			}
		}
	}
	if read == 0 {
		t.Fatal("nothing was read")
	}
}

func schema(t *testing.T, path string) []column {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema struct {
			Fields []column `json:"fields"`
		} `json:"iceberg_schema"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return doc.Schema.Fields
}

func varchars(fields []column) string {
	var cols []string
	for _, f := range fields {
		cols = append(cols, "'"+strings.ReplaceAll(f.Name, "'", "''")+"': 'VARCHAR'")
	}
	return strings.Join(cols, ", ")
}

func isInteger(f column) bool { return string(f.Type) == `"int"` || string(f.Type) == `"long"` }

// query renders count(*) and, per integer column, the sum and the non-NULL count.
func query(db *sql.DB, view string, fields []column) (string, error) {
	sel := "select cast(count(*) as varchar)"
	for _, f := range fields {
		if isInteger(f) {
			sel += fmt.Sprintf(" || ' %s=' || coalesce(sum(cast(%s as hugeint)), 0) || '/' || count(%s)", strings.ReplaceAll(f.Name, "'", "''"), quote(f.Name), quote(f.Name))
		}
	}
	var got string
	err := db.QueryRow(sel + " from " + view).Scan(&got)
	return got, err
}

// sums computes the same from the recorded rows.
func sums(t *testing.T, path string, fields []column) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(z)
	dec.UseNumber()
	rows := 0
	sum, count := map[string]*big.Int{}, map[string]int{}
	for _, f := range fields {
		sum[f.Name] = new(big.Int)
	}
	for dec.More() {
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows++
		for _, f := range fields {
			if n, ok := row[f.Name].(json.Number); ok && isInteger(f) {
				v, ok := new(big.Int).SetString(n.String(), 10)
				if !ok {
					t.Fatalf("%s: %s is no integer", path, n)
				}
				sum[f.Name].Add(sum[f.Name], v)
				count[f.Name]++
			}
		}
	}
	out := fmt.Sprint(rows)
	for _, f := range fields {
		if isInteger(f) {
			out += fmt.Sprintf(" %s=%s/%d", f.Name, sum[f.Name], count[f.Name])
		}
	}
	return out
}
