package reference

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// TestTexts has the contract's own examples and their neighbours.
func TestTexts(t *testing.T) {
	p := iceberg.PrimitiveTypes
	point := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 1, Name: "x", Type: p.Int32}, {ID: 2, Name: `y"`, Type: p.String}}}
	decimal := func(n int64, scale int) iceberg.Decimal {
		return iceberg.Decimal{Val: decimal128.FromI64(n), Scale: scale}
	}
	for _, c := range []struct {
		typ        iceberg.Type
		v          any
		json, text string // text "" = the same as json
	}{
		{p.Bool, true, "true", ""}, {p.Int64, int64(math.MinInt64), "-9223372036854775808", ""},
		{p.Float64, 0.0, "0", ""}, {p.Float64, math.Copysign(0, -1), "-0", ""}, {p.Float64, 1e-6, "0.000001", ""}, {p.Float64, 1e-7, "1e-7", ""},
		{p.Float64, 1e20, "100000000000000000000", ""}, {p.Float64, 1e21, "1e+21", ""}, {p.Float64, 5e-324, "5e-324", ""}, {p.Float32, float32(0.1), "0.1", ""},
		{p.Float64, math.NaN(), `"NaN"`, "NaN"}, {p.Float32, float32(math.Inf(-1)), `"-Infinity"`, "-Infinity"},
		{iceberg.DecimalTypeOf(5, 2), decimal(-50, 2), "-0.50", ""}, {iceberg.DecimalTypeOf(5, 2), decimal(0, 2), "0.00", ""}, {iceberg.DecimalTypeOf(5, 0), decimal(-7, 0), "-7", ""},
		{p.Date, iceberg.Date(20787), `"2026-11-30"`, "2026-11-30"}, {p.Date, iceberg.Date(-719529), `"-0001-12-31"`, "-0001-12-31"},
		{p.Timestamp, iceberg.Timestamp(1796007199123456), `"2026-11-30 02:53:19.123456"`, "2026-11-30 02:53:19.123456"},
		{p.TimestampTz, iceberg.Timestamp(-1), `"1969-12-31 23:59:59.999999Z"`, "1969-12-31 23:59:59.999999Z"},
		{p.Timestamp, iceberg.Timestamp(1796007199500000), `"2026-11-30 02:53:19.5"`, "2026-11-30 02:53:19.5"},
		{p.TimestampNs, iceberg.TimestampNano(math.MinInt64), `"1677-09-21 00:12:43.145224192"`, "1677-09-21 00:12:43.145224192"},
		{p.Time, iceberg.Time(10_399_500_000), `"02:53:19.5"`, "02:53:19.5"}, {p.Time, iceberg.Time(1), `"00:00:00.000001"`, "00:00:00.000001"},
		{p.UUID, uuid.UUID{15: 1}, `"00000000-0000-0000-0000-000000000001"`, "00000000-0000-0000-0000-000000000001"},
		{p.Binary, []byte{0, 0xA2}, `"00a2"`, "00a2"}, {p.Binary, []byte{}, `""`, `""`},
		{p.String, "a\"\\/\x01\b\f\n\r\t<\u2028é", `"a\"\\/\u0001\b\f\n\r\t<` + "\u2028é\"", "\"a\"\"\\/\x01\b\f\n\r\t<\u2028é\""},
		{p.String, "\xff\xfe", `"` + "\uFFFD\uFFFD" + `"`, "\xff\xfe"}, {p.String, "", `""`, `""`}, {p.String, "x,y", `"x,y"`, `"x,y"`}, {p.String, " x ", `" x "`, " x "},
		{p.String, nil, "null", "-"},
		{point, Record{1: int32(1), 2: nil}, `{"x":1,"y\"":null}`, `"{""x"":1,""y\"""":null}"`},
		{&iceberg.ListType{Element: p.Date}, List{iceberg.Date(0), nil}, `["1970-01-01",null]`, `"[""1970-01-01"",null]"`}, {&iceberg.ListType{Element: p.Int32}, List{}, "[]", ""},
		{&iceberg.MapType{KeyType: p.String, ValueType: p.Int32}, Map{{"k", int32(1)}}, `{"k":1}`, `"{""k"":1}"`},
		{&iceberg.MapType{KeyType: p.Int32, ValueType: p.Float64}, Map{{int32(1), math.NaN()}}, `[{"key":1,"value":"NaN"}]`, `"[{""key"":1,""value"":""NaN""}]"`},
	} {
		if c.text == "" {
			c.text = c.json
		}
		if c.text == "-" {
			c.text = ""
		}
		if got := JSON(c.typ, c.v); got != c.json {
			t.Errorf("%s %v: %s, want %s", c.typ, c.v, got, c.json)
		}
		schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 9, Name: "v", Type: c.typ}, iceberg.NestedField{ID: 10, Name: "w", Type: p.Int32})
		if got := (TextOptions{}).csvRow(schema, Record{9: c.v, 10: int32(3)}); got != c.text+",3\n" {
			t.Errorf("%s %v: %q, want %q", c.typ, c.v, got, c.text+",3\n")
		}
	}
}

func TestTextOptions(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "a;b", Type: iceberg.PrimitiveTypes.String}, iceberg.NestedField{ID: 2, Name: "c", Type: iceberg.PrimitiveTypes.String})
	one := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: iceberg.PrimitiveTypes.String})
	o := TextOptions{Null: `\N`, Delimiter: ';', BOM: true}
	if got := o.csvHeader(schema) + o.csvRow(schema, Record{1: `\N`, 2: nil}); got != "\uFEFF\"a;b\";c\n\"\\N\";\\N\n" {
		t.Errorf("%q", got)
	}
	o = TextOptions{NoHeader: true}
	if got := o.csvHeader(one) + o.csvRow(one, Record{}) + o.csvRow(one, Record{1: ""}); got != "\"\"\n\"\"\n" {
		t.Errorf("%q", got)
	}
}
