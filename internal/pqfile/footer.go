package pqfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/icefs/icefs/internal/source"
)

// Sentinels; errors name the object's location once.
var (
	ErrCorrupt     = errors.New("corrupt Parquet file")
	ErrUnsupported = errors.New("unsupported Parquet feature")
	ErrNoFieldIDs  = errors.New("data file has no field ids and the table has no name mapping")
)

// The end of a file: footer, its length (4 bytes, little-endian), magic. The
// start is the magic alone.
const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	trailerLen     = 8

	// tailRead is what Open reads at first: most footers fit.
	tailRead = 64 << 10
	// maxFooter bounds a footer, whatever the budget: ten times what 32,768 row
	// groups of a hundred columns take would still fit.
	maxFooter = 1 << 30
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
	// Pools lends page buffers and decompressors to the file's decoders; share
	// one among all files of a process. Nil: the file has its own.
	Pools *Pools
	// MemoryBytes is the budget of the process: footers, and pages when they are
	// decoded, may take a part of it. 0 = 1 GiB.
	MemoryBytes int64
}

// File is a Parquet file with its footer parsed.
type File struct {
	Object   source.Object
	Metadata *FileMetaData
	Schema   *Schema
	// FirstRow[g] is the file position of row group g's first row;
	// FirstRow[len(RowGroups)] is the number of rows.
	FirstRow []int64

	stats       *Stats
	pools       *Pools
	writer      writer
	footerStart int64
	maxPage     int64 // bytes that decoding a page may take

	landmarksOnce sync.Once
	landmarks     []int64 // see landmarkAfter
	startsOnce    sync.Once
	starts        []int64 // see tileStarts; by row group, then by column
	// dictionaries are known of a file that was read as a whole for its footer, by
	// row group, then by column; nil for others. See keepDictionaries.
	dictionaries []knownDictionary
}

// Open reads and checks the footer: one or two reads from the end.
func Open(ctx context.Context, obj source.Object, opt Options) (*File, error) {
	most, maxPage := opt.limits()
	footer, tail, start, err := readFooter(ctx, obj, most)
	if err != nil {
		return nil, err
	}
	f := &File{Object: obj, stats: opt.Stats, pools: opt.Pools, footerStart: start, maxPage: maxPage}
	if f.stats == nil {
		f.stats = &Stats{}
	}
	if f.pools == nil {
		f.pools = &Pools{}
	}
	if f.Metadata, err = UnmarshalFileMetaData(footer); err == nil {
		err = f.adopt()
	}
	if err != nil {
		return nil, f.wrap(err)
	}
	if int64(len(tail)) == obj.Size() {
		f.keepDictionaries(tail)
	}
	f.stats.Footers.Add(1)
	return f, nil
}

// readFooter returns the encoded footer, what was read of the end of the file for
// it, and where the footer starts in the file. One over limit is refused.
func readFooter(ctx context.Context, obj source.Object, limit int64) (footer, tail []byte, start int64, err error) {
	size := obj.Size()
	if size < int64(len(magic)+trailerLen) {
		return nil, nil, 0, fmt.Errorf("%s: %w: %d bytes are too short", obj.Location(), ErrCorrupt, size)
	}
	tail = make([]byte, min(size, tailRead))
	if _, err := obj.ReadAt(ctx, tail, size-int64(len(tail))); err != nil {
		return nil, nil, 0, err
	}
	trailer := tail[len(tail)-trailerLen:]
	switch string(trailer[4:]) {
	case magic:
	case magicEncrypted:
		return nil, nil, 0, fmt.Errorf("%s: %w: encrypted footer", obj.Location(), ErrUnsupported)
	default:
		return nil, nil, 0, fmt.Errorf("%s: %w: no magic at the end", obj.Location(), ErrCorrupt)
	}
	n := int64(binary.LittleEndian.Uint32(trailer))
	start = size - trailerLen - n
	if start < int64(len(magic)) {
		return nil, nil, 0, fmt.Errorf("%s: %w: footer of %d bytes in a file of %d", obj.Location(), ErrCorrupt, n, size)
	}
	if n > limit {
		return nil, nil, 0, fmt.Errorf("%s: %w: footer of %d bytes (a larger --memory allows more)", obj.Location(), ErrUnsupported, n)
	}
	if n+trailerLen <= int64(len(tail)) {
		return tail[len(tail)-trailerLen-int(n) : len(tail)-trailerLen], tail, start, nil
	}
	footer = make([]byte, n)
	have := tail[:len(tail)-trailerLen]
	missing := footer[:int(n)-len(have)]
	copy(footer[len(missing):], have)
	if _, err := obj.ReadAt(ctx, missing, start); err != nil {
		return nil, nil, 0, err
	}
	return footer, tail, start, nil
}

