package deletes

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// keySet is the set of keys of one equality-delete file.
//
// Each column numbers its distinct values with codes from 1; nullCode is NULL
// and 0 a value that no key has. A key of several columns is found in steps:
// the codes of the first two columns give a code of the pair, that and the
// third column's code one of the triple, and so on; rows drop out with the first
// 0. So keys are looked up column by column, without building one per row, and a
// dictionary's values are looked up once.
//
// Immutable once built, and then safe for concurrent use.
type keySet struct {
	columns []keyColumn
	steps   []intMap // steps[i] has (code so far)<<32 | code in column i+1
}

// nullCode stands for NULL in a column.
const nullCode = math.MaxUint32

// keyColumn is the values that a column takes in a keySet.
type keyColumn struct {
	leaf    *pqfile.Node // in the view of the key schema
	hasNull bool
	ints    intMap  // values of up to 8 bytes
	bytes   byteMap // other values
	// For pruning: ascending values of a signed integer column, and the extremes
	// of a byte-array column.
	sorted   []int64
	min, max []byte
}

// newKeySet returns an empty set for the leaves of a view.
func newKeySet(leaves []*pqfile.Node) (*keySet, error) {
	s := &keySet{columns: make([]keyColumn, len(leaves)), steps: make([]intMap, len(leaves)-1)}
	for i, leaf := range leaves {
		switch leaf.Type {
		case pqfile.Boolean, pqfile.Int32, pqfile.Int64, pqfile.Float, pqfile.Double,
			pqfile.ByteArray, pqfile.FixedLenByteArray:
		default:
			return nil, fmt.Errorf("equality on column %q of physical type %d: %w", leaf.Name, leaf.Type, ErrUnsupported)
		}
		s.columns[i].leaf = leaf
	}
	return s, nil
}

// byBytes reports whether the column's values are in bytes, not in ints.
func (c *keyColumn) byBytes() bool {
	return c.leaf.Type == pqfile.ByteArray || c.leaf.Type == pqfile.FixedLenByteArray
}

// empty reports whether the set has no key.
func (s *keySet) empty() bool {
	c := &s.columns[0]
	return c.ints.n == 0 && c.bytes.n == 0 && !c.hasNull
}

// size estimates the heap kept.
func (s *keySet) size() int64 {
	n := int64(128)
	for i := range s.columns {
		c := &s.columns[i]
		n += 256 + c.ints.size() + c.bytes.size() + 8*int64(cap(c.sorted)) + int64(cap(c.min)+cap(c.max))
	}
	for i := range s.steps {
		n += s.steps[i].size()
	}
	return n
}

// finish derives what pruning needs.
func (s *keySet) finish() {
	for i := range s.columns {
		c := &s.columns[i]
		switch {
		case signedOrder(c.leaf):
			c.sorted = make([]int64, 0, c.ints.n)
			c.ints.each(func(v uint64) { c.sorted = append(c.sorted, c.signed(v)) })
			slices.Sort(c.sorted)
		case c.leaf.Type == pqfile.ByteArray:
			c.min, c.max = c.bytes.extremes()
		}
	}
}

// signed is an int key as the signed value it stands for.
func (c *keyColumn) signed(v uint64) int64 {
	if c.leaf.Type == pqfile.Int32 {
		return int64(int32(uint32(v)))
	}
	return int64(v)
}

// encoder turns rows into the codes of their keys: adding keys to a set while
// it is built, looking them up afterwards. Not safe for concurrent use.
type encoder struct {
	set    *keySet
	insert bool
	memos  []dictMemo
	codes  []uint32 // of the key so far, by row
	column []uint32 // of the column at hand, by row
}

// dictMemo remembers the codes of one dictionary's values.
type dictMemo struct {
	dict  *pqfile.Values
	codes []uint32 // unseen where not looked up yet
}

// unseen cannot be the code of a value: maps hold fewer.
const unseen = math.MaxUint32 - 1

func newEncoder(s *keySet, insert bool) *encoder {
	return &encoder{set: s, insert: insert, memos: make([]dictMemo, len(s.columns))}
}

// batch returns the code of each row's key, 0 for rows whose key is not in the
// set. The result is valid until the next call.
func (e *encoder) batch(rows int, cols []*pqfile.Vector) ([]uint32, error) {
	var err error
	if e.codes, err = e.columnCodes(e.codes[:0], 0, rows, cols[0]); err != nil {
		return nil, err
	}
	for i := range e.set.steps {
		if e.column, err = e.columnCodes(e.column[:0], i+1, rows, cols[i+1]); err != nil {
			return nil, err
		}
		step := &e.set.steps[i]
		for r, code := range e.column {
			switch {
			case e.codes[r] == 0:
			case code == 0:
				e.codes[r] = 0
			default:
				e.codes[r] = step.code(uint64(e.codes[r])<<32|uint64(code), e.insert)
			}
		}
	}
	if e.insert {
		return e.codes, e.set.checkSize()
	}
	return e.codes, nil
}

