package pqfile

// The structs of parquet.thrift that icefs reads and writes, with optional
// fields as pointers (or nil slices), so that "absent" is never written as
// zero. Field numbers stand in the codec (thrift*.go).

// Type is a Parquet physical type.
type Type int32

const (
	Boolean Type = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedLenByteArray
)

// Repetition of a schema node.
type Repetition int32

const (
	Required Repetition = iota
	Optional
	Repeated
)

// Encoding of a page's values or levels.
type Encoding int32

const (
	Plain                Encoding = 0
	PlainDictionary      Encoding = 2
	RLE                  Encoding = 3
	BitPacked            Encoding = 4
	DeltaBinaryPacked    Encoding = 5
	DeltaLengthByteArray Encoding = 6
	DeltaByteArray       Encoding = 7
	RLEDictionary        Encoding = 8
	ByteStreamSplit      Encoding = 9
)

// Codec is a chunk's compression codec.
type Codec int32

const (
	Uncompressed Codec = iota
	Snappy
	Gzip
	LZO
	Brotli
	LZ4 // Hadoop framing, deprecated
	Zstd
	LZ4Raw
)

// Decodable reports whether pages in the codec can be decompressed here: all
// but LZO, and numbers that stand for no codec.
func (c Codec) Decodable() bool { return c >= Uncompressed && c <= LZ4Raw && c != LZO }

// PageType is the kind of a page.
type PageType int32

const (
	DataPage PageType = iota
	IndexPage
	DictionaryPage
	DataPageV2
)

// LogicalKind is the union member of a LogicalType (its thrift field id).
type LogicalKind int16

const (
	LogicalNone      LogicalKind = 0
	LogicalString    LogicalKind = 1
	LogicalMap       LogicalKind = 2
	LogicalList      LogicalKind = 3
	LogicalEnum      LogicalKind = 4
	LogicalDecimal   LogicalKind = 5
	LogicalDate      LogicalKind = 6
	LogicalTime      LogicalKind = 7
	LogicalTimestamp LogicalKind = 8
	LogicalInteger   LogicalKind = 10
	LogicalUnknown   LogicalKind = 11
	LogicalJSON      LogicalKind = 12
	LogicalBSON      LogicalKind = 13
	LogicalUUID      LogicalKind = 14
	LogicalFloat16   LogicalKind = 15
	LogicalVariant   LogicalKind = 16
	LogicalGeometry  LogicalKind = 17
	LogicalGeography LogicalKind = 18
)

// TimeUnit of a time or timestamp: the thrift union's member id.
type TimeUnit int16

const (
	Millis TimeUnit = 1
	Micros TimeUnit = 2
	Nanos  TimeUnit = 3
)

// LogicalType annotates a schema node; only the fields of its Kind count.
type LogicalType struct {
	Kind             LogicalKind
	Scale, Precision int32    // decimal
	UTC              bool     // time, timestamp: isAdjustedToUTC
	Unit             TimeUnit // time, timestamp
	BitWidth         int8     // integer
	Signed           bool     // integer
	SpecVersion      int8     // variant
	CRS              string   // geometry, geography
	Algorithm        *int32   // geography
}

// Converted types, the older annotations.
const (
	ConvertedUTF8            int32 = 0
	ConvertedMap             int32 = 1
	ConvertedMapKeyValue     int32 = 2
	ConvertedList            int32 = 3
	ConvertedEnum            int32 = 4
	ConvertedDecimal         int32 = 5
	ConvertedDate            int32 = 6
	ConvertedTimeMillis      int32 = 7
	ConvertedTimeMicros      int32 = 8
	ConvertedTimestampMillis int32 = 9
	ConvertedTimestampMicros int32 = 10
	ConvertedUint8           int32 = 11
	ConvertedUint16          int32 = 12
	ConvertedUint32          int32 = 13
	ConvertedUint64          int32 = 14
	ConvertedInt8            int32 = 15
	ConvertedInt16           int32 = 16
	ConvertedInt32           int32 = 17
	ConvertedInt64           int32 = 18
	ConvertedJSON            int32 = 19
	ConvertedBSON            int32 = 20
	ConvertedInterval        int32 = 21
)

// SchemaElement is one node of the footer's depth-first schema list.
type SchemaElement struct {
	Type          *Type
	TypeLength    *int32
	Repetition    *Repetition // nil at the root
	Name          string
	NumChildren   *int32 // nil for a leaf
	ConvertedType *int32
	Scale         *int32
	Precision     *int32
	FieldID       *int32
	LogicalType   *LogicalType
}

