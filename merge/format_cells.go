package merge

import (
	"bytes"
	"fmt"

	"github.com/icefs/icefs/internal/pqfile"
)

// cells are the texts of one column for a batch of rows: row i's is
// text[start[k]:end[k]], where k is index[i], or i if there is no index. They
// borrow from the column's formatter and from the vectors, and are valid until its
// next batch.
type cells struct {
	text       []byte
	start, end []uint32
	index      []uint32
	longest    int                           // bytes that no row's text has more than; set by addLengths
	own        struct{ start, end []uint32 } // memory for start and end
}

// grow makes room for n rows.
func (c *cells) grow(n int) {
	if cap(c.own.start) < n {
		c.own.start, c.own.end = make([]uint32, n), make([]uint32, n)
	}
	c.start, c.end, c.index = c.own.start[:n], c.own.end[:n], nil
}

// release forgets everything borrowed.
func (c *cells) release() { c.text, c.start, c.end, c.index = nil, nil, nil, nil }

// addLengths adds the cells' lengths to sum.
func (c *cells) addLengths(sum []int) {
	longest := uint32(0)
	if c.index != nil {
		start := c.start
		end := c.end[:len(start)]
		for i, k := range c.index[:len(sum)] {
			n := end[k] - start[k]
			longest = max(longest, n)
			sum[i] += int(n)
		}
		c.longest = int(longest)
		return
	}
	start, end := c.start[:len(sum)], c.end[:len(sum)]
	for i := range sum {
		n := end[i] - start[i]
		longest = max(longest, n)
		sum[i] += int(n)
	}
	c.longest = int(longest)
}

// textColumn formats one top-level column of a view, batch by batch.
type textColumn struct {
	cells  cells
	leaves []int // the view's leaves it is made of
	flat   *leafText
	sizes  *leafLengths // of flat
	maxDef uint8
	nested *nestedText
}

// newTextColumn returns the formatter of a child of the view's root.
func newTextColumn(n *pqfile.Node, csv *csvForm) (*textColumn, error) {
	if n.Kind == pqfile.KindLeaf {
		flat, err := newLeafText(n, csv)
		if err != nil {
			return nil, errColumn(n, err)
		}
		sizes, err := newLeafLengths(n, csv)
		if err != nil {
			return nil, errColumn(n, err)
		}
		return &textColumn{leaves: []int{n.Leaf}, flat: flat, sizes: sizes, maxDef: uint8(n.MaxDef)}, nil
	}
	nested, err := newNestedText(n, csv)
	if err != nil {
		return nil, errColumn(n, err)
	}
	c := &textColumn{nested: nested}
	for _, l := range nested.leaves {
		c.leaves = append(c.leaves, l.node.Leaf)
	}
	return c, nil
}

// check refuses vectors of other rows than were asked for.
func check(rows int, vectors []*pqfile.Vector) error {
	for _, v := range vectors {
		if v.Rows != rows || v.Def != nil && v.Rep != nil && len(v.Def) != len(v.Rep) {
			return fmt.Errorf("%d rows where %d were asked for: %w", v.Rows, rows, ErrCorrupt)
		}
	}
	return nil
}

// format makes the cells of a batch of rows from the vectors of its leaves.
func (c *textColumn) format(rows int, vectors []*pqfile.Vector) error {
	if err := check(rows, vectors); err != nil {
		return err
	}
	if c.flat == nil {
		c.cells.grow(rows)
		return c.nested.format(&c.cells, rows, vectors)
	}
	return c.formatFlat(rows, vectors[0])
}

// present checks the levels of a flat column and returns how many rows have a
// value. l has loaded v.
func (c *textColumn) present(rows int, v *pqfile.Vector, l *leafValues) (int, error) {
	if v.Rep != nil || v.Def != nil && len(v.Def) != rows {
		return 0, fmt.Errorf("levels of a flat column: %w", ErrCorrupt)
	}
	present := rows
	if v.Def != nil {
		present = bytes.Count(v.Def, []byte{c.maxDef})
	}
	if n := l.count(); present > n || !v.Repeat && present != n {
		return 0, fmt.Errorf("%d values where levels have %d: %w", n, present, ErrCorrupt)
	}
	return present, nil
}

// formatFlat spreads the texts of a leaf's values over its rows.
func (c *textColumn) formatFlat(rows int, v *pqfile.Vector) error {
	l := c.flat
	if err := l.load(v); err != nil {
		return err
	}
	present, err := c.present(rows, v, &l.leafValues)
	if err != nil {
		return err
	}
	c.cells.text = l.text
	off, null := l.off, uint32(len(l.null))
	if present == rows && !l.repeat && l.index == nil {
		c.cells.start, c.cells.end, c.cells.index = off[:rows], off[1:rows+1], nil
		return nil
	}
	if present == rows && !l.repeat {
		c.cells.start, c.cells.end, c.cells.index = off[:len(off)-1], off[1:], l.index[:rows]
		return nil
	}
	c.cells.grow(rows)
	start, end := c.cells.start, c.cells.end
	k := 0
	for i := range rows {
		if v.Def != nil && v.Def[i] != c.maxDef {
			start[i], end[i] = 0, null
			continue
		}
		at := l.at(k)
		start[i], end[i] = off[at], off[at+1]
		k++
	}
	return nil
}

// addLengths adds the lengths of a batch's cells to sum, one for each row, as
// format would make them.
func (c *textColumn) addLengths(sum []int, vectors []*pqfile.Vector) error {
	if err := check(len(sum), vectors); err != nil {
		return err
	}
	if c.flat != nil {
		return c.addFlat(sum, vectors[0])
	}
	if countable(c.nested.csv) {
		return c.nested.addLengths(sum, vectors)
	}
	if err := c.format(len(sum), vectors); err != nil {
		return err
	}
	c.cells.addLengths(sum)
	return nil
}

// addFlat adds the lengths of a leaf's texts.
func (c *textColumn) addFlat(sum []int, v *pqfile.Vector) error {
	l := c.sizes
	if err := l.load(v); err != nil {
		return err
	}
	present, err := c.present(len(sum), v, &l.leafValues)
	if err != nil {
		return err
	}
	of := l.of
	switch {
	case present == len(sum) && (of.each == nil || l.repeat):
		n := int(of.at(l.at(0)))
		for i := range sum {
			sum[i] += n
		}
	case present == len(sum) && l.index == nil:
		for i, n := range of.each[:len(sum)] {
			sum[i] += int(n)
		}
	case present == len(sum):
		each := of.each
		for i, at := range l.index[:len(sum)] {
			sum[i] += int(each[at])
		}
	default:
		k, null := 0, len(c.flat.null)
		for i, d := range v.Def {
			if d != c.maxDef {
				sum[i] += null
				continue
			}
			sum[i] += int(of.at(l.at(k)))
			k++
		}
	}
	return nil
}
