package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
)

// statusOf is a mount's status.json, now.
func statusOf(t *testing.T, dir string) status {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ".icefs", "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	var st status
	if err := json.Unmarshal(b, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// counters are those of a mount's status.json, now.
func counters(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	return statusOf(t, dir).Counters
}

// TestWorkIsForWhatIsRead: listing, stat, opening data.parquet and reading its
// footer decode no page, whatever is deleted; reading a column's bytes decodes
// that column's chunk alone.
func TestWorkIsForWhatIsRead(t *testing.T) {
	const rows, columns = 17_000, 4 // row groups that are not joined with others
	for _, version := range []int{2, 3} {
		var fields []iceberg.NestedField
		for i, typ := range []iceberg.Type{iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Float64, iceberg.PrimitiveTypes.Int32} {
			fields = append(fields, iceberg.NestedField{ID: i + 1, Name: fmt.Sprint("c", i), Type: typ})
		}
		tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: iceberg.NewSchema(0, fields...), FormatVersion: version})
		data := make([]fixture.Row, rows)
		for i := range data {
			data[i] = fixture.Row{"c0": i, "c1": fmt.Sprint("text ", i%1000), "c2": float64(i) / 3, "c3": i % 7}
		}
		tx := tab.Begin()
		a, b := tx.Append(data...), tx.Append(data...)
		tx.Commit()
		tx = tab.Begin()
		for _, f := range []*fixture.File{a, b} {
			if version == 3 {
				tx.DeleteVector(f, 0, 5000, rows-1)
			} else {
				tx.DeletePositions(f, 0, 5000, rows-1)
			}
		}
		tx.Commit()
		if err := tab.Err(); err != nil {
			t.Fatal(err)
		}
		dir := startMount(t, tab.Dir(), "256")
		name := filepath.Join(dir, "current", "data.parquet")
		if out, err := exec.Command("ls", "-l", name).CombinedOutput(); err != nil {
			t.Fatalf("ls: %v\n%s", err, out)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		// Without the page cache, which reads ahead and whole pages.
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECT, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		work := func(what string, chunks int64) {
			t.Helper()
			c := counters(t, dir)
			deletes := int64(0)
			if version == 2 {
				deletes = 4 // two position-delete files of two columns
			}
			c["chunks_decoded_total"] -= deletes
			c["data_pages_decoded_total"] -= deletes
			if c["chunks_decoded_total"] != chunks || c["chunks_rewritten_total"] != chunks || c["chunks_measured_total"] != 0 ||
				(c["data_pages_decoded_total"] > 0) != (chunks > 0) {
				t.Errorf("version %d, %s: %d pages of %d chunks are decoded, %d rewritten, %d measured; want %d chunks", version, what,
					c["data_pages_decoded_total"], c["chunks_decoded_total"], c["chunks_rewritten_total"], c["chunks_measured_total"], chunks)
			}
		}
		work("after ls, stat and open", 0)
		m := readFooter(t, f, info.Size())
		if m.NumRows != 2*(rows-3) || len(m.RowGroups) != 2 {
			t.Fatalf("%d rows in %d row groups", m.NumRows, len(m.RowGroups))
		}
		if c := counters(t, dir); c["footers_read_total"] == 0 {
			t.Error("no footer was read: the counters do not count")
		}
		work("after the footer", 0)
		for i, chunk := range []*pqfile.ColumnMetaData{m.RowGroups[0].Columns[2].MetaData, m.RowGroups[1].Columns[columns-1].MetaData} {
			at := chunk.DataPageOffset
			if chunk.DictionaryPageOffset != nil {
				at = *chunk.DictionaryPageOffset
			}
			if _, err := f.ReadAt(make([]byte, chunk.TotalCompressedSize), at); err != nil {
				t.Fatal(err)
			}
			work(fmt.Sprintf("after %d columns", i+1), int64(i+1))
		}
	}
}

// readFooter reads a Parquet file's footer and no more.
func readFooter(t *testing.T, f *os.File, size int64) *pqfile.FileMetaData {
	t.Helper()
	tail := make([]byte, 8)
	if _, err := f.ReadAt(tail, size-8); err != nil {
		t.Fatal(err)
	}
	footer := make([]byte, binary.LittleEndian.Uint32(tail))
	if _, err := f.ReadAt(footer, size-8-int64(len(footer))); err != nil {
		t.Fatal(err)
	}
	m, err := pqfile.UnmarshalFileMetaData(footer)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
