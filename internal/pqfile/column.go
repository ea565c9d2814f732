package pqfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// ColumnReader reads one view column of one row group as vectors. It holds one
// decoded page and one batch; whole pages that a Skip passes over are not
// decompressed where their headers tell the rows.
type ColumnReader struct {
	col     *Column
	stored  *Node  // the leaf read: Source, or Levels of a missing column
	chunk   *Chunk // nil for a column that nothing has to be read for
	scanner *PageScanner
	decoder *PageDecoder

	row, rows int64 // rows passed, and in the row group
	first     int64 // file position of the row group
	fill      []byte
	shredded  *shreddedReader // reads in place of all below
	pages     pageCursor
	index     *OffsetIndex // once read; nil if the chunk has none
	indexRead bool
	seekAfter int64 // seekBytes, or less in tests
	keep      bool  // vectors of one encoding
	// table is DefMap for every byte; LevelForbidden also past the stored
	// MaxDef.
	table   [256]uint8
	convert converter
	out     batch
	vector  Vector
}

// Column starts reading column col (of f.Project) at the first row of a row
// group. A missing column decodes nothing, or only Levels' levels.
func (f *File) Column(rowGroup int, col *Column) (*ColumnReader, error) {
	if rowGroup < 0 || rowGroup+1 >= len(f.FirstRow) {
		return nil, fmt.Errorf("internal error: row group %d of %d", rowGroup, len(f.FirstRow)-1)
	}
	r := &ColumnReader{col: col, seekAfter: seekBytes, first: f.FirstRow[rowGroup], rows: f.FirstRow[rowGroup+1] - f.FirstRow[rowGroup]}
	if col.Shredding != nil {
		var err error
		r.shredded, err = newShreddedReader(f, rowGroup, col)
		return r, err
	}
	r.stored = col.Source
	if r.stored == nil {
		r.stored = col.Levels
	}
	if r.stored == nil {
		return r, nil
	}
	chunk, err := f.Chunk(rowGroup, r.stored)
	if err != nil {
		return nil, err
	}
	for d := range r.table {
		r.table[d] = LevelForbidden
	}
	copy(r.table[:], col.DefMap)
	r.chunk = chunk
	r.scanner = chunk.Scan(chunk.Start, chunk.Start+chunk.Length)
	r.decoder = chunk.NewDecoder()
	r.scanner.BorrowFrom(r.decoder)
	r.convert = converter{kind: &col.Convert, leaf: col.Leaf}
	return r, nil
}

// KeepEncodings makes Read return fewer rows of a flat column where pages coded
// by the dictionary meet others, so that no vector mixes them.
func (r *ColumnReader) KeepEncodings() { r.keep = true }

// Close returns the reader's buffers.
func (r *ColumnReader) Close() {
	if r.shredded != nil {
		r.shredded.close()
	}
	if r.decoder != nil {
		r.decoder.Release()
		r.decoder = nil
	}
}

