package merge

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
)

func field(id int, name string, typ iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: typ}
}

func schemaOf(fields ...iceberg.NestedField) *iceberg.Schema {
	return iceberg.NewSchema(0, fields...)
}

// TestScalarText has one row of values, one of extremes and one of NULLs for
// every type.
func TestScalarText(t *testing.T) {
	uuid := "\x0f\x1e\x2d\x3c\x4b\x5a\x69\x78\x87\x96\xa5\xb4\xc3\xd2\xe1\xf0"
	for _, c := range []struct {
		name   string
		typ    iceberg.Type
		values pqfile.Values
		csv    []string
		json   []string
	}{
		{"boolean", iceberg.PrimitiveTypes.Bool, pqfile.Values{Type: pqfile.Boolean, N: 2, Bools: []byte{1, 0}}, []string{"true", "false"}, nil},
		{"int", iceberg.PrimitiveTypes.Int32, fixed32(math.MinInt32, 7), []string{"-2147483648", "7"}, nil},
		{"long", iceberg.PrimitiveTypes.Int64, fixed64(1<<53+1, math.MinInt64), []string{"9007199254740993", "-9223372036854775808"}, nil},
		{"float", iceberg.PrimitiveTypes.Float32, floats(0.1, float32(math.Inf(-1))), []string{"0.1", "-Infinity"}, []string{"0.1", `"-Infinity"`}},
		{"double", iceberg.PrimitiveTypes.Float64, doubles(5e-324, math.NaN()), []string{"5e-324", "NaN"}, []string{"5e-324", `"NaN"`}},
		{"decimal5", iceberg.DecimalTypeOf(5, 2), fixed32(0, -50), []string{"0.00", "-0.50"}, nil},
		{"decimal18", iceberg.DecimalTypeOf(18, 3), fixed64(-1, 123456), []string{"-0.001", "123.456"}, nil},
		{"decimal38", iceberg.DecimalTypeOf(38, 10), flbas(16, string(unhex(t, "0000000000000000ab54a98ceb1f0ad2")), string(unhex(t, "4b3b4ca85a86c47a098a223fffffffff"))),
			[]string{"1234567890.1234567890", strings.Repeat("9", 28) + "." + strings.Repeat("9", 10)}, nil},
		{"date", iceberg.PrimitiveTypes.Date, fixed32(-719162, 20787), []string{"0001-01-01", "2026-11-30"}, []string{`"0001-01-01"`, `"2026-11-30"`}},
		{"time", iceberg.PrimitiveTypes.Time, fixed64(1, 10399500000), []string{"00:00:00.000001", "02:53:19.5"}, []string{`"00:00:00.000001"`, `"02:53:19.5"`}},
		{"timestamp", iceberg.PrimitiveTypes.Timestamp, fixed64(-1, 0), []string{"1969-12-31 23:59:59.999999", "1970-01-01 00:00:00"}, []string{`"1969-12-31 23:59:59.999999"`, `"1970-01-01 00:00:00"`}},
		{"timestamptz", iceberg.PrimitiveTypes.TimestampTz, fixed64(-1, 0), []string{"1969-12-31 23:59:59.999999Z", "1970-01-01 00:00:00Z"}, []string{`"1969-12-31 23:59:59.999999Z"`, `"1970-01-01 00:00:00Z"`}},
		{"timestamp_ns", iceberg.PrimitiveTypes.TimestampNs, fixed64(-1, 10), []string{"1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00.00000001"}, []string{`"1969-12-31 23:59:59.999999999"`, `"1970-01-01 00:00:00.00000001"`}},
		{"string", iceberg.PrimitiveTypes.String, byteArrays("", `a"b`), []string{`""`, `"a""b"`}, []string{`""`, `"a\"b"`}},
		{"uuid", iceberg.PrimitiveTypes.UUID, flbas(16, uuid, strings.Repeat("\xff", 16)), []string{"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
			[]string{`"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"`, `"ffffffff-ffff-ffff-ffff-ffffffffffff"`}},
		{"binary", iceberg.PrimitiveTypes.Binary, byteArrays("\xa2\x00", ""), []string{"a200", `""`}, []string{`"a200"`, `""`}},
		{"fixed", iceberg.FixedTypeOf(4), flbas(4, "\x00\x01\xfe\xff", "abcd"), []string{"0001feff", "61626364"}, []string{`"0001feff"`, `"61626364"`}},
	} {
		schema := schemaOf(field(1, "x", c.typ), field(2, "y", c.typ))
		level := []uint8{1, 0, 1, 0}
		plain := pqfile.Vector{Def: level, Values: c.values}
		dict := pqfile.Vector{Values: dictionary(c.values, 1, 1, 0, 1)}
		if c.json == nil {
			c.json = c.csv
		}
		want := "x,y\n" + c.csv[0] + "," + c.csv[1] + "\n," + c.csv[1] + "\n" + c.csv[1] + "," + c.csv[0] + "\n," + c.csv[1] + "\n"
		if got, err := formatted(t, schema, CSVOptions{}, false, 4, plain, dict); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, want)
		}
		row := func(x, y string) string { return `{"x":` + x + `,"y":` + y + "}\n" }
		want = row(c.json[0], c.json[1]) + row("null", c.json[1]) + row(c.json[1], c.json[0]) + row("null", c.json[1])
		if got, err := formatted(t, schema, CSVOptions{}, true, 4, plain, dict); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, want)
		}
		// A constant, present in two rows of four and NULL elsewhere.
		one := pqfile.Vector{Def: level, Repeat: true, Values: dictionary(c.values, 0)}
		none := pqfile.Vector{Def: make([]uint8, 4), Repeat: true, Values: pqfile.Values{Type: c.values.Type, Width: c.values.Width}}
		want = row(c.json[0], "null") + row("null", "null") + row(c.json[0], "null") + row("null", "null")
		if got, err := formatted(t, schema, CSVOptions{}, true, 4, one, none); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, want)
		}
	}
}

