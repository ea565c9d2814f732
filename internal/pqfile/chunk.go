package pqfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

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
	// delta byte arrays). Such a chunk has to be decoded from its first page on,
	// in order; of parquet-mr before 1.2.9 Length may reach past the last page.
	TrustedWriter bool
}

// Chunk returns the chunk of a leaf, its extent checked against the file's size.
func (f *File) Chunk(rowGroup int, leaf *Node) (*Chunk, error) {
	g := &f.Metadata.RowGroups[rowGroup]
	col := &g.Columns[leaf.Leaf]
	m := col.MetaData
	fail := func(kind error, format string, args ...any) (*Chunk, error) {
		return nil, f.wrap(fmt.Errorf("row group %d, column %q: %w: %s", rowGroup, leaf.Path, kind, fmt.Sprintf(format, args...)))
	}
	switch {
	case col.Encrypted:
		return fail(ErrUnsupported, "encrypted column")
	case col.FilePath != nil && *col.FilePath != "":
		return fail(ErrUnsupported, "pages in another file")
	case m.Type != leaf.Type:
		return fail(ErrCorrupt, "type %d, not %d as in the schema", m.Type, leaf.Type)
	case !slices.Equal(m.Path, leaf.Path):
		return fail(ErrCorrupt, "its path is %q", m.Path)
	case m.NumValues < 0 || m.TotalCompressedSize < 0 || leaf.MaxRep == 0 && m.NumValues != g.NumRows:
		return fail(ErrCorrupt, "%d values in %d bytes, of %d rows", m.NumValues, m.TotalCompressedSize, g.NumRows)
	case m.DataPageOffset < 0 || m.DataPageOffset > f.footerStart || m.TotalCompressedSize > f.footerStart:
		return fail(ErrCorrupt, "pages at %d, %d bytes long, in a file of %d", m.DataPageOffset, m.TotalCompressedSize, f.Object.Size())
	}
	c := &Chunk{
		File: f, RowGroup: rowGroup, Node: leaf, Meta: m, Rows: g.NumRows,
		TrustedWriter: f.writer.trusts(m),
	}
	c.Start, c.Length = f.chunkExtent(rowGroup, leaf.Leaf)
	if c.Start < int64(len(magic)) || c.Length > f.footerStart-c.Start {
		return fail(ErrCorrupt, "pages at %d, %d bytes long, in a file of %d", c.Start, c.Length, f.Object.Size())
	}
	return c, nil
}

// wrap puts the location and the column in front of an error.
func (c *Chunk) wrap(err error) error {
	return c.File.wrap(fmt.Errorf("row group %d, column %q: %w", c.RowGroup, c.Node.Path, err))
}

// DictionaryLength is the length of the chunk's dictionary page, header included,
// by the footer's offsets; false if they may be off and Dictionary has to look.
func (c *Chunk) DictionaryLength() (int64, bool) {
	m := c.Meta
	if d := m.DictionaryPageOffset; d != nil && *d == c.Start && m.DataPageOffset > *d && m.DataPageOffset < c.Start+c.Length {
		return m.DataPageOffset - *d, !c.File.writer.shortDictionaries()
	}
	coded := slices.Contains(m.Encodings, PlainDictionary) || slices.Contains(m.Encodings, RLEDictionary)
	return 0, !coded && m.DictionaryPageOffset == nil && m.DataPageOffset == c.Start
}

// DictionaryInfo is what a dictionary page's header tells.
type DictionaryInfo struct {
	Present          bool
	NumValues        int
	UncompressedSize int // body bytes
	CompressedSize   int // body bytes as stored
	HeaderLen        int
}

// headerProbe is what Dictionary reads at first; a header takes 10 to 60 bytes
// unless it has long statistics.
const headerProbe = 256

// Dictionary reads only the header of the chunk's first page (one small read),
// to learn the dictionary's size and the width of its indexes. Of a small file it
// is known from the read of the footer.
func (c *Chunk) Dictionary(ctx context.Context) (DictionaryInfo, error) {
	if c.Length == 0 {
		return DictionaryInfo{}, nil
	}
	if known := c.File.dictionaries; known != nil {
		if d := known[c.RowGroup*len(c.File.Schema.Leaves)+c.Node.Leaf]; d.known {
			return d.info, nil
		}
	}
	c.File.stats.HeaderProbes.Add(1)
	for probe := int64(headerProbe); ; probe *= 16 {
		buf := make([]byte, min(probe, c.Length))
		if _, err := c.File.Object.ReadAt(ctx, buf, c.Start); err != nil {
			return DictionaryInfo{}, err
		}
		info, err := c.dictionaryIn(buf)
		if errors.Is(err, io.ErrUnexpectedEOF) && int64(len(buf)) < c.Length && probe < maxPageHeader {
			continue
		}
		if err != nil {
			return DictionaryInfo{}, c.wrap(corruptEOF("first page header", err))
		}
		return info, nil
	}
}

