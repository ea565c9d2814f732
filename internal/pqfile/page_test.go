package pqfile

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"
)

// handmade is a file of one column in one row group, made of pages.
type handmade struct {
	elem      SchemaElement
	meta      ColumnMetaData // Type, Path, offsets and sizes are filled in
	createdBy string
	rows      int64
	pages     []byte
}

func optional(t Type) handmade {
	return handmade{elem: SchemaElement{Type: &t, Repetition: ptr(Optional), Name: "c", FieldID: ptr(int32(1))}}
}

func required(t Type) handmade {
	h := optional(t)
	h.elem.Repetition = ptr(Required)
	return h
}

// page appends a page; the sizes are the body's unless the header has some.
func (m *handmade) page(h PageHeader, body ...byte) {
	h.CompressedSize = int32(len(body))
	if h.UncompressedSize == 0 {
		h.UncompressedSize = int32(len(body))
	}
	m.pages = append(h.Append(m.pages), body...)
	if n := h.entries(); n > 0 {
		m.rows += int64(n)
	}
}

func v1(n int32, e Encoding) PageHeader {
	return PageHeader{Type: DataPage, Data: &DataPageHeader{NumValues: n, Encoding: e, DefinitionEncoding: RLE, RepetitionEncoding: RLE}}
}

func v2(n, nulls int32, e Encoding, levels int32) PageHeader {
	return PageHeader{Type: DataPageV2, DataV2: &DataPageHeaderV2{NumValues: n, NumNulls: nulls, NumRows: n, Encoding: e, DefinitionLength: levels}}
}

func dictionary(n int32) PageHeader {
	return PageHeader{Type: DictionaryPage, Dictionary: &DictionaryPageHeader{NumValues: n, Encoding: Plain}}
}

func (m *handmade) bytes() []byte {
	meta := m.meta
	meta.Type, meta.Path = *m.elem.Type, []string{"c"}
	meta.NumValues, meta.DataPageOffset, meta.TotalCompressedSize = m.rows, 4, int64(len(m.pages))
	footer := &FileMetaData{
		Version: 1, NumRows: m.rows,
		Schema:    []SchemaElement{{Name: "s", NumChildren: ptr(int32(1))}, m.elem},
		RowGroups: []RowGroup{{NumRows: m.rows, Columns: []ColumnChunk{{MetaData: &meta}}}},
	}
	if m.createdBy != "" {
		footer.CreatedBy = &m.createdBy
	}
	return appendFooter(append([]byte("PAR1"), m.pages...), footer)
}

func (m *handmade) read(t *testing.T) (leafData, error) {
	t.Helper()
	f := open(t, &memory{data: m.bytes()})
	return readLeaf(t, f, f.Schema.Leaves[0])
}

// want fails unless the file gives just these levels and values.
func (m *handmade) want(t *testing.T, def []uint8, values ...string) {
	t.Helper()
	data, err := m.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(data.def, def) || !slices.Equal(data.values, values) {
		t.Errorf("levels %v, values %v; want %v, %v", data.def, data.values, def, values)
	}
}

// wantError fails unless reading the file is this error.
func (m *handmade) wantError(t *testing.T, want error) {
	t.Helper()
	if data, err := m.read(t); !errors.Is(err, want) {
		t.Errorf("values %v, error %v; want %v", data.values, err, want)
	}
}

func firstChunk(t testing.TB, f *File) *Chunk {
	t.Helper()
	c, err := f.Chunk(0, f.Schema.Leaves[0])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestScanWindows(t *testing.T) {
	// Pages of very different sizes, with long headers, across window borders.
	sizes := []int{10, 700 << 10, 400 << 10, 3 << 20, 1, 0, 5000, 1 << 20}
	m := required(FixedLenByteArray)
	m.elem.TypeLength = ptr(int32(1))
	var bodies [][]byte
	for i, n := range sizes {
		body := bytes.Repeat([]byte{byte(i + 1)}, n)
		bodies = append(bodies, body)
		h := v1(int32(n), Plain)
		h.CRC = ptr(int32(crc32.ChecksumIEEE(body)))
		h.Slack = []int{0, 6, 300, 2 << 20, 0, 100000, 7, 0}[i]
		m.page(h, body...)
	}
	obj := &memory{data: m.bytes()}
	c := firstChunk(t, open(t, obj))
	obj.reads, obj.bytes = 0, 0
	s := c.Scan(c.Start, c.Start+c.Length)
	var offsets []int64
	for i, want := range bodies {
		p, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.Body, want) || p.Header.entries() != len(want) {
			t.Fatalf("page %d differs", i)
		}
		offsets = append(offsets, p.Offset)
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Fatal(err)
	}
	if int64(obj.bytes) != c.Length {
		t.Errorf("read %d bytes in %d reads of a chunk of %d", obj.bytes, obj.reads, c.Length)
	}
	if obj.reads > 10 {
		t.Errorf("%d reads", obj.reads)
	}

	// A part of the chunk: reads nothing else.
	obj.bytes = 0
	s = c.Scan(offsets[4], offsets[6])
	for _, i := range []int{4, 5} {
		p, err := s.Next(t.Context())
		if err != nil || !bytes.Equal(p.Body, bodies[i]) || p.Offset != offsets[i] {
			t.Fatal(i, err)
		}
	}
	if _, err := s.Next(t.Context()); err != io.EOF || int64(obj.bytes) != offsets[6]-offsets[4] {
		t.Errorf("%v, %d bytes", err, obj.bytes)
	}
}

