package pqfile

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

func TestConstantOf(t *testing.T) {
	p := iceberg.PrimitiveTypes
	d12, d38 := iceberg.DecimalTypeOf(12, 3), iceberg.DecimalTypeOf(38, 2)
	id := "00000000-0000-0001-0000-000000000002"
	for _, c := range []struct {
		typ   iceberg.Type
		value any
		want  string // "" = ErrUnsupported
	}{
		{p.Bool, true, "true"},
		{p.Bool, iceberg.BoolLiteral(false), "false"},
		{p.Bool, "true", ""},
		{p.Int32, float64(-1), "-1"},
		{p.Int32, int32(7), "7"},
		{p.Int32, iceberg.Int32Literal(7), "7"},
		{p.Int32, float64(1 << 31), ""},
		{p.Int32, 1.5, ""},
		{p.Int64, int32(7), "7"},
		{p.Int64, json.Number("9007199254740993"), "9007199254740993"},
		{p.Int64, float64(9007199254740992), ""},
		{p.Int64, float64(9007199254740991), "9007199254740991"},
		{p.Float32, 1.5, "1.5"},
		{p.Float32, float32(0.1), "0.10000000149011612"},
		{p.Float32, json.Number("0.1"), "0.10000000149011612"},
		{p.Float64, 0.1, "0.1"},
		{p.Float64, float32(1.5), "1.5"},
		{p.Float64, math.NaN(), `"NaN"`},
		{p.Float64, "-Infinity", `"-Inf"`},
		{p.Float64, "1", ""},
		{d12, "123.456", "123456"},
		{d12, "-1.2", "-1200"},
		{d12, "1E-3", "1"},
		{d12, "1e999999999", ""},
		{d12, "0.0001", ""},
		{d12, "0x10", ""},
		{d12, iceberg.DecimalLiteral{Scale: 3, Val: decimal128.FromI64(-5)}, "-5"},
		{d12, iceberg.Decimal{Scale: 2, Val: decimal128.FromI64(-5)}, "-50"},
		{d12, big.NewRat(1, 4), "250"},
		{d12, []byte{0xFF, 0x00}, "-256"},
		{iceberg.DecimalTypeOf(5, 0), "9999999999", ""},
		{d38, "-999999999999999999999999999999999999.99", "-99999999999999999999999999999999999999"},
		{p.Date, "2024-02-29", "19782"},
		{p.Date, "1969-12-31", "-1"},
		{p.Date, iceberg.Date(-1), "-1"},
		{p.Date, int32(-1), "-1"},
		{p.Date, time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), "-1"},
		{p.Date, "2024-02-30", ""},
		{p.Time, "22:31:08.123456", "81068123456"},
		{p.Time, iceberg.Time(5), "5"},
		{p.Timestamp, "2024-02-29T12:34:56.789012", "1709210096789012"},
		{p.Timestamp, "0001-01-01T00:00:00", "-62135596800000000"},
		{p.Timestamp, iceberg.Timestamp(-1), "-1"},
		{p.Timestamp, iceberg.TimestampLiteral(-1), "-1"},
		{p.Timestamp, int64(12), "12"},
		{p.Timestamp, iceberg.Date(-1), "-86400000000"}, // a partition of before the promotion
		{p.TimestampTz, "2024-02-29T12:34:56.789012+00:00", "1709210096789012"},
		{p.TimestampTz, "2024-02-29T13:34:56+01:00", "1709210096000000"},
		{p.TimestampTz, "1969-12-31T23:59:59.999999Z", "-1"},
		{p.TimestampNs, "1969-12-31T23:59:59.999999999", "-1"},
		{p.TimestampNs, iceberg.TimestampNano(9), "9"},
		{p.TimestampTzNs, "9999-01-01T00:00:00+00:00", ""},
		{p.String, "é\"\n", `"é\"\n"`},
		{p.String, []byte("x"), `"x"`},
		{p.String, float64(1), ""},
		{p.UUID, id, `"00000000000000010000000000000002"`},
		{p.UUID, uuid.MustParse(id), `"00000000000000010000000000000002"`},
		{p.UUID, iceberg.UUIDLiteral(uuid.MustParse(id)), `"00000000000000010000000000000002"`},
		{p.UUID, []byte{1}, ""},
		{iceberg.FixedTypeOf(3), "0102FF", `"0102ff"`},
		{iceberg.FixedTypeOf(3), [3]byte{1, 2, 3}, `"010203"`},
		{iceberg.FixedTypeOf(3), "0102", ""},
		{p.Binary, "00FE", `"00fe"`},
		{p.Binary, iceberg.BinaryLiteral{0, 1}, `"0001"`},
		{p.Binary, "0", ""},
		{p.Unknown, "x", ""},
	} {
		view, err := ViewOf(schemaOf(field(1, "c", c.typ, false)))
		if err != nil {
			t.Fatal(err)
		}
		v, err := constantOf(c.typ, view.Leaves[0], c.value)
		switch {
		case c.want == "":
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("%T %v as %s: %v", c.value, c.value, c.typ, err)
			}
		case err != nil:
			t.Errorf("%T %v as %s: %v", c.value, c.value, c.typ, err)
		case v.N != 1 || text(view.Leaves[0], &v, 0) != c.want:
			t.Errorf("%T %v as %s is %s, not %s", c.value, c.value, c.typ, text(view.Leaves[0], &v, 0), c.want)
		}
	}
}

// A view may hold decimals and times in a file's stored form.
func TestConstantInStoredForm(t *testing.T) {
	d := LogicalType{Kind: LogicalDecimal, Precision: 9, Scale: 2}
	for _, c := range []struct {
		leaf  Node
		typ   iceberg.Type
		value any
		want  string
	}{
		{Node{Type: FixedLenByteArray, TypeLength: 5, Logical: d}, iceberg.DecimalTypeOf(9, 2), "-0.01", "-1"},
		{Node{Type: ByteArray, Logical: d}, iceberg.DecimalTypeOf(9, 2), "-1.28", "-128"},
		{Node{Type: ByteArray, Logical: d}, iceberg.DecimalTypeOf(9, 2), "1.28", "128"},
		{Node{Type: Int64, Logical: d}, iceberg.DecimalTypeOf(9, 2), "1.28", "128"},
		{Node{Type: Int64, Logical: LogicalType{Kind: LogicalTimestamp, Unit: Millis}}, iceberg.PrimitiveTypes.Timestamp, int64(-1), "-1"},
		{Node{Type: Int64, Logical: LogicalType{Kind: LogicalTimestamp, Unit: Nanos}}, iceberg.PrimitiveTypes.Timestamp, int64(-1), "-1000"},
		{Node{Type: Int64}, iceberg.PrimitiveTypes.Int32, int32(-1), "-1"},
	} {
		v, err := constantOf(c.typ, &c.leaf, c.value)
		if err != nil {
			t.Errorf("%v as %s: %v", c.value, c.leaf.typeName(), err)
		} else if got := text(&c.leaf, &v, 0); got != c.want {
			t.Errorf("%v as %s is %s, not %s", c.value, c.leaf.typeName(), got, c.want)
		}
	}
}
