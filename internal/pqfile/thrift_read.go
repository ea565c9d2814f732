package pqfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// UnmarshalFileMetaData decodes a footer; allocations are bounded by len(b),
// and nothing of the result aliases b.
func UnmarshalFileMetaData(b []byte) (*FileMetaData, error) {
	r := thriftReader{b: b}
	m := r.fileMetaData()
	if r.err != nil {
		return nil, corruptEOF("footer", r.err)
	}
	return m, nil
}

// corruptEOF turns the end of a buffer that should be whole into ErrCorrupt.
func corruptEOF(what string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s ends too early", ErrCorrupt, what)
	}
	return err
}

// The least bytes that a list's elements take, by their required fields.
const (
	minSchemaElement = 3
	minRowGroup      = 5
	minColumnChunk   = 18 // with its metadata, encrypted or not
	minSortingColumn = 5
	minKeyValue      = 3
	minEncodingStats = 7
	minPageLocation  = 7
)

func (r *thriftReader) fileMetaData() *FileMetaData {
	m := &FileMetaData{}
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			m.Version = r.i32(&f)
		case 2:
			m.Schema = make([]SchemaElement, r.list(&f, thriftStruct, minSchemaElement))
			for i := range m.Schema {
				r.schemaElement(&m.Schema[i])
			}
		case 3:
			m.NumRows = r.i64(&f)
		case 4:
			m.RowGroups = make([]RowGroup, r.list(&f, thriftStruct, minRowGroup))
			for i := range m.RowGroups {
				r.rowGroup(&m.RowGroups[i], &m.RowGroups[0])
			}
		case 5:
			m.KeyValue = r.keyValues(&f)
		case 6:
			m.CreatedBy = r.optString(&f)
		case 7:
			m.ColumnOrders = r.columnOrders(&f)
		case 8:
			m.Encrypted = true
			r.skip(&f)
		default:
			r.skip(&f)
		}
	}
	r.require("FileMetaData", &f, 2, 3, 4)
	return m
}

func (r *thriftReader) columnOrders(f *thriftField) (typeDefined int) {
	for n := r.list(f, thriftStruct, 1); n > 0 && r.err == nil; n-- {
		for u := (thriftField{}); r.next(&u); r.skip(&u) {
			if u.id == 1 {
				typeDefined++
			}
		}
	}
	return typeDefined
}

func (r *thriftReader) keyValues(f *thriftField) []KeyValue {
	list := make([]KeyValue, r.list(f, thriftStruct, minKeyValue))
	for i := range list {
		var f thriftField
		for r.next(&f) {
			switch f.id {
			case 1:
				list[i].Key = r.string(&f)
			case 2:
				list[i].Value = r.optString(&f)
			default:
				r.skip(&f)
			}
		}
		r.require("KeyValue", &f, 1)
	}
	return list
}

func (r *thriftReader) schemaElement(e *SchemaElement) {
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			v := Type(r.i32(&f))
			e.Type = &v
		case 2:
			e.TypeLength = r.optI32(&f)
		case 3:
			v := Repetition(r.i32(&f))
			e.Repetition = &v
		case 4:
			e.Name = r.string(&f)
		case 5:
			e.NumChildren = r.optI32(&f)
		case 6:
			e.ConvertedType = r.optI32(&f)
		case 7:
			e.Scale = r.optI32(&f)
		case 8:
			e.Precision = r.optI32(&f)
		case 9:
			e.FieldID = r.optI32(&f)
		case 10:
			e.LogicalType = r.logicalType(&f)
		default:
			r.skip(&f)
		}
	}
	r.require("SchemaElement", &f, 4)
}

// logicalType reads the union; a member that this package does not know keeps
// its number as Kind.
func (r *thriftReader) logicalType(f *thriftField) *LogicalType {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	l := &LogicalType{}
	for u := (thriftField{}); r.next(&u); {
		l.Kind = LogicalKind(u.id)
		if !r.expect(&u, thriftStruct) {
			break
		}
		for m := (thriftField{}); r.next(&m); {
			r.logicalField(l, &m)
		}
	}
	return l
}

