package pqfile

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// entry is one entry of a leaf: its levels, and its value as text.
type entry struct {
	rep, def int
	value    string
}

// readEntries reads a whole column with a sequence of reads and skips that next
// gives (n < 0: skip -n), and returns entries and the rows that were read.
func readEntries(t testing.TB, f *File, col *Column, next func() int) (entries [][]entry) {
	t.Helper()
	entries, err := tryEntries(t, f, col, next)
	if err != nil {
		t.Fatalf("column %s: %v", col.Leaf.fullName(), err)
	}
	return entries
}

// tryEntries returns the entries of every row; nil for a row that was skipped.
func tryEntries(t testing.TB, f *File, col *Column, next func() int) (rows [][]entry, err error) {
	t.Helper()
	for g := range f.Metadata.RowGroups {
		r, err := f.Column(g, col)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if next() < 0 {
			r.seekAfter = 0 // always by the offset index
		}
		for left := f.Metadata.RowGroups[g].NumRows; ; {
			n := next()
			if n < 0 && int64(-n) <= left {
				if err := r.Skip(t.Context(), int64(-n)); err != nil {
					return nil, err
				}
				left += int64(n)
				rows = append(rows, make([][]entry, -n)...)
				continue
			}
			v, err := r.Read(t.Context(), max(n, -n))
			if errors.Is(err, io.EOF) && left == 0 {
				break
			}
			if err != nil {
				return nil, err
			}
			if want := min(left, int64(max(n, -n))); int64(v.Rows) != want {
				t.Fatalf("column %s: %d rows, not %d", col.Leaf.fullName(), v.Rows, want)
			}
			left -= int64(v.Rows)
			rows = append(rows, vectorRows(t, col.Leaf, v)...)
		}
	}
	return rows, nil
}

// vectorRows checks a vector's shape and splits it into rows.
func vectorRows(t testing.TB, leaf *Node, v *Vector) (rows [][]entry) {
	t.Helper()
	if (v.Rep != nil) != (leaf.MaxRep > 0) {
		t.Fatalf("column %s: Rep %v", leaf.fullName(), v.Rep)
	}
	if v.Values.Type != leaf.Type || v.Values.Width != fixedWidth(leaf) {
		t.Fatalf("column %s: values of type %v, width %d", leaf.fullName(), v.Values.Type, v.Values.Width)
	}
	n := v.Rows
	switch {
	case v.Def != nil:
		n = len(v.Def)
	case v.Rep != nil:
		n = len(v.Rep)
	}
	if v.Rep != nil && len(v.Rep) != n || v.Rep == nil && n != v.Rows {
		t.Fatalf("column %s: %d entries, %d repetition levels, %d rows", leaf.fullName(), n, len(v.Rep), v.Rows)
	}
	next := 0
	for i := range n {
		e := entry{def: leaf.MaxDef}
		if v.Def != nil {
			e.def = int(v.Def[i])
		}
		if v.Rep != nil {
			e.rep = int(v.Rep[i])
		}
		if e.def == leaf.MaxDef {
			e.value = text(leaf, &v.Values, next)
			if !v.Repeat {
				next++
			}
		}
		if e.rep == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
	}
	if !v.Repeat && next != v.Values.N || len(rows) != v.Rows {
		t.Fatalf("column %s: %d of %d values, %d of %d rows", leaf.fullName(), next, v.Values.N, len(rows), v.Rows)
	}
	return rows
}

