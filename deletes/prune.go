package deletes

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/icefs/icefs/internal/pqfile"
)

// bounds say that every value of a column that is not NULL lies in [low, high]
// (integers) or [lowBytes, highBytes] (byte arrays), as unsigned bytes. About
// NULLs they say nothing: null counts of 0 are written for "unknown" as well.
type bounds struct {
	low, high           int64
	lowBytes, highBytes []byte
}

// signedOrder reports whether a leaf's values are ordered as signed integers:
// integers, dates, times, timestamps and short decimals, but not unsigned ones.
func signedOrder(leaf *pqfile.Node) bool {
	if leaf.Type != pqfile.Int32 && leaf.Type != pqfile.Int64 {
		return false
	}
	switch leaf.Logical.Kind {
	case pqfile.LogicalNone, pqfile.LogicalDecimal, pqfile.LogicalDate, pqfile.LogicalTime, pqfile.LogicalTimestamp:
		return true
	case pqfile.LogicalInteger:
		return leaf.Logical.Signed
	}
	return false
}

// bounds reads a chunk's statistics. Only min_value and max_value count, only
// with the column orders that define them, and only where a stored value and the
// view's are the same number or the same bytes: fixed-length values (UUIDs,
// decimals), floats (NaN, zeros) and scaled units prove nothing.
func (f parquetColumns) bounds(group int, col *pqfile.Column) (b bounds, ok bool) {
	m := f.Metadata
	if col.Source == nil || m.ColumnOrders != len(f.Schema.Leaves) {
		return b, false
	}
	meta := m.RowGroups[group].Columns[col.Source.Leaf].MetaData
	if meta == nil || meta.Statistics == nil || meta.Statistics.MinValue == nil || meta.Statistics.MaxValue == nil {
		return b, false
	}
	low, high := meta.Statistics.MinValue, meta.Statistics.MaxValue
	switch col.Convert.Kind {
	case pqfile.ConvertNone:
	case pqfile.ConvertInt32ToInt64:
	default:
		return b, false
	}
	switch {
	case signedOrder(col.Source) && signedOrder(col.Leaf):
		var okLow, okHigh bool
		b.low, okLow = integerBound(col.Source.Type, low)
		b.high, okHigh = integerBound(col.Source.Type, high)
		return b, okLow && okHigh && b.low <= b.high
	case col.Source.Type == pqfile.ByteArray && col.Leaf.Type == pqfile.ByteArray && col.Leaf.Logical.Kind != pqfile.LogicalDecimal:
		b.lowBytes, b.highBytes = low, high
		return b, bytes.Compare(low, high) <= 0
	}
	return b, false
}

// integerBound decodes a bound of exactly the physical type's width.
func integerBound(t pqfile.Type, b []byte) (int64, bool) {
	switch {
	case t == pqfile.Int32 && len(b) == 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case t == pqfile.Int64 && len(b) == 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
	return 0, false
}

// mayMatch reports whether a row of the row group can have a key of the set:
// false only if in some column neither NULL nor any value can.
func (s *keySet) mayMatch(file columnFile, group int, cols []pqfile.Column) bool {
	for i := range s.columns {
		c := &s.columns[i]
		if c.null != nil && cols[i].Source != nil && cols[i].Source.MaxDef > 0 {
			continue
		}
		b, ok := file.bounds(group, &cols[i])
		if ok && !c.meets(b) {
			return false
		}
	}
	return true
}

// meets reports whether a value of the column lies within bounds.
func (c *keyColumn) meets(b bounds) bool {
	switch {
	case b.lowBytes != nil:
		// Writers cut long bounds, and not all make a cut upper bound larger: a value
		// that begins with it counts as within.
		least := c.min[:min(len(c.min), len(b.highBytes))]
		return c.ranged && bytes.Compare(c.max, b.lowBytes) >= 0 && bytes.Compare(least, b.highBytes) <= 0
	case signedOrder(c.leaf):
		i := sort.Search(len(c.sorted), func(i int) bool { return c.sorted[i] >= b.low })
		return i < len(c.sorted) && c.sorted[i] <= b.high
	}
	return true
}
