package merge

import (
	"fmt"

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
	lengths []int // bytes of each row
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

// measure computes the rows' lengths once all columns are formatted.
func (b *textBatch) measure(rows int) {
	b.rows = rows
	if cap(b.lengths) < rows {
		b.lengths = make([]int, rows)
	}
	b.lengths = b.lengths[:rows]
	for i := range b.lengths {
		b.lengths[i] = b.form.fixed
	}
	for _, c := range b.columns {
		start, end := c.cells.start[:rows], c.cells.end[:rows]
		for i := range b.lengths {
			b.lengths[i] += int(end[i] - start[i])
		}
	}
}

// appendRow appends the text of row i.
func (b *textBatch) appendRow(dst []byte, i int) []byte {
	for j, c := range b.columns {
		dst = append(dst, b.form.before[j]...)
		dst = append(dst, c.cells.text[c.cells.start[i]:c.cells.end[i]]...)
	}
	return append(dst, b.form.after...)
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