func TestScanErrors(t *testing.T) {
	page := v1(2, Plain)
	body := []byte{1, 0, 0, 0, 2, 0, 0, 0}
	t.Run("checksum", func(t *testing.T) {
		m := required(Int32)
		page := page
		page.CRC = ptr(int32(1))
		m.page(page, body...)
		m.wantError(t, ErrCorrupt)
	})
	t.Run("page cut by its chunk", func(t *testing.T) {
		m := required(Int32)
		m.page(page, body...)
		m.pages = m.pages[:len(m.pages)-1]
		m.wantError(t, ErrCorrupt)
	})
	t.Run("header cut by its chunk", func(t *testing.T) {
		m := required(Int32)
		m.page(page, body...)
		m.rows = 3
		m.pages = append(m.pages, 0x15, 0)
		m.wantError(t, ErrCorrupt)
	})
	t.Run("too few values", func(t *testing.T) {
		m := required(Int32)
		m.page(page, body...)
		m.rows = 3
		m.wantError(t, ErrCorrupt)
	})
	t.Run("too many values", func(t *testing.T) {
		m := required(Int32)
		m.page(page, body...)
		m.rows = 1
		m.wantError(t, ErrCorrupt)
	})
	t.Run("bytes after the last page", func(t *testing.T) {
		for _, tail := range [][]byte{{0}, make([]byte, 100), {0x15}, []byte("garbage"), {0x15, 0, 0x15, 0xff, 0xff}} {
			m := required(Int32)
			m.page(page, body...)
			m.pages = append(m.pages, tail...)
			m.want(t, nil, "01000000", "02000000")
		}
	})
	t.Run("index page", func(t *testing.T) {
		m := required(Int32)
		m.page(PageHeader{Type: IndexPage}, 1, 2, 3)
		m.page(page, body...)
		m.want(t, nil, "01000000", "02000000")
	})
	t.Run("cancelled", func(t *testing.T) {
		m := required(Int32)
		m.page(page, body...)
		c := firstChunk(t, open(t, &memory{data: m.bytes()}))
		s := c.Scan(c.Start, c.Start+c.Length)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if p, err := s.Next(t.Context()); err != nil || !bytes.Equal(p.Body, body) {
			t.Errorf("again: %v", err)
		}
	})
}

func TestPageKinds(t *testing.T) {
	no := ptr(false)
	t.Run("all NULL, V1", func(t *testing.T) {
		m := optional(Int64)
		m.page(v1(3, Plain), 2, 0, 0, 0, 6, 0) // length 2: 3 times 0
		m.want(t, []uint8{0, 0, 0})
	})
	t.Run("all NULL, V2 with an empty body", func(t *testing.T) {
		for _, codec := range []Codec{Uncompressed, Snappy, Zstd, Gzip, LZ4Raw, Brotli, LZ4} {
			for _, compressed := range []*bool{nil, no} {
				m := optional(Int64)
				m.meta.Codec = codec
				h := v2(3, 3, Plain, 2)
				h.DataV2.IsCompressed = compressed
				m.page(h, 6, 0)
				m.want(t, []uint8{0, 0, 0})
			}
		}
	})
	t.Run("all NULL, V2 with the compressed form of nothing", func(t *testing.T) {
		m := optional(Int64)
		m.meta.Codec = Snappy
		h := v2(3, 3, Plain, 2)
		h.UncompressedSize = 2
		m.page(h, 6, 0, 0)
		m.want(t, []uint8{0, 0, 0})
	})
	t.Run("all NULL, dictionary-coded, no width and no dictionary", func(t *testing.T) {
		m := optional(Int64)
		m.page(v2(3, 3, RLEDictionary, 2), 6, 0)
		m.want(t, []uint8{0, 0, 0})
	})
	t.Run("V2, not compressed in a compressed chunk", func(t *testing.T) {
		m := optional(Int32)
		m.meta.Codec = Zstd
		h := v2(3, 1, Plain, 2)
		h.DataV2.IsCompressed = no
		m.page(h, 3, 0b101, 1, 0, 0, 0, 2, 0, 0, 0)
		m.want(t, []uint8{1, 0, 1}, "01000000", "02000000")
	})
	t.Run("indexes of width 0", func(t *testing.T) {
		for _, body := range [][]byte{{0}, {0, 6}} {
			m := required(Int32)
			m.page(dictionary(1), 7, 0, 0, 0)
			m.page(v1(3, PlainDictionary), body...)
			m.want(t, nil, "07000000", "07000000", "07000000")
		}
	})
	t.Run("legacy BIT_PACKED levels", func(t *testing.T) {
		m := optional(Int32)
		h := v1(3, Plain)
		h.Data.DefinitionEncoding, h.Data.RepetitionEncoding = BitPacked, BitPacked
		m.page(h, 0b10100000, 1, 0, 0, 0, 2, 0, 0, 0)
		m.want(t, []uint8{1, 0, 1}, "01000000", "02000000")
	})
	t.Run("RLE booleans", func(t *testing.T) {
		m := required(Boolean)
		m.page(v1(11, RLE), 4, 0, 0, 0, 3, 0b10110010, 6, 1)
		m.want(t, nil, "00", "01", "00", "00", "01", "01", "00", "01", "01", "01", "01")
	})
	t.Run("bytes after the values", func(t *testing.T) {
		m := required(Int32)
		m.page(v1(1, Plain), 1, 0, 0, 0, 0, 0, 0, 0)
		m.want(t, nil, "01000000")
	})
}

