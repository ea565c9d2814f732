package merge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
)

// Most rewritten chunks are compacted as they are encoded: pages are
// decompressed, and the live ranges of their indexes, values and levels copied
// as runs of bits and bytes. Values are not looked at, and the dictionary page is
// served as it is stored.

// copyable returns the stored chunk of a flat leaf whose pages can be compacted
// as they are encoded, or nil: PLAIN or dictionary-coded pages of the view's type
// in the codec of the chunk.
func (r *rewrite) copyable() *pqfile.Chunk {
	leaf := r.form.leaf
	if len(r.sources) != 1 || r.engine.opt.NoSplice || leaf.MaxRep > 0 || leaf.Type == pqfile.Boolean {
		return nil
	}
	s := &r.sources[0]
	col := &s.in.columns[leaf.Leaf]
	if s.in.pq == nil || s.in.remote || col.Source == nil || col.Fill != nil || col.Shredding != nil || col.Convert.Kind != pqfile.ConvertNone || !col.Source.Flat() {
		return nil
	}
	c, err := s.in.pq.Chunk(s.rowGroup, col.Source)
	if err != nil || !c.TrustedWriter || c.Meta.Codec != r.form.codec {
		return nil
	}
	return c
}

// makeEncoded appends the visible rows of the run from its stored pages.
func (r *rewrite) makeEncoded(ctx context.Context, w *pageWriter) error {
	s := &r.sources[0]
	err := r.copyPages(ctx, w, s)
	if err != nil {
		return fmt.Errorf("%s: column %q: row group %d: %w", s.in.file.Path, r.form.leaf.Name, s.rowGroup, err)
	}
	return nil
}

func (r *rewrite) copyPages(ctx context.Context, w *pageWriter, s *groupSource) error {
	live, err := r.engine.liveRanges(ctx, s)
	if err != nil {
		return err
	}
	c := pageCopier{w: w, leaf: r.form.leaf, col: &s.in.columns[r.form.leaf.Leaf], decoder: r.encoded.NewDecoder(), copyScratch: &w.scratch}
	defer c.decoder.Release()
	scan := r.encoded.Scan(r.from, r.to)
	scan.BorrowFrom(c.decoder)
	for at, end := s.first, s.first+s.rows; at < end; {
		raw, err := scan.Next(ctx)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: pages end before their %d rows", ErrCorrupt, s.rows)
		}
		if err != nil {
			return err
		}
		rows, _, ok := dataPage(&raw.Header)
		if !ok || rows < 0 || rows > end-at {
			return fmt.Errorf("%w: page at %d is no data page of %d rows", ErrCorrupt, raw.Offset, end-at)
		}
		var of []deletes.Range
		of, live = c.split(live, at, at+rows)
		if len(of) > 0 {
			if err := c.page(raw, of); err != nil {
				return fmt.Errorf("page at %d: %w", raw.Offset, err)
			}
		}
		at += rows
	}
	return nil
}

// liveRanges returns the live ranges of a whole row group, through the cache:
// every column needs them.
func (e *Engine) liveRanges(ctx context.Context, s *groupSource) ([]deletes.Range, error) {
	v, err := e.cached(ctx, "live|"+s.in.key+"|"+strconv.Itoa(s.rowGroup), func(context.Context) (any, int64, error) {
		from, to := s.in.firstRow[s.rowGroup], s.in.firstRow[s.rowGroup+1]
		live := slices.Clip(s.in.deleted.LiveRanges(nil, from, to))
		return live, 16 * int64(len(live)), nil
	})
	if err != nil {
		return nil, err
	}
	return v.([]deletes.Range), nil
}

// pageCopier appends the live rows of stored pages to a pageWriter.
type pageCopier struct {
	w       *pageWriter
	leaf    *pqfile.Node
	col     *pqfile.Column
	decoder *pqfile.PageDecoder
	*copyScratch
}

// copyScratch is memory that copiers take turns to use.
type copyScratch struct {
	ranges []deletes.Range // of the page at hand
	cut    cutter
	values []deletes.Range
	def    []uint8
}

