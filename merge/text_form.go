package merge

import (
	"fmt"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// textFormat is the number of the text views' bytes and of the measurements
// kept for them; it is part of the keys of everything that is kept.
const textFormat = 1

// textForm is a text format over one view schema: what stands before the rows,
// before each column's cell and after each row.
type textForm struct {
	name    string   // csv or jsonl
	csv     *csvForm // nil for JSON Lines
	options string   // everything that changes bytes, for keys
	head    []byte   // header line, and BOM
	before  [][]byte // per top-level column
	after   []byte
	fixed   int // bytes of a row without its cells
}

// seal computes what depends on the other fields.
func (f *textForm) seal() *textForm {
	f.fixed = len(f.after)
	for _, b := range f.before {
		f.fixed += len(b)
	}
	return f
}

// textBatch formats runs of rows of a view. Its columns keep their buffers and
// dictionaries' texts from batch to batch. Not safe for concurrent use, but its
// columns may be formatted concurrently.
type textBatch struct {
	form    *textForm
	columns []*textColumn
	rows    int
	sums    [][]int // each worker's
	lengths []int   // bytes of each row
}

// newTextBatch returns a formatter for the rows of a view schema.
func newTextBatch(view *pqfile.Schema, form *textForm) (*textBatch, error) {
	b := &textBatch{form: form}
	for _, n := range view.Root.Children {
		c, err := newTextColumn(n, form.csv)
		if err != nil {
			return nil, err
		}
		b.columns = append(b.columns, c)
	}
	return b, nil
}

// begin prepares for a batch of rows that so many workers format the columns of:
// each adds the lengths of its columns' cells to sums of its own.
func (b *textBatch) begin(rows, workers int) {
	b.rows = rows
	for len(b.sums) < max(workers, 1) {
		b.sums = append(b.sums, nil)
	}
	for w := range b.sums {
		if cap(b.sums[w]) < rows {
			b.sums[w] = make([]int, rows)
		}
		b.sums[w] = b.sums[w][:rows]
		clear(b.sums[w])
	}
}

// finish computes the rows' lengths once all columns are formatted or measured.
func (b *textBatch) finish() {
	b.lengths = b.sums[0]
	for i := range b.lengths {
		b.lengths[i] += b.form.fixed
	}
	for _, sum := range b.sums[1:] {
		for i := range b.lengths {
			b.lengths[i] += sum[i]
		}
	}
}

// run returns the end of a run of rows from row from, at most to, whose text is
// at most limit bytes or one row, and its bytes.
func (b *textBatch) run(from, to int64, limit int) (end int64, bytes int) {
	for end = from; end < to; end++ {
		n := b.lengths[end]
		if bytes+n > limit && end > from {
			break
		}
		bytes += n
	}
	return end, bytes
}

// appendRows appends the text of rows [from, to), which has so many bytes.
func (b *textBatch) appendRows(dst []byte, from, to int64, bytes int) []byte {
	dst = slices.Grow(dst, bytes)
	out, at := dst[:cap(dst)], len(dst)
	before, after := b.form.before, b.form.after
	for i := from; i < to; i++ {
		for j, c := range b.columns {
			at = put(out, at, before[j], 0, len(before[j]))
			at = put(out, at, c.cells.text, int(c.cells.start[i]), int(c.cells.end[i]))
		}
		at = put(out, at, after, 0, len(after))
	}
	return out[:at]
}

// put copies text[from:to] to dst[at:] and returns the end of the copy. Most
// cells are short: those are copied as 32 bytes, the rest of which the next
// cell overwrites.
func put(dst []byte, at int, text []byte, from, to int) int {
	n := to - from
	if n <= 32 && from+32 <= len(text) && at+32 <= len(dst) {
		*(*[16]byte)(dst[at:]) = *(*[16]byte)(text[from:])
		*(*[16]byte)(dst[at+16:]) = *(*[16]byte)(text[from+16:])
		return at + n
	}
	return at + copy(dst[at:], text[from:to])
}

// columnNames lists the top-level columns of a view.
func columnNames(view *pqfile.Schema) [][]byte {
	var names [][]byte
	for _, n := range view.Root.Children {
		names = append(names, []byte(n.Name))
	}
	return names
}

// errColumn names the column that an error comes from.
func errColumn(n *pqfile.Node, err error) error { return fmt.Errorf("column %q: %w", n.Name, err) }
