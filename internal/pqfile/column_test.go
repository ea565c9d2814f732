package pqfile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

func fixture(name string) string { return filepath.Join("..", "..", "testdata", "pqproject", name) }

// wantRows is what pyarrow read from a fixture.
func wantRows(t testing.TB, name string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(fixture(name + ".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return parseRows(t, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"))
}

// parseRows keeps numbers as they are written.
func parseRows(t testing.TB, lines []string) (rows []map[string]any) {
	t.Helper()
	for _, line := range lines {
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		rows = append(rows, row)
	}
	return rows
}

func compareRows(t testing.TB, name string, lines []string, want []map[string]any) {
	t.Helper()
	got := parseRows(t, lines)
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, not %d", name, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: row %d is\n%v, not\n%v", name, i, got[i], want[i])
		}
	}
}

// nestedSchema is that of nested_v1 and nested_v2.
func nestedSchema() *iceberg.Schema {
	i32, str := iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.String
	inner := func(x, tags, tag int) *iceberg.StructType {
		return structOf(field(x, "x", i32, false), field(tags, "tags", &iceberg.ListType{ElementID: tag, Element: str}, false))
	}
	return schemaOf(
		field(1, "id", iceberg.PrimitiveTypes.Int64, true),
		field(2, "nums", &iceberg.ListType{ElementID: 3, Element: i32}, false),
		field(4, "words", &iceberg.ListType{ElementID: 5, Element: &iceberg.ListType{ElementID: 6, Element: str}}, false),
		field(7, "st", structOf(field(8, "a", i32, false), field(9, "s", str, false)), false),
		field(10, "m", &iceberg.MapType{KeyID: 15, KeyType: str, ValueID: 16, ValueType: inner(11, 12, 13)}, false),
		field(21, "ls", &iceberg.ListType{ElementID: 22, Element: inner(23, 24, 25)}, false),
	)
}

func TestReadNested(t *testing.T) {
	names := func(id int, fields []iceberg.MappedField, name string) iceberg.MappedField {
		return mapping(id, fields, "other", name)
	}
	inner := func(x, tags, tag int) []iceberg.MappedField {
		return []iceberg.MappedField{mapping(x, nil, "x"), mapping(tags, []iceberg.MappedField{mapping(tag, nil, "element")}, "tags")}
	}
	for name, mapped := range map[string]iceberg.NameMapping{
		"nested_v1": nil, "nested_v2": nil,
		"nested_noids": {mapping(1, nil, "id"), names(2, []iceberg.MappedField{mapping(3, nil, "element")}, "nums"),
			mapping(4, []iceberg.MappedField{mapping(5, []iceberg.MappedField{mapping(6, nil, "element")}, "element")}, "words"),
			mapping(7, []iceberg.MappedField{mapping(8, nil, "a"), mapping(9, nil, "s")}, "st"),
			mapping(10, []iceberg.MappedField{mapping(15, nil, "key"), mapping(16, inner(11, 12, 13), "value")}, "m"),
			mapping(21, []iceberg.MappedField{mapping(22, inner(23, 24, 25), "element")}, "ls")},
	} {
		f := open(t, load(t, fixture(name+".parquet")))
		p := projectOnto(t, f, Target{Schema: nestedSchema(), NameMapping: mapped})
		if p.Extra {
			t.Errorf("%s: extra columns", name)
		}
		compareRows(t, name, rowsOf(t, f, p), wantRows(t, name))
	}
}