// checkSize keeps codes within their 32 bits.
func (s *keySet) checkSize() error {
	const most = unseen - 2*batchRows
	big := false
	for i := range s.columns {
		big = big || s.columns[i].ints.n > most || s.columns[i].bytes.n > most
	}
	for i := range s.steps {
		big = big || s.steps[i].n > most
	}
	if big {
		return fmt.Errorf("more than %d distinct keys: %w", uint32(most), ErrUnsupported)
	}
	return nil
}

// columnCodes appends one code per row of column i.
func (e *encoder) columnCodes(dst []uint32, i, rows int, v *pqfile.Vector) ([]uint32, error) {
	c := &e.set.columns[i]
	present := rows
	if v.Def != nil {
		present = 0
		for _, d := range v.Def {
			if int(d) == c.leaf.MaxDef {
				present++
			}
		}
	}
	if v.Rep != nil || v.Def != nil && len(v.Def) != rows || !v.Repeat && v.Values.N != present || v.Repeat && present > 0 && v.Values.N != 1 {
		return nil, fmt.Errorf("internal error: key column %q: %d levels and %d values in %d rows", c.leaf.Name, len(v.Def), v.Values.N, rows)
	}
	dst = slices.Grow(dst, rows)[:rows]
	// Codes of the values go to the end, and from there to their rows: a row
	// never lies behind its value.
	values := dst[rows-present:]
	switch {
	case present == 0:
	case v.Repeat:
		e.valueCodes(values[:1], i, &v.Values)
		for r := range values {
			values[r] = values[0]
		}
	default:
		e.valueCodes(values, i, &v.Values)
	}
	if present == rows {
		return dst, nil
	}
	null := uint32(0)
	if e.insert {
		c.hasNull = true
	}
	if c.hasNull {
		null = nullCode
	}
	for r, d := range v.Def {
		if int(d) == c.leaf.MaxDef {
			dst[r], values = values[0], values[1:]
		} else {
			dst[r] = null
		}
	}
	return dst, nil
}

// valueCodes writes the code of each of len(dst) values.
func (e *encoder) valueCodes(dst []uint32, i int, v *pqfile.Values) {
	c := &e.set.columns[i]
	if v.Dict == nil {
		c.plainCodes(dst, v, 0, e.insert)
		return
	}
	m := &e.memos[i]
	if m.dict != v.Dict {
		m.dict = v.Dict
		m.codes = slices.Grow(m.codes[:0], v.Dict.N)[:v.Dict.N]
		for k := range m.codes {
			m.codes[k] = unseen
		}
	}
	for k := range dst {
		x := v.Index[k]
		if m.codes[x] == unseen {
			// Only values that rows use: the dictionary's others are no keys.
			c.plainCodes(m.codes[x:x+1], v.Dict, int(x), e.insert)
		}
		dst[k] = m.codes[x]
	}
}

// plainCodes writes the codes of the values from the first on.
func (c *keyColumn) plainCodes(dst []uint32, v *pqfile.Values, first int, insert bool) {
	switch c.leaf.Type {
	case pqfile.Boolean:
		for k := range dst {
			dst[k] = c.ints.code(uint64(v.Bools[first+k]), insert)
		}
	case pqfile.Int32:
		for k := range dst {
			dst[k] = c.ints.code(uint64(binary.LittleEndian.Uint32(v.Fixed[4*(first+k):])), insert)
		}
	case pqfile.Int64:
		for k := range dst {
			dst[k] = c.ints.code(binary.LittleEndian.Uint64(v.Fixed[8*(first+k):]), insert)
		}
	case pqfile.Float:
		for k := range dst {
			dst[k] = c.ints.code(floatKey(binary.LittleEndian.Uint32(v.Fixed[4*(first+k):])), insert)
		}
	case pqfile.Double:
		for k := range dst {
			dst[k] = c.ints.code(doubleKey(binary.LittleEndian.Uint64(v.Fixed[8*(first+k):])), insert)
		}
	case pqfile.FixedLenByteArray:
		for k := range dst {
			at := (first + k) * v.Width
			dst[k] = c.bytes.code(v.Fixed[at:at+v.Width], insert)
		}
	case pqfile.ByteArray:
		for k := range dst {
			dst[k] = c.bytes.code(v.Data[v.Offsets[first+k]:v.Offsets[first+k+1]], insert)
		}
	}
}

// floatKey and doubleKey compare as Java's Float.compare and Double.compare do:
// all NaNs are one value, and -0.0 is another than 0.0.
func floatKey(bits uint32) uint64 {
	if f := math.Float32frombits(bits); f != f {
		return uint64(math.Float32bits(float32(math.NaN())))
	}
	return uint64(bits)
}

func doubleKey(bits uint64) uint64 {
	if f := math.Float64frombits(bits); f != f {
		return math.Float64bits(math.NaN())
	}
	return bits
}
