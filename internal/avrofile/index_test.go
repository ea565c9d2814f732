package avrofile

import (
	"context"
	"slices"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

// persist keeps values in memory.
type persist map[string][]byte

func (p persist) Get(key string) ([]byte, bool) { v, ok := p[key]; return v, ok }
func (p persist) Put(key string, value []byte)  { p[key] = value }

// counted counts the bytes read of an object.
type counted struct {
	object
	read *int64
}

func (c counted) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	*c.read += int64(len(p))
	return c.object.ReadAt(ctx, p, off)
}

var _ source.Object = counted{}

func TestOpenKept(t *testing.T) {
	rows := make([]map[string]any, 60_000)
	for i := range rows {
		rows[i] = map[string]any{"a": int64(i)}
	}
	obj := write(t, `{"type":"record","name":"r","fields":[{"name":"a","type":"long","field-id":1}]}`, nil, rows...)
	want, err := Open(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	kept := persist{}
	for pass := range 2 {
		read := int64(0)
		f, err := OpenKept(t.Context(), counted{obj, &read}, kept)
		if err != nil {
			t.Fatal(err)
		}
		if f.Rows != 60_000 || !slices.Equal(f.Blocks, want.Blocks) {
			t.Errorf("pass %d: %d blocks of %d rows, want %d of 60000", pass, len(f.Blocks), f.Rows, len(want.Blocks))
		}
		if whole := read >= obj.Size(); whole != (pass == 0) {
			t.Errorf("pass %d read %d of %d bytes", pass, read, obj.Size())
		}
	}
}

// A kept index that is not the file's is not used.
func TestKeptIndexIsChecked(t *testing.T) {
	obj := write(t, `{"type":"record","name":"r","fields":[{"name":"a","type":"long","field-id":1}]}`, nil,
		map[string]any{"a": int64(1)}, map[string]any{"a": int64(2)})
	want, err := Open(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	good := want.encodeIndex()
	tail := len(good) - 1 // the block's rows are before it
	for name, index := range map[string][]byte{
		"empty":            {},
		"cut short":        good[:tail],
		"without blocks":   {5},
		"past the end":     {0xff, 0xff, 0x7f, 1, 1, 0},
		"in the header":    {4, 1, 1, 0},
		"too many rows":    append(slices.Clone(good[:tail-1]), 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0),
		"block of no rows": append(slices.Clone(good[:tail-1]), 0, 0),
		"longer than 64":   slices.Repeat([]byte{0xff}, 11),
	} {
		kept := persist{"avro index|": index}
		f, err := OpenKept(t.Context(), obj, kept)
		if err != nil || f.Rows != 2 || !slices.Equal(kept["avro index|"], good) {
			t.Errorf("%s: %v, kept %v", name, err, kept)
		}
	}
}
