package pqfile

import (
	"errors"
	"slices"
	"testing"
)

// Footers whose offsets are off, as real writers write them: the chunk starts
// at its first page all the same.
func TestChunkOffsetsAreMended(t *testing.T) {
	file := load(t, fixtures+"snappy-v1.parquet").data
	plain := load(t, fixtures+"plain-v1.parquet").data
	all := func(edit func(*ColumnMetaData)) func(*FileMetaData) {
		return func(m *FileMetaData) {
			for g := range m.RowGroups {
				for i := range m.RowGroups[g].Columns {
					edit(m.RowGroups[g].Columns[i].MetaData)
				}
			}
		}
	}
	tests := []struct {
		name string
		file []byte
		edit func(*FileMetaData)
	}{
		{"both offsets are the dictionary's", file, all(func(m *ColumnMetaData) {
			if m.DictionaryPageOffset != nil {
				m.DataPageOffset = *m.DictionaryPageOffset
			}
		})},
		{"dictionary offset zero, plain data", plain, all(func(m *ColumnMetaData) { m.DictionaryPageOffset = ptr(int64(0)) })},
		{"dictionary offset zero, data offset is the dictionary's", file, all(func(m *ColumnMetaData) {
			if m.DictionaryPageOffset != nil {
				m.DataPageOffset, m.DictionaryPageOffset = *m.DictionaryPageOffset, ptr(int64(0))
			}
		})},
		{"dictionary offset absent, data offset is the dictionary's", file, all(func(m *ColumnMetaData) {
			if m.DictionaryPageOffset != nil {
				m.DataPageOffset, m.DictionaryPageOffset = *m.DictionaryPageOffset, nil
			}
		})},
		{"dictionary offset absent, data offset is the data's", file, all(func(m *ColumnMetaData) { m.DictionaryPageOffset = nil })},
		{"the same in one column", file, func(m *FileMetaData) { m.RowGroups[0].Columns[3].MetaData.DictionaryPageOffset = nil }},
		{"offsets swapped", file, all(func(m *ColumnMetaData) {
			if m.DictionaryPageOffset != nil {
				*m.DictionaryPageOffset, m.DataPageOffset = m.DataPageOffset, *m.DictionaryPageOffset
			}
		})},
		{"data offset inside the dictionary", file, all(func(m *ColumnMetaData) {
			if m.DictionaryPageOffset != nil {
				m.DataPageOffset = *m.DictionaryPageOffset + 3
			}
		})},
		{"data offset zero", file, all(func(m *ColumnMetaData) {
			if m.DictionaryPageOffset != nil {
				m.DataPageOffset = 0
			}
		})},
	}
	want := values(t, "values.json")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			right := open(t, &memory{data: tt.file})
			f := open(t, withFooter(t, tt.file, tt.edit))
			for g := range f.Metadata.RowGroups {
				for i, leaf := range f.Schema.Leaves {
					a, err := f.Chunk(g, leaf)
					if err != nil {
						t.Fatal(err)
					}
					b, err := right.Chunk(g, right.Schema.Leaves[i])
					if err != nil {
						t.Fatal(err)
					}
					if a.Start != b.Start || a.Length != b.Length {
						t.Errorf("%v: pages at %d, %d bytes long; not %d, %d", leaf.Path, a.Start, a.Length, b.Start, b.Length)
					}
				}
			}
			check(t, f, want)
		})
	}
}

// total_compressed_size too small: what parquet-mr 1.2.8 leaves out is read all
// the same; of any other writer it is an error, never a cut page.
func TestChunkSizeTooSmall(t *testing.T) {
	file := load(t, fixtures+"snappy-v1.parquet").data
	short := func(createdBy string, by int64) func(*FileMetaData) {
		return func(m *FileMetaData) {
			m.CreatedBy = &createdBy
			for g := range m.RowGroups {
				for i := range m.RowGroups[g].Columns {
					m.RowGroups[g].Columns[i].MetaData.TotalCompressedSize -= by
				}
			}
		}
	}
	f := open(t, withFooter(t, file, short("parquet-mr version 1.2.8", 15)))
	check(t, f, values(t, "values.json"))
	if c := firstChunk(t, f); c.TrustedWriter {
		t.Error("such a chunk cannot be copied as it is")
	}
	f = open(t, withFooter(t, file, short("parquet-mr version 1.2.8", 0)))
	check(t, f, values(t, "values.json"))
	for _, by := range []int64{1, 15} {
		f = open(t, withFooter(t, file, short("parquet-mr version 1.12.0 (build x)", by)))
		for _, leaf := range f.Schema.Leaves {
			if _, err := readLeaf(t, f, leaf); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v, %d bytes short: %v", leaf.Path, by, err)
			}
		}
	}
}

