package deletes

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// keySet is distinct keys of equality-delete files of one key: their values,
// column by column, found by the hash of the whole key. Immutable once built,
// and then safe for concurrent use.
type keySet struct {
	n       int
	columns []keyColumn
	// slots is an open-addressing hash table, at most half full and a power of two
	// long. A slot is 0 if free, else the key's hash in its upper and the key's
	// number, from 1, in its lower 32 bits.
	slots []uint64
	// next is where the keys go on that did not fit, nil if these are all.
	next *keyCursor
}

// keyCursor is a row of a delete file of a run.
type keyCursor struct {
	file int
	row  int64
}

const (
	// minSlots is the least size of the hash table of a set that has a key.
	minSlots = 16
	// expectedKeys is how many keys a file is believed to have before they are read.
	expectedKeys = 1 << 18
	// maxKeys keeps keys' numbers within 32 bits.
	maxKeys = 1<<32 - 2*batchRows
)

// keyColumn is the values of a column in a keySet, by key.
type keyColumn struct {
	leaf  *pqfile.Node // in the view of the key schema
	null  []bool       // nil if no key has NULL
	ints  []uint64     // values of up to 8 bytes
	arena []byte       // other values, end to end
	ends  []uint64     // where each ends
	// For pruning: ascending values of a signed integer column, and the extremes
	// of a byte-array column with a value that is not NULL.
	sorted   []int64
	ranged   bool
	min, max []byte
}

// newKeySet returns an empty set for the leaves of a view.
func newKeySet(leaves []*pqfile.Node) (*keySet, error) {
	s := &keySet{columns: make([]keyColumn, len(leaves))}
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

// size is about the heap kept.
func (s *keySet) size() int64 {
	n := 128 + 8*int64(cap(s.slots))
	for i := range s.columns {
		c := &s.columns[i]
		n += 256 + int64(cap(c.null)) + 8*int64(cap(c.ints)+cap(c.ends)+cap(c.sorted)) + int64(cap(c.arena))
	}
	return n
}

// insert adds the keys of a batch of rows.
func (s *keySet) insert(b *keyBatch) error {
	if s.n > maxKeys {
		return fmt.Errorf("more than %d distinct keys: %w", uint32(maxKeys), ErrUnsupported)
	}
	for row := range b.rows {
		hash := b.hashOf(row)
		if s.has(hash, b, row) {
			continue
		}
		s.reserve(1)
		for i := range s.columns {
			s.columns[i].append(&b.columns[i], row, s.n)
		}
		s.n++
		s.slots[s.free(hash)] = uint64(hash)<<32 | uint64(s.n)
	}
	return nil
}

// expect makes room for n more keys, as far as expectedKeys.
func (s *keySet) expect(n int64) {
	more := int(min(max(n, 0), expectedKeys))
	s.reserve(more)
	for i := range s.columns {
		if c := &s.columns[i]; keepsInts(c.leaf) {
			c.ints = slices.Grow(c.ints, more)
		}
	}
}

// reserve makes room in the hash table for n more keys.
func (s *keySet) reserve(n int) {
	if n == 0 || 2*(s.n+n) <= len(s.slots) {
		return
	}
	old := s.slots
	s.slots = make([]uint64, max(minSlots, 1<<bits.Len(uint(2*(s.n+n)-1))))
	for _, slot := range old {
		if slot != 0 {
			s.slots[s.free(uint32(slot>>32))] = slot
		}
	}
}

// free returns the slot where a key that is not in the set belongs.
func (s *keySet) free(hash uint32) uint32 {
	mask := uint32(len(s.slots) - 1)
	i := hash & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// has reports whether the key of a row, of the given hash, is in the set.
func (s *keySet) has(hash uint32, b *keyBatch, row int) bool {
	if s.n == 0 {
		return false
	}
	mask := uint32(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := s.slots[i]
		if slot == 0 {
			return false
		}
		if uint32(slot>>32) == hash && s.equal(int(uint32(slot)-1), b, row) {
			return true
		}
	}
}

func (s *keySet) equal(key int, b *keyBatch, row int) bool {
	for i := range s.columns {
		if !s.columns[i].equal(key, &b.columns[i], row) {
			return false
		}
	}
	return true
}

// equal compares a key's value with a row's. NULL equals NULL.
func (c *keyColumn) equal(key int, b *columnBatch, row int) bool {
	v := b.value(row)
	switch {
	case v < 0 || c.isNull(key):
		return v < 0 && c.isNull(key)
	case keepsInts(c.leaf):
		return c.ints[key] == b.values.ints[v]
	}
	return bytes.Equal(c.bytes(key), b.values.at(v))
}

func (c *keyColumn) isNull(key int) bool { return c.null != nil && c.null[key] }

// bytes is a key's value that is kept as bytes.
func (c *keyColumn) bytes(key int) []byte {
	start := uint64(0)
	if key > 0 {
		start = c.ends[key-1]
	}
	return c.arena[start:c.ends[key]]
}

// hash is the hash of a key's value, as of a row's.
func (c *keyColumn) hash(h hasher, key int) uint32 {
	switch {
	case c.isNull(key):
		return nullHash
	case keepsInts(c.leaf):
		return h.int(c.ints[key])
	}
	return h.byteString(c.bytes(key))
}

// append adds the value of a row, for key number n.
func (c *keyColumn) append(b *columnBatch, row, n int) {
	v := b.value(row)
	if v < 0 && c.null == nil {
		c.null = make([]bool, n, n+batchRows)
	}
	if c.null != nil {
		c.null = append(c.null, v < 0)
	}
	switch {
	case keepsInts(c.leaf):
		k := uint64(0)
		if v >= 0 {
			k = b.values.ints[v]
		}
		c.ints = append(c.ints, k)
	default:
		if v >= 0 {
			c.arena = append(c.arena, b.values.at(v)...)
		}
		c.ends = append(c.ends, uint64(len(c.arena)))
	}
}

// finish derives what pruning needs.
func (s *keySet) finish() {
	for i := range s.columns {
		c := &s.columns[i]
		switch {
		case signedOrder(c.leaf):
			c.sorted = c.signedValues()
		case c.leaf.Type == pqfile.ByteArray:
			c.findExtremes(s.n)
		}
	}
}

// signedValues are the values of a signed integer column, ascending, once each.
func (c *keyColumn) signedValues() []int64 {
	values := make([]int64, 0, len(c.ints))
	for key, v := range c.ints {
		switch {
		case c.isNull(key):
		case c.leaf.Type == pqfile.Int32:
			values = append(values, int64(int32(uint32(v))))
		default:
			values = append(values, int64(v))
		}
	}
	slices.Sort(values)
	return slices.Clip(slices.Compact(values))
}

// findExtremes finds the least and the greatest value of n keys.
func (c *keyColumn) findExtremes(n int) {
	for key := range n {
		if c.isNull(key) {
			continue
		}
		v := c.bytes(key)
		if !c.ranged || bytes.Compare(v, c.min) < 0 {
			c.min = v
		}
		if !c.ranged || bytes.Compare(v, c.max) > 0 {
			c.max = v
		}
		c.ranged = true
	}
}
