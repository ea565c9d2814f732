package pqfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// fileOf is a file of one schema and no rows.
func fileOf(t *testing.T, elems ...SchemaElement) *File {
	t.Helper()
	s, err := SchemaOf(elems)
	if err != nil {
		t.Fatal(err)
	}
	return &File{Object: &memory{}, Metadata: &FileMetaData{}, Schema: s, FirstRow: []int64{0}}
}

// describe renders a projection, a column a line.
func describe(p *Projection) string {
	var b strings.Builder
	for _, c := range p.Columns {
		fmt.Fprintf(&b, "%s:", strings.Join(c.Leaf.Path, "."))
		switch {
		case c.Source != nil:
			fmt.Fprintf(&b, " from %s convert=%d", strings.Join(c.Source.Path, "."), c.Convert.Kind)
		case c.Levels != nil:
			fmt.Fprintf(&b, " levels of %s keep=%d", strings.Join(c.Levels.Path, "."), c.RepKeep)
		}
		fmt.Fprintf(&b, " def=%v", c.DefMap)
		if c.Constant.N > 0 {
			fmt.Fprintf(&b, " constant=%s", text(c.Leaf, &c.Constant, 0))
		}
		if c.SameLevels {
			b.WriteString(" same")
		}
		if c.AddsOptional {
			b.WriteString(" adds-optional")
		}
		b.WriteByte('\n')
	}
	if p.Extra {
		b.WriteString("extra\n")
	}
	return b.String()
}

func withDefault(f iceberg.NestedField, value any) iceberg.NestedField {
	f.InitialDefault = value
	return f
}

func mapping(id int, fields []iceberg.MappedField, names ...string) iceberg.MappedField {
	return iceberg.MappedField{Names: names, FieldID: &id, Fields: fields}
}

