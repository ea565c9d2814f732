package merge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// memoryObject is an object in memory.
type memoryObject []byte

var _ source.Object = memoryObject(nil)

func (o memoryObject) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(o).ReadAt(p, off)
}
func (o memoryObject) Size() int64      { return int64(len(o)) }
func (o memoryObject) Version() string  { return "memory" }
func (o memoryObject) Location() string { return "memory" }

// checkParquet checks what docs/virtual-parquet.md promises of every view's
// bytes: rules that some reader gives wrong rows or errors without.
func checkParquet(t testing.TB, data []byte) {
	t.Helper()
	f, err := pqfile.Open(context.Background(), memoryObject(data), pqfile.Options{})
	if err != nil {
		t.Fatalf("own footer: %v", err)
	}
	m := f.Metadata
	if m.ColumnOrders != len(f.Schema.Leaves) {
		t.Errorf("%d column orders for %d columns", m.ColumnOrders, len(f.Schema.Leaves))
	}
	for _, kv := range m.KeyValue {
		if kv.Key == "ARROW:schema" || kv.Key == "pandas" {
			t.Errorf("footer keeps %q of a source", kv.Key)
		}
	}
	var places [][2]int64 // of chunks
	for g := range m.RowGroups {
		rg := &m.RowGroups[g]
		if rg.NumRows == 0 {
			t.Errorf("row group %d has no rows", g)
		}
		sum := int64(0)
		for c := range rg.Columns {
			meta := rg.Columns[c].MetaData
			sum += meta.TotalCompressedSize
			checkChunkEntry(t, meta)
			checkPages(t, f, g, f.Schema.Leaves[c])
			start := meta.DataPageOffset
			if meta.DictionaryPageOffset != nil {
				start = *meta.DictionaryPageOffset
			}
			places = append(places, [2]int64{start, start + meta.TotalCompressedSize})
		}
		if rg.Ordinal != nil || rg.TotalCompressedSize == nil || *rg.TotalCompressedSize != sum {
			t.Errorf("row group %d: ordinal %v, total_compressed_size %v, want none and %d", g, rg.Ordinal, rg.TotalCompressedSize, sum)
		}
	}
	slices.SortFunc(places, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	end := int64(len(magic))
	for _, p := range places {
		if p[0] != end && p[0] != (end+remotePage-1)&^(remotePage-1) { // over a store
			t.Errorf("a chunk starts at %d, the one before ends at %d", p[0], end)
		}
		end = p[1]
	}
	for c, leaf := range f.Schema.Leaves {
		checkStatistics(t, f, c, leaf)
	}
}

func checkChunkEntry(t testing.TB, m *pqfile.ColumnMetaData) {
	t.Helper()
	if len(m.EncodingStats) > 0 || m.BloomFilterOffset != nil || slices.Contains(m.Encodings, pqfile.PlainDictionary) {
		t.Errorf("%v: encoding statistics, bloom filter or PLAIN_DICTIONARY kept from a source", m.Path)
	}
	if m.DictionaryPageOffset != nil && *m.DictionaryPageOffset >= m.DataPageOffset {
		t.Errorf("%v: dictionary page at %d, data pages at %d", m.Path, *m.DictionaryPageOffset, m.DataPageOffset)
	}
	if m.Codec == pqfile.LZ4 || m.Codec == pqfile.LZO {
		t.Errorf("%v: codec %d", m.Path, m.Codec)
	}
}

// checkPages checks that pages tile the chunk, dictionary first and
// dictionary-coded pages before others, each with its byte for the width of its
// indexes, and that its numbers add up.
func checkPages(t testing.TB, f *pqfile.File, group int, leaf *pqfile.Node) {
	t.Helper()
	chunk, err := f.Chunk(group, leaf)
	if err != nil {
		t.Fatal(err)
	}
	values, end := int64(0), chunk.Start
	first, plain := true, false
	dec := chunk.NewDecoder()
	defer dec.Release()
	for scan := chunk.Scan(chunk.Start, chunk.Start+chunk.Length); ; first = false {
		p, err := scan.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v: %v", leaf.Path, err)
		}
		if p.Offset != end {
			t.Errorf("%v: page at %d, the one before ends at %d", leaf.Path, p.Offset, end)
		}
		end = p.Offset + int64(p.HeaderLen) + int64(len(p.Body))
		switch p.Header.Type {
		case pqfile.DictionaryPage:
			// Some writers store a dictionary without values; it stays in raw chunks.
			empty := p.Header.UncompressedSize == 0 && p.Header.Dictionary.NumValues > 0
			if !first || empty || chunk.Meta.DictionaryPageOffset == nil {
				t.Errorf("%v: dictionary page of %d bytes, first %v, offset %v", leaf.Path, p.Header.UncompressedSize, first, chunk.Meta.DictionaryPageOffset)
			}
		case pqfile.DataPage:
			values += int64(p.Header.Data.NumValues)
		case pqfile.DataPageV2:
			values += int64(p.Header.DataV2.NumValues)
		}
		if p.Header.Type != pqfile.DictionaryPage {
			data, err := dec.Uncompress(p)
			if err != nil {
				t.Fatalf("%v: %v", leaf.Path, err)
			}
			coded := data.Encoding == pqfile.RLEDictionary || data.Encoding == pqfile.PlainDictionary
			if coded && (plain || len(data.Values) == 0) {
				t.Errorf("%v: dictionary-coded page of %d bytes, after a plain one: %v", leaf.Path, len(data.Values), plain)
			}
			plain = plain || !coded
		}
		if p.HeaderLen > maxSlack+headerBound+512 {
			t.Errorf("%v: page header of %d bytes", leaf.Path, p.HeaderLen)
		}
	}
	if end != chunk.Start+chunk.Length || values != chunk.Meta.NumValues {
		t.Errorf("%v: pages end at %d with %d values, the footer says %d and %d", leaf.Path, end, values, chunk.Start+chunk.Length, chunk.Meta.NumValues)
	}
}