// Statistics of a chunk or page. Max and Min are the deprecated pair.
type Statistics struct {
	Max, Min           []byte
	NullCount          *int64
	DistinctCount      *int64
	MaxValue, MinValue []byte // nil = absent; empty but not nil = the empty string
	MaxExact, MinExact *bool
}

// PageEncodingStats counts the pages of one type and encoding in a chunk.
type PageEncodingStats struct {
	PageType PageType
	Encoding Encoding
	Count    int32
}

// SizeStatistics of a chunk.
type SizeStatistics struct {
	UnencodedByteArrayBytes *int64
	RepetitionHistogram     []int64
	DefinitionHistogram     []int64
}

// ColumnMetaData describes one column chunk. Offsets are from the file's
// start; TotalCompressedSize includes page headers.
type ColumnMetaData struct {
	Type                  Type
	Encodings             []Encoding
	Path                  []string
	Codec                 Codec
	NumValues             int64
	TotalUncompressedSize int64
	TotalCompressedSize   int64
	KeyValue              []KeyValue
	DataPageOffset        int64
	IndexPageOffset       *int64
	DictionaryPageOffset  *int64
	Statistics            *Statistics
	EncodingStats         []PageEncodingStats
	BloomFilterOffset     *int64
	BloomFilterLength     *int32
	SizeStatistics        *SizeStatistics
}

// StoredBytes is about how long the chunk's values are when they are decoded, as
// far as its sizes tell: at least 0, and more than that if they are
// dictionary-coded. Nil, as an encrypted chunk has it, tells of none.
func (m *ColumnMetaData) StoredBytes() int64 {
	if m == nil {
		return 0
	}
	return max(m.TotalUncompressedSize, m.TotalCompressedSize, 0)
}

// ColumnChunk is a row group's entry for one leaf.
type ColumnChunk struct {
	FilePath          *string
	FileOffset        int64
	MetaData          *ColumnMetaData // may be nil if Encrypted
	OffsetIndexOffset *int64
	OffsetIndexLength *int32
	ColumnIndexOffset *int64
	ColumnIndexLength *int32
	Encrypted         bool // crypto_metadata or encrypted_column_metadata is present
}

// SortingColumn of a row group.
type SortingColumn struct {
	Column     int32
	Descending bool
	NullsFirst bool
}

// RowGroup lists the chunks of a run of rows.
type RowGroup struct {
	Columns             []ColumnChunk
	TotalByteSize       int64
	NumRows             int64
	SortingColumns      []SortingColumn
	FileOffset          *int64
	TotalCompressedSize *int64
	Ordinal             *int16
}

// KeyValue is an entry of the footer's key-value metadata.
type KeyValue struct {
	Key   string
	Value *string
}

// FileMetaData is the footer.
type FileMetaData struct {
	Version      int32
	Schema       []SchemaElement
	NumRows      int64
	RowGroups    []RowGroup
	KeyValue     []KeyValue
	CreatedBy    *string
	ColumnOrders int  // entries of TypeDefinedOrder; 0 = absent
	Encrypted    bool // encryption_algorithm is present
}

// DataPageHeader of a V1 page.
type DataPageHeader struct {
	NumValues          int32
	Encoding           Encoding
	DefinitionEncoding Encoding
	RepetitionEncoding Encoding
	Statistics         *Statistics
}

// DictionaryPageHeader of a dictionary page.
type DictionaryPageHeader struct {
	NumValues int32
	Encoding  Encoding
	Sorted    *bool
}

// DataPageHeaderV2 of a V2 page; level lengths are in bytes, never compressed.
type DataPageHeaderV2 struct {
	NumValues        int32
	NumNulls         int32
	NumRows          int32
	Encoding         Encoding
	DefinitionLength int32
	RepetitionLength int32
	IsCompressed     *bool // nil = true
	Statistics       *Statistics
}

// PageHeader precedes every page.
type PageHeader struct {
	Type             PageType
	UncompressedSize int32
	CompressedSize   int32
	CRC              *int32
	Data             *DataPageHeader
	Dictionary       *DictionaryPageHeader
	DataV2           *DataPageHeaderV2
	// Slack is the length in bytes of the whole unknown field 16 that pads a
	// header (written only; 0 or at least 6). See docs/virtual-parquet.md.
	Slack int
}

// PageLocation is one entry of an OffsetIndex.
type PageLocation struct {
	Offset         int64 // of the page header, from the file's start
	CompressedSize int32 // header included
	FirstRow       int64 // in the row group
}

// OffsetIndex locates the data pages of a chunk.
type OffsetIndex struct {
	Pages                   []PageLocation
	UnencodedByteArrayBytes []int64
}
