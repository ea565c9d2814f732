package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// TestManyTables: a mount in which many tables of many files are looked at, one
// after the other, stays within its memory, and reads no table twice while it is
// looked at.
func TestManyTables(t *testing.T) {
	const tables, files, budget = 40, 5000, 64 << 20
	src := t.TempDir()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "n", Type: iceberg.PrimitiveTypes.Int64})
	first := fixture.New(filepath.Join(src, "t0"), fixture.Options{Schema: schema})
	tx := first.Begin()
	for i := range files {
		tx.Append(fixture.Row{"n": i})
	}
	tx.Commit()
	if err := first.Err(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < tables; i++ { // their metadata is enough: no data file is opened
		from, to := filepath.Join(src, "t0", "metadata"), filepath.Join(src, fmt.Sprint("t", i), "metadata")
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	dir := startMount(t, src, "256", "--memory", fmt.Sprint(budget))
	for i := range tables {
		parts := filepath.Join(dir, fmt.Sprint("t", i), "current", "parts")
		for range 3 {
			if names, err := os.ReadDir(parts); err != nil || len(names) != files {
				t.Fatalf("%s: %d files, %v", parts, len(names), err)
			}
		}
	}
	st := statusOf(t, dir)
	if st.Memory.Heap > budget {
		t.Errorf("%d MiB are in use, of %d", st.Memory.Heap>>20, budget>>20)
	}
	kept := st.Caches.Metadata
	if kept.Bytes == 0 || kept.Bytes > kept.MaxBytes || kept.MaxBytes != budget/8 {
		t.Errorf("kept of tables: %+v", kept)
	}
	if n := st.Counters["manifests_read_total"]; n != tables {
		t.Errorf("%d manifests were read, of %d", n, tables)
	}
}
