package merge

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/icefs/icefs/internal/pqfile"
)

// collector finds the least and the greatest visible value of a chunk, and
// counts its NULLs, while the chunk is made.
type collector struct {
	leaf            *pqfile.Node
	entries, values int64
	none            bool // a NaN was seen: no bounds at all
	lower, upper    []byte
	// Dictionary indexes are only marked, and looked up once a source ends.
	dict *pqfile.Values
	used []bool
}

// addEntries counts a run's entries and values.
func (c *collector) addEntries(entries, values int) {
	c.entries += int64(entries)
	c.values += int64(values)
}

// addIndexes marks dictionary values.
func (c *collector) addIndexes(d *pqfile.Values, index []uint32) {
	if d != c.dict {
		c.endSource()
		c.dict, c.used = d, append(c.used[:0], make([]bool, d.N)...)
	}
	for _, i := range index {
		c.used[i] = true
	}
}

// endSource takes the values of the dictionary that were used.
func (c *collector) endSource() {
	if c.dict == nil {
		return
	}
	for i := 0; i < len(c.used); {
		from := i
		for i < len(c.used) && c.used[i] {
			i++
		}
		c.addValues(c.dict, from, i) // nothing if the first is not used
		i++
	}
	c.dict = nil
}

// addValues takes values [s, e), which are not dictionary-coded.
func (c *collector) addValues(v *pqfile.Values, s, e int) {
	if s >= e || c.none {
		return
	}
	le := binary.LittleEndian
	switch c.leaf.Type {
	case pqfile.Boolean:
		for _, b := range v.Bools[s:e] {
			c.offer([]byte{b})
		}
	case pqfile.ByteArray:
		for i := s; i < e; i++ {
			c.offer(v.Data[v.Offsets[i]:v.Offsets[i+1]])
		}
	case pqfile.FixedLenByteArray:
		for i := s; i < e; i++ {
			c.offer(v.Fixed[i*v.Width : (i+1)*v.Width])
		}
	case pqfile.Int32:
		lo, hi := int32(math.MaxInt32), int32(math.MinInt32)
		for b := v.Fixed[4*s : 4*e]; len(b) >= 4; b = b[4:] {
			x := int32(le.Uint32(b))
			lo, hi = min(lo, x), max(hi, x)
		}
		c.offer(le.AppendUint32(nil, uint32(lo)))
		c.offer(le.AppendUint32(nil, uint32(hi)))
	case pqfile.Int64:
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for b := v.Fixed[8*s : 8*e]; len(b) >= 8; b = b[8:] {
			x := int64(le.Uint64(b))
			lo, hi = min(lo, x), max(hi, x)
		}
		c.offer(le.AppendUint64(nil, uint64(lo)))
		c.offer(le.AppendUint64(nil, uint64(hi)))
	case pqfile.Float:
		for b := v.Fixed[4*s : 4*e]; len(b) >= 4; b = b[4:] {
			c.offer(b[:4])
		}
	case pqfile.Double:
		for b := v.Fixed[8*s : 8*e]; len(b) >= 8; b = b[8:] {
			c.offer(b[:8])
		}
	}
}

// offer widens the bounds to hold one value.
func (c *collector) offer(b []byte) {
	if isNaN(c.leaf, b) {
		c.none = true
		return
	}
	if c.lower == nil {
		c.lower, c.upper = bytes.Clone(b), bytes.Clone(b)
		if c.lower == nil { // the empty string
			c.lower, c.upper = []byte{}, []byte{}
		}
		return
	}
	if compareBounds(c.leaf, b, c.lower) < 0 {
		c.lower = append(c.lower[:0], b...)
	} else if compareBounds(c.leaf, b, c.upper) > 0 {
		c.upper = append(c.upper[:0], b...)
	}
}

// result is nil if the chunk can have no statistics.
func (c *collector) result() *pqfile.Statistics {
	switch {
	case c.none || len(c.lower) > maxBound || len(c.upper) > maxBound:
		return nil
	case c.values == 0:
		return exactStatistics(c.entries, nil, nil)
	}
	return exactStatistics(c.entries-c.values, signedZero(c.leaf, c.lower, true), signedZero(c.leaf, c.upper, false))
}

// Kept statistics are a kind (0 none, 1 all NULL, 2 bounds), the NULL count, and
// the bounds with their lengths, numbers as varints.
func encodeStatistics(s *pqfile.Statistics) []byte {
	switch {
	case s == nil:
		return []byte{0}
	case s.MinValue == nil:
		return binary.AppendUvarint([]byte{1}, uint64(*s.NullCount))
	}
	b := binary.AppendUvarint([]byte{2}, uint64(*s.NullCount))
	b = append(binary.AppendUvarint(b, uint64(len(s.MinValue))), s.MinValue...)
	return append(binary.AppendUvarint(b, uint64(len(s.MaxValue))), s.MaxValue...)
}

func decodeStatistics(leaf *pqfile.Node, b []byte) (*pqfile.Statistics, bool) {
	if len(b) == 0 {
		return nil, false
	}
	kind, b := b[0], b[1:]
	if kind == 0 {
		return nil, len(b) == 0
	}
	nulls, n := binary.Uvarint(b)
	if n <= 0 || nulls > math.MaxInt64 {
		return nil, false
	}
	b = b[n:]
	if kind == 1 {
		return exactStatistics(int64(nulls), nil, nil), len(b) == 0
	}
	var bounds [2][]byte
	for i := range bounds {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > maxBound || size > uint64(len(b)-n) {
			return nil, false
		}
		bounds[i] = append([]byte{}, b[n:n+int(size)]...)
		b = b[n+int(size):]
		if w := valueWidth(leaf); w > 0 && w != int(size) {
			return nil, false
		}
	}
	return exactStatistics(int64(nulls), bounds[0], bounds[1]), kind == 2 && len(b) == 0
}
