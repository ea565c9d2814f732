package merge

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/icefs/icefs/deletes"
)

// row is the text of row i.
func (c *cells) row(i int) []byte {
	k := uint32(i)
	if c.index != nil {
		k = c.index[i]
	}
	return c.text[c.start[k]:c.end[k]]
}

// cellsOf makes cells of n rows: each a text of their own, or one of a few by an
// index. Behind the text there is no room, or some.
func cellsOf(rng *rand.Rand, n, least, most int, indexed bool) cells {
	var c cells
	texts := n
	if indexed {
		texts = 1 + rng.IntN(40)
		c.index = make([]uint32, n)
		for i := range c.index {
			c.index[i] = uint32(rng.IntN(texts))
		}
	}
	for range texts {
		c.start = append(c.start, uint32(len(c.text)))
		for range least + rng.IntN(most-least+1) {
			c.text = append(c.text, byte('a'+rng.IntN(26)))
		}
		c.end = append(c.end, uint32(len(c.text)))
	}
	if rng.IntN(2) == 0 {
		c.text = append(make([]byte, 0, len(c.text)), c.text...)
	}
	return c
}

// Rows put together are their cells, one after another, whatever is copied past
// the ends of cells, and nothing is written past the rows.
func TestRowsOfCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	widths := [][2]int{{0, 0}, {0, 7}, {1, 1}, {8, 8}, {15, 17}, {10, 16}, {20, 32}, {0, 33}, {30, 70}, {60, 90}}
	befores := []string{"", ",", ",", ",", `,"name":`, strings.Repeat("b", cellCopy), strings.Repeat("b", cellCopy+1)}
	for round := range 400 {
		rows := 1 + rng.IntN(700)
		b := &textBatch{form: &textForm{after: []byte("\n}"[:rng.IntN(3)])}}
		for range 1 + rng.IntN(6) {
			w := widths[rng.IntN(len(widths))]
			b.columns = append(b.columns, &textColumn{cells: cellsOf(rng, rows, w[0], w[1], rng.IntN(2) == 0)})
			b.form.before = append(b.form.before, []byte(befores[rng.IntN(len(befores))]))
		}
		b.form.seal()
		b.begin(rows, 1)
		for _, c := range b.columns {
			c.cells.addLengths(b.sums[0])
		}
		b.finish()
		b.setStrips()
		var live []deletes.Range
		var want []byte
		for i := 0; i < rows; i++ {
			from := i
			for ; i < rows && rng.IntN(12) > 0; i++ {
				for j, c := range b.columns {
					want = append(append(want, b.form.before[j]...), c.cells.row(i)...)
				}
				want = append(want, b.form.after...)
			}
			if i > from {
				live = append(live, deletes.Range{Start: int64(from), End: int64(i)})
			}
		}
		const mark = "the rows end here"
		out := append(make([]byte, len(want)), mark...)
		b.putRows(out[:len(want)], live)
		if string(out[len(want):]) != mark {
			t.Fatalf("round %d: written past the rows", round)
		}
		if !bytes.Equal(out[:len(want)], want) {
			t.Fatalf("round %d: %d rows of %d columns differ", round, rows, len(b.columns))
		}
	}
}
