package pqfile

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

func TestOpen(t *testing.T) {
	var stats Stats
	obj := load(t, fixtures+"snappy-v1.parquet")
	f, err := Open(t.Context(), obj, Options{Stats: &stats})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 100, 150}; !slices.Equal(f.FirstRow, want) {
		t.Errorf("FirstRow %v, want %v", f.FirstRow, want)
	}
	if obj.reads != 1 || stats.Footers.Load() != 1 {
		t.Errorf("%d reads, %d footers", obj.reads, stats.Footers.Load())
	}
	if n := f.FootprintBytes(); n < 10000 || n > 100000 {
		t.Errorf("a footer of %d bytes is said to take %d", obj.Size()-f.footerStart, n)
	}
}

func TestOpenLargeFooter(t *testing.T) {
	file := load(t, fixtures+"none-v1.parquet").data
	big := string(make([]byte, 200<<10))
	obj := withFooter(t, file, func(m *FileMetaData) { m.KeyValue = []KeyValue{{Key: "big", Value: &big}} })
	f := open(t, obj)
	if obj.reads != 2 || int64(obj.bytes) != obj.Size()-f.footerStart {
		t.Errorf("%d reads of %d bytes for a footer of %d", obj.reads, obj.bytes, obj.Size()-f.footerStart)
	}
	check(t, f, values(t, "values.json"))
}

func TestOpenErrors(t *testing.T) {
	file := load(t, fixtures+"none-v1.parquet").data
	patch := func(edit func(b []byte) []byte) *memory {
		return &memory{data: edit(slices.Clone(file))}
	}
	claim := func(n uint32) func(b []byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[len(b)-8:], n)
			return b
		}
	}
	footer := func(edit func(*FileMetaData)) *memory { return withFooter(t, file, edit) }
	tests := []struct {
		name string
		obj  *memory
		want error
	}{
		{"empty", &memory{}, ErrCorrupt},
		{"eleven bytes", &memory{data: file[len(file)-11:]}, ErrCorrupt},
		{"no magic", patch(func(b []byte) []byte { return b[:len(b)-1] }), ErrCorrupt},
		{"encrypted footer", patch(func(b []byte) []byte { b[len(b)-1] = 'E'; return b }), ErrUnsupported},
		{"footer of 2 GiB", patch(claim(2 << 30)), ErrCorrupt},
		{"footer of 4 GiB", patch(claim(1<<32 - 1)), ErrCorrupt},
		{"footer over the whole file", patch(claim(uint32(len(file) - 8))), ErrCorrupt},
		{"no footer", patch(claim(0)), ErrCorrupt},
		{"footer cut", patch(claim(100)), ErrCorrupt},
		{"rows do not add up", footer(func(m *FileMetaData) { m.NumRows++ }), ErrCorrupt},
		{"negative rows", footer(func(m *FileMetaData) { m.RowGroups[0].NumRows = -1; m.NumRows = 49 }), ErrCorrupt},
		{"rows overflow", footer(func(m *FileMetaData) { m.RowGroups[0].NumRows = 1<<63 - 1; m.RowGroups[1].NumRows = 1<<63 - 1 }), ErrCorrupt},
		{"a column is missing", footer(func(m *FileMetaData) { m.RowGroups[1].Columns = m.RowGroups[1].Columns[1:] }), ErrCorrupt},
		{"no schema", footer(func(m *FileMetaData) { m.Schema = nil }), ErrCorrupt},
		{"schema cut", footer(func(m *FileMetaData) { m.Schema = m.Schema[:3] }), ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(t.Context(), tt.obj, Options{}); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Every byte of a footer changed: an error or another file, never a panic.
func TestOpenFlippedBytes(t *testing.T) {
	m := optional(Int32)
	m.page(v1(2, Plain), 2, 0, 0, 0, 3, 1, 7, 0, 0, 0)
	file := m.bytes()
	for i := len(magic); i < len(file); i++ {
		for _, x := range []byte{1, 0x10, 0x80, 0xff} {
			b := slices.Clone(file)
			b[i] ^= x
			f, err := Open(t.Context(), &memory{data: b}, Options{})
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("byte %d ^ %x: %v", i, x, err)
				}
				continue
			}
			for _, leaf := range f.Schema.Leaves {
				if _, err := readLeaf(t, f, leaf); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("byte %d ^ %x: %v", i, x, err)
				}
			}
		}
	}
}

func TestReadFaultsSurface(t *testing.T) {
	obj := load(t, fixtures+"zstd-v2.parquet")
	f := open(t, obj)
	obj.data = obj.data[:100] // replaced by something shorter
	f.dictionaries = nil      // which the footer's read has seen
	leaf := f.Schema.Leaves[len(f.Schema.Leaves)-1]
	c, err := f.Chunk(1, leaf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Dictionary(t.Context()); !errors.Is(err, source.ErrTruncated) {
		t.Errorf("Dictionary: %v", err)
	}
	if _, err := readLeaf(t, f, leaf); !errors.Is(err, source.ErrTruncated) {
		t.Errorf("pages: %v", err)
	}
	if _, err := Open(t.Context(), obj, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Open: %v", err)
	}
}

// TestDictionariesOfSmallFiles: what the footer's read has seen of a small file is
// what a read of each header tells, and costs no read of its own.
func TestDictionariesOfSmallFiles(t *testing.T) {
	obj := load(t, fixtures+"zstd-v2.parquet")
	stats := &Stats{}
	f, err := Open(t.Context(), obj, Options{Stats: stats})
	if err != nil {
		t.Fatal(err)
	}
	present := 0
	for g := range f.Metadata.RowGroups {
		for _, leaf := range f.Schema.Leaves {
			c, err := f.Chunk(g, leaf)
			if err != nil {
				t.Fatal(err)
			}
			before := stats.HeaderProbes.Load()
			known, err := c.Dictionary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if known.Present {
				present++
				if stats.HeaderProbes.Load() != before {
					t.Errorf("row group %d, column %q: its dictionary's header was read", g, leaf.Name)
				}
			}
			kept := f.dictionaries
			f.dictionaries = nil
			read, err := c.Dictionary(t.Context())
			f.dictionaries = kept
			if err != nil || read != known {
				t.Errorf("row group %d, column %q: %+v, read %+v (%v)", g, leaf.Name, known, read, err)
			}
		}
	}
	if present == 0 {
		t.Error("no dictionary at all")
	}
}