func TestPageErrors(t *testing.T) {
	tests := []struct {
		name string
		want error
		make func() handmade
	}{
		{"values missing", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(v1(2, Plain), 1, 0, 0, 0)
			return m
		}},
		{"string past the end", ErrCorrupt, func() handmade {
			m := required(ByteArray)
			m.page(v1(1, Plain), 2, 0, 0, 0, 'a')
			return m
		}},
		{"string of 4 GiB", ErrCorrupt, func() handmade {
			m := required(ByteArray)
			m.page(v1(1, Plain), 255, 255, 255, 255, 'a')
			return m
		}},
		{"levels past the end", ErrCorrupt, func() handmade {
			m := optional(Int32)
			m.page(v1(1, Plain), 9, 0, 0, 0, 2, 1)
			return m
		}},
		{"no levels", ErrCorrupt, func() handmade {
			m := optional(Int32)
			m.page(v1(1, Plain))
			return m
		}},
		{"levels end early", ErrCorrupt, func() handmade {
			m := optional(Int32)
			m.page(v1(9, Plain), 2, 0, 0, 0, 4, 0)
			return m
		}},
		{"level above the maximum", ErrCorrupt, func() handmade {
			m := optional(Int32)
			m.page(v1(1, Plain), 2, 0, 0, 0, 2, 2)
			return m
		}},
		{"index past the dictionary", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(1), 7, 0, 0, 0)
			m.page(v1(1, RLEDictionary), 1, 2, 1)
			return m
		}},
		{"packed index past the dictionary", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(3), 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0)
			m.page(v1(4, RLEDictionary), 2, 3, 0b11_10_01_00, 0)
			return m
		}},
		{"index into an empty dictionary", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(0))
			m.page(v1(1, RLEDictionary), 0)
			return m
		}},
		{"no dictionary", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(v1(1, RLEDictionary), 0)
			return m
		}},
		{"no width", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(1), 7, 0, 0, 0)
			m.page(v1(1, RLEDictionary))
			return m
		}},
		{"width 33", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(1), 7, 0, 0, 0)
			m.page(v1(1, RLEDictionary), 33, 2, 0, 0, 0, 0, 0)
			return m
		}},
		{"two dictionaries", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(1), 7, 0, 0, 0)
			m.page(dictionary(1), 8, 0, 0, 0)
			m.page(v1(1, RLEDictionary), 0)
			return m
		}},
		{"dictionary lacks values", ErrCorrupt, func() handmade {
			m := required(Int32)
			m.page(dictionary(2), 7, 0, 0, 0)
			m.page(v1(1, RLEDictionary), 0)
			return m
		}},
		{"unknown encoding", ErrUnsupported, func() handmade {
			m := required(Int32)
			m.page(v1(1, 10), 7, 0, 0, 0)
			return m
		}},
		{"encoding of another type", ErrUnsupported, func() handmade {
			m := required(Double)
			m.page(v1(1, DeltaBinaryPacked), 128, 1, 4, 1, 0)
			return m
		}},
		{"2^30 values in a few bytes", ErrUnsupported, func() handmade {
			m := optional(Int32)
			m.page(v1(1<<30, Plain), 6, 0, 0, 0, 128, 128, 128, 128, 8, 0)
			return m
		}},
		{"LZO", ErrUnsupported, func() handmade {
			m := required(Int32)
			m.meta.Codec = LZO
			m.page(v1(1, Plain), 1, 2, 3, 4)
			return m
		}},
		{"unknown codec", ErrUnsupported, func() handmade {
			m := required(Int32)
			m.meta.Codec = 8
			m.page(v1(1, Plain), 1, 2, 3, 4)
			return m
		}},
		{"uncompressed sizes differ", ErrCorrupt, func() handmade {
			m := required(Int32)
			h := v1(1, Plain)
			h.UncompressedSize = 5
			m.page(h, 1, 2, 3, 4)
			return m
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.make()
			m.wantError(t, tt.want)
		})
	}
}
