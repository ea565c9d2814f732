package pqfile

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"testing"
)

func allowed(err error) bool {
	return err == nil || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupported)
}

// A header that decodes is the same after it is encoded again.
func FuzzPageHeader(f *testing.F) {
	stats := &Statistics{MaxValue: []byte("a"), MinValue: []byte{}, NullCount: ptr(int64(1)), MaxExact: ptr(true)}
	for _, h := range []PageHeader{
		{Type: DataPage, CRC: ptr(int32(5)), Data: &DataPageHeader{NumValues: 3, DefinitionEncoding: RLE, Statistics: stats}, Slack: 10},
		{Type: DictionaryPage, Dictionary: &DictionaryPageHeader{NumValues: 3, Sorted: ptr(true)}},
		{Type: DataPageV2, CompressedSize: 9, UncompressedSize: 9, DataV2: &DataPageHeaderV2{NumValues: 3, DefinitionLength: 2, IsCompressed: ptr(false)}},
	} {
		f.Add(h.Append(nil))
	}
	f.Add([]byte("\x15\x02\x15\x00\x15\x00\x99\xfb\x0a\x1c\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again PageHeader
		n, err := UnmarshalPageHeader(b, &h)
		if err != nil {
			if !allowed(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			return
		}
		if n <= 0 || n > len(b) {
			t.Fatalf("length %d of %d", n, len(b))
		}
		out := h.Append(nil)
		if n, err := UnmarshalPageHeader(out, &again); err != nil || n != len(out) || !reflect.DeepEqual(h, again) {
			t.Fatalf("%+v, then %+v, %v", h, again, err)
		}
	})
}

// A footer that decodes is the same after it is encoded again, and can be
// walked.
func FuzzFooter(f *testing.F) {
	f.Add(wholeFooter().Marshal())
	for _, name := range []string{"int96.parquet", "lz4-little.parquet"} {
		file := open(f, load(f, fixtures+name))
		f.Add(file.Metadata.Marshal())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := UnmarshalFileMetaData(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := UnmarshalFileMetaData(m.Marshal())
		if err != nil && !m.Encrypted && !anyEncrypted(m) {
			t.Fatalf("%+v: %v", m, err)
		}
		if err == nil && !bytes.Equal(m.Marshal(), again.Marshal()) {
			t.Fatalf("%+v, then %+v", m, again)
		}
		walk(t, &memory{data: appendFooter(make([]byte, 300), m)})
	})
}

func anyEncrypted(m *FileMetaData) bool {
	for i := range m.RowGroups {
		for j := range m.RowGroups[i].Columns {
			if m.RowGroups[i].Columns[j].Encrypted {
				return true
			}
		}
	}
	return false
}

// walk reads all there is of a file.
func walk(t *testing.T, obj *memory) {
	f, err := Open(t.Context(), obj, Options{})
	if err != nil {
		if !allowed(err) {
			t.Fatal(err)
		}
		return
	}
	f.FootprintBytes()
	for g := range f.Metadata.RowGroups {
		for _, leaf := range f.Schema.Leaves {
			c, err := f.Chunk(g, leaf)
			if err == nil {
				_, err = c.Dictionary(t.Context())
				if _, err := c.OffsetIndex(t.Context()); !allowed(err) {
					t.Fatal(err)
				}
				if !allowed(err) {
					t.Fatal(err)
				}
				var data leafData
				err = data.readChunk(t, c)
			}
			if !allowed(err) {
				t.Fatal(err)
			}
		}
	}
}

// Pages of any bytes, in a chunk of any type and codec.
func FuzzPage(f *testing.F) {
	files, err := filepath.Glob(fixtures + "*-v[12].parquet")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		file := open(f, load(f, path))
		for _, leaf := range file.Schema.Leaves {
			c, err := file.Chunk(len(file.Metadata.RowGroups)-1, leaf)
			if err != nil {
				f.Fatal(err)
			}
			b := file.Object.(*memory).data[c.Start : c.Start+c.Length]
			f.Add(b, uint8(leaf.Type), uint8(c.Meta.Codec), leaf.MaxDef > 0, uint8(leaf.TypeLength))
		}
	}
	f.Fuzz(func(t *testing.T, pages []byte, kind, codec uint8, nullable bool, length uint8) {
		m := required(Type(kind % 8))
		if nullable {
			m = optional(Type(kind % 8))
		}
		m.elem.TypeLength = ptr(int32(length))
		m.meta.Codec = Codec(codec % 9)
		m.pages = pages
		var h PageHeader
		for b := pages; len(b) > 0; { // as many rows as the pages claim
			n, err := UnmarshalPageHeader(b, &h)
			if err != nil || int(h.CompressedSize) > len(b)-n || h.entries() > 1<<20 {
				break
			}
			m.rows += int64(h.entries())
			b = b[n+int(h.CompressedSize):]
		}
		walk(t, &memory{data: m.bytes()})
	})
}