// checkStatistics checks that a column has exact statistics in every row group
// or in none.
func checkStatistics(t testing.TB, f *pqfile.File, c int, leaf *pqfile.Node) {
	t.Helper()
	with := 0
	for g := range f.Metadata.RowGroups {
		m := f.Metadata.RowGroups[g].Columns[c].MetaData
		s := m.Statistics
		if s == nil {
			continue
		}
		with++
		lower, upper, nulls := extremes(t, f, g, leaf)
		if s.NullCount == nil || *s.NullCount != nulls || s.Min != nil || s.Max != nil {
			t.Fatalf("%v group %d: statistics %+v, %d NULLs", leaf.Path, g, s, nulls)
		}
		if (s.MinValue == nil) != (nulls == m.NumValues) || (s.MaxValue == nil) != (nulls == m.NumValues) {
			t.Fatalf("%v group %d: bounds %x to %x with %d of %d NULL", leaf.Path, g, s.MinValue, s.MaxValue, nulls, m.NumValues)
		}
		if lower == nil {
			continue
		}
		if compareBounds(leaf, s.MinValue, lower) != 0 || compareBounds(leaf, s.MaxValue, upper) != 0 || !*s.MinExact || !*s.MaxExact {
			t.Errorf("%v group %d: bounds %x to %x, values are from %x to %x", leaf.Path, g, s.MinValue, s.MaxValue, lower, upper)
		}
		if isNaN(leaf, lower) || isNaN(leaf, upper) {
			t.Errorf("%v group %d: NaN in a column with statistics", leaf.Path, g)
		}
	}
	if with != 0 && with != len(f.Metadata.RowGroups) {
		t.Errorf("%v: statistics in %d of %d row groups", leaf.Path, with, len(f.Metadata.RowGroups))
	}
}

// extremes decodes a chunk and finds its bounds the slow way.
func extremes(t testing.TB, f *pqfile.File, group int, leaf *pqfile.Node) (lower, upper []byte, nulls int64) {
	t.Helper()
	chunk, err := f.Chunk(group, leaf)
	if err != nil {
		t.Fatal(err)
	}
	d := chunk.NewDecoder()
	defer d.Release()
	for scan := chunk.Scan(chunk.Start, chunk.Start+chunk.Length); ; {
		p, err := scan.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return lower, upper, nulls
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Header.Type == pqfile.DictionaryPage {
			if err := d.SetDictionary(p); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := d.Uncompress(p)
		if err != nil {
			t.Fatal(err)
		}
		_, def, err := d.Levels(&data)
		if err != nil {
			t.Fatal(err)
		}
		present := data.NumValues
		if def != nil {
			present = bytes.Count(def, []byte{uint8(leaf.MaxDef)})
		}
		nulls += int64(data.NumValues - present)
		v, err := d.Values(&data, present)
		if err != nil {
			t.Fatal(err)
		}
		for i := range present {
			b := plainValue(&v, i)
			if isNaN(leaf, b) {
				t.Fatalf("%v group %d: NaN in a column with statistics", leaf.Path, group)
			}
			if lower == nil || compareBounds(leaf, b, lower) < 0 {
				lower = b
			}
			if upper == nil || compareBounds(leaf, b, upper) > 0 {
				upper = b
			}
		}
	}
}

// plainValue copies value i.
func plainValue(v *pqfile.Values, i int) []byte {
	if v.Dict != nil {
		v, i = v.Dict, int(v.Index[i])
	}
	var b []byte
	switch {
	case v.Bools != nil:
		b = v.Bools[i : i+1]
	case v.Offsets != nil:
		b = v.Data[v.Offsets[i]:v.Offsets[i+1]]
	default:
		b = v.Fixed[i*v.Width : (i+1)*v.Width]
	}
	return append([]byte{}, b...)
}
