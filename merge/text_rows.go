package merge

import (
	"slices"
	"sync"

	"github.com/icefs/icefs/deletes"
)

// Rows of at least shareBytes are put together by all workers; for less the
// start of a goroutine costs more than it saves.
const shareBytes = 128 << 10

// cellCopy is how much of a cell is copied at once: most cells are shorter, and
// what is copied past their end is overwritten by the next.
const cellCopy = 32

// strip is a column of a batch while rows are put together.
type strip struct {
	before     [cellCopy]byte // what stands before each cell,
	beforeLen  int            // if that is short, else
	long       []byte
	text       []byte
	start, end []uint32
}

// setStrips readies the columns' cells for putting rows together.
func (b *textBatch) setStrips() {
	b.strips = b.strips[:0]
	for j, c := range b.columns {
		text := c.cells.text
		text = text[:min(cap(text), len(text)+2*cellCopy)] // copied, but not kept
		s := strip{text: text, start: c.cells.start[:b.rows], end: c.cells.end[:b.rows]}
		if before := b.form.before[j]; len(before) <= cellCopy {
			s.beforeLen = copy(s.before[:], before)
		} else {
			s.long = before
		}
		b.strips = append(b.strips, s)
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
		putRows(out, b.strips, b.form.after, live)
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
		done.Go(func() { putRows(piece, b.strips, b.form.after, share) })
	}
	done.Wait()
	return dst
}

// putRows writes the text of rows to out, which is as long as that.
func putRows(out []byte, strips []strip, after []byte, rows []deletes.Range) {
	at := 0
	for _, r := range rows {
		for i := r.Start; i < r.End; i++ {
			for j := range strips {
				s := &strips[j]
				switch {
				case s.long != nil:
					at += copy(out[at:], s.long)
				case s.beforeLen == 1:
					out[at] = s.before[0]
					at++
				case at+cellCopy <= len(out):
					*(*[16]byte)(out[at:]) = *(*[16]byte)(s.before[:])
					*(*[16]byte)(out[at+16:]) = *(*[16]byte)(s.before[16:])
					at += s.beforeLen
				default:
					at += copy(out[at:], s.before[:s.beforeLen])
				}
				at = putCell(out, at, s.text, int(s.start[i]), int(s.end[i]))
			}
			if len(after) == 1 {
				out[at] = after[0]
				at++
			} else {
				at += copy(out[at:], after)
			}
		}
	}
}

// putCell writes text[from:to] to out[at:] and returns where it ends. Copies of
// 16 bytes are moves of one register; longer ones would be calls.
func putCell(out []byte, at int, text []byte, from, to int) int {
	n := to - from
	if n > 2*cellCopy || from+2*cellCopy > len(text) || at+2*cellCopy > len(out) {
		return at + copy(out[at:], text[from:to])
	}
	dst, src := (*[2 * cellCopy]byte)(out[at:]), (*[2 * cellCopy]byte)(text[from:])
	*(*[16]byte)(dst[:]) = *(*[16]byte)(src[:])
	if n > 16 {
		*(*[16]byte)(dst[16:]) = *(*[16]byte)(src[16:])
	}
	if n > 32 {
		*(*[16]byte)(dst[32:]) = *(*[16]byte)(src[32:])
		*(*[16]byte)(dst[48:]) = *(*[16]byte)(src[48:])
	}
	return at + n
}