// TestReadMissing reads fields that the file lacks at every depth.
func TestReadMissing(t *testing.T) {
	i32, str := iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.String
	inner := func(base, x int) *iceberg.StructType {
		return structOf(withDefault(field(base, "new", i32, false), float64(7)), field(base+1, "none", str, false),
			field(base+2, "list", &iceberg.ListType{ElementID: base + 3, Element: str}, false), field(x, "x", iceberg.PrimitiveTypes.Int64, false))
	}
	schema := schemaOf(
		withDefault(field(100, "top", str, true), "d"), field(101, "part", i32, false), field(102, "gone", i32, false),
		field(103, "lost", &iceberg.MapType{KeyID: 104, KeyType: str, ValueID: 105, ValueType: i32}, false),
		field(7, "st", structOf(withDefault(field(110, "new", str, false), "x"), field(111, "none", structOf(field(112, "deep", i32, true)), false)), false),
		field(10, "m", &iceberg.MapType{KeyID: 15, KeyType: str, ValueID: 16, ValueType: inner(120, 11)}, false),
		field(21, "ls", &iceberg.ListType{ElementID: 22, Element: inner(130, 23)}, false),
	)
	for _, name := range []string{"nested_v1", "nested_v2"} {
		f := open(t, load(t, fixture(name+".parquet")))
		p := projectOnto(t, f, Target{Schema: schema, Constants: map[int]any{101: int32(5)}})
		var want []map[string]any
		for _, row := range wantRows(t, name) {
			want = append(want, map[string]any{"top": "d", "part": json.Number("5"), "gone": nil, "lost": nil,
				"st": withMissing(row["st"], "st"), "m": withMissing(row["m"], "m"), "ls": withMissing(row["ls"], "ls")})
		}
		compareRows(t, name, rowsOf(t, f, p), want)
	}
}

// withMissing changes a stored value to what TestReadMissing's schema shows.
func withMissing(v any, kind string) any {
	if v == nil {
		return nil
	}
	inner := func(v any) any {
		if v == nil {
			return nil
		}
		return map[string]any{"new": json.Number("7"), "none": nil, "list": nil, "x": v.(map[string]any)["x"]}
	}
	switch kind {
	case "st":
		return map[string]any{"new": "x", "none": nil}
	case "ls":
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, inner(e))
		}
		return out
	}
	out := []any{}
	for _, e := range v.([]any) {
		out = append(out, []any{e.([]any)[0], inner(e.([]any)[1])})
	}
	return out
}

// rewrite gives the fixture "lists" an older schema for the same levels.
func rewrite(t *testing.T, elems []SchemaElement, paths ...string) *File {
	t.Helper()
	return open(t, withFooter(t, load(t, fixture("lists.parquet")).data, func(m *FileMetaData) {
		m.Schema = elems
		for i, path := range paths {
			m.RowGroups[0].Columns[i].MetaData.Path = strings.Split(path, ".")
		}
	}))
}

func TestReadLegacyLists(t *testing.T) {
	list, utf8 := converted(ConvertedList), converted(ConvertedUTF8)
	files := map[string]*File{
		"as written": open(t, load(t, fixture("lists.parquet"))),
		"two-level": rewrite(t, []SchemaElement{root(3),
			el("a", Optional, group(1), list, withID(1)), el("array", Repeated, typed(Int32)),
			el("r", Repeated, typed(Int32), withID(3)),
			el("s", Optional, group(1), list, withID(5)), el("s_tuple", Repeated, group(2)), el("x", Required, typed(Int32), withID(7)), el("y", Required, typed(ByteArray), utf8, withID(8)),
		}, "a.array", "r", "s.s_tuple.x", "s.s_tuple.y"),
		"bag": rewrite(t, []SchemaElement{root(3),
			el("a", Optional, group(1), list, withID(1)), el("bag", Repeated, group(1)), el("array_element", Required, typed(Int32), withID(2)),
			el("r", Required, group(1), list, withID(3)), el("element", Repeated, typed(Int32), withID(4)),
			el("s", Optional, group(1), list, withID(5)), el("element", Repeated, group(2), withID(6)), el("x", Required, typed(Int32), withID(7)), el("y", Required, typed(ByteArray), utf8, withID(8)),
		}, "a.bag.array_element", "r.element", "s.element.x", "s.element.y"),
	}
	i32, str := iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.String
	schema := schemaOf(field(1, "a", &iceberg.ListType{ElementID: 2, Element: i32}, false),
		field(3, "r", &iceberg.ListType{ElementID: 4, Element: i32}, false),
		field(5, "s", &iceberg.ListType{ElementID: 6, Element: structOf(field(7, "x", i32, false), field(8, "y", str, false))}, false))
	for name, f := range files {
		compareRows(t, name, rowsOf(t, f, projectOnto(t, f, Target{Schema: schema})), wantRows(t, "lists"))
	}
}

