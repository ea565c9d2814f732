package pqfile

import "context"

// maxPageHeader bounds a page header, statistics and padding included.
const maxPageHeader = 32 << 20

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
