package avrofile

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/icefs/icefs/internal/pqfile"
)

// column gathers the entries of one leaf of the view, in the view's levels and
// physical type.
type column struct {
	leaf     *pqfile.Node
	from     *pqfile.Node // file's leaf of values or, of a missing column, of levels
	stored   bool         // the file has the column
	constant pqfile.Values
	fill     *pqfile.Fill // nil = NULLs stay
	absent   uint8        // from is nil: the level of every row
	keep     int          // highest repetition level that counts
	table    [256]uint8
	convert  pqfile.ConversionKind
	num, den int64 // ConvertScale: v * num / den

	def, rep []uint8
	values   pqfile.Values
	filled   []byte
}

// newColumn returns the builder of a projected column.
func newColumn(p *pqfile.Column) *column {
	c := &column{leaf: p.Leaf, from: p.Source, stored: p.Source != nil, constant: p.Constant, convert: p.Convert.Kind, fill: p.Fill, num: 1, den: 1}
	if c.from == nil {
		c.from, c.keep = p.Levels, p.RepKeep
	} else {
		c.keep = c.from.MaxRep
	}
	for i := range c.table {
		c.table[i] = pqfile.LevelForbidden
	}
	copy(c.table[:], p.DefMap)
	c.absent = c.table[0]
	if c.convert == pqfile.ConvertScale {
		from, to := nanos(c.from), nanos(c.leaf)
		if from >= to {
			c.num = from / to
		} else {
			c.den = to / from
		}
	}
	c.values = pqfile.Values{Type: c.leaf.Type, Width: width(c.leaf)}
	if c.leaf.Type == pqfile.ByteArray {
		c.values.Offsets = []uint32{0}
	}
	return c
}

// nanos is the nanoseconds of a tick of a date, time or timestamp.
func nanos(n *pqfile.Node) int64 {
	switch {
	case n.Logical.Kind == pqfile.LogicalDate:
		return int64(24 * time.Hour)
	case n.Logical.Unit == pqfile.Millis:
		return int64(time.Millisecond)
	case n.Logical.Unit == pqfile.Micros:
		return int64(time.Microsecond)
	}
	return 1
}

// width is the bytes of a fixed-width value.
func width(n *pqfile.Node) int {
	switch n.Type {
	case pqfile.Int32, pqfile.Float:
		return 4
	case pqfile.Int64, pqfile.Double:
		return 8
	case pqfile.FixedLenByteArray:
		return n.TypeLength
	}
	return 0
}

// reset empties the column and keeps its memory.
func (c *column) reset() {
	v := &c.values
	c.def, c.rep = c.def[:0], c.rep[:0]
	v.N, v.Fixed, v.Bools, v.Data, v.Offsets = 0, v.Fixed[:0], v.Bools[:0], v.Data[:0], v.Offsets[:min(1, len(v.Offsets))]
}

// level appends an entry at the file's levels.
func (c *column) level(d *decoder, rep, def int) {
	if rep > c.keep {
		return
	}
	level := c.table[def]
	if level == pqfile.LevelForbidden {
		d.err = fmt.Errorf("%w: NULL in the required column %q", ErrCorrupt, c.leaf.Name)
	}
	c.def = append(c.def, level)
	if c.leaf.MaxRep > 0 {
		c.rep = append(c.rep, uint8(rep))
	}
}

// misfit sets the error of a value that the view's type cannot hold.
func (c *column) misfit(d *decoder) {
	d.err = fmt.Errorf("%w: a value of column %q does not fit its type", ErrCorrupt, c.leaf.Name)
}

// putBool appends a boolean.
func (c *column) putBool(d *decoder, b byte) {
	if !c.stored {
		return
	}
	if b > 1 {
		c.misfit(d)
	}
	c.values.Bools = append(c.values.Bools, b)
	c.values.N++
}

