package snapshot

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/apache/iceberg-go"
)

func le32(v int32) []byte  { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
func le64(v int64) []byte  { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func f32(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
func f64(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }

func TestOrderedBoundOrders(t *testing.T) {
	for _, c := range []struct {
		typ    iceberg.Type
		groups [][][]byte // ascending; bounds of one group are equal
	}{
		{iceberg.PrimitiveTypes.Bool, [][][]byte{{{0}}, {{1}}}},
		{iceberg.PrimitiveTypes.Int32, [][][]byte{{le32(math.MinInt32)}, {le32(-1)}, {le32(0)}, {le32(256)}, {le32(math.MaxInt32)}}},
		{iceberg.PrimitiveTypes.Int64, [][][]byte{{le64(math.MinInt64)}, {le64(-1), le32(-1)}, {le64(0), le32(0)}, {le32(70000), le64(70000)}, {le64(math.MaxInt64)}}},
		{iceberg.PrimitiveTypes.Date, [][][]byte{{le32(-1)}, {le32(1)}}},
		{iceberg.PrimitiveTypes.Timestamp, [][][]byte{{le64(-1)}, {le64(1)}}},
		{iceberg.PrimitiveTypes.Float32, [][][]byte{{f32(float32(math.Inf(-1)))}, {f32(-1.5)}, {f32(0), f32(float32(math.Copysign(0, -1)))}, {f32(1e-40)}, {f32(float32(math.Inf(1)))}}},
		{iceberg.PrimitiveTypes.Float64, [][][]byte{{f64(math.Inf(-1))}, {f64(-1.5), f32(-1.5)}, {f64(0), f32(0), f64(math.Copysign(0, -1))}, {f64(5e-324)}, {f32(1.5), f64(1.5)}}},
		{iceberg.DecimalTypeOf(9, 2), [][][]byte{{{0x80}}, {{0xff}, {0xff, 0xff}}, {{0}}, {{1}, {0, 1}}, {{0x7f}}, {{0x00, 0x80}}}},
		{iceberg.PrimitiveTypes.String, [][][]byte{{{}}, {[]byte("a")}, {[]byte("aa")}, {[]byte("b")}, {[]byte("é")}, {[]byte("\U0001F600")}}},
		{iceberg.PrimitiveTypes.Binary, [][][]byte{{{}}, {{0}}, {{0, 0}}, {{0xff}}}},
		{iceberg.FixedTypeOf(2), [][][]byte{{{0, 1}}, {{0xff, 0}}}},
	} {
		last := ""
		for i, group := range c.groups {
			for j, b := range group {
				key, ok := orderedBound(c.typ, b)
				switch {
				case !ok:
					t.Errorf("%s: bound %x refused", c.typ, b)
				case j > 0 && key != last:
					t.Errorf("%s: %x is not equal to its group", c.typ, b)
				case j == 0 && i > 0 && key <= last:
					t.Errorf("%s: %x does not come after its predecessor", c.typ, b)
				}
				last = key
			}
		}
	}
}

func TestOrderedBoundRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  iceberg.Type
		b    []byte
	}{
		{"absent", iceberg.PrimitiveTypes.String, nil},
		{"bool 2", iceberg.PrimitiveTypes.Bool, []byte{2}},
		{"int of 8 bytes", iceberg.PrimitiveTypes.Int32, le64(1)},
		{"int of 3 bytes", iceberg.PrimitiveTypes.Int32, []byte{1, 2, 3}},
		{"long of 6 bytes", iceberg.PrimitiveTypes.Int64, make([]byte, 6)},
		{"date bound of a timestamp", iceberg.PrimitiveTypes.Timestamp, le32(1)},
		{"date bound of a timestamp_ns", iceberg.TimestampNsType{}, le32(1)},
		{"timestamp bound of a date", iceberg.PrimitiveTypes.Date, le64(1)},
		{"double bound of a float", iceberg.PrimitiveTypes.Float32, f64(1)},
		{"NaN", iceberg.PrimitiveTypes.Float64, f64(math.NaN())},
		{"NaN of 4 bytes", iceberg.PrimitiveTypes.Float64, f32(float32(math.NaN()))},
		{"empty decimal", iceberg.DecimalTypeOf(9, 2), []byte{}},
		{"17-byte decimal", iceberg.DecimalTypeOf(38, 2), make([]byte, 17)},
		{"short fixed", iceberg.FixedTypeOf(4), []byte{1, 2, 3}},
		{"uuid", iceberg.PrimitiveTypes.UUID, make([]byte, 16)},
		{"struct", &iceberg.StructType{}, []byte{1}},
	} {
		if key, ok := orderedBound(c.typ, c.b); ok {
			t.Errorf("%s: taken as %x", c.name, key)
		}
	}
}