// Read returns the next n rows (fewer only at the row group's end, or after
// KeepEncodings; io.EOF after the end). The vector is valid until the next call. NULL in a required leaf is
// ErrCorrupt.
func (r *ColumnReader) Read(ctx context.Context, n int) (*Vector, error) {
	if n < 1 {
		return nil, fmt.Errorf("internal error: read of %d rows", n)
	}
	if r.row >= r.rows {
		return nil, io.EOF
	}
	n = int(min(int64(n), r.rows-r.row))
	r.vector = Vector{Rows: n}
	var err error
	switch {
	case r.shredded != nil:
		err = r.shredded.read(ctx, n, &r.vector)
	case r.chunk == nil:
		err = r.readConstant(n)
	case r.stored.Flat():
		err = r.readFlat(ctx, n)
	default:
		err = r.readRepeated(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	if r.col.Fill != nil {
		r.fill = r.col.Fill.Complete(&r.vector, r.first+r.row, r.fill[:0])
	}
	r.row += int64(r.vector.Rows)
	return &r.vector, nil
}

// readConstant fills in a column that no stored levels belong to: its parent
// is there in every row, or in none.
func (r *ColumnReader) readConstant(n int) error {
	level := r.col.DefMap[0]
	r.vector.Repeat, r.vector.Values = true, r.col.Constant
	if int(level) != r.col.Leaf.MaxDef {
		r.vector.Def = r.out.constantLevels(n, level)
	}
	if r.col.Leaf.MaxRep > 0 {
		r.vector.Rep = r.out.zeros(n)
	}
	return nil
}

// readFlat reads rows of a column without lists: entries are rows. Rows that
// lie in one page are not copied.
func (r *ColumnReader) readFlat(ctx context.Context, n int) error {
	if err := r.needPage(ctx); err != nil {
		return err
	}
	r.out.reset()
	p := &r.pages
	if p.left() >= n && r.col.Source != nil && (p.def == nil || countLevel(p.def[p.pos:p.pos+n], r.stored.MaxDef) == n) {
		p.pos += n
		values, err := r.takeValues(n)
		r.vector.Values = values
		return err
	}
	if p.left() >= n {
		present, err := r.takeLevels(n)
		if err != nil {
			return err
		}
		if r.col.Source == nil {
			r.finishConstant(n)
			return nil
		}
		values, err := r.takeValues(present)
		if err != nil {
			return err
		}
		r.vector.Values, r.vector.Def = values, r.out.def
		return nil
	}
	for need := n; need > 0; {
		if err := r.needPage(ctx); err != nil {
			return err
		}
		if r.keep && need < n && r.out.differs(&p.data) {
			n -= need
			r.vector.Rows = n
			break
		}
		k := min(need, p.left())
		if err := r.appendEntries(k); err != nil {
			return err
		}
		need -= k
	}
	r.finish(n)
	return nil
}

// readRepeated reads rows of a column with lists. A row ends where the next
// entry has repetition level 0, which may be on a later page.
func (r *ColumnReader) readRepeated(ctx context.Context, n int) error {
	r.out.reset()
	if err := r.dropTail(ctx); err != nil {
		return err
	}
	p := &r.pages
	rows := 0
	for {
		if p.left() == 0 {
			more, err := r.continues(ctx, rows == n)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		k, started := rowEntries(p.rep[p.pos:], n-rows)
		if rows == 0 && k > 0 && p.rep[p.pos] != 0 {
			return r.corrupt("starts inside a row")
		}
		rows += started
		ended := k < p.left()
		if err := r.appendEntries(k); err != nil {
			return err
		}
		if ended {
			break
		}
	}
	if rows < n {
		return r.corrupt("%d rows of %d", r.row+int64(rows), r.rows)
	}
	if r.row+int64(n) == r.rows && p.left() > 0 {
		return r.corrupt("more rows than %d", r.rows)
	}
	r.finish(n)
	return nil
}

// rowEntries returns how many of the entries belong to the next n rows, or to
// one that began before them, and how many rows begin there.
func rowEntries(rep []uint8, n int) (entries, rows int) {
	for i, level := range rep {
		if level == 0 {
			if rows == n {
				return i, rows
			}
			rows++
		}
	}
	return len(rep), rows
}

// appendEntries copies the next k entries of the page to the batch.
func (r *ColumnReader) appendEntries(k int) error {
	p := &r.pages
	from := p.pos
	present, err := r.takeLevels(k)
	if err != nil {
		return err
	}
	if p.rep != nil {
		if err := r.takeRep(p.rep[from : from+k]); err != nil {
			return err
		}
	}
	if r.col.Source == nil {
		return nil
	}
	values, err := r.takeValues(present)
	if err != nil {
		return err
	}
	if !r.out.append(&values) {
		return r.chunk.wrap(fmt.Errorf("%w: batch of more than 4 GiB", ErrUnsupported))
	}
	return nil
}

// takeLevels appends the view's definition levels of the next k entries to the
// batch, passes over the entries, and returns how many have a value. Of a
// missing column only the entries up to RepKeep count.
func (r *ColumnReader) takeLevels(k int) (present int, err error) {
	p := &r.pages
	from := p.pos
	p.pos += k
	if p.def == nil {
		if r.table[0] == LevelForbidden {
			return 0, r.forbidden()
		}
		return k, nil // all are present, on every page
	}
	base := len(r.out.def)
	r.out.def = extend(r.out.def, k)
	out := r.out.def[base:]
	def := p.def[from:p.pos]
	bad := false
	for i, d := range def {
		level := r.table[d]
		out[i] = level
		bad = bad || level == LevelForbidden
	}
	if bad {
		return 0, r.forbidden()
	}
	if r.col.Source == nil && r.stored.MaxRep > r.col.RepKeep {
		kept := 0
		for i, rep := range p.rep[from:p.pos] {
			if int(rep) <= r.col.RepKeep {
				out[kept] = out[i]
				kept++
			}
		}
		r.out.def = r.out.def[:base+kept]
	}
	return bytes.Count(def, []byte{uint8(r.stored.MaxDef)}), nil
}

// takeRep appends repetition levels to the batch, those up to RepKeep for a
// missing column.
func (r *ColumnReader) takeRep(rep []uint8) error {
	keep := uint8(r.stored.MaxRep)
	if r.col.Source == nil {
		keep = uint8(r.col.RepKeep)
	}
	for _, level := range rep {
		if int(level) > r.stored.MaxRep {
			return r.corrupt("repetition level %d of at most %d", level, r.stored.MaxRep)
		}
		if level <= keep {
			r.out.rep = append(r.out.rep, level)
		}
	}
	return nil
}

// takeValues returns the page's next n values in the view's form, and passes
// over them.
func (r *ColumnReader) takeValues(n int) (Values, error) {
	p := &r.pages
	if err := r.decodeValues(); err != nil {
		return Values{}, err
	}
	p.valuePos += n
	return slice(&p.values, p.valuePos-n, p.valuePos), nil
}

// finish puts the batch into the vector.
func (r *ColumnReader) finish(n int) {
	if r.col.Source == nil {
		r.finishConstant(n)
		return
	}
	r.vector.Values = r.out.values(r.col.Leaf)
	if r.col.Leaf.MaxRep > 0 {
		r.vector.Rep, r.vector.Def = r.out.rep, r.out.def
	} else if r.vector.Values.N < n {
		r.vector.Def = r.out.def
	}
}

// finishConstant puts the levels of a missing column into the vector.
func (r *ColumnReader) finishConstant(n int) {
	r.vector.Repeat, r.vector.Values = true, r.col.Constant
	r.vector.Def = r.out.def
	if r.col.Leaf.MaxRep == 0 {
		if bytes.Count(r.out.def, []byte{uint8(r.col.Leaf.MaxDef)}) == n {
			r.vector.Def = nil
		}
		return
	}
	r.vector.Rep = r.out.rep
	if r.stored.MaxRep == 0 {
		r.vector.Rep = r.out.zeros(len(r.out.def))
	}
}

// corrupt is an ErrCorrupt that names file and column.
func (r *ColumnReader) corrupt(format string, args ...any) error {
	return r.chunk.wrap(fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...)))
}

// forbidden is the error for a definition level that may not occur.
func (r *ColumnReader) forbidden() error {
	return r.corrupt("NULL in a required column, or a definition level that its schema does not have")
}
