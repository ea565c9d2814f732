package pqfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
)

// seekBytes: skips of fewer stored bytes read through; longer ones are worth a
// look at the offset index.
const seekBytes = 1 << 20

// pageCursor is the page at hand and the place in it.
type pageCursor struct {
	data     PageData
	rep, def []uint8 // stored levels; nil where there are none
	entries  int
	pos      int // next entry
	decoded  bool
	values   Values // in the view's form, once decoded
	valuePos int    // next value: those of the entries before pos
	peeked   *RawPage
	began    bool // a page has been read
	// tail says that the row before was skipped and may go on: entries up to
	// the next row's first are to be dropped.
	tail bool
}

func (p *pageCursor) left() int { return p.entries - p.pos }

// nextRaw returns the next data page as stored, or nil at the end. The page
// before is gone.
func (r *ColumnReader) nextRaw(ctx context.Context) (*RawPage, error) {
	p := &r.pages
	if raw := p.peeked; raw != nil {
		p.peeked = nil
		return raw, nil
	}
	for {
		raw, err := r.scanner.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		p.began = true
		switch raw.Header.Type {
		case DictionaryPage:
			// Levels alone need no dictionary.
			if r.col.Source != nil {
				if err := r.decoder.SetDictionary(raw); err != nil {
					return nil, err
				}
			}
		case DataPage, DataPageV2:
			return raw, nil
		}
	}
}

// open decompresses a page and decodes its levels.
func (r *ColumnReader) open(raw *RawPage) error {
	p := &r.pages
	data, err := r.decoder.Uncompress(raw)
	if err != nil {
		return err
	}
	rep, def, err := r.decoder.Levels(&data)
	if err != nil {
		return err
	}
	n := data.NumValues
	if r.stored.MaxRep > 0 && len(rep) != n || r.stored.MaxDef > 0 && len(def) != n {
		return r.corrupt("page of %d entries with %d and %d levels", n, len(rep), len(def))
	}
	if r.stored.MaxRep == 0 {
		rep = nil
	}
	if r.stored.MaxDef == 0 {
		def = nil
	}
	// Skip trusts the header's count, and that rows start with V2 pages.
	if rep != nil && data.NumRows >= 0 && n > 0 && (rep[0] != 0 || countLevel(rep, 0) != data.NumRows) {
		return r.corrupt("page of %d rows, the header says %d", countLevel(rep, 0), data.NumRows)
	}
	*p = pageCursor{data: data, rep: rep, def: def, entries: n, began: true, tail: p.tail}
	if !r.chunk.TrustedWriter && r.col.Source != nil {
		return r.decodeValues() // the next page may build on them
	}
	return nil
}

// needPage makes sure that the page at hand has an entry left.
func (r *ColumnReader) needPage(ctx context.Context) error {
	for r.pages.left() == 0 {
		raw, err := r.nextRaw(ctx)
		if err != nil {
			return err
		}
		if raw == nil {
			return r.corrupt("pages end before the row group's %d rows", r.rows)
		}
		if err := r.open(raw); err != nil {
			return err
		}
	}
	return nil
}

// continues moves to the next page of a repeated column and reports whether
// there is more to look at. With the batch complete, only a page that may go on
// with its last row counts: a V2 page starts with a row.
func (r *ColumnReader) continues(ctx context.Context, complete bool) (bool, error) {
	for r.pages.left() == 0 {
		raw, err := r.nextRaw(ctx)
		if err != nil || raw == nil {
			return false, err
		}
		if complete && raw.Header.Type == DataPageV2 && raw.Header.DataV2.NumValues > 0 {
			r.pages.peeked = raw
			if r.row+int64(r.vector.Rows) == r.rows {
				return false, r.corrupt("more rows than %d", r.rows)
			}
			return false, nil
		}
		if err := r.open(raw); err != nil {
			return false, err
		}
	}
	return true, nil
}

// decodeValues decodes the values of the page at hand, once.
func (r *ColumnReader) decodeValues() error {
	p := &r.pages
	if p.decoded {
		return nil
	}
	n := p.entries
	if p.def != nil {
		n = countLevel(p.def, r.stored.MaxDef)
	}
	values, err := r.decoder.Values(&p.data, n)
	if err != nil {
		return err
	}
	if values.N != n {
		return r.corrupt("page of %d values, not %d", values.N, n)
	}
	if p.values, err = r.convert.page(&values); err != nil {
		return r.chunk.wrap(err)
	}
	p.decoded = true
	return nil
}