func (r *thriftReader) logicalField(l *LogicalType, m *thriftField) {
	switch {
	case l.Kind == LogicalDecimal && m.id == 1:
		l.Scale = r.i32(m)
	case l.Kind == LogicalDecimal && m.id == 2:
		l.Precision = r.i32(m)
	case (l.Kind == LogicalTime || l.Kind == LogicalTimestamp) && m.id == 1:
		l.UTC = r.bool(m)
	case (l.Kind == LogicalTime || l.Kind == LogicalTimestamp) && m.id == 2:
		if r.expect(m, thriftStruct) {
			for u := (thriftField{}); r.next(&u); r.skip(&u) {
				l.Unit = TimeUnit(u.id)
			}
		}
	case l.Kind == LogicalInteger && m.id == 1:
		l.BitWidth = int8(r.i32(m))
	case l.Kind == LogicalInteger && m.id == 2:
		l.Signed = r.bool(m)
	case l.Kind == LogicalVariant && m.id == 1:
		l.SpecVersion = int8(r.i32(m))
	case (l.Kind == LogicalGeometry || l.Kind == LogicalGeography) && m.id == 1:
		l.CRS = r.string(m)
	case l.Kind == LogicalGeography && m.id == 2:
		l.Algorithm = r.optI32(m)
	default:
		r.skip(m)
	}
}

// rowGroup reads a row group; first is the file's first one, whose column paths
// are shared where they are the same.
func (r *thriftReader) rowGroup(g, first *RowGroup) {
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			g.Columns = make([]ColumnChunk, r.list(&f, thriftStruct, minColumnChunk))
			for i := range g.Columns {
				var same []string
				if g != first && i < len(first.Columns) && first.Columns[i].MetaData != nil {
					same = first.Columns[i].MetaData.Path
				}
				r.columnChunk(&g.Columns[i], same)
			}
		case 2:
			g.TotalByteSize = r.i64(&f)
		case 3:
			g.NumRows = r.i64(&f)
		case 4:
			g.SortingColumns = r.sortingColumns(&f)
		case 5:
			g.FileOffset = r.optI64(&f)
		case 6:
			g.TotalCompressedSize = r.optI64(&f)
		case 7:
			v := int16(r.i32(&f))
			g.Ordinal = &v
		default:
			r.skip(&f)
		}
	}
	r.require("RowGroup", &f, 1, 3)
}

func (r *thriftReader) sortingColumns(f *thriftField) []SortingColumn {
	list := make([]SortingColumn, r.list(f, thriftStruct, minSortingColumn))
	for i := range list {
		var f thriftField
		for r.next(&f) {
			switch f.id {
			case 1:
				list[i].Column = r.i32(&f)
			case 2:
				list[i].Descending = r.bool(&f)
			case 3:
				list[i].NullsFirst = r.bool(&f)
			default:
				r.skip(&f)
			}
		}
		r.require("SortingColumn", &f, 1, 2, 3)
	}
	return list
}

func (r *thriftReader) columnChunk(c *ColumnChunk, same []string) {
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			c.FilePath = r.optString(&f)
		case 2:
			c.FileOffset = r.i64(&f)
		case 3:
			c.MetaData = r.columnMetaData(&f, same)
		case 4:
			c.OffsetIndexOffset = r.optI64(&f)
		case 5:
			c.OffsetIndexLength = r.optI32(&f)
		case 6:
			c.ColumnIndexOffset = r.optI64(&f)
		case 7:
			c.ColumnIndexLength = r.optI32(&f)
		case 8, 9:
			c.Encrypted = true
			r.skip(&f)
		default:
			r.skip(&f)
		}
	}
	if r.err == nil && c.MetaData == nil && !c.Encrypted {
		r.corrupt("ColumnChunk lacks its metadata")
	}
}

