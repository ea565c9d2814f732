package pqfile

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

// memory is an object in memory that counts its reads.
type memory struct {
	data  []byte
	reads int
	bytes int
}

func (m *memory) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	m.reads++
	m.bytes += len(p)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off+int64(len(p)) > int64(len(m.data)) {
		return 0, fmt.Errorf("mem: %w", source.ErrTruncated)
	}
	return copy(p, m.data[off:]), nil
}

func (m *memory) Size() int64      { return int64(len(m.data)) }
func (m *memory) Version() string  { return "mem" }
func (m *memory) Location() string { return "mem:///a.parquet" }

func load(t testing.TB, path string) *memory {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &memory{data: data}
}

func open(t testing.TB, obj source.Object) *File {
	t.Helper()
	f, err := Open(t.Context(), obj, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// withFooter returns the file with its footer changed by edit.
func withFooter(t testing.TB, file []byte, edit func(*FileMetaData)) *memory {
	t.Helper()
	f := open(t, &memory{data: file})
	m := f.Metadata
	edit(m)
	return &memory{data: appendFooter(append([]byte{}, file[:f.footerStart]...), m)}
}

func appendFooter(b []byte, m *FileMetaData) []byte {
	footer := m.Marshal()
	b = append(b, footer...)
	n := len(footer)
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), 'P', 'A', 'R', '1')
}