// Skip passes over n rows, decoding as little as the pages allow. More rows
// than are left is io.EOF.
func (r *ColumnReader) Skip(ctx context.Context, n int64) error {
	switch {
	case n < 0:
		return fmt.Errorf("internal error: skip of %d rows", n)
	case n > r.rows-r.row:
		return io.EOF
	case r.shredded != nil:
		r.row += n
		return r.shredded.skip(ctx, n)
	case r.chunk == nil || r.row+n == r.rows:
		// The end: what is left of the pages is of no interest.
		r.row += n
		return nil
	}
	target := r.row + n
	r.passInPage(target)
	if r.row < target {
		if err := r.seek(ctx, target); err != nil {
			return err
		}
	}
	for r.row < target {
		raw, err := r.nextRaw(ctx)
		if err != nil {
			return err
		}
		if raw == nil {
			return r.corrupt("pages end before the row group's %d rows", r.rows)
		}
		if rows, ok := r.pageRows(raw); ok && r.row+rows <= target {
			r.row += rows
			continue
		}
		if err := r.open(raw); err != nil {
			return err
		}
		r.passInPage(target)
	}
	return nil
}

// pageRows is the number of rows of a page where its header tells: not for a
// V1 page of a repeated column.
func (r *ColumnReader) pageRows(raw *RawPage) (int64, bool) {
	switch {
	case !r.chunk.TrustedWriter && r.col.Source != nil:
		return 0, false // pages have to be decoded in order
	case raw.Header.Type == DataPageV2:
		// Rows start with pages: nothing of the row before is left here.
		r.pages.tail = false
		return int64(raw.Header.DataV2.NumRows), true
	case r.stored.Flat():
		return int64(raw.Header.Data.NumValues), true
	}
	return 0, false
}

// passInPage passes over rows of the page at hand up to row target.
func (r *ColumnReader) passInPage(target int64) {
	p := &r.pages
	if p.left() == 0 {
		return
	}
	k, rows := 0, 0
	if p.rep == nil {
		k = int(min(int64(p.left()), target-r.row))
		rows = k
	} else {
		k, rows = rowEntries(p.rep[p.pos:], int(min(target-r.row, int64(p.left()))))
		p.tail = k == p.left()
	}
	if p.def == nil {
		p.valuePos += k
	} else {
		p.valuePos += countLevel(p.def[p.pos:p.pos+k], r.stored.MaxDef)
	}
	p.pos += k
	r.row += int64(rows)
}

// dropTail passes over the rest of a skipped row.
func (r *ColumnReader) dropTail(ctx context.Context) error {
	p := &r.pages
	for p.tail {
		if p.left() == 0 {
			raw, err := r.nextRaw(ctx)
			if err != nil {
				return err
			}
			if raw == nil {
				p.tail = false
				return nil
			}
			if err := r.open(raw); err != nil {
				return err
			}
			continue
		}
		k, _ := rowEntries(p.rep[p.pos:], 0)
		p.valuePos += countLevel(p.def[p.pos:p.pos+k], r.stored.MaxDef)
		p.pos += k
		p.tail = p.left() == 0
	}
	return nil
}

// seek goes on at the page that holds row target, by the offset index, if that
// saves reading much. The page at hand has been passed.
func (r *ColumnReader) seek(ctx context.Context, target int64) error {
	if !r.chunk.TrustedWriter {
		return nil
	}
	if float64(r.chunk.Length)*float64(target-r.row) < float64(r.seekAfter)*float64(r.rows) {
		return nil
	}
	if !r.indexRead {
		index, err := r.chunk.OffsetIndex(ctx)
		if err != nil {
			return err
		}
		r.index, r.indexRead = index, true
	}
	index := r.index
	if index == nil || len(index.Pages) == 0 {
		return nil
	}
	i := sort.Search(len(index.Pages), func(i int) bool { return index.Pages[i].FirstRow > target }) - 1
	if i < 0 {
		return r.corrupt("offset index starts at row %d", index.Pages[0].FirstRow)
	}
	at := index.Pages[i]
	if at.FirstRow <= r.row {
		return nil
	}
	end := r.chunk.Start + r.chunk.Length
	if at.Offset < r.chunk.Start || at.Offset >= end || at.FirstRow >= r.rows {
		return r.corrupt("offset index points outside the chunk")
	}
	p := &r.pages
	if !p.began && r.col.Source != nil {
		// The dictionary, if there is one, comes before the first page.
		raw, err := r.nextRaw(ctx)
		if err != nil {
			return err
		}
		p.peeked = raw
	}
	*p = pageCursor{began: true}
	r.scanner = r.chunk.Scan(at.Offset, end)
	r.scanner.BorrowFrom(r.decoder)
	raw, err := r.nextRaw(ctx)
	if err != nil {
		return err
	}
	next := r.rows
	if i+1 < len(index.Pages) {
		next = index.Pages[i+1].FirstRow
	}
	if raw == nil {
		return r.corrupt("offset index points at no data page")
	}
	r.row = at.FirstRow
	rows, ok := r.pageRows(raw)
	if ok {
		p.peeked = raw
	} else {
		if err := r.open(raw); err != nil {
			return err
		}
		rows = int64(countLevel(p.rep, 0))
	}
	if rows != next-at.FirstRow {
		return r.corrupt("offset index gives page %d %d rows, the page has %d", i, next-at.FirstRow, rows)
	}
	if !ok {
		r.passInPage(target)
	}
	return nil
}
