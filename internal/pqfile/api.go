package pqfile

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/icefs/icefs/internal/source"
)

// Sentinels; errors name the object's location once.
var (
	ErrCorrupt     = errors.New("corrupt Parquet file")
	ErrUnsupported = errors.New("unsupported Parquet feature")
	ErrNoFieldIDs  = errors.New("data file has no field ids and the table has no name mapping")
)

// Stats counts the work done, for status.json and tests. All fields only grow.
type Stats struct {
	Footers      atomic.Int64 // footers parsed
	HeaderProbes atomic.Int64 // page headers read alone
	DataPages    atomic.Int64 // data pages decompressed or decoded
	Dictionaries atomic.Int64 // dictionary pages decompressed or decoded
	Chunks       atomic.Int64 // chunks of which any data page was decoded
}

// Options for Open.
type Options struct {
	Stats *Stats // may be nil
}

// File is a Parquet file with its footer parsed.
type File struct {
	Object   source.Object
	Metadata *FileMetaData
	Schema   *Schema
	// FirstRow[g] is the file position of row group g's first row;
	// FirstRow[len(RowGroups)] is the number of rows.
	FirstRow []int64
	stats    *Stats
}

// Open reads and checks the footer: one or two reads from the end.
func Open(ctx context.Context, obj source.Object, opt Options) (*File, error) { panic("skeleton") }

// FootprintBytes estimates the heap that f keeps, for a cache's budget.
func (f *File) FootprintBytes() int64 { panic("skeleton") }

// Chunk is one leaf's pages in one row group.
type Chunk struct {
	File     *File
	RowGroup int
	Node     *Node
	Meta     *ColumnMetaData
	Rows     int64
	// Start and Length are the extent of the pages, headers included: the first
	// real page (dictionary first), whatever the footer's offsets claim
	// (zero, absent or swapped dictionary offsets are mended).
	Start, Length int64
	// TrustedWriter is false where created_by names a writer whose files need
	// decoding by special rules (parquet-cpp before 3.0 V2 pages, old parquet-mr
	// delta byte arrays).
	TrustedWriter bool
}

// Chunk returns the chunk of a leaf, its extent checked against the file's size.
func (f *File) Chunk(rowGroup int, leaf *Node) (*Chunk, error) { panic("skeleton") }

// DictionaryInfo is what a dictionary page's header tells.
type DictionaryInfo struct {
	Present          bool
	NumValues        int
	UncompressedSize int // body bytes
	CompressedSize   int // body bytes as stored
	HeaderLen        int
}

// Dictionary reads only the header of the chunk's first page (one small read),
// to learn the dictionary's size and the width of its indexes.
func (c *Chunk) Dictionary(ctx context.Context) (DictionaryInfo, error) { panic("skeleton") }

// OffsetIndex reads the chunk's offset index, or returns nil if it has none.
func (c *Chunk) OffsetIndex(ctx context.Context) (*OffsetIndex, error) { panic("skeleton") }

// RawPage is a page as stored.
type RawPage struct {
	Header    PageHeader
	Offset    int64 // of the header, from the file's start
	HeaderLen int
	Body      []byte // CompressedSize bytes, as stored; borrowed until the next call
}

// PageScanner walks the pages of a chunk, or of a part of it, in order. It
// reads ahead in large ranges and holds one window.
type PageScanner struct{ _ int }

// Scan starts at byte offset from (a page header's offset; c.Start for the
// first page) and ends at byte offset to (c.Start+c.Length for all).
func (c *Chunk) Scan(from, to int64) *PageScanner { panic("skeleton") }

// Next returns the next page, or io.EOF. CRCs are verified where present.
func (s *PageScanner) Next(ctx context.Context) (*RawPage, error) { panic("skeleton") }

// PageData is a data page after decompression, levels still encoded.
type PageData struct {
	NumValues int // entries, NULLs included
	NumRows   int // V2, or a flat column; -1 for a repeated V1 page
	Encoding  Encoding
	// RepBytes and DefBytes are RLE/bit-packed runs without a length prefix;
	// empty where the column has no such level.
	RepBytes, DefBytes []byte
	// LevelEncoding of V1 pages may be BIT_PACKED (old writers).
	RepEncoding, DefEncoding Encoding
	Values                   []byte // encoded values
}

// PageDecoder decompresses and decodes the pages of one chunk with buffers of
// its own. Not safe for concurrent use.
type PageDecoder struct{ _ int }

// NewDecoder returns a decoder for the pages of c.
func (c *Chunk) NewDecoder() *PageDecoder { panic("skeleton") }

// Release returns the decoder's buffers; nothing it gave may be used after.
func (d *PageDecoder) Release() { panic("skeleton") }

// SetDictionary decodes a dictionary page, for the pages that follow.
func (d *PageDecoder) SetDictionary(p *RawPage) error { panic("skeleton") }

// Dict returns the decoded dictionary, or nil. It is not reused: it may be kept.
func (d *PageDecoder) Dict() *Values { panic("skeleton") }

// Uncompress splits a data page into encoded levels and encoded values.
func (d *PageDecoder) Uncompress(p *RawPage) (PageData, error) { panic("skeleton") }

// DictionaryBody returns the uncompressed PLAIN body of a dictionary page.
func (d *PageDecoder) DictionaryBody(p *RawPage) ([]byte, error) { panic("skeleton") }

// Levels decodes levels into dst (one byte per entry): repetition, definition.
// A column without such levels gives nil.
func (d *PageDecoder) Levels(pd *PageData) (rep, def []uint8, err error) { panic("skeleton") }

// Values decodes n values (the entries at MaxDef) of a page, dictionary-coded
// pages as Dict and Index.
func (d *PageDecoder) Values(pd *PageData, n int) (Values, error) { panic("skeleton") }

// Marshal encodes a footer (without magic and length).
func (m *FileMetaData) Marshal() []byte { panic("skeleton") }

// UnmarshalFileMetaData decodes a footer; allocations are bounded by len(b).
func UnmarshalFileMetaData(b []byte) (*FileMetaData, error) { panic("skeleton") }

// Append encodes a page header, its slack included, onto b.
func (h *PageHeader) Append(b []byte) []byte { panic("skeleton") }

// UnmarshalPageHeader decodes a header at the start of b and returns its
// length. io.ErrUnexpectedEOF means that b ends inside the header.
func UnmarshalPageHeader(b []byte, h *PageHeader) (n int, err error) { panic("skeleton") }