func TestReadInt96(t *testing.T) {
	for _, name := range []string{"int96", "int96_plain"} {
		f := open(t, load(t, fixture(name+".parquet")))
		if f.Schema.Leaves[0].Type != Int96 {
			t.Fatalf("%s is of %v", name, f.Schema.Leaves[0].Type)
		}
		for _, typ := range []iceberg.Type{iceberg.PrimitiveTypes.Timestamp, iceberg.PrimitiveTypes.TimestampTz} {
			p := projectOnto(t, f, Target{Schema: schemaOf(field(1, "ts", typ, false))})
			lines := rowsOf(t, f, p)
			compareRows(t, name, lines, wantRows(t, name))
			// 3332-12-14 11:33:10.965, 0001-01-01, one before the epoch, 9999-12-31
			for i, want := range []string{"43010652790965000", "-62135596800000000", "-1", "null", "253402300799999999"} {
				if lines[5+i] != `{"ts":`+want+`}` {
					t.Errorf("%s: row %d is %s, not %s", name, 5+i, lines[5+i], want)
				}
			}
		}
		// Nanoseconds reach from 1677 to 2262 only.
		p := projectOnto(t, f, Target{Schema: schemaOf(field(1, "ts", iceberg.PrimitiveTypes.TimestampNs, false))})
		if _, err := tryEntries(t, f, &p.Columns[0], func() int { return 5 }); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s as nanoseconds: %v", name, err)
		}
	}
}

func TestReadScalars(t *testing.T) {
	f := open(t, load(t, fixture("scalars.parquet")))
	p := iceberg.PrimitiveTypes
	schema := schemaOf(
		field(1, "i8", p.Int32, false), field(2, "i16", p.Int64, false), field(3, "i32", p.Int64, false), field(4, "i64", p.Int64, false),
		field(5, "u8", p.Int32, false), field(6, "u16", p.Int64, false),
		field(9, "f", p.Float64, false), field(10, "d", p.Float64, false), field(11, "date", p.Date, false),
		field(12, "tms", p.Time, false), field(13, "tns", p.Time, false), field(14, "ms", p.Timestamp, false), field(15, "us", p.TimestampTz, false),
		field(16, "ns", p.Timestamp, false), field(17, "s", p.String, false), field(18, "b", p.Binary, false), field(19, "fx", p.UUID, false),
		field(20, "req", p.Int64, false), field(21, "bool", p.Bool, false))
	lines := rowsOf(t, f, projectOnto(t, f, Target{Schema: schema}))
	want := []string{
		`{"i8":-128,"i16":-32768,"i32":-2147483648,"i64":-9223372036854775808,"u8":0,"u16":0,"f":1.5,"d":0.1,"date":-719162,"tms":1000,"tns":0,"ms":-1000,"us":-1,"ns":-1,"s":"é","b":"00ff","fx":"30313233343536373839616263646566","req":1,"bool":true}`,
		`{"i8":127,"i16":32767,"i32":2147483647,"i64":9223372036854775807,"u8":255,"u16":65535,"f":-0.25,"d":-1e+300,"date":-1,"tms":86399999000,"tns":86399999999,"ms":1700000000123000,"us":1700000000123456,"ns":0,"s":"","b":"","fx":"ffffffffffffffffffffffffffffffff","req":2,"bool":false}`,
		`{"i8":null,"i16":null,"i32":null,"i64":null,"u8":null,"u16":null,"f":null,"d":null,"date":null,"tms":null,"tns":null,"ms":null,"us":null,"ns":1700000000123456,"s":null,"b":null,"fx":null,"req":3,"bool":null}`,
		`{"i8":0,"i16":0,"i32":0,"i64":0,"u8":1,"u16":1,"f":3,"d":2,"date":2932896,"tms":43200000000,"tns":1,"ms":0,"us":0,"ns":null,"s":"z","b":"7a","fx":"00000000000000000000000000000000","req":4,"bool":true}`,
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("row %d:\n%s\nwant:\n%s", i, lines[i], want[i])
		}
	}
	// Values that do not fit, and unsigned ones that might not.
	bad := projectOnto(t, f, Target{Schema: schemaOf(field(4, "i64", p.Int32, false), field(14, "ms", p.TimestampNs, false), field(11, "date", p.Timestamp, false))})
	if _, err := tryEntries(t, f, &bad.Columns[0], func() int { return 9 }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("long as int: %v", err)
	}
	if got := readEntries(t, f, &bad.Columns[1], func() int { return 9 }); got[0][0].value != "-1000000" {
		t.Errorf("millis as nanos: %v", got)
	}
	if got := readEntries(t, f, &bad.Columns[2], func() int { return 9 }); got[0][0].value != "-62135596800000000" {
		t.Errorf("date as timestamp: %v", got)
	}
	// A column of the null type is NULL as any type.
	unknown := projectOnto(t, f, Target{Schema: schemaOf(field(22, "null", p.String, false), field(23, "u", p.Unknown, false))})
	if got := rowsOf(t, f, unknown); unknown.Columns[0].Source != nil || got[3] != `{"null":null,"u":null}` {
		t.Errorf("null type: %v", got)
	}
	for _, c := range []iceberg.NestedField{field(7, "u32", p.Int64, false), field(7, "u32", p.Int32, false), field(8, "u64", p.Int64, false), field(11, "date", p.TimestampTz, false), field(17, "s", p.UUID, false)} {
		if _, err := f.Project(Target{Schema: schemaOf(c)}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s as %s: %v", c.Name, c.Type, err)
		}
	}
}