// text is value i as JSON: numbers as stored, decimals unscaled, bytes as hex,
// text quoted.
func text(leaf *Node, v *Values, i int) string {
	if v.Dict != nil {
		return text(leaf, v.Dict, int(v.Index[i]))
	}
	if v.Type == Boolean {
		return strconv.FormatBool(v.Bools[i] != 0)
	}
	b := v.at(i)
	switch {
	case v.Type == Int32:
		return strconv.Itoa(int(int32(binary.LittleEndian.Uint32(b))))
	case v.Type == Int64:
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(b)), 10)
	case v.Type == Float:
		return float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case v.Type == Double:
		return float(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case leaf.Logical.Kind == LogicalDecimal:
		return fromTwosComplement(b).String()
	case leaf.Logical.Kind == LogicalString:
		return quote(string(b))
	}
	return `"` + hex.EncodeToString(b) + `"`
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func float(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Sprintf("%q", strconv.FormatFloat(f, 'g', -1, 64))
	}
	if f == 0 && math.Signbit(f) {
		return "-0.0"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// cursors walks the entries of one row, a cursor per leaf.
type cursors [][]entry

func (c cursors) drop(n *Node) {
	for _, leaf := range n.appendLeaves(nil) {
		c[leaf.Leaf] = c[leaf.Leaf][1:]
	}
}

// node writes the next value of n as JSON; maps are arrays of pairs.
func (c cursors) node(b *strings.Builder, n *Node) {
	first := n.firstLeaf().Leaf
	def := c[first][0].def
	if def < n.Present {
		b.WriteString("null")
		c.drop(n)
		return
	}
	switch n.Kind {
	case KindLeaf:
		b.WriteString(c[first][0].value)
		c.drop(n)
	case KindStruct, KindVariant:
		c.object(b, n)
	case KindList, KindMap:
		b.WriteByte('[')
		if def < n.Entry {
			c.drop(n)
			b.WriteByte(']')
			return
		}
		for more := false; !more || len(c[first]) > 0 && c[first][0].rep == n.Repeat; more = true {
			if more {
				b.WriteByte(',')
			}
			if n.Kind == KindList {
				c.node(b, n.Children[0])
				continue
			}
			b.WriteByte('[')
			c.node(b, n.Children[0])
			b.WriteByte(',')
			c.node(b, n.Children[1])
			b.WriteByte(']')
		}
		b.WriteByte(']')
	}
}

func (c cursors) object(b *strings.Builder, n *Node) {
	b.WriteByte('{')
	for i, child := range n.Children {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%s:", quote(child.Name))
		c.node(b, child)
	}
	b.WriteByte('}')
}

// rowsOf reads a projected file as one JSON object a row. All columns are read
// with several batch sizes and random skips, which must agree.
func rowsOf(t testing.TB, f *File, p *Projection) []string {
	t.Helper()
	columns := make([][][]entry, len(p.Columns))
	for i := range p.Columns {
		col := &p.Columns[i]
		columns[i] = readEntries(t, f, col, func() int { return 1 << 20 })
		checkPieces(t, f, col, columns[i])
	}
	var rows []string
	for i := range f.Metadata.NumRows {
		c := make(cursors, len(columns))
		for j := range columns {
			c[j] = columns[j][i]
		}
		var b strings.Builder
		c.object(&b, p.View.Root)
		for j := range c {
			if len(c[j]) != 0 {
				t.Fatalf("row %d: column %s has %d entries left", i, p.View.Leaves[j].fullName(), len(c[j]))
			}
		}
		rows = append(rows, b.String())
	}
	return rows
}

// checkPieces reads the column again in other ways and compares.
func checkPieces(t testing.TB, f *File, col *Column, want [][]entry) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(col.Leaf.Leaf)))
	ways := map[string]func() int{
		"rows of 1":  func() int { return 1 },
		"rows of 7":  func() int { return 7 },
		"odd pieces": func() int { return 1 + rnd.IntN(40) },
		"skips": func() int {
			if n := 1 + rnd.IntN(60); rnd.IntN(2) == 0 {
				return -n
			} else {
				return n
			}
		},
		"long skips": func() int {
			if rnd.IntN(2) == 0 {
				return -1 - rnd.IntN(900)
			}
			return 3
		},
	}
	for way, next := range ways {
		if len(want) > 5000 && way == "rows of 1" {
			continue
		}
		got := readEntries(t, f, col, next)
		if len(got) != len(want) {
			t.Fatalf("column %s by %s: %d rows, not %d", col.Leaf.fullName(), way, len(got), len(want))
		}
		for i, row := range got {
			if row != nil && fmt.Sprint(row) != fmt.Sprint(want[i]) {
				t.Fatalf("column %s by %s: row %d is %v, not %v", col.Leaf.fullName(), way, i, row, want[i])
			}
		}
	}
}

func projectOnto(t testing.TB, f *File, target Target) *Projection {
	t.Helper()
	p, err := f.Project(target)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func schemaOf(fields ...iceberg.NestedField) *iceberg.Schema { return iceberg.NewSchema(0, fields...) }
