package pqfile

// Marshal encodes a footer (without magic and length). Absent fields stay
// absent: a chunk without Statistics has no field 12. What says that a file is
// encrypted is not written.
func (m *FileMetaData) Marshal() []byte {
	w := thriftWriter{b: make([]byte, 0, m.sizeHint())}
	w.i32(1, m.Version)
	w.list(2, thriftStruct, len(m.Schema))
	for i := range m.Schema {
		w.schemaElement(&m.Schema[i])
	}
	w.i64(3, m.NumRows)
	w.list(4, thriftStruct, len(m.RowGroups))
	for i := range m.RowGroups {
		w.rowGroup(&m.RowGroups[i])
	}
	if m.KeyValue != nil {
		w.keyValues(5, m.KeyValue)
	}
	w.optString(6, m.CreatedBy)
	if m.ColumnOrders > 0 {
		w.list(7, thriftStruct, m.ColumnOrders)
		for range m.ColumnOrders {
			w.typeDefinedOrder()
		}
	}
	w.b = append(w.b, thriftStop)
	return w.b
}

// sizeHint guesses the encoded size: about 120 bytes a chunk.
func (m *FileMetaData) sizeHint() int {
	n := 64 * len(m.Schema)
	for i := range m.RowGroups {
		n += 32 + 120*len(m.RowGroups[i].Columns)
	}
	for _, kv := range m.KeyValue {
		n += 16 + len(kv.Key)
		if kv.Value != nil {
			n += len(*kv.Value)
		}
	}
	return n + 256
}

// typeDefinedOrder writes ColumnOrder{1: TypeDefinedOrder{}}.
func (w *thriftWriter) typeDefinedOrder() {
	union := w.element()
	w.emptyStruct(1)
	w.end(union)
}

func (w *thriftWriter) emptyStruct(id int16) { w.end(w.begin(id)) }

func (w *thriftWriter) keyValues(id int16, list []KeyValue) {
	w.list(id, thriftStruct, len(list))
	for i := range list {
		outer := w.element()
		w.string(1, list[i].Key)
		w.optString(2, list[i].Value)
		w.end(outer)
	}
}

func (w *thriftWriter) schemaElement(e *SchemaElement) {
	outer := w.element()
	if e.Type != nil {
		w.i32(1, int32(*e.Type))
	}
	w.optI32(2, e.TypeLength)
	if e.Repetition != nil {
		w.i32(3, int32(*e.Repetition))
	}
	w.string(4, e.Name)
	w.optI32(5, e.NumChildren)
	w.optI32(6, e.ConvertedType)
	w.optI32(7, e.Scale)
	w.optI32(8, e.Precision)
	w.optI32(9, e.FieldID)
	if e.LogicalType != nil && e.LogicalType.Kind != LogicalNone {
		w.logicalType(10, e.LogicalType)
	}
	w.end(outer)
}

func (w *thriftWriter) logicalType(id int16, l *LogicalType) {
	union := w.begin(id)
	outer := w.begin(int16(l.Kind))
	switch l.Kind {
	case LogicalDecimal:
		w.i32(1, l.Scale)
		w.i32(2, l.Precision)
	case LogicalTime, LogicalTimestamp:
		w.bool(1, l.UTC)
		unit := w.begin(2)
		w.emptyStruct(int16(l.Unit))
		w.end(unit)
	case LogicalInteger:
		w.i8(1, l.BitWidth)
		w.bool(2, l.Signed)
	case LogicalVariant:
		if l.SpecVersion != 0 {
			w.i8(1, l.SpecVersion)
		}
	case LogicalGeometry, LogicalGeography:
		if l.CRS != "" {
			w.string(1, l.CRS)
		}
		if l.Kind == LogicalGeography {
			w.optI32(2, l.Algorithm)
		}
	}
	w.end(outer)
	w.end(union)
}

func (w *thriftWriter) rowGroup(g *RowGroup) {
	outer := w.element()
	w.list(1, thriftStruct, len(g.Columns))
	for i := range g.Columns {
		w.columnChunk(&g.Columns[i])
	}
	w.i64(2, g.TotalByteSize)
	w.i64(3, g.NumRows)
	if g.SortingColumns != nil {
		w.list(4, thriftStruct, len(g.SortingColumns))
		for _, s := range g.SortingColumns {
			outer := w.element()
			w.i32(1, s.Column)
			w.bool(2, s.Descending)
			w.bool(3, s.NullsFirst)
			w.end(outer)
		}
	}
	w.optI64(5, g.FileOffset)
	w.optI64(6, g.TotalCompressedSize)
	if g.Ordinal != nil {
		w.i16(7, *g.Ordinal)
	}
	w.end(outer)
}

func (w *thriftWriter) columnChunk(c *ColumnChunk) {
	outer := w.element()
	w.optString(1, c.FilePath)
	w.i64(2, c.FileOffset)
	if c.MetaData != nil {
		w.columnMetaData(3, c.MetaData)
	}
	w.optI64(4, c.OffsetIndexOffset)
	w.optI32(5, c.OffsetIndexLength)
	w.optI64(6, c.ColumnIndexOffset)
	w.optI32(7, c.ColumnIndexLength)
	w.end(outer)
}

func (w *thriftWriter) columnMetaData(id int16, m *ColumnMetaData) {
	outer := w.begin(id)
	w.i32(1, int32(m.Type))
	w.list(2, thriftI32, len(m.Encodings))
	for _, e := range m.Encodings {
		w.varint(int64(e))
	}
	w.list(3, thriftBinary, len(m.Path))
	for _, s := range m.Path {
		w.rawString(s)
	}
	w.i32(4, int32(m.Codec))
	w.i64(5, m.NumValues)
	w.i64(6, m.TotalUncompressedSize)
	w.i64(7, m.TotalCompressedSize)
	if m.KeyValue != nil {
		w.keyValues(8, m.KeyValue)
	}
	w.i64(9, m.DataPageOffset)
	w.optI64(10, m.IndexPageOffset)
	w.optI64(11, m.DictionaryPageOffset)
	if m.Statistics != nil {
		w.statistics(12, m.Statistics)
	}
	if m.EncodingStats != nil {
		w.list(13, thriftStruct, len(m.EncodingStats))
		for _, s := range m.EncodingStats {
			outer := w.element()
			w.i32(1, int32(s.PageType))
			w.i32(2, int32(s.Encoding))
			w.i32(3, s.Count)
			w.end(outer)
		}
	}
	w.optI64(14, m.BloomFilterOffset)
	w.optI32(15, m.BloomFilterLength)
	if s := m.SizeStatistics; s != nil {
		outer := w.begin(16)
		w.optI64(1, s.UnencodedByteArrayBytes)
		w.int64s(2, s.RepetitionHistogram)
		w.int64s(3, s.DefinitionHistogram)
		w.end(outer)
	}
	w.end(outer)
}

func (w *thriftWriter) statistics(id int16, s *Statistics) {
	outer := w.begin(id)
	w.optBytes(1, s.Max)
	w.optBytes(2, s.Min)
	w.optI64(3, s.NullCount)
	w.optI64(4, s.DistinctCount)
	w.optBytes(5, s.MaxValue)
	w.optBytes(6, s.MinValue)
	w.optBool(7, s.MaxExact)
	w.optBool(8, s.MinExact)
	w.end(outer)
}