func TestCSVOptions(t *testing.T) {
	text := iceberg.PrimitiveTypes.String
	two := schemaOf(field(1, "a,b", text), field(2, "q\"", iceberg.PrimitiveTypes.Int32))
	some := pqfile.Vector{Def: []uint8{1, 1, 1, 0}, Values: byteArrays("x", "", "NULL")}
	ints := pqfile.Vector{Def: []uint8{1, 0, 1, 1}, Values: fixed32(1, -3, 4)}
	for _, c := range []struct {
		opt  CSVOptions
		want string
	}{
		{CSVOptions{}, "\"a,b\",\"q\"\"\"\nx,1\n\"\",\nNULL,-3\n,4\n"},
		{CSVOptions{Null: "NULL"}, "\"a,b\",\"q\"\"\"\nx,1\n\"\",NULL\n\"NULL\",-3\nNULL,4\n"},
		{CSVOptions{Null: "-3", NoHeader: true}, "x,1\n\"\",-3\nNULL,\"-3\"\n-3,4\n"},
		{CSVOptions{Delimiter: ';', NoHeader: true}, "x;1\n\"\";\nNULL;-3\n;4\n"},
		{CSVOptions{Delimiter: ';'}, "a,b;\"q\"\"\"\nx;1\n\"\";\nNULL;-3\n;4\n"},
		{CSVOptions{Delimiter: '-', BOM: true, NoHeader: true}, "\uFEFFx-1\n\"\"-\nNULL-\"-3\"\n-4\n"},
	} {
		if got, err := formatted(t, two, c.opt, false, 4, some, ints); got != c.want || err != nil {
			t.Errorf("%+v: %q %v, want %q", c.opt, got, err, c.want)
		}
	}
	one := schemaOf(field(1, "", text))
	if got, _ := formatted(t, one, CSVOptions{}, false, 4, some); got != "\"\"\nx\n\"\"\nNULL\n\"\"\n" {
		t.Errorf("one column: %q", got)
	}
	if got, _ := formatted(t, one, CSVOptions{Null: "-"}, false, 4, some); got != "\"\"\nx\n\"\"\nNULL\n-\n" {
		t.Errorf("one column with a text for NULL: %q", got)
	}
	if got, _ := formatted(t, schemaOf(), CSVOptions{}, false, 2); got != "\n\n\n" {
		t.Errorf("no columns: %q", got)
	}
	if got, _ := formatted(t, schemaOf(), CSVOptions{}, true, 2); got != "{}\n{}\n" {
		t.Errorf("no columns: %q", got)
	}
	view, _ := pqfile.ViewOf(two)
	for _, bad := range []CSVOptions{{Delimiter: '"'}, {Delimiter: '\n'}, {Delimiter: 0xe9}, {Null: "a,b"}, {Null: "\""}} {
		if _, err := newCSVForm(view, bad); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestNestedText assembles a struct with a list and a map from levels.
func TestNestedText(t *testing.T) {
	text := iceberg.PrimitiveTypes.String
	schema := schemaOf(field(1, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{
		field(2, "l", &iceberg.ListType{ElementID: 3, Element: iceberg.PrimitiveTypes.Float64}),
		field(4, "m", &iceberg.MapType{KeyID: 5, KeyType: text, ValueID: 6, ValueType: iceberg.PrimitiveTypes.Int32}),
		field(7, "n", &iceberg.MapType{KeyID: 8, KeyType: iceberg.PrimitiveTypes.Int32, ValueID: 9, ValueType: text}),
	}}), field(10, "id", iceberg.PrimitiveTypes.Int32))
	// Levels: s 1, s.l 2, entry 3, element 4; s.m 2, entry (and key) 3, value 4.
	vectors := []pqfile.Vector{
		{Rep: []uint8{0, 1, 1, 0, 0, 0}, Def: []uint8{4, 3, 4, 0, 1, 2}, Values: doubles(1.5, math.NaN())},
		{Rep: []uint8{0, 1, 0, 0, 0}, Def: []uint8{3, 3, 0, 2, 1}, Values: byteArrays("a\"", "\xff")},
		{Rep: []uint8{0, 1, 0, 0, 0}, Def: []uint8{4, 3, 0, 2, 1}, Values: fixed32(5)},
		{Rep: []uint8{0, 0, 0, 0, 1}, Def: []uint8{2, 0, 1, 3, 3}, Values: fixed32(1, 2)},
		{Rep: []uint8{0, 0, 0, 0, 1}, Def: []uint8{2, 0, 1, 4, 4}, Values: byteArrays("", "x,\n")},
		{Values: fixed32(1, 2, 3, 4)},
	}
	want := []string{
		`{"l":[1.5,null,"NaN"],"m":{"a\"":5,"` + "\uFFFD" + `":null},"n":[]}`, `null`, `{"l":null,"m":{},"n":null}`,
		`{"l":[],"m":null,"n":[{"key":1,"value":""},{"key":2,"value":"x,\n"}]}`,
	}
	lines := ""
	for i, w := range want {
		lines += `{"s":` + w + `,"id":` + string(rune('1'+i)) + "}\n"
	}
	if got, err := formatted(t, schema, CSVOptions{}, true, 4, vectors...); got != lines || err != nil {
		t.Errorf("%s %v, want %s", got, err, lines)
	}
	lines = "s,id\n"
	for i, w := range want {
		if w = `"` + strings.ReplaceAll(w, `"`, `""`) + `"`; w == `"null"` {
			w = ""
		}
		lines += w + "," + string(rune('1'+i)) + "\n"
	}
	if got, err := formatted(t, schema, CSVOptions{}, false, 4, vectors...); got != lines || err != nil {
		t.Errorf("%s %v, want %s", got, err, lines)
	}
	// Levels that contradict each other.
	for leaf := range 5 {
		for i := range vectors[leaf].Def {
			for d := range uint8(5) {
				was := vectors[leaf].Def[i]
				if d == was || leaf == 0 && d == 4 {
					continue
				}
				vectors[leaf].Def[i] = d
				if got, err := formatted(t, schema, CSVOptions{}, true, 4, vectors...); err == nil && !harmless(leaf, was, d) {
					t.Errorf("leaf %d entry %d at level %d: %s", leaf, i, d, got)
				} else if err != nil && !errors.Is(err, ErrCorrupt) {
					t.Error(err)
				}
				vectors[leaf].Def[i] = was
			}
		}
	}
}

// harmless changes of a level make another valid column (a NULL list for an
// empty one) and need no value.
func harmless(leaf int, was, now uint8) bool {
	return leaf == 0 && was != 4 && now != 4 && was*now != 0
}

func TestFlatLevels(t *testing.T) {
	schema := schemaOf(field(1, "x", iceberg.PrimitiveTypes.Int32))
	for name, v := range map[string]pqfile.Vector{
		"too few values":     {Def: []uint8{1, 1}, Values: fixed32(1)},
		"too many values":    {Def: []uint8{1, 0}, Values: fixed32(1, 2)},
		"too few levels":     {Def: []uint8{1}, Values: fixed32(1)},
		"repetition":         {Def: []uint8{1, 1}, Rep: []uint8{0, 1}, Values: fixed32(1, 2)},
		"no value, required": {Values: fixed32(1)},
		"empty constant":     {Repeat: true, Values: fixed32()},
		"two constants":      {Repeat: true, Values: fixed32(1, 2)},
	} {
		if got, err := formatted(t, schema, CSVOptions{}, false, 2, v); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if got, err := formatted(t, schema, CSVOptions{}, false, 1, pqfile.Vector{Values: fixed64(1)}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("another physical type: %q %v", got, err)
	}
}
