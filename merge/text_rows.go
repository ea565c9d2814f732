package merge

import (
	"slices"
	"sync"

	"github.com/icefs/icefs/deletes"
)

// Rows of at least shareBytes are put together by all workers; for less the
// start of a goroutine costs more than it saves.
const shareBytes = 128 << 10

// Rows are put together a column at a time, in tiles of few enough rows that
// what is written stays in the processor's nearest cache.
const (
	tileRows  = 256
	tileBytes = 16 << 10
)

// cellCopy is how much of a cell is copied at once: most cells are no longer.
// What is copied past a cell's end, but not past its row's, is overwritten by the
// next column.
const cellCopy = 32

// strip is a column of a batch while rows are put together.
type strip struct {
	before     []byte // what stands before each cell
	text       []byte
	start, end []uint32 // see cells
	index      []uint32
	longest    int
	copied     [cellCopy]byte // of before, if it is no longer
}

// setStrips readies the columns' cells for putting rows together.
func (b *textBatch) setStrips() {
	b.strips = b.strips[:0]
	for j, c := range b.columns {
		text := c.cells.text
		text = text[:min(cap(text), len(text)+2*cellCopy)] // copied, but not kept
		b.strips = append(b.strips, strip{
			before: b.form.before[j], text: text, start: c.cells.start, end: c.cells.end[:len(c.cells.start)],
			index: c.cells.index, longest: c.cells.longest,
		})
		copy(b.strips[j].copied[:], b.form.before[j])
	}
}

// cut appends to dst the first of the rows live whose text is at most limit
// bytes, or one row, and returns the rest, which shares memory with live, and
// the bytes.
func (b *textBatch) cut(dst, live []deletes.Range, limit int) (head, rest []deletes.Range, bytes int) {
	for i := range live {
		r := &live[i]
		for row := r.Start; row < r.End; row++ {
			n := b.lengths[row]
			if bytes+n <= limit || bytes == 0 {
				bytes += n
				continue
			}
			if row > r.Start {
				dst = append(dst, deletes.Range{Start: r.Start, End: row})
				r.Start = row
			}
			return dst, live[i:], bytes
		}
		dst = append(dst, *r)
	}
	return dst, nil, bytes
}

// appendRows appends the text of the rows live, which has so many bytes, with
// up to workers at a time. live is scratch afterwards.
func (b *textBatch) appendRows(dst []byte, live []deletes.Range, bytes, workers int) []byte {
	dst = slices.Grow(dst, bytes)
	out := dst[len(dst) : len(dst)+bytes]
	dst = dst[:len(dst)+bytes]
	if bytes < shareBytes || workers < 2 {
		b.putRows(out, live)
		return dst
	}
	var done sync.WaitGroup
	for w := 0; len(live) > 0; w++ {
		if w == len(b.shares) {
			b.shares = append(b.shares, nil)
		}
		var n int
		b.shares[w], live, n = b.cut(b.shares[w][:0], live, bytes/workers)
		share, piece := b.shares[w], out[:n:n]
		out = out[n:]
		done.Go(func() { b.putRows(piece, share) })
	}
	done.Wait()
	return dst
}

// putRows writes the text of rows to out, which is as long as that.
func (b *textBatch) putRows(out []byte, live []deletes.Range) {
	var t tile
	begin, at := 0, 0
	for _, r := range live {
		for i := r.Start; i < r.End; i++ {
			if t.n == tileRows || at-begin > tileBytes {
				t.put(out, b.strips, b.form.after)
				t.n, begin = 0, at
			}
			t.rows[t.n], t.at[t.n] = uint32(i), at
			at += b.lengths[i]
			t.end[t.n] = at
			t.n++
		}
	}
	t.put(out, b.strips, b.form.after)
}

// tile is a run of rows being put together.
type tile struct {
	n     int
	rows  [tileRows]uint32 // of the batch
	cells [tileRows]uint32 // of a column with an index
	at    [tileRows]int    // where the next column goes
	end   [tileRows]int    // where the row ends
}