func TestProject(t *testing.T) {
	i32, i64, str := iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.String
	utf8 := logical(LogicalType{Kind: LogicalString})
	list := converted(ConvertedList)
	for _, c := range []struct {
		name   string
		file   []SchemaElement
		target Target
		want   string
	}{
		{"ids, not names or places",
			[]SchemaElement{root(2), el("b", Optional, typed(Int32), withID(1)), el("a", Optional, typed(Int32), withID(2))},
			Target{Schema: schemaOf(field(1, "a", i32, false), field(2, "b", i64, false), field(3, "c", i32, false))},
			"a: from b convert=0 def=[0 1] same\nb: from a convert=1 def=[0 1] same\nc: def=[0]\n"},
		{"a dropped and re-added name",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(1))},
			Target{Schema: schemaOf(field(7, "a", i32, false))},
			"a: def=[0]\nextra\n"},
		{"required in the file",
			[]SchemaElement{root(1), el("a", Required, typed(Int32), withID(1))},
			Target{Schema: schemaOf(field(1, "a", i32, false))},
			"a: from a convert=0 def=[1] adds-optional\n"},
		{"optional in the file, required in the table",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(1))},
			Target{Schema: schemaOf(field(1, "a", i32, true))},
			"a: from a convert=0 def=[255 0]\n"},
		{"constants win over defaults, columns over both",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(1))},
			Target{Schema: schemaOf(withDefault(field(1, "a", i32, false), float64(5)), withDefault(field(2, "p", i64, false), float64(6)),
				withDefault(field(3, "q", str, false), "dflt"), withDefault(field(4, "r", str, false), "dflt")),
				Constants: map[int]any{1: int32(8), 2: int32(9), 3: nil}},
			"a: from a convert=0 def=[0 1] same\np: def=[1] constant=9\nq: def=[0]\nr: def=[1] constant=\"dflt\"\n"},
		{"required with a default",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(1))},
			Target{Schema: schemaOf(field(1, "a", i32, false), withDefault(field(2, "n", i32, true), float64(-1)))},
			"a: from a convert=0 def=[0 1] same\nn: def=[0] constant=-1\n"},
		{"a field missing in a struct that the file has",
			[]SchemaElement{root(1), el("st", Optional, group(1), withID(1)), el("x", Optional, typed(Int32), withID(2))},
			Target{Schema: schemaOf(field(1, "st", structOf(field(2, "x", i32, false), withDefault(field(3, "y", str, false), "ny"), field(4, "z", i32, false)), false))},
			"st.x: from st.x convert=0 def=[0 1 2] same\nst.y: levels of st.x keep=0 def=[0 2 2] constant=\"ny\"\nst.z: levels of st.x keep=0 def=[0 1 1]\n"},
		{"a struct that is always there needs no levels",
			[]SchemaElement{root(1), el("st", Required, group(1), withID(1)), el("x", Optional, typed(Int32), withID(2))},
			Target{Schema: schemaOf(field(1, "st", structOf(withDefault(field(3, "y", str, false), "ny"), field(4, "z", i32, false)), false))},
			"st.y: def=[2] constant=\"ny\"\nst.z: def=[1]\nextra\n"},
		{"a struct that the file has not: its default decides over the fields'",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(9))},
			Target{Schema: schemaOf(field(1, "st", structOf(withDefault(field(2, "x", i32, false), float64(3))), false),
				withDefault(field(3, "su", structOf(withDefault(field(4, "x", i32, false), float64(3)), field(5, "y", i32, false)), false), map[string]any{}))},
			"st.x: def=[0]\nsu.x: def=[2] constant=3\nsu.y: def=[1]\nextra\n"},
		{"missing below a list; the donor has the fewest lists",
			[]SchemaElement{root(1), el("l", Optional, group(1), list, withID(1)), el("list", Repeated, group(1)), el("element", Optional, group(2), withID(2)),
				el("t", Optional, group(1), list, withID(5)), el("list", Repeated, group(1)), el("element", Optional, typed(Int32), withID(6)),
				el("x", Required, typed(Int32), withID(3))},
			Target{Schema: schemaOf(field(1, "l", &iceberg.ListType{ElementID: 2, Element: structOf(withDefault(field(4, "y", i32, false), float64(1)),
				field(7, "deep", &iceberg.ListType{ElementID: 8, Element: i32}, false))}, false))},
			"l.list.element.y: levels of l.list.element.x keep=1 def=[0 1 2 4] constant=1\nl.list.element.deep.list.element: levels of l.list.element.x keep=1 def=[0 1 2 3]\nextra\n"},
		{"the only donor has a list of its own",
			[]SchemaElement{root(1), el("st", Optional, group(1), withID(1)),
				el("t", Optional, group(1), list, withID(2)), el("list", Repeated, group(1)), el("element", Optional, typed(Int32), withID(3))},
			Target{Schema: schemaOf(field(1, "st", structOf(field(4, "y", i32, false)), false))},
			"st.y: levels of st.t.list.element keep=0 def=[0 1 1 1 1]\nextra\n"},
		{"lists without an id on the element, old forms, element made optional",
			[]SchemaElement{root(1), el("l", Optional, group(1), list, withID(1)), el("array", Repeated, typed(Int32))},
			Target{Schema: schemaOf(field(1, "l", &iceberg.ListType{ElementID: 2, Element: i64}, false))},
			"l.list.element: from l.array convert=1 def=[0 1 3]\n"},
		{"a nested list that the file has not",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(9))},
			Target{Schema: schemaOf(field(9, "a", i32, false), field(1, "m", &iceberg.MapType{KeyID: 2, KeyType: str, ValueID: 3, ValueType: i32}, false))},
			"a: from a convert=0 def=[0 1] same\nm.key_value.key: def=[0]\nm.key_value.value: def=[0]\n"},
		{"name mapping",
			[]SchemaElement{root(3), el("old", Optional, typed(Int32)), el("l", Optional, group(1), list), el("bag", Repeated, group(1)), el("array_element", Optional, group(1)), el("x", Optional, typed(Int32)),
				el("c", Optional, typed(Int32))},
			Target{Schema: schemaOf(field(1, "new", i32, false), field(2, "l", &iceberg.ListType{ElementID: 3, Element: structOf(field(4, "y", i32, false))}, false), field(5, "c", i32, false)),
				NameMapping: iceberg.NameMapping{mapping(1, nil, "old", "new"),
					mapping(2, []iceberg.MappedField{mapping(3, []iceberg.MappedField{mapping(4, nil, "x")}, "element")}, "l")}},
			"new: from old convert=0 def=[0 1] same\nl.list.element.y: from l.bag.array_element.x convert=0 def=[0 1 2 3 4] same\nc: def=[0]\nextra\n"},
		{"ids first, the mapping for the rest",
			[]SchemaElement{root(2), el("a", Optional, typed(Int32), withID(2)), el("b", Optional, typed(Int32))},
			Target{Schema: schemaOf(field(1, "a", i32, false), field(2, "b", i32, false), field(3, "c", i32, false)),
				NameMapping: iceberg.NameMapping{mapping(1, nil, "a"), mapping(3, nil, "b")}},
			"a: def=[0]\nb: from a convert=0 def=[0 1] same\nc: from b convert=0 def=[0 1] same\n"},
		{"partial ids without a mapping",
			[]SchemaElement{root(2), el("a", Optional, typed(Int32), withID(1)), el("b", Optional, typed(Int32))},
			Target{Schema: schemaOf(field(1, "a", i32, false), field(2, "b", i32, false))},
			"a: from a convert=0 def=[0 1] same\nb: def=[0]\nextra\n"},
		{"row lineage columns are extra unless asked for",
			[]SchemaElement{root(2), el("a", Optional, typed(Int32), withID(1)), el("_row_id", Optional, typed(Int64), withID(2147483540))},
			Target{Schema: schemaOf(field(1, "a", i32, false))},
			"a: from a convert=0 def=[0 1] same\nextra\n"},
		{"row lineage columns asked for",
			[]SchemaElement{root(2), el("a", Optional, typed(Int32), withID(1)), el("_row_id", Optional, typed(Int64), withID(2147483540))},
			Target{Schema: schemaOf(field(1, "a", i32, false), field(2147483540, "_row_id", i64, false))},
			"a: from a convert=0 def=[0 1] same\n_row_id: from _row_id convert=0 def=[0 1] same\n"},
		{"variant by the table's word, not yet annotated",
			[]SchemaElement{root(1), el("v", Optional, group(2), withID(1)), el("value", Required, typed(ByteArray)), el("metadata", Required, typed(ByteArray))},
			Target{Schema: schemaOf(field(1, "v", iceberg.VariantType{}, false))},
			"v.metadata: from v.metadata convert=0 def=[0 1] same\nv.value: from v.value convert=0 def=[0 2]\n"},
		{"unknown types",
			[]SchemaElement{root(1), el("a", Optional, typed(Int32), withID(1), logical(LogicalType{Kind: LogicalUnknown}))},
			Target{Schema: schemaOf(field(1, "a", str, false), field(2, "u", iceberg.PrimitiveTypes.Unknown, false))},
			"a: levels of a keep=0 def=[0 255]\nu: def=[0]\n"},
		{"text as bytes",
			[]SchemaElement{root(1), el("a", Optional, typed(ByteArray), withID(1), utf8)},
			Target{Schema: schemaOf(field(1, "a", iceberg.PrimitiveTypes.Binary, false))},
			"a: from a convert=0 def=[0 1] same\n"},
	} {
		p, err := fileOf(t, c.file...).Project(c.target)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := describe(p); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.name, got, c.want)
		}
	}
}

