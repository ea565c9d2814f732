package merge

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The layout of a table with every kind of chunk, as `icefs inspect` prints it.
func TestLayoutGolden(t *testing.T) {
	fields := formsSchema().Fields()
	schema := iceberg.NewSchema(0, fields[1], fields[3], fields[9])
	rows := func(first, n int, full bool) []fixture.Row {
		out := formsRows(first, n)
		for i, r := range out {
			for name := range r {
				if name != "i" && name != "few" && name != "l" {
					delete(r, name)
				}
			}
			if full {
				r["i"], r["few"] = int32(first+i), "few"
			}
		}
		return out
	}
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: schema})
	tx := tab.Begin()
	whole := tx.Append(rows(0, 17_000, false)...)
	tx.AppendFile(fixture.FileOptions{Parquet: &fixture.ParquetOptions{Tighten: true}}, rows(17_000, 17_000, true)...)
	tx.AppendFile(fixture.FileOptions{Omit: []int{4}}, rows(34_000, 17_000, false)...)
	tx.Append(rows(51_000, 100, false)...)
	tx.Append(rows(51_100, 100, false)...)
	tx.Commit()
	tx = tab.Begin()
	tx.DeleteVector(whole, 3, 4, 5)
	tx.Commit()
	e, _, _ := workEngine(Options{})
	var b bytes.Buffer
	if err := e.Parquet(currentScan(t, tab)).(Explainer).Explain(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(b.String(), "file://"+tab.Dir(), "table")
	golden := filepath.Join("testdata", "layout.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("layout differs from %s (-update rewrites it):\n%s", golden, got)
	}
}