// dictionaryIn parses the header of the chunk's first page; io.ErrUnexpectedEOF
// if it is longer than buf.
func (c *Chunk) dictionaryIn(buf []byte) (DictionaryInfo, error) {
	var h PageHeader
	n, err := UnmarshalPageHeader(buf, &h)
	if err != nil {
		return DictionaryInfo{}, err
	}
	if h.Type != DictionaryPage {
		return DictionaryInfo{}, nil
	}
	if int64(n)+int64(h.CompressedSize) > c.Length {
		return DictionaryInfo{}, fmt.Errorf("%w: dictionary page is cut", ErrCorrupt)
	}
	return DictionaryInfo{
		Present:          true,
		NumValues:        int(h.Dictionary.NumValues),
		UncompressedSize: int(h.UncompressedSize),
		CompressedSize:   int(h.CompressedSize),
		HeaderLen:        n,
	}, nil
}

// knownDictionary is what the first page header of a chunk says, if it is known.
type knownDictionary struct {
	info  DictionaryInfo
	known bool
}

// keepDictionaries parses the first page header of each dictionary-coded chunk
// from the bytes of the whole file: for a table of many small files, opening each
// of them again for it would cost more than the footers. What is wrong with a
// chunk is found, and told, when it is asked for.
func (f *File) keepDictionaries(file []byte) {
	leaves := f.Schema.Leaves
	known := make([]knownDictionary, len(f.Metadata.RowGroups)*len(leaves))
	for g := range f.Metadata.RowGroups {
		for i, leaf := range leaves {
			m := f.Metadata.RowGroups[g].Columns[i].MetaData
			if m == nil || !slices.Contains(m.Encodings, PlainDictionary) && !slices.Contains(m.Encodings, RLEDictionary) {
				continue
			}
			c, err := f.Chunk(g, leaf)
			if err != nil {
				continue
			}
			if info, err := c.dictionaryIn(file[c.Start : c.Start+c.Length]); err == nil {
				known[g*len(leaves)+i] = knownDictionary{info, true}
			}
		}
	}
	f.dictionaries = known
}

// OffsetIndex reads the chunk's offset index, or returns nil if it has none. An
// index that cannot belong to the chunk (pages outside of it, out of order, or
// rows that are not there) counts as none.
func (c *Chunk) OffsetIndex(ctx context.Context) (*OffsetIndex, error) {
	col := &c.File.Metadata.RowGroups[c.RowGroup].Columns[c.Node.Leaf]
	if col.OffsetIndexOffset == nil || col.OffsetIndexLength == nil {
		return nil, nil
	}
	off, n := *col.OffsetIndexOffset, int64(*col.OffsetIndexLength)
	if off < int64(len(magic)) || n <= 0 || n > c.File.footerStart-off {
		return nil, nil
	}
	buf := make([]byte, n)
	if _, err := c.File.Object.ReadAt(ctx, buf, off); err != nil {
		return nil, err
	}
	x, err := unmarshalOffsetIndex(buf)
	if err != nil || !c.fits(x) {
		return nil, nil
	}
	return x, nil
}

// fits reports whether an offset index can be of this chunk.
func (c *Chunk) fits(x *OffsetIndex) bool {
	end, row := c.Start, int64(0)
	for i, p := range x.Pages {
		if p.Offset < end || p.CompressedSize <= 0 || p.FirstRow < row || i == 0 && p.FirstRow != 0 {
			return false
		}
		end, row = p.Offset+int64(p.CompressedSize), p.FirstRow
	}
	if len(x.UnencodedByteArrayBytes) != 0 && len(x.UnencodedByteArrayBytes) != len(x.Pages) {
		return false
	}
	return end <= c.Start+c.Length && (row < c.Rows || c.Rows == 0) && (len(x.Pages) > 0 || c.Rows == 0)
}