func TestProjectErrors(t *testing.T) {
	i32, str := iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.String
	a := el("a", Optional, typed(Int32), withID(1))
	for _, c := range []struct {
		name   string
		file   []SchemaElement
		target Target
		want   error
		text   string
	}{
		{"no ids and no mapping", []SchemaElement{root(1), el("a", Optional, typed(Int32))}, Target{Schema: schemaOf(field(1, "a", i32, false))}, ErrNoFieldIDs, ""},
		{"required and missing", []SchemaElement{root(1), a}, Target{Schema: schemaOf(field(2, "b", i32, true))}, ErrCorrupt, "required column b is missing"},
		{"required and NULL", []SchemaElement{root(1), a}, Target{Schema: schemaOf(field(2, "b", i32, true)), Constants: map[int]any{2: nil}}, ErrCorrupt, "required column b is missing"},
		{"two columns of one id", []SchemaElement{root(2), a, el("z", Optional, typed(Int32), withID(1))}, Target{Schema: schemaOf(field(1, "a", i32, false))}, ErrCorrupt, `"a" and "z" both have field id 1`},
		{"two columns mapped to one id", []SchemaElement{root(2), el("x", Optional, typed(Int32)), el("y", Optional, typed(Int32))},
			Target{Schema: schemaOf(field(1, "a", i32, false)), NameMapping: iceberg.NameMapping{mapping(1, nil, "x", "y")}}, ErrCorrupt, "both have field id 1"},
		{"another type", []SchemaElement{root(1), a}, Target{Schema: schemaOf(field(1, "s", str, false))}, ErrUnsupported, "cannot read INT32 as BYTE_ARRAY STRING"},
		{"a struct for a leaf", []SchemaElement{root(1), el("st", Optional, group(1), withID(1)), el("x", Optional, typed(Int32), withID(2))}, Target{Schema: schemaOf(field(1, "s", str, false))}, ErrUnsupported, "cannot read struct as BYTE_ARRAY STRING"},
		{"another element", []SchemaElement{root(1), el("l", Optional, group(1), converted(ConvertedList), withID(1)), el("list", Repeated, group(1)), el("element", Optional, typed(Int32), withID(3))},
			Target{Schema: schemaOf(field(1, "l", &iceberg.ListType{ElementID: 2, Element: i32}, false))}, ErrCorrupt, "field id 3, the schema says 2"},
		{"variant shredded as INT96", []SchemaElement{root(1), el("v", Optional, group(3), withID(1)), el("metadata", Required, typed(ByteArray)), el("value", Optional, typed(ByteArray)), el("typed_value", Optional, typed(Int96))},
			Target{Schema: schemaOf(field(1, "v", iceberg.VariantType{}, false))}, ErrUnsupported, "variant stored as INT96"},
		{"inexact default", []SchemaElement{root(1), a}, Target{Schema: schemaOf(withDefault(field(2, "b", iceberg.PrimitiveTypes.Int64, false), float64(9007199254740993)))}, ErrUnsupported, "not an exact integer"},
		{"struct without leaves", []SchemaElement{root(2), a, el("st", Optional, group(0), withID(5))}, Target{Schema: schemaOf(field(5, "st", structOf(field(6, "x", i32, false)), false))}, ErrUnsupported, "has no column"},
	} {
		_, err := fileOf(t, c.file...).Project(c.target)
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) || strings.Count(fmt.Sprint(err), "mem:///") != 1 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
