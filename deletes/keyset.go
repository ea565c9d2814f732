package deletes

import (
	"fmt"
	"math"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// keySet is the set of keys of equality-delete files of one key.
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

const (
	// nullCode stands for NULL in a column.
	nullCode = math.MaxUint32
	// maxCodes keeps codes clear of it.
	maxCodes = math.MaxUint32 - 2*batchRows
)

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
		n += 256 + c.ints.size() + c.bytes.size() + 8*int64(cap(c.sorted))
	}
	for i := range s.steps {
		n += s.steps[i].size()
	}
	return n
}

// insert adds the keys of a batch of rows.
func (s *keySet) insert(b *keyBatch) error {
	codes := make([]uint32, b.rows)
	s.columns[0].insert(codes, &b.columns[0])
	column := make([]uint32, b.rows)
	for i := range s.steps {
		s.columns[i+1].insert(column, &b.columns[i+1])
		for r, code := range codes {
			k := uint64(code)<<32 | uint64(column[r])
			codes[r] = s.steps[i].insert(b.hash.int(k), k)
		}
	}
	return s.checkSize()
}

// insert adds a column's values, writing the code of each row.
func (c *keyColumn) insert(codes []uint32, b *columnBatch) {
	k := 0
	for r := range codes {
		if b.def != nil && int(b.def[r]) != b.leaf.MaxDef {
			c.hasNull = true
			codes[r] = nullCode
			continue
		}
		x := k
		switch {
		case b.repeat:
			x = 0
		case b.index != nil: // only values that rows use: the dictionary's others are no keys
			x = int(b.index[k])
		}
		k++
		if keepsInts(c.leaf) {
			codes[r] = c.ints.insert(b.values.hashes[x], b.values.ints[x])
		} else {
			codes[r] = c.bytes.insert(b.values.hashes[x], b.values.at(x))
		}
	}
}

// checkSize keeps codes within their 32 bits.
func (s *keySet) checkSize() error {
	most := 0
	for i := range s.columns {
		most = max(most, s.columns[i].ints.n, s.columns[i].bytes.n)
	}
	for i := range s.steps {
		most = max(most, s.steps[i].n)
	}
	if most > maxCodes {
		return fmt.Errorf("more than %d distinct keys: %w", uint32(maxCodes), ErrUnsupported)
	}
	return nil
}

// finish derives what pruning needs.
func (s *keySet) finish() {
	for i := range s.columns {
		c := &s.columns[i]
		switch {
		case signedOrder(c.leaf):
			c.sorted = make([]int64, 0, c.ints.n)
			for _, k := range c.ints.keys {
				if c.leaf.Type == pqfile.Int32 {
					c.sorted = append(c.sorted, int64(int32(uint32(k))))
				} else {
					c.sorted = append(c.sorted, int64(k))
				}
			}
			slices.Sort(c.sorted)
		case c.leaf.Type == pqfile.ByteArray:
			c.min, c.max = c.bytes.extremes()
		}
	}
}

// finder looks rows up in a keySet. Not safe for concurrent use.
type finder struct {
	set    *keySet
	memos  []dictCodes
	codes  []uint32 // of the key so far, by row
	column []uint32 // of the column at hand, by row
}

// dictCodes are the codes of one dictionary's values.
type dictCodes struct {
	dict  *pqfile.Values
	codes []uint32
}

func newFinder(s *keySet) *finder { return &finder{set: s, memos: make([]dictCodes, len(s.columns))} }

// find returns the code of each row's key, 0 for rows whose key is not in the
// set. The result is valid until the next call.
func (f *finder) find(b *keyBatch) []uint32 {
	f.codes = f.columnCodes(f.codes, 0, &b.columns[0])
	for i := range f.set.steps {
		f.column = f.columnCodes(f.column, i+1, &b.columns[i+1])
		step := &f.set.steps[i]
		for r, code := range f.codes {
			if code != 0 {
				f.codes[r] = 0
				if c := f.column[r]; c != 0 {
					k := uint64(code)<<32 | uint64(c)
					f.codes[r] = step.find(b.hash.int(k), k)
				}
			}
		}
	}
	return f.codes
}

// columnCodes writes the code of each row of column i to dst, grown as needed.
func (f *finder) columnCodes(dst []uint32, i int, b *columnBatch) []uint32 {
	c := &f.set.columns[i]
	dst = slices.Grow(dst[:0], b.rows)[:b.rows]
	// Codes of the values go to the end, and from there to their rows: a row
	// never lies behind its value.
	values := dst[b.rows-b.present:]
	switch {
	case b.present == 0:
	case b.index != nil:
		codes := f.dictionary(i, b)
		for k, x := range b.index {
			values[k] = codes[x]
		}
	case b.repeat:
		c.find(values[:1], b.values)
		for k := range values {
			values[k] = values[0]
		}
	default:
		c.find(values, b.values)
	}
	if b.def == nil {
		return dst
	}
	null := uint32(0)
	if c.hasNull {
		null = nullCode
	}
	for r, d := range b.def {
		if int(d) == b.leaf.MaxDef {
			dst[r], values = values[0], values[1:]
		} else {
			dst[r] = null
		}
	}
	return dst
}

// dictionary returns the codes of all values of the dictionary at hand.
func (f *finder) dictionary(i int, b *columnBatch) []uint32 {
	m := &f.memos[i]
	if m.dict != b.dict {
		m.dict = b.dict
		m.codes = slices.Grow(m.codes[:0], b.dict.N)[:b.dict.N]
		f.set.columns[i].find(m.codes, b.values)
	}
	return m.codes
}

// find writes the codes of values.
func (c *keyColumn) find(dst []uint32, v *hashedValues) {
	if keepsInts(c.leaf) {
		for i := range dst {
			dst[i] = c.ints.find(v.hashes[i], v.ints[i])
		}
		return
	}
	for i := range dst {
		dst[i] = c.bytes.find(v.hashes[i], v.at(i))
	}
}
