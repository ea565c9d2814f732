package merge

import (
	"fmt"

	"github.com/icefs/icefs/internal/pqfile"
)

// cells are the texts of one column for a batch of rows: row i's is
// text[start[i]:end[i]]. They borrow from the column's formatter and from the
// vectors, and are valid until its next batch.
type cells struct {
	text       []byte
	start, end []uint32
}

// grow makes room for n rows.
func (c *cells) grow(n int) {
	if cap(c.start) < n {
		c.start, c.end = make([]uint32, n), make([]uint32, n)
	}
	c.start, c.end = c.start[:n], c.end[:n]
}

// textColumn formats one top-level column of a view, batch by batch.
type textColumn struct {
	cells  cells
	leaves []int // the view's leaves it is made of
	flat   *leafText
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
		return &textColumn{leaves: []int{n.Leaf}, flat: flat, maxDef: uint8(n.MaxDef)}, nil
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

// format makes the cells of a batch of rows from the vectors of its leaves.
func (c *textColumn) format(rows int, vectors []*pqfile.Vector) error {
	for _, v := range vectors {
		if v.Rows != rows || v.Def != nil && v.Rep != nil && len(v.Def) != len(v.Rep) {
			return fmt.Errorf("%d rows where %d were asked for: %w", v.Rows, rows, ErrCorrupt)
		}
	}
	c.cells.grow(rows)
	if c.flat == nil {
		return c.nested.format(&c.cells, rows, vectors)
	}
	return c.formatFlat(rows, vectors[0])
}

// formatFlat spreads the texts of a leaf's values over its rows.
func (c *textColumn) formatFlat(rows int, v *pqfile.Vector) error {
	l := c.flat
	if v.Rep != nil || v.Def != nil && len(v.Def) != rows {
		return fmt.Errorf("levels of a flat column: %w", ErrCorrupt)
	}
	if err := l.load(v); err != nil {
		return err
	}
	c.cells.text = l.text
	start, end, off := c.cells.start[:rows], c.cells.end[:rows], l.off
	null := uint32(len(l.null))
	present := rows
	if v.Def != nil {
		present = 0
		for _, d := range v.Def {
			if d == c.maxDef {
				present++
			}
		}
	}
	if n := l.count(); present > n || !v.Repeat && present != n {
		return fmt.Errorf("%d values where levels have %d: %w", n, present, ErrCorrupt)
	}
	if present == rows && l.index == nil && !l.repeat {
		copy(start, off)
		copy(end, off[1:])
		return nil
	}
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
