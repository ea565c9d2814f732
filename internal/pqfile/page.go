package pqfile

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/icefs/icefs/internal/source"
)

const (
	// maxPageHeader bounds a page header, statistics and padding included.
	maxPageHeader = 32 << 20
	// scanWindow is how much a scanner reads at a time: large enough that an
	// object store's latency is hidden, small beside a chunk.
	scanWindow = 1 << 20
)

// RawPage is a page as stored.
type RawPage struct {
	Header    PageHeader
	Offset    int64 // of the header, from the file's start
	HeaderLen int
	Body      []byte // CompressedSize bytes, as stored; borrowed until the next call
}

// PageScanner walks the pages of a chunk, or of a part of it, in order. It
// reads ahead in large ranges and holds one window. After an error of the
// source the same call may be tried again.
type PageScanner struct {
	// mem is where buf goes for the next scanner: nil, or a decoder's.
	mem *buffers

	chunk *Chunk
	pos   int64 // of the next page's header
	to    int64
	page  RawPage

	window []byte // bytes of the file from pos on, in buf
	buf    []byte

	whole  bool  // the scan goes over the whole chunk, so that values can be counted
	values int64 // entries of the data pages seen
}

// Scan starts at byte offset from (a page header's offset; c.Start for the
// first page) and ends at byte offset to (c.Start+c.Length for all).
func (c *Chunk) Scan(from, to int64) *PageScanner {
	end := c.Start + c.Length
	return &PageScanner{
		chunk: c, pos: from, to: min(to, end),
		whole: from == c.Start && to >= end,
	}
}

// BorrowFrom makes the scanner read into memory of a decoder, which it must not
// outlive. It is called before the first page is asked for.
func (s *PageScanner) BorrowFrom(d *PageDecoder) { s.mem, s.buf = d.buffers, d.window }

// Next returns the next page, or io.EOF. CRCs are verified where present. Index
// pages are passed over.
//
// A scan of a whole chunk ends where the chunk's values are complete and what
// follows is no page; one that lacks values, or has too many, is ErrCorrupt.
func (s *PageScanner) Next(ctx context.Context) (*RawPage, error) {
	if s.pos < s.chunk.Start {
		return nil, s.wrap(fmt.Errorf("%w: page before its chunk", ErrCorrupt))
	}
	for {
		complete := s.whole && s.values >= s.chunk.Meta.NumValues
		if s.pos >= s.to || complete && s.chunk.File.writer.shortChunks() {
			if s.whole && !complete {
				return nil, s.wrap(fmt.Errorf("%w: pages hold %d values of %d", ErrCorrupt, s.values, s.chunk.Meta.NumValues))
			}
			return nil, io.EOF
		}
		err := s.read(ctx)
		switch {
		case err != nil && complete && (errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupported)):
			s.pos = s.to // not a page: bytes that belong to nothing
			return nil, io.EOF
		case err != nil:
			return nil, err
		case s.page.Header.Type != IndexPage:
			return &s.page, s.count()
		}
	}
}

// count adds the page's entries to those seen.
func (s *PageScanner) count() error {
	s.values += int64(s.page.Header.entries())
	if s.whole && s.values > s.chunk.Meta.NumValues {
		return s.wrap(fmt.Errorf("%w: pages hold more than %d values", ErrCorrupt, s.chunk.Meta.NumValues))
	}
	return nil
}

// entries is the number of a data page's entries.
func (h *PageHeader) entries() int {
	switch h.Type {
	case DataPage:
		return int(h.Data.NumValues)
	case DataPageV2:
		return int(h.DataV2.NumValues)
	}
	return 0
}

// errChecksum is a page whose bytes are not those that were written.
var errChecksum = fmt.Errorf("%w: page checksum mismatch", ErrCorrupt)

// read reads the page at pos, and moves pos behind it. A page that was damaged on
// its way from a store is fetched again.
func (s *PageScanner) read(ctx context.Context) error {
	err := s.readOnce(ctx)
	if errors.Is(err, errChecksum) && source.Suspect(s.chunk.File.Object) {
		s.window = nil
		err = s.readOnce(ctx)
	}
	return err
}

func (s *PageScanner) readOnce(ctx context.Context) error {
	p := &s.page
	for want := int64(1); ; want = 2 * int64(len(s.window)) {
		if err := s.fill(ctx, want); err != nil {
			return err
		}
		n, err := UnmarshalPageHeader(s.window, &p.Header)
		if errors.Is(err, io.ErrUnexpectedEOF) && int64(len(s.window)) < min(s.to-s.pos, maxPageHeader) {
			continue
		}
		if err != nil {
			return s.wrap(corruptEOF("page header", err))
		}
		p.Offset, p.HeaderLen = s.pos, n
		break
	}
	total := int64(p.HeaderLen) + int64(p.Header.CompressedSize)
	if total > s.to-s.pos {
		return s.wrap(fmt.Errorf("%w: page of %d bytes is cut after %d", ErrCorrupt, total, s.to-s.pos))
	}
	if err := s.chunk.checkPage(&p.Header); err != nil {
		return s.wrap(err)
	}
	if err := s.fill(ctx, total); err != nil {
		return err
	}
	p.Body = s.window[p.HeaderLen:total:total]
	if crc := p.Header.CRC; crc != nil && uint32(*crc) != crc32.ChecksumIEEE(p.Body) {
		return s.wrap(errChecksum)
	}
	s.window = s.window[total:]
	s.pos += total
	return nil
}

// fill makes the window hold n bytes, or all up to the scan's end.
func (s *PageScanner) fill(ctx context.Context, n int64) error {
	left := s.to - s.pos
	n = min(n, left)
	if int64(len(s.window)) >= n {
		return nil
	}
	if remote, ok := s.chunk.File.Object.(source.Remote); ok {
		return s.fillRemote(ctx, remote, n)
	}
	n = max(n, scanWindow)
	if n > left-scanWindow/2 {
		n = left // no small read for what remains
	}
	have := len(s.window)
	if int64(cap(s.buf)) < n {
		buf := make([]byte, n)
		copy(buf, s.window)
		s.buf = buf
		if s.mem != nil {
			s.mem.window = buf
		}
	} else {
		copy(s.buf[:n], s.window)
	}
	s.window = s.buf[:have]
	if _, err := s.chunk.File.Object.ReadAt(ctx, s.buf[have:n], s.pos+int64(have)); err != nil {
		return err
	}
	s.window = s.buf[:n]
	return nil
}

func (s *PageScanner) wrap(err error) error {
	return s.chunk.wrap(fmt.Errorf("page at %d: %w", s.pos, err))
}
