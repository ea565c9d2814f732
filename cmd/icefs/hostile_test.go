package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// manyBitmaps is a deletion vector of 20 bytes that claims 33 million bitmaps,
// with a true length and checksum.
func manyBitmaps() []byte {
	body := binary.LittleEndian.AppendUint64([]byte{0xD1, 0xD3, 0x39, 0x64}, 33_554_432)
	blob := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	blob = append(blob, body...)
	return binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(body))
}

// hostileTable is a table of two data files, of the partitions a and b, whose
// newest commit harms the deletes of the files with the given indexes.
type hostileTable struct {
	name  string
	parts []int
	harm  func(tx *fixture.Tx, files []*fixture.File) *fixture.File
	after func(path string) error // with the file that harm returns
}

func vectorOf(opt fixture.VectorOptions) func(*fixture.Tx, []*fixture.File) *fixture.File {
	return func(tx *fixture.Tx, files []*fixture.File) *fixture.File {
		return tx.DeleteVectorFile(opt, files[0], 1, 2)
	}
}

func positionsOf(p fixture.Position) func(*fixture.Tx, []*fixture.File) *fixture.File {
	return func(tx *fixture.Tx, files []*fixture.File) *fixture.File {
		p.File = files[0]
		return tx.DeletePositionsFile(fixture.PositionOptions{}, p)
	}
}

func cut(path string) error { return os.Truncate(path, 20) }

func hostileTables() []hostileTable {
	return []hostileTable{
		{"flipped_crc", []int{0}, vectorOf(fixture.VectorOptions{FlipCRC: true}), nil},
		{"more_rows_than_the_vector", []int{0}, vectorOf(fixture.VectorOptions{Cardinality: 1}), nil},
		{"fewer_rows_than_the_vector", []int{0}, vectorOf(fixture.VectorOptions{Cardinality: -1}), nil},
		{"33_million_bitmaps", []int{0}, vectorOf(fixture.VectorOptions{Blob: manyBitmaps()}), nil},
		{"cut_puffin", []int{0}, vectorOf(fixture.VectorOptions{}), cut},
		{"missing_puffin", []int{0}, vectorOf(fixture.VectorOptions{}), os.Remove},
		{"vector_of_no_file", []int{0}, vectorOf(fixture.VectorOptions{NoReferenced: true}), nil},
		{"vector_of_another_partition", []int{0}, vectorOf(fixture.VectorOptions{Partition: map[int]any{1000: "b"}}), nil},
		{"two_vectors", []int{0}, func(tx *fixture.Tx, files []*fixture.File) *fixture.File {
			tx.DeleteVector(files[0], 1)
			return tx.DeleteVectorFile(fixture.VectorOptions{KeepOld: true}, files[0], 2)
		}, nil},
		{"null_position", []int{0}, positionsOf(fixture.Position{Null: true}), nil},
		{"negative_position", []int{0}, positionsOf(fixture.Position{Pos: -1}), nil},
		{"cut_positions", []int{0}, positionsOf(fixture.Position{Pos: 1}), cut},
		{"missing_positions", []int{0}, positionsOf(fixture.Position{Pos: 1}), os.Remove},
		{"missing_equality", []int{0}, func(tx *fixture.Tx, _ []*fixture.File) *fixture.File {
			opt := fixture.EqualityOptions{IDs: []int{1}, Partition: map[int]any{1000: "a"}}
			return tx.DeleteEqualFile(opt, fixture.Row{"id": 2})
		}, os.Remove},
		{"missing_data", []int{1}, func(_ *fixture.Tx, files []*fixture.File) *fixture.File { return files[1] }, os.Remove},
		{"healthy", nil, vectorOf(fixture.VectorOptions{}), nil},
	}
}

// write makes the table below a warehouse and returns the names of its parts.
func (h *hostileTable) write(t *testing.T, warehouse string) (parts []string) {
	t.Helper()
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "p", Type: iceberg.PrimitiveTypes.String},
	)
	tab := fixture.New(filepath.Join(warehouse, h.name), fixture.Options{Schema: schema, FormatVersion: 3,
		Partition: []iceberg.PartitionField{{SourceIDs: []int{2}, Name: "p", Transform: iceberg.IdentityTransform{}}}})
	tx := tab.Begin()
	var files []*fixture.File
	for i, p := range []string{"a", "b"} {
		var rows []fixture.Row
		for id := 1; id <= 4; id++ {
			rows = append(rows, fixture.Row{"id": id + 10*i, "p": p})
		}
		files = append(files, tx.Append(rows...))
	}
	tx.Commit()
	tx = tab.Begin()
	harmed := h.harm(tx, files)
	tx.Commit()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	if h.after != nil {
		if err := h.after(harmed.Local); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		parts = append(parts, strings.TrimSuffix(filepath.Base(f.Path), ".parquet")+".parquet")
	}
	return parts
}

// TestHostileDeletes mounts tables whose deletes are damaged: EIO for all that
// they could cover, and for nothing else, in bounded memory.
func TestHostileDeletes(t *testing.T) {
	tables := hostileTables()
	warehouse := filepath.Join(t.TempDir(), "wh")
	parts := map[string][]string{}
	for i := range tables {
		parts[tables[i].name] = tables[i].write(t, warehouse)
	}
	mnt := startMount(t, warehouse, "1024")
	for _, h := range tables {
		current := filepath.Join(mnt, h.name, "current")
		for _, view := range []string{"data.parquet", "data.csv", "data.jsonl"} {
			checkRead(t, filepath.Join(current, view), len(h.parts) > 0)
		}
		for i, part := range parts[h.name] {
			checkRead(t, filepath.Join(current, "parts", part), slices.Contains(h.parts, i))
		}
		for _, described := range []string{"files.csv", "schema.json", "snapshot.json"} {
			checkRead(t, filepath.Join(current, described), false)
		}
	}
	text, err := os.ReadFile(filepath.Join(mnt, "healthy", "current", "data.csv"))
	if want := "id,p\n1,a\n4,a\n11,b\n12,b\n13,b\n14,b\n"; err != nil || string(text) != want {
		t.Errorf("the healthy table: %q, %v, want %q", text, err, want)
	}
	const bound = 256 << 10 // KiB: what the process takes without tables, several times over
	if peak := peakKiB(t, serverOf(mnt)); peak > bound {
		t.Errorf("%d KiB of memory, at most %d expected", peak, bound)
	}
}

// checkRead reads a file, which is to fail with EIO if it is refused.
func checkRead(t *testing.T, path string, refused bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	switch {
	case refused && !errors.Is(err, syscall.EIO):
		t.Errorf("%s: %d bytes, error %v, want EIO", path, len(b), err)
	case !refused && (err != nil || len(b) == 0):
		t.Errorf("%s: %d bytes, error %v", path, len(b), err)
	}
}

// peakKiB is the most memory that a process has had.
func peakKiB(t *testing.T, pid int) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