// split returns the live ranges of rows [from, to), counted from from, and those
// that end behind to.
func (c *pageCopier) split(live []deletes.Range, from, to int64) (of, rest []deletes.Range) {
	live = live[sort.Search(len(live), func(i int) bool { return live[i].End > from }):]
	n := sort.Search(len(live), func(i int) bool { return live[i].Start >= to })
	c.ranges = append(c.ranges[:0], live[:n]...)
	if n == 0 {
		return c.ranges, live
	}
	last := &c.ranges[n-1]
	if rest = live[n:]; last.End > to {
		rest = live[n-1:]
		last.End = to
	}
	c.ranges[0].Start = max(c.ranges[0].Start, from)
	if from != 0 {
		for i := range c.ranges {
			c.ranges[i].Start -= from
			c.ranges[i].End -= from
		}
	}
	return c.ranges, rest
}

// page appends the live rows of a page, of which there are some.
func (c *pageCopier) page(raw *pqfile.RawPage, live []deletes.Range) error {
	w := c.w
	pd, err := c.decoder.Uncompress(raw)
	if err != nil {
		return err
	}
	from, err := c.open(&pd)
	if err != nil {
		return err
	}
	def, err := c.levels(&pd)
	if err != nil {
		return err
	}
	present := cursor{v: &pqfile.Vector{Def: def}, maxDef: uint8(c.col.Source.MaxDef)}
	c.cut.live = live
	for len(c.cut.live) > 0 {
		room := w.form.rows - w.rows
		if c.leaf.Type == pqfile.ByteArray && !w.coded() {
			room = min(room, stepRows)
		}
		head, rows := c.cut.next(room)
		values := head
		if def == nil {
			w.addLevels(nil, nil, rows)
		} else if values, err = c.addLevels(def, head, &present); err != nil {
			return err
		}
		w.rows += rows
		if err := from.copyTo(w, values); err != nil {
			return err
		}
		if w.full() {
			if err := w.endPage(); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutter hands out ranges in portions.
type cutter struct {
	live []deletes.Range
	head []deletes.Range
}

// next returns the next ranges with so many rows at most, and counts them. They
// may be changed.
func (c *cutter) next(room int) (head []deletes.Range, rows int) {
	n := 0
	for n < len(c.live) {
		k := int(c.live[n].End - c.live[n].Start)
		if rows+k > room {
			break
		}
		rows += k
		n++
	}
	if head, c.live = c.live[:n], c.live[n:]; rows == room || len(c.live) == 0 {
		return head, rows
	}
	// The next range is divided.
	split := c.live[0].Start + int64(room-rows)
	c.head = append(append(c.head[:0], head...), deletes.Range{Start: c.live[0].Start, End: split})
	c.live[0].Start = split
	return c.head, room
}

// storedValues are the values of a page as they are encoded.
type storedValues interface {
	// copyTo appends ranges of values, which are behind those copied before. It
	// may change ranges.
	copyTo(w *pageWriter, ranges []deletes.Range) error
}

// open returns the values of a page, and makes the page in the making one of
// their encoding.
func (c *pageCopier) open(pd *pqfile.PageData) (storedValues, error) {
	w := c.w
	if !dictionaryCoded(pd.Encoding) {
		switch {
		case pd.Encoding != pqfile.Plain:
			return nil, fmt.Errorf("%w: encoding %d, which the footer does not tell of", ErrCorrupt, pd.Encoding)
		case w.form.fallback:
			if err := w.fall(); err != nil {
				return nil, err
			}
		case w.form.dict:
			return nil, fmt.Errorf("%w: plain values in a chunk of dictionary pages", ErrCorrupt)
		}
		if c.leaf.Type == pqfile.ByteArray {
			return &storedStrings{src: pd.Values}, nil
		}
		return &storedFixed{src: pd.Values, width: valueWidth(c.leaf)}, nil
	}
	if !w.coded() {
		return nil, fmt.Errorf("%w: dictionary-coded page among plain ones", ErrCorrupt)
	}
	if len(pd.Values) == 0 { // only NULLs
		return &storedIndexes{}, nil
	}
	x := &storedIndexes{hybridRuns{src: pd.Values[1:], width: uint(pd.Values[0])}}
	switch {
	case x.width > 32:
		return nil, fmt.Errorf("%w: indexes of %d bits", ErrCorrupt, x.width)
	case x.width == 0: // runs of no bits say nothing, and may be left out
		x.end = int64(pd.NumValues)
	}
	return x, nil
}

// levels returns the page's definition levels, nil if every row has a value.
func (c *pageCopier) levels(pd *pqfile.PageData) ([]uint8, error) {
	node := c.col.Source
	if node.MaxDef == 0 {
		return nil, nil
	}
	if pd.DefEncoding == pqfile.RLE { // mostly one run
		n, k := binary.Uvarint(pd.DefBytes)
		if k > 0 && n&1 == 0 && n>>1 >= uint64(pd.NumValues) && len(pd.DefBytes) > k && int(pd.DefBytes[k]) == node.MaxDef {
			return nil, nil
		}
	}
	_, def, err := c.decoder.Levels(pd)
	if err != nil {
		return nil, err
	}
	if countLevel(def, uint8(node.MaxDef)) == pd.NumValues {
		return nil, nil
	}
	return def, nil
}

// addLevels appends the levels of ranges of rows in the view's terms, and returns
// the ranges of their values.
func (c *pageCopier) addLevels(def []uint8, live []deletes.Range, present *cursor) ([]deletes.Range, error) {
	c.values = c.values[:0]
	for _, r := range live {
		_, _, value, endValue := present.run(int(r.Start), int(r.End))
		c.def = c.def[:0]
		for _, d := range def[r.Start:r.End] {
			level := pqfile.LevelForbidden
			if int(d) < len(c.col.DefMap) {
				level = c.col.DefMap[d]
			}
			if level == pqfile.LevelForbidden {
				return nil, fmt.Errorf("%w: NULL in a required column", ErrCorrupt)
			}
			c.def = append(c.def, level)
		}
		c.w.addLevels(nil, c.def, len(c.def))
		if value < endValue {
			c.values = append(c.values, deletes.Range{Start: int64(value), End: int64(endValue)})
		}
	}
	return c.values, nil
}

// storedIndexes are dictionary indexes.
type storedIndexes struct{ hybridRuns }

func (x *storedIndexes) copyTo(w *pageWriter, ranges []deletes.Range) error {
	return x.hybridRuns.copyTo(&w.packer, ranges)
}

// storedFixed are PLAIN values of a fixed width.
type storedFixed struct {
	src   []byte
	width int
}

func (x *storedFixed) copyTo(w *pageWriter, ranges []deletes.Range) error {
	n := len(ranges)
	if n > 0 && ranges[n-1].End*int64(x.width) > int64(len(x.src)) {
		return errFewValues
	}
	for _, r := range ranges {
		w.plain = append(w.plain, x.src[int(r.Start)*x.width:int(r.End)*x.width]...)
	}
	return nil
}

// storedStrings are PLAIN byte arrays, each behind its length.
type storedStrings struct {
	src []byte // from value number next on
	// next is the number of the next value.
	next int64
}

func (x *storedStrings) copyTo(w *pageWriter, ranges []deletes.Range) error {
	for _, r := range ranges {
		skipped, err := x.pass(r.Start - x.next)
		if err != nil {
			return err
		}
		x.src = x.src[skipped:]
		n, err := x.pass(r.End - r.Start)
		if err != nil {
			return err
		}
		w.plain = append(w.plain, x.src[:n]...)
		x.src = x.src[n:]
	}
	return nil
}

// pass moves on by n values and returns how many bytes they take.
func (x *storedStrings) pass(n int64) (int, error) {
	src, at := x.src, 0
	for range n {
		if at > len(src)-4 {
			return 0, errFewValues
		}
		size := int(binary.LittleEndian.Uint32(src[at:]))
		if at += 4; size > len(src)-at {
			return 0, errFewValues
		}
		at += size
	}
	x.next += n
	return at, nil
}

// errFewValues is found before anything behind a page is read.
var errFewValues = fmt.Errorf("%w: page lacks some of its values", ErrCorrupt)