func TestReadDecimals(t *testing.T) {
	for _, name := range []string{"decimals_int", "decimals_flba"} {
		f := open(t, load(t, fixture(name+".parquet")))
		for _, digits := range [][3]int{{9, 18, 38}, {10, 19, 38}, {38, 38, 38}, {18, 18, 38}} {
			schema := schemaOf(field(1, "d9", iceberg.DecimalTypeOf(digits[0], 2), false),
				field(2, "d18", iceberg.DecimalTypeOf(digits[1], 2), false), field(3, "d38", iceberg.DecimalTypeOf(digits[2], 2), false))
			compareRows(t, name, rowsOf(t, f, projectOnto(t, f, Target{Schema: schema})), wantRows(t, name))
		}
		// A view that takes over the stored form reads the bytes as they are.
		schema := schemaOf(field(1, "d9", iceberg.DecimalTypeOf(9, 2), false), field(2, "d18", iceberg.DecimalTypeOf(18, 2), false), field(3, "d38", iceberg.DecimalTypeOf(38, 2), false))
		view, err := ViewOf(schema)
		if err != nil {
			t.Fatal(err)
		}
		for i, leaf := range view.Leaves {
			leaf.Type, leaf.TypeLength = f.Schema.Leaves[i].Type, f.Schema.Leaves[i].TypeLength
		}
		p := projectOnto(t, f, Target{Schema: schema, View: view})
		for _, c := range p.Columns {
			if c.Convert.Kind != ConvertNone || !c.SameLevels {
				t.Errorf("%s: %s is converted", name, c.Leaf.Name)
			}
		}
		compareRows(t, name, rowsOf(t, f, p), wantRows(t, name))
		for _, narrow := range []iceberg.Type{iceberg.DecimalTypeOf(8, 2), iceberg.DecimalTypeOf(10, 3)} {
			if _, err := f.Project(Target{Schema: schemaOf(field(1, "d9", narrow, false))}); !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s as %s: %v", name, narrow, err)
			}
		}
	}
}

