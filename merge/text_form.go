package merge

import (
	"fmt"

	"github.com/icefs/icefs/deletes"
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
	strips  []strip
	shares  [][]deletes.Range // of the rows, for each worker
	sums    [][]int           // each worker's
	lengths []int             // bytes of each row
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

// release forgets what the batch borrows and keeps its memory, for another row
// group.
func (b *textBatch) release() {
	clear(b.strips)
	for _, c := range b.columns {
		c.cells.release()
		if c.flat != nil {
			c.flat.release()
			c.sizes.release()
			continue
		}
		for _, l := range c.nested.leaves {
			l.vec = nil
			if l.texts != nil {
				l.texts.release()
				l.sizes.release()
			}
		}
	}
}

// bytes is about how much memory the batch keeps.
func (b *textBatch) bytes() int {
	n := 0
	for _, c := range b.columns {
		if c.flat != nil {
			n += c.flat.own.bytes() + c.flat.dictT.bytes() + c.sizes.plain.bytes() + c.sizes.ofDict.bytes()
			continue
		}
		n += cap(c.nested.buf) + cap(c.nested.json)
		for _, l := range c.nested.leaves {
			if l.texts != nil {
				n += l.texts.own.bytes() + l.texts.dictT.bytes() + l.sizes.plain.bytes() + l.sizes.ofDict.bytes()
			}
		}
	}
	return n
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