// putInt appends an integer, date, time or timestamp.
func (c *column) putInt(d *decoder, v int64) {
	if !c.stored {
		return
	}
	if c.convert == pqfile.ConvertScale {
		scaled := v * c.num
		if scaled/c.num != v {
			c.misfit(d)
		}
		if v = scaled / c.den; scaled%c.den < 0 {
			v--
		}
	}
	c.values.N++
	if c.leaf.Type == pqfile.Int64 {
		c.values.Fixed = binary.LittleEndian.AppendUint64(c.values.Fixed, uint64(v))
		return
	}
	if int64(int32(v)) != v {
		c.misfit(d)
	}
	c.values.Fixed = binary.LittleEndian.AppendUint32(c.values.Fixed, uint32(v))
}

// putFloat appends a float of 4 or 8 bytes.
func (c *column) putFloat(b []byte) {
	if !c.stored || b == nil {
		return
	}
	c.values.N++
	if c.convert == pqfile.ConvertFloatToDouble {
		f := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		c.values.Fixed = binary.LittleEndian.AppendUint64(c.values.Fixed, math.Float64bits(f))
		return
	}
	c.values.Fixed = append(c.values.Fixed, b...)
}

// putBytes appends a string, bytes, fixed or decimal.
func (c *column) putBytes(d *decoder, b []byte) {
	if !c.stored {
		return
	}
	if c.leaf.Logical.Kind == pqfile.LogicalDecimal {
		c.putDecimal(d, b)
		return
	}
	c.values.N++
	if c.leaf.Type == pqfile.ByteArray {
		c.values.Data = append(c.values.Data, b...)
		c.values.Offsets = append(c.values.Offsets, uint32(len(c.values.Data)))
		return
	}
	if len(b) != c.leaf.TypeLength {
		c.misfit(d)
	}
	c.values.Fixed = append(c.values.Fixed, b...)
}

// putDecimal appends a big-endian two's complement number in the view's form.
func (c *column) putDecimal(d *decoder, b []byte) {
	size := c.values.Width
	if c.leaf.Type == pqfile.ByteArray {
		size = len(b)
	}
	fill := byte(0)
	if len(b) > 0 && b[0]&0x80 != 0 {
		fill = 0xff
	}
	for len(b) > size { // only copies of the sign may go
		if b[0] != fill || len(b) > 1 && (b[1]^fill)&0x80 != 0 {
			c.misfit(d)
			return
		}
		b = b[1:]
	}
	c.values.N++
	switch c.leaf.Type {
	case pqfile.Int32, pqfile.Int64:
		v := int64(int8(fill))
		for _, x := range b {
			v = v<<8 | int64(x)
		}
		if size == 8 {
			c.values.Fixed = binary.LittleEndian.AppendUint64(c.values.Fixed, uint64(v))
		} else {
			c.values.Fixed = binary.LittleEndian.AppendUint32(c.values.Fixed, uint32(v))
		}
	case pqfile.ByteArray:
		c.values.Data = append(c.values.Data, b...)
		c.values.Offsets = append(c.values.Offsets, uint32(len(c.values.Data)))
	default:
		for range size - len(b) {
			c.values.Fixed = append(c.values.Fixed, fill)
		}
		c.values.Fixed = append(c.values.Fixed, b...)
	}
}

// vector puts what was gathered for so many rows, the first at a file position,
// into v.
func (c *column) vector(v *pqfile.Vector, rows int, first int64) error {
	*v = pqfile.Vector{Rows: rows}
	if uint64(len(c.values.Data)) > math.MaxUint32 {
		return fmt.Errorf("%w: more than 4 GiB in a batch", ErrUnsupported)
	}
	if c.from == nil {
		for range rows {
			c.def = append(c.def, c.absent)
			if c.leaf.MaxRep > 0 {
				c.rep = append(c.rep, 0)
			}
		}
	}
	v.Def, v.Values = c.def, c.values
	if !c.stored {
		v.Repeat, v.Values = true, c.constant
	}
	if c.leaf.MaxRep > 0 {
		v.Rep = c.rep
		return nil
	}
	if c.fill != nil {
		if !c.stored { // no entry has a value, whatever the levels of a constant say
			v.Def, v.Values = nil, pqfile.Values{}
		}
		c.filled = c.fill.Complete(v, first, c.filled[:0])
		return nil
	}
	for _, d := range c.def {
		if int(d) != c.leaf.MaxDef {
			return nil
		}
	}
	v.Def = nil
	return nil
}