// TestReadMixed reads chunks that begin with coded pages and go on with PLAIN
// ones.
func TestReadMixed(t *testing.T) {
	f := open(t, load(t, fixture("mixed.parquet")))
	p := projectOnto(t, f, Target{Schema: schemaOf(field(1, "s", iceberg.PrimitiveTypes.String, false), field(2, "n", iceberg.PrimitiveTypes.Int64, false))})
	compareRows(t, "mixed", rowsOf(t, f, p), wantRows(t, "mixed"))

	r, err := f.Column(0, &p.Columns[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v, err := r.Read(t.Context(), 1000)
	if err != nil || v.Values.Dict == nil {
		t.Fatalf("coded pages gave %v, %v", v, err)
	}
	if v, err = r.Read(t.Context(), 2000); err != nil || v.Values.Dict != nil {
		t.Fatalf("the mix gave %v, %v", v, err)
	}
	if _, err = r.Read(t.Context(), 1); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestSkipDecodesLittle(t *testing.T) {
	var stats Stats
	f, err := Open(t.Context(), load(t, fixture("mixed.parquet")), Options{Stats: &stats})
	if err != nil {
		t.Fatal(err)
	}
	p := projectOnto(t, f, Target{Schema: schemaOf(field(1, "s", iceberg.PrimitiveTypes.String, false))})
	for _, seekAfter := range []int64{0, seekBytes} {
		before := stats.DataPages.Load()
		r, err := f.Column(0, &p.Columns[0])
		if err != nil {
			t.Fatal(err)
		}
		r.seekAfter = seekAfter
		if err := r.Skip(t.Context(), 2990); err != nil {
			t.Fatal(err)
		}
		v, err := r.Read(t.Context(), 100)
		if err != nil || v.Rows != 10 {
			t.Fatalf("%v, %v", v, err)
		}
		if got := vectorRows(t, p.View.Leaves[0], v); got[0][0].value != `"value 2990"` {
			t.Errorf("row 2990 is %v", got[0])
		}
		if n := stats.DataPages.Load() - before; n > 2 {
			t.Errorf("skip with %d: %d pages decoded", seekAfter, n)
		}
		if err := r.Skip(t.Context(), 1); !errors.Is(err, io.EOF) {
			t.Errorf("skip past the end: %v", err)
		}
		r.Close()
	}
}

func TestReadErrors(t *testing.T) {
	f := open(t, load(t, fixture("scalars.parquet")))
	p := projectOnto(t, f, Target{Schema: schemaOf(field(3, "i32", iceberg.PrimitiveTypes.Int32, true))})
	if _, err := tryEntries(t, f, &p.Columns[0], func() int { return 2 }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("NULL in a required column: %v", err)
	}
	p = projectOnto(t, f, Target{Schema: schemaOf(field(3, "i32", iceberg.PrimitiveTypes.Int32, false))})
	r, err := f.Column(0, &p.Columns[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestReadCorruptNeverPanics flips bytes of nested fixtures: an error or rows,
// and always as many rows as the footer says.
func TestReadCorruptNeverPanics(t *testing.T) {
	for _, name := range []string{"nested_v1", "nested_v2", "mixed"} {
		data := load(t, fixture(name+".parquet")).data
		f := open(t, &memory{data: data})
		target := Target{Schema: nestedSchema()}
		if name == "mixed" {
			target.Schema = schemaOf(field(1, "s", iceberg.PrimitiveTypes.String, false), field(2, "n", iceberg.PrimitiveTypes.Int64, false))
		}
		for at := int64(4); at < f.footerStart; at += 1 + f.footerStart/40 {
			broken := append([]byte{}, data...)
			broken[at] ^= 0x55
			f := open(t, &memory{data: broken})
			p := projectOnto(t, f, target)
			for i := range p.Columns {
				_, err := tryEntries(t, f, &p.Columns[i], func() int { return 50 })
				if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("%s with byte %d changed: %v", name, at, err)
				}
			}
		}
	}
}