// put writes the tile's rows to out.
func (t *tile) put(out []byte, strips []strip, after []byte) {
	for j := range strips {
		s := &strips[j]
		cells := t.rows[:t.n]
		if s.index != nil {
			for k, i := range cells {
				t.cells[k] = s.index[i]
			}
			cells = t.cells[:t.n]
		}
		switch {
		case len(s.before) != 1:
			t.putColumn(out, s, cells)
		case s.longest <= 16:
			t.putShort(out, s, cells)
		default:
			t.putLong(out, s, cells)
		}
	}
	for _, at := range t.at[:t.n] {
		copy(out[at:], after)
	}
}

// putShort writes a column of cells of at most 16 bytes, each after one byte.
func (t *tile) putShort(out []byte, s *strip, cells []uint32) {
	at, rowEnd := t.at[:len(cells)], t.end[:len(cells)]
	text, start, end, before := s.text, s.start, s.end, s.copied[0]
	end = end[:len(start)]
	for k, c := range cells {
		p, from := at[k], int(start[c])
		at[k] = p + 1 + int(end[c]) - from
		out[p] = before
		p++
		if p+16 <= rowEnd[k] && from+16 <= len(text) {
			*(*[16]byte)(out[p:]) = [16]byte(text[from:])
		} else {
			copyShort(out[p:at[k]], text[from:])
		}
	}
}

// putLong writes a column of cells of any length, each after one byte.
func (t *tile) putLong(out []byte, s *strip, cells []uint32) {
	at, rowEnd := t.at[:len(cells)], t.end[:len(cells)]
	text, start, end, before := s.text, s.start, s.end, s.copied[0]
	end = end[:len(start)]
	for k, c := range cells {
		p, from := at[k], int(start[c])
		n := int(end[c]) - from
		at[k] = p + 1 + n
		out[p] = before
		p++
		switch {
		case n <= cellCopy && p+cellCopy <= rowEnd[k] && from+cellCopy <= len(text):
			copy32(out[p:], text[from:])
		case n <= 2*cellCopy && p+2*cellCopy <= rowEnd[k] && from+2*cellCopy <= len(text):
			copy32(out[p:], text[from:])
			copy32(out[p+cellCopy:], text[from+cellCopy:])
		default:
			copyShort(out[p:p+n], text[from:])
		}
	}
}

// putColumn writes a column of any cells, after any bytes.
func (t *tile) putColumn(out []byte, s *strip, cells []uint32) {
	at, end := t.at[:len(cells)], t.end[:len(cells)]
	text, before := s.text, len(s.before)
	for k, c := range cells {
		p, from := at[k], int(s.start[c])
		n := int(s.end[c]) - from
		if before > cellCopy || p+cellCopy > end[k] {
			copy(out[p:], s.before)
		} else {
			copy32(out[p:], s.copied[:])
		}
		p += before
		at[k] = p + n
		switch {
		case n <= 16 && from+16 <= len(text) && p+16 <= end[k]:
			*(*[16]byte)(out[p:]) = *(*[16]byte)(text[from:])
		case n <= cellCopy && from+cellCopy <= len(text) && p+cellCopy <= end[k]:
			copy32(out[p:], text[from:])
		case n <= 2*cellCopy && from+2*cellCopy <= len(text) && p+2*cellCopy <= end[k]:
			copy32(out[p:], text[from:])
			copy32(out[p+cellCopy:], text[from+cellCopy:])
		default:
			copyShort(out[p:p+n], text[from:])
		}
	}
}

// copyShort is copy(dst, src) for an src as long as dst at least, without a call
// if that is 8 to 32 bytes: its first and its last bytes, which may overlap.
func copyShort(dst, src []byte) {
	switch n := len(dst); {
	case n > 32 || n < 8:
		copy(dst, src)
	case n >= 16:
		a, b := [16]byte(src), [16]byte(src[n-16:])
		*(*[16]byte)(dst), *(*[16]byte)(dst[n-16:]) = a, b
	default:
		a, b := [8]byte(src), [8]byte(src[n-8:])
		*(*[8]byte)(dst), *(*[8]byte)(dst[n-8:]) = a, b
	}
}

// copy32 copies 32 bytes. Copies of 16 bytes are moves of one register; longer
// ones would be calls.
func copy32(dst, src []byte) {
	d, s := (*[cellCopy]byte)(dst), (*[cellCopy]byte)(src)
	*(*[16]byte)(d[:]) = *(*[16]byte)(s[:])
	*(*[16]byte)(d[16:]) = *(*[16]byte)(s[16:])
}