func (r *thriftReader) columnMetaData(f *thriftField, same []string) *ColumnMetaData {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	m := &ColumnMetaData{}
	var g thriftField
	for r.next(&g) {
		switch g.id {
		case 1:
			m.Type = Type(r.i32(&g))
		case 2:
			m.Encodings = make([]Encoding, r.list(&g, thriftI32, 1))
			for i := range m.Encodings {
				m.Encodings[i] = Encoding(r.varint())
			}
		case 3:
			m.Path = r.path(&g, same)
		case 4:
			m.Codec = Codec(r.i32(&g))
		case 5:
			m.NumValues = r.i64(&g)
		case 6:
			m.TotalUncompressedSize = r.i64(&g)
		case 7:
			m.TotalCompressedSize = r.i64(&g)
		case 8:
			m.KeyValue = r.keyValues(&g)
		case 9:
			m.DataPageOffset = r.i64(&g)
		case 10:
			m.IndexPageOffset = r.optI64(&g)
		case 11:
			m.DictionaryPageOffset = r.optI64(&g)
		case 12:
			m.Statistics = r.statistics(&g)
		case 13:
			m.EncodingStats = r.encodingStats(&g)
		case 14:
			m.BloomFilterOffset = r.optI64(&g)
		case 15:
			m.BloomFilterLength = r.optI32(&g)
		case 16:
			m.SizeStatistics = r.sizeStatistics(&g)
		default:
			r.skip(&g)
		}
	}
	r.require("ColumnMetaData", &g, 1, 3, 4, 5, 7, 9)
	return m
}

// path reads a list of names, or returns same if they are equal.
func (r *thriftReader) path(f *thriftField, same []string) []string {
	n := r.list(f, thriftBinary, 1)
	start := r.pos
	if n == len(same) {
		equal := true
		for i := 0; i < n && equal; i++ {
			equal = string(r.raw()) == same[i]
		}
		if equal {
			return same
		}
		r.pos = start
	}
	path := make([]string, n)
	for i := range path {
		path[i] = string(r.raw())
	}
	return slices.Clip(path)
}

func (r *thriftReader) statistics(f *thriftField) *Statistics {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	s := &Statistics{}
	for g := (thriftField{}); r.next(&g); {
		switch g.id {
		case 1:
			s.Max = r.bytes(&g)
		case 2:
			s.Min = r.bytes(&g)
		case 3:
			s.NullCount = r.optI64(&g)
		case 4:
			s.DistinctCount = r.optI64(&g)
		case 5:
			s.MaxValue = r.bytes(&g)
		case 6:
			s.MinValue = r.bytes(&g)
		case 7:
			s.MaxExact = r.optBool(&g)
		case 8:
			s.MinExact = r.optBool(&g)
		default:
			r.skip(&g)
		}
	}
	return s
}

func (r *thriftReader) encodingStats(f *thriftField) []PageEncodingStats {
	list := make([]PageEncodingStats, r.list(f, thriftStruct, minEncodingStats))
	for i := range list {
		var f thriftField
		for r.next(&f) {
			switch f.id {
			case 1:
				list[i].PageType = PageType(r.i32(&f))
			case 2:
				list[i].Encoding = Encoding(r.i32(&f))
			case 3:
				list[i].Count = r.i32(&f)
			default:
				r.skip(&f)
			}
		}
		r.require("PageEncodingStats", &f, 1, 2, 3)
	}
	return list
}

func (r *thriftReader) sizeStatistics(f *thriftField) *SizeStatistics {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	s := &SizeStatistics{}
	for g := (thriftField{}); r.next(&g); {
		switch g.id {
		case 1:
			s.UnencodedByteArrayBytes = r.optI64(&g)
		case 2:
			s.RepetitionHistogram = r.int64s(&g)
		case 3:
			s.DefinitionHistogram = r.int64s(&g)
		default:
			r.skip(&g)
		}
	}
	return s
}

// unmarshalOffsetIndex decodes an offset index; allocations are bounded by len(b).
func unmarshalOffsetIndex(b []byte) (*OffsetIndex, error) {
	r := thriftReader{b: b}
	x := &OffsetIndex{}
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			x.Pages = make([]PageLocation, r.list(&f, thriftStruct, minPageLocation))
			for i := range x.Pages {
				r.pageLocation(&x.Pages[i])
			}
		case 2:
			x.UnencodedByteArrayBytes = r.int64s(&f)
		default:
			r.skip(&f)
		}
	}
	r.require("OffsetIndex", &f, 1)
	if r.err != nil {
		return nil, corruptEOF("offset index", r.err)
	}
	return x, nil
}

func (r *thriftReader) pageLocation(p *PageLocation) {
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			p.Offset = r.i64(&f)
		case 2:
			p.CompressedSize = r.i32(&f)
		case 3:
			p.FirstRow = r.i64(&f)
		default:
			r.skip(&f)
		}
	}
	r.require("PageLocation", &f, 1, 2, 3)
}
