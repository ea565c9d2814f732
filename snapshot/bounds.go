package snapshot

import (
	"encoding/binary"
	"math"

	"github.com/apache/iceberg-go"
)

// columns are the top-level columns of a schema by field id.
type columns map[int]column

func newColumns(schema *iceberg.Schema) columns {
	c := columns{}
	if schema == nil {
		return c
	}
	for _, f := range schema.Fields() {
		c[f.ID] = column{id: f.ID, typ: f.Type, hasDefault: f.InitialDefault != nil, known: true}
	}
	return c
}

// get returns a column; one that is nested, dropped or unknown proves nothing.
func (c columns) get(id int) column { return c[id] }

// column is a key column of equality deletes.
type column struct {
	id         int
	typ        iceberg.Type
	hasDefault bool
	known      bool
}

// columnStats are what a file's metrics prove about a column. The zero value
// proves nothing.
type columnStats struct {
	noNull, allNull bool
	bounded         bool   // every value that is not NULL is in [lower, upper]
	lower, upper    string // as orderedBound encodes them
}

func (s *columnStats) useful() bool { return s.noNull || s.allNull || s.bounded }

// dataStats are the stats of a data file. A file that lacks the column reads as
// its initial default, so NULL counts of a column with one say nothing.
func (c column) dataStats(f *DataFile) columnStats {
	s := c.stats(f)
	if c.hasDefault {
		s.allNull = false
	}
	return s
}

// stats reads the metrics of f. Whatever is absent, negative, partial, inverted,
// malformed or not of the current type proves nothing.
func (c column) stats(f *DataFile) (s columnStats) {
	if !c.known {
		return s
	}
	m := f.Column(c.id)
	if m.Nulls >= 0 && m.Nulls <= m.Values && m.Values == f.Records {
		s.noNull = m.Nulls == 0
		s.allNull = m.Nulls == m.Values && m.Values > 0
	}
	if isFloat(c.typ) && m.NaNs != 0 {
		return s
	}
	lower, ok := orderedBound(c.typ, m.Lower)
	upper, ok2 := orderedBound(c.typ, m.Upper)
	if ok && ok2 && lower <= upper {
		s.bounded, s.lower, s.upper = true, lower, upper
	}
	return s
}

// disjoint reports whether one column proves that no key of a delete file can
// equal a row of a data file. NULL matches NULL only.
func disjoint(data, del []columnStats) bool {
	for c := range data {
		d, q := &data[c], &del[c]
		if d.allNull && q.noNull || d.noNull && q.allNull {
			return true
		}
		if !d.noNull && !q.noNull {
			continue
		}
		if d.bounded && q.bounded && (d.upper < q.lower || q.upper < d.lower) {
			return true
		}
	}
	return false
}

func isFloat(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return true
	}
	return false
}

// orderedBound encodes a bound (Iceberg spec, appendix D: little-endian numbers,
// big-endian decimals) so that strings order as the values do. An int bound of
// a long column and a float bound of a double column are widened; any other
// bound that is not of type t is refused, as are NaN, absent bounds and types
// without an order that all writers agree on.
func orderedBound(t iceberg.Type, b []byte) (string, bool) {
	if b == nil {
		return "", false
	}
	switch t := t.(type) {
	case iceberg.BooleanType:
		return string(b), len(b) == 1 && b[0] <= 1
	case iceberg.Int32Type, iceberg.DateType:
		return orderedInt(b, 4)
	case iceberg.Int64Type:
		return orderedInt(b, 4, 8)
	case iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return orderedInt(b, 8)
	case iceberg.Float32Type:
		return orderedFloat(b, 4)
	case iceberg.Float64Type:
		return orderedFloat(b, 4, 8)
	case iceberg.DecimalType:
		return orderedDecimal(b)
	case iceberg.StringType, iceberg.BinaryType:
		return string(b), true
	case iceberg.FixedType:
		return string(b), len(b) == t.Len()
	}
	return "", false
}

func orderedInt(b []byte, widths ...int) (string, bool) {
	var v int64
	switch {
	case !hasWidth(b, widths):
		return "", false
	case len(b) == 4:
		v = int64(int32(binary.LittleEndian.Uint32(b)))
	default:
		v = int64(binary.LittleEndian.Uint64(b))
	}
	return orderedUint(uint64(v) ^ 1<<63), true
}

func orderedFloat(b []byte, widths ...int) (string, bool) {
	var v float64
	switch {
	case !hasWidth(b, widths):
		return "", false
	case len(b) == 4:
		v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	default:
		v = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	switch {
	case v != v:
		return "", false
	case v == 0:
		v = 0 // -0 and +0 are one
	}
	bits := math.Float64bits(v)
	if bits>>63 != 0 {
		return orderedUint(^bits), true
	}
	return orderedUint(bits | 1<<63), true
}

// orderedDecimal sign-extends a two's complement number to 16 bytes.
func orderedDecimal(b []byte) (string, bool) {
	if len(b) == 0 || len(b) > 16 {
		return "", false
	}
	var key [16]byte
	if b[0]&0x80 != 0 {
		for i := range key {
			key[i] = 0xff
		}
	}
	copy(key[16-len(b):], b)
	key[0] ^= 0x80
	return string(key[:]), true
}

func hasWidth(b []byte, widths []int) bool {
	for _, w := range widths {
		if len(b) == w {
			return true
		}
	}
	return false
}

func orderedUint(v uint64) string {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], v)
	return string(key[:])
}