// adopt checks the metadata as a whole and derives what File keeps beside it.
func (f *File) adopt() error {
	m := f.Metadata
	if m.Encrypted {
		return fmt.Errorf("%w: encrypted columns", ErrUnsupported)
	}
	schema, err := SchemaOf(m.Schema)
	if err != nil {
		return err
	}
	f.Schema = schema
	f.FirstRow = make([]int64, len(m.RowGroups)+1)
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		if g.NumRows < 0 || g.NumRows > m.NumRows-f.FirstRow[i] {
			return fmt.Errorf("%w: row group %d has %d rows, of %d in the file", ErrCorrupt, i, g.NumRows, m.NumRows)
		}
		if len(g.Columns) != len(schema.Leaves) {
			return fmt.Errorf("%w: row group %d has %d columns, not %d", ErrCorrupt, i, len(g.Columns), len(schema.Leaves))
		}
		f.FirstRow[i+1] = f.FirstRow[i] + g.NumRows
	}
	if rows := f.FirstRow[len(m.RowGroups)]; rows != m.NumRows {
		return fmt.Errorf("%w: row groups hold %d rows, the footer says %d", ErrCorrupt, rows, m.NumRows)
	}
	if m.CreatedBy != nil {
		f.writer = parseWriter(*m.CreatedBy)
	}
	return nil
}

// wrap puts the location in front of an error that does not have it yet.
func (f *File) wrap(err error) error {
	return fmt.Errorf("%s: %w", f.Object.Location(), err)
}

// Rough costs of what hangs off a footer's structs.
const (
	nodeCost    = 400 // a Node, its path and names
	elementCost = int64(unsafe.Sizeof(SchemaElement{})) + 64
	chunkCost   = int64(unsafe.Sizeof(ColumnChunk{})+unsafe.Sizeof(ColumnMetaData{})) + 64
	statsCost   = int64(unsafe.Sizeof(Statistics{})) + 32
)

// FootprintBytes estimates the heap that f keeps, for a cache's budget.
func (f *File) FootprintBytes() int64 {
	m := f.Metadata
	n := int64(len(m.Schema))*(elementCost+nodeCost) + 8*int64(len(f.FirstRow)) + 1024 +
		int64(len(f.dictionaries))*int64(unsafe.Sizeof(knownDictionary{}))
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		n += int64(unsafe.Sizeof(*g)) + 32
		for j := range g.Columns {
			n += g.Columns[j].footprint()
		}
	}
	for _, kv := range m.KeyValue {
		n += 48 + int64(len(kv.Key))
		if kv.Value != nil {
			n += int64(len(*kv.Value))
		}
	}
	return n
}

func (c *ColumnChunk) footprint() int64 {
	n := chunkCost
	m := c.MetaData
	if m == nil {
		return n
	}
	n += 4*int64(len(m.Encodings)) + 12*int64(len(m.EncodingStats)) + 80*int64(len(m.KeyValue))
	if s := m.Statistics; s != nil {
		n += statsCost + int64(len(s.Max)+len(s.Min)+len(s.MaxValue)+len(s.MinValue))
	}
	if s := m.SizeStatistics; s != nil {
		n += 64 + 8*int64(len(s.RepetitionHistogram)+len(s.DefinitionHistogram))
	}
	return n
}
