package pqfile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/source"
)

// readVariants reads the value column of testdata/shredded-variant's files, so
// many rows at a time, and returns the values one after another.
func readVariants(t *testing.T, file []byte, step int) ([]byte, error) {
	f, err := Open(t.Context(), &memory{data: file}, Options{})
	if err != nil {
		return nil, err
	}
	p, err := f.Project(Target{Schema: iceberg.NewSchema(0, iceberg.NestedField{ID: 2, Name: "var", Type: iceberg.VariantType{}})})
	if err != nil {
		return nil, err
	}
	var out []byte
	for g := range f.Metadata.RowGroups {
		for i := range p.Columns {
			r, err := f.Column(g, &p.Columns[i])
			if err != nil {
				return nil, err
			}
			defer r.Close()
			for row := f.FirstRow[g]; row < f.FirstRow[g+1]; row += int64(step) {
				v, err := r.Read(t.Context(), step)
				if err != nil {
					return nil, err
				}
				if i == 1 {
					out = append(out, v.Values.Data...)
				}
			}
		}
	}
	return out, nil
}

// Damaged files are errors or other values, never a panic or endless memory.
func TestDamagedShreddedVariants(t *testing.T) {
	files, err := filepath.Glob("../../testdata/shredded-variant/*.parquet")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	failed := 0
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := readVariants(t, b, 1000)
		single, singleErr := readVariants(t, b, 1)
		if !bytes.Equal(whole, single) || (err == nil) != (singleErr == nil) {
			t.Errorf("%s: %x (%v) by one row, %x (%v) at once", path, single, singleErr, whole, err)
		}
		for range 30 {
			damaged := bytes.Clone(b)
			for range 1 + rng.IntN(3) {
				damaged[rng.IntN(len(b))] = byte(rng.UintN(256))
			}
			if _, err := readVariants(t, damaged, 7); err != nil {
				failed++
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrNoFieldIDs) && !errors.Is(err, source.ErrTruncated) {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
	if failed == 0 {
		t.Error("no damage was noticed")
	}
}

func TestVariantObjects(t *testing.T) {
	var d variantNames
	if err := d.read([]byte("\x01\x03\x00\x01\x02\x03cab")); err != nil {
		t.Fatal(err)
	}
	var b variantBuilder
	// {"c": 1, "a": true}, whose values stand in another order than its fields.
	if err := d.addObject(&b, []byte("\x02\x02\x01\x00\x00\x01\x03\x04\x0c\x01")); err != nil {
		t.Fatal(err)
	}
	b.fields = append(b.fields, variantField{2, "b", len(b.data), len(b.data) + 1})
	b.data = append(b.data, 0)
	got, err := b.appendObject(nil)
	if want := "\x02\x03\x01\x02\x00\x00\x01\x02\x04\x04\x00\x0c\x01"; err != nil || string(got) != want {
		t.Errorf("object %x (%v), want %x", got, err, want)
	}
	for _, bad := range []string{
		"", "\x00", "\x03\x00\x00", "\x02", "\x02\x02\x00", "\x02\x01\x09\x00\x01\x00", // no object, cut short, no such name
		"\x02\x01\x00\x02\x01\x00", "\x02\x01\x00\x00\x05\x00", // offsets past the end
		"\x02\x02\x00\x01\x00\x00\x03\x0c\x01\x0c", // two fields over the same bytes
	} {
		b.reset()
		if err := d.addObject(&b, []byte(bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	b.reset()
	for range 300 {
		b.fields = append(b.fields, variantField{from: len(b.data), to: len(b.data) + 1})
		b.data = append(b.data, 0)
	}
	if got := b.appendArray(nil); len(got) != 1+4+2*301+300 || got[0] != 1<<4|1<<2|3 || got[1] != 44 || got[2] != 1 {
		t.Errorf("array of 300: %d bytes, %x…", len(got), got[:5])
	}
}

// Reassembled values are those that Iceberg encodes for the same variants, byte
// for byte.
func TestShreddedVariants(t *testing.T) {
	list, err := os.ReadFile("../../testdata/shredded-variant/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for dec := json.NewDecoder(bytes.NewReader(list)); dec.More(); {
		var c struct {
			File, Invalid string
			Variants      []*string
		}
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile("../../testdata/shredded-variant/" + c.File)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readVariants(t, file, 100)
		if c.Invalid != "" {
			if err == nil {
				t.Errorf("%s: no error, though %s", c.File, c.Invalid)
			}
			continue
		}
		var want []byte
		for _, v := range c.Variants {
			if v == nil {
				continue
			}
			b, err := hex.DecodeString(*v)
			if err != nil {
				t.Fatal(err)
			}
			width := int(b[0]>>6) + 1
			n, rest, _ := takeUint(b[1:], width)
			names, _, _ := takeUint(rest[n*width:], width)
			want = append(want, b[1+width+(n+1)*width+names:]...)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x (%v), want %x", c.File, got, err, want)
		}
		read++
	}
	if read < 120 {
		t.Errorf("only %d cases were read", read)
	}
}