func TestChunkErrors(t *testing.T) {
	file := load(t, fixtures+"none-v1.parquet").data
	size := int64(len(file))
	tests := []struct {
		name string
		want error
		edit func(c *ColumnChunk)
	}{
		{"another file", ErrUnsupported, func(c *ColumnChunk) { c.FilePath = ptr("part-1.parquet") }},
		{"negative size", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.TotalCompressedSize = -1 }},
		{"past the end", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.TotalCompressedSize = size }},
		{"size of 2^63", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.TotalCompressedSize = 1<<63 - 1 }},
		{"offset of 2^63", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.DataPageOffset = 1<<63 - 1 }},
		{"negative offset", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.DataPageOffset = -1 }},
		{"offset 0 and no dictionary", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.DataPageOffset, c.MetaData.DictionaryPageOffset = 0, nil }},
		{"another type", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.Type = Int64 }},
		{"another path", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.Path = []string{"x"} }},
		{"another number of values", ErrCorrupt, func(c *ColumnChunk) { c.MetaData.NumValues++ }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := open(t, withFooter(t, file, func(m *FileMetaData) { tt.edit(&m.RowGroups[0].Columns[0]) }))
			if c, err := f.Chunk(0, f.Schema.Leaves[0]); !errors.Is(err, tt.want) {
				t.Errorf("%+v, %v; want %v", c, err, tt.want)
			}
			if _, err := f.Chunk(1, f.Schema.Leaves[0]); err != nil {
				t.Errorf("the other row group: %v", err)
			}
		})
	}
	t.Run("encrypted", func(t *testing.T) {
		f := open(t, &memory{data: file})
		f.Metadata.RowGroups[0].Columns[0] = ColumnChunk{Encrypted: true}
		if _, err := f.Chunk(0, f.Schema.Leaves[0]); !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOffsetIndex(t *testing.T) {
	file := load(t, fixtures+"snappy-v2.parquet").data
	f := open(t, &memory{data: file})
	for g := range f.Metadata.RowGroups {
		for _, leaf := range f.Schema.Leaves {
			c, err := f.Chunk(g, leaf)
			if err != nil {
				t.Fatal(err)
			}
			x, err := c.OffsetIndex(t.Context())
			if err != nil || x == nil {
				t.Fatal(x, err)
			}
			var want []PageLocation
			row := int64(0)
			for s := c.Scan(c.Start, c.Start+c.Length); ; {
				p, err := s.Next(t.Context())
				if err != nil {
					break
				}
				if p.Header.Type == DataPageV2 {
					want = append(want, PageLocation{p.Offset, int32(p.HeaderLen + len(p.Body)), row})
					row += int64(p.Header.DataV2.NumRows)
				}
			}
			if !slices.Equal(x.Pages, want) {
				t.Errorf("%v: %v, want %v", leaf.Path, x.Pages, want)
			}
		}
	}
	// One that belongs elsewhere counts as none.
	for name, edit := range map[string]func(c *ColumnChunk){
		"absent":            func(c *ColumnChunk) { c.OffsetIndexOffset = nil },
		"past the end":      func(c *ColumnChunk) { *c.OffsetIndexLength = 1 << 30 },
		"negative":          func(c *ColumnChunk) { *c.OffsetIndexLength = -1 },
		"cut":               func(c *ColumnChunk) { *c.OffsetIndexLength -= 2 },
		"not an index":      func(c *ColumnChunk) { *c.OffsetIndexOffset = 4 },
		"of another column": func(c *ColumnChunk) { *c.OffsetIndexOffset += int64(*c.OffsetIndexLength) },
	} {
		f := open(t, withFooter(t, file, func(m *FileMetaData) { edit(&m.RowGroups[0].Columns[0]) }))
		if x, err := firstChunk(t, f).OffsetIndex(t.Context()); x != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
}

func TestWriterRules(t *testing.T) {
	tests := []struct {
		createdBy                 string
		short, prefixes, lyingV2s bool
	}{
		{"parquet-mr version 1.2.8", true, true, false},
		{"parquet-mr version 1.2.9", false, true, false},
		{"parquet-mr version 1.5.0-cdh5.9.0 (build abc)", false, true, false},
		{"parquet-mr version 1.8.0 (build 0fda28af84b9746396014ad6a415b90592a98b3b)", false, false, false},
		{"parquet-mr version 1.10.1", false, false, false},
		{"parquet-mr version 1.17.1 (build 78a8d3230eb4769db93de5f2f2e18363c04cae81)", false, false, false},
		{"parquet-mr", false, true, false},
		{"parquet-mr version x.y.z", false, true, false},
		{"", false, true, false},
		{"parquet-cpp version 1.5.1-SNAPSHOT", false, false, true},
		{"parquet-cpp-arrow version 2.0.0", false, false, true},
		{"parquet-cpp-arrow version 3.0.0", false, false, false},
		{"parquet-cpp-arrow version 26.0.1", false, false, false},
		{"DuckDB version v1.5.5 (build 1)", false, false, false},
		{"Polars", false, false, false},
		{"icefs version 1.0.0 (build icefs)", false, false, false},
	}
	for _, tt := range tests {
		w := parseWriter(tt.createdBy)
		if w.shortChunks() != tt.short || w.carriesPrefix() != tt.prefixes || w.lyingV2() != tt.lyingV2s {
			t.Errorf("%q: %+v: %v %v %v", tt.createdBy, w, w.shortChunks(), w.carriesPrefix(), w.lyingV2())
		}
		deltas := &ColumnMetaData{Encodings: []Encoding{DeltaByteArray}}
		zstd := &ColumnMetaData{Codec: Zstd}
		if w.trusts(deltas) == (tt.prefixes || tt.short) || w.trusts(zstd) == (tt.lyingV2s || tt.short) {
			t.Errorf("%q: trusted: delta byte arrays %v, compressed %v", tt.createdBy, w.trusts(deltas), w.trusts(zstd))
		}
	}
}

// Arrow C++ before 3.0: is_compressed is false whatever the body is.
func TestLyingV2(t *testing.T) {
	values := []byte("\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00")
	page := func(createdBy string, body []byte) *handmade {
		m := optional(Int32)
		m.createdBy = createdBy
		m.meta.Codec = Snappy
		h := v2(3, 0, Plain, 2)
		h.DataV2.IsCompressed = ptr(false)
		h.UncompressedSize = int32(2 + len(values))
		m.page(h, append([]byte{6, 1}, body...)...)
		return &m
	}
	z := compress(t, Snappy, values)
	all := []uint8{1, 1, 1}
	page("parquet-cpp version 1.5.1-SNAPSHOT", z).want(t, all, "01000000", "02000000", "03000000")
	page("parquet-cpp version 1.5.1-SNAPSHOT", values).want(t, all, "01000000", "02000000", "03000000")
	page("parquet-cpp-arrow version 3.0.0", values).want(t, all, "01000000", "02000000", "03000000")
	page("parquet-cpp-arrow version 3.0.0", z).wantError(t, ErrCorrupt)
	page("parquet-cpp version 1.5.1-SNAPSHOT", values[1:]).wantError(t, ErrCorrupt)
}

// parquet-mr before 1.8: a page's first value may share a prefix with the last
// one of the page before.
func TestCarriedPrefix(t *testing.T) {
	file := func(createdBy string) *handmade {
		present := []byte{2, 0, 0, 0, 4, 1} // two definition levels 1
		m := optional(ByteArray)
		m.createdBy = createdBy
		m.meta.Encodings = []Encoding{DeltaByteArray}
		m.page(v1(2, DeltaByteArray), slices.Concat(present, deltas(t, 0, 2), deltas(t, 3, 1), []byte("abcX"))...)
		m.page(v1(2, DeltaByteArray), slices.Concat(present, deltas(t, 3, 0), deltas(t, 1, 1), []byte("YZ"))...)
		m.page(v1(2, DeltaByteArray), 2, 0, 0, 0, 4, 0)
		m.page(v1(2, DeltaByteArray), slices.Concat(present, deltas(t, 1, 0), deltas(t, 1, 1), []byte("WV"))...)
		return &m
	}
	for _, createdBy := range []string{"parquet-mr version 1.7.0", "parquet-mr", ""} {
		file(createdBy).want(t, []uint8{1, 1, 1, 1, 0, 0, 1, 1}, "616263", "616258", "61625859", "5a", "5a57", "56") // abc abX abXY Z NULL NULL ZW V
	}
	file("parquet-mr version 1.8.0").wantError(t, ErrCorrupt)

	// Without the page before, it is an error.
	c := firstChunk(t, open(t, &memory{data: file("parquet-mr version 1.7.0").bytes()}))
	s := c.Scan(c.Start, c.Start+c.Length)
	d := c.NewDecoder()
	defer d.Release()
	for i, want := range []error{nil, nil, nil, ErrCorrupt} {
		p, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pd, err := d.Uncompress(p)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			continue // its values are not decoded
		}
		n := pd.NumValues
		if i == 2 {
			n = 0
		}
		if _, err := d.Values(&pd, n); !errors.Is(err, want) {
			t.Errorf("page %d: %v, want %v", i, err, want)
		}
	}
}

// What the footer's offsets tell of a dictionary's length is not taken from
// DuckDB before 1.0, which left its header out.
func TestDictionaryLength(t *testing.T) {
	file := load(t, fixtures+"snappy-v1.parquet").data
	for createdBy, want := range map[string]bool{
		"DuckDB": false, "DuckDB version v0.10.2 (build x)": false, "DuckDB version v1.1.3 (build x)": true, "parquet-mr version 1.12.0": true,
	} {
		f := open(t, withFooter(t, file, func(m *FileMetaData) { m.CreatedBy = &createdBy }))
		c := firstChunk(t, f)
		d, err := c.Dictionary(t.Context())
		if err != nil || !d.Present {
			t.Fatalf("dictionary: %+v, %v", d, err)
		}
		if n, known := c.DictionaryLength(); known != want || n != int64(d.HeaderLen+d.CompressedSize) {
			t.Errorf("%s: %d, %v; want %d, %v", createdBy, n, known, d.HeaderLen+d.CompressedSize, want)
		}
	}
}
