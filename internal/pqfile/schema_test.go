package pqfile

import (
	"errors"
	"strings"
	"testing"
)

// el builds schema elements for tests, from the outside in.
func el(name string, rep Repetition, edits ...func(*SchemaElement)) SchemaElement {
	e := SchemaElement{Name: name, Repetition: ptr(rep)}
	for _, edit := range edits {
		edit(&e)
	}
	return e
}

func typed(t Type) func(*SchemaElement) { return func(e *SchemaElement) { e.Type = ptr(t) } }
func group(n int32) func(*SchemaElement) {
	return func(e *SchemaElement) { e.NumChildren = ptr(n) }
}
func withID(id int32) func(*SchemaElement) { return func(e *SchemaElement) { e.FieldID = ptr(id) } }
func converted(c int32) func(*SchemaElement) {
	return func(e *SchemaElement) { e.ConvertedType = ptr(c) }
}
func logical(l LogicalType) func(*SchemaElement) {
	return func(e *SchemaElement) { e.LogicalType = &l }
}

func root(n int32) SchemaElement { return SchemaElement{Name: "schema", NumChildren: ptr(n)} }

func TestSchemaOfShapes(t *testing.T) {
	list, mapped := converted(ConvertedList), converted(ConvertedMap)
	for _, c := range []struct {
		name  string
		elems []SchemaElement
		want  string
	}{
		{"three levels", []SchemaElement{root(1), el("a", Optional, group(1), list, withID(1)), el("list", Repeated, group(1)), el("element", Optional, typed(Int32), withID(2))}, `
optional list "a" id=1 present=1 entry=2 repeat=1
  optional INT32 "element" id=2 present=3 leaf=0 max=3/1 path=a.list.element`},
		{"logical type alone", []SchemaElement{root(1), el("a", Required, group(1), logical(LogicalType{Kind: LogicalList})), el("list", Repeated, group(1)), el("element", Required, typed(Int32))}, `
required list "a" present=0 entry=1 repeat=1
  required INT32 "element" present=1 leaf=0 max=1/1 path=a.list.element`},
		{"bag and array_element", []SchemaElement{root(1), el("a", Optional, group(1), list), el("bag", Repeated, group(1)), el("array_element", Optional, typed(Int32))}, `
optional list "a" present=1 entry=2 repeat=1 legacy
  optional INT32 "array_element" present=3 leaf=0 max=3/1 path=a.bag.array_element`},
		{"two levels", []SchemaElement{root(1), el("a", Optional, group(1), list), el("element", Repeated, typed(Int32), withID(9))}, `
optional list "a" present=1 entry=2 repeat=1 legacy
  required INT32 "element" id=9 present=2 leaf=0 max=2/1 path=a.element`},
		{"two levels of two fields", []SchemaElement{root(1), el("a", Optional, group(1), list), el("element", Repeated, group(2)), el("x", Required, typed(Int32)), el("y", Optional, typed(Int32))}, `
optional list "a" present=1 entry=2 repeat=1 legacy
  required struct "element" present=2
    required INT32 "x" present=2 leaf=0 max=2/1 path=a.element.x
    optional INT32 "y" present=3 leaf=1 max=3/1 path=a.element.y`},
		{"array", []SchemaElement{root(1), el("a", Optional, group(1), list), el("array", Repeated, group(1)), el("x", Required, typed(Int32))}, `
optional list "a" present=1 entry=2 repeat=1 legacy
  required struct "array" present=2
    required INT32 "x" present=2 leaf=0 max=2/1 path=a.array.x`},
		{"tuple", []SchemaElement{root(1), el("a", Optional, group(1), list), el("a_tuple", Repeated, group(1)), el("x", Required, typed(Int32))}, `
optional list "a" present=1 entry=2 repeat=1 legacy
  required struct "a_tuple" present=2
    required INT32 "x" present=2 leaf=0 max=2/1 path=a.a_tuple.x`},
		{"two levels twice", []SchemaElement{root(1), el("a", Optional, group(1), list), el("array", Repeated, group(1), list), el("array", Repeated, typed(Int32))}, `
optional list "a" present=1 entry=2 repeat=1 legacy
  required list "array" present=2 entry=3 repeat=2 legacy
    required INT32 "array" present=3 leaf=0 max=3/2 path=a.array.array`},
		{"bare repeated", []SchemaElement{root(2), el("a", Repeated, typed(Int32), withID(4)), el("g", Repeated, group(1)), el("x", Optional, typed(Int32))}, `
required list "a" id=4 present=0 entry=1 repeat=1 legacy
  required INT32 "a" present=1 leaf=0 max=1/1 path=a
required list "g" present=0 entry=1 repeat=1 legacy
  required struct "g" present=1
    optional INT32 "x" present=2 leaf=1 max=2/1 path=g.x`},
		{"map", []SchemaElement{root(1), el("m", Optional, group(1), mapped), el("key_value", Repeated, group(2)), el("key", Required, typed(Int32), withID(2)), el("value", Optional, typed(Int64), withID(3))}, `
optional map "m" present=1 entry=2 repeat=1
  required INT32 "key" id=2 present=2 leaf=0 max=2/1 path=m.key_value.key
  optional INT64 "value" id=3 present=3 leaf=1 max=3/1 path=m.key_value.value`},
		{"old map", []SchemaElement{root(1), el("m", Optional, group(1), converted(ConvertedMapKeyValue)), el("map", Repeated, group(2)), el("k", Optional, typed(Int32)), el("v", Required, typed(Int64))}, `
optional map "m" present=1 entry=2 repeat=1 legacy
  optional INT32 "k" present=3 leaf=0 max=3/1 path=m.map.k
  required INT64 "v" present=2 leaf=1 max=2/1 path=m.map.v`},
		{"not a list after all", []SchemaElement{root(1), el("a", Optional, group(1), list), el("x", Optional, typed(Int32))}, `
optional struct "a" present=1
  optional INT32 "x" present=2 leaf=0 max=2/0 path=a.x`},
		{"variant", []SchemaElement{root(1), el("v", Optional, group(2), logical(LogicalType{Kind: LogicalVariant, SpecVersion: 1})), el("metadata", Required, typed(ByteArray)), el("value", Required, typed(ByteArray))}, `
optional variant "v" present=1
  required BYTE_ARRAY "metadata" present=1 leaf=0 max=1/0 path=v.metadata
  required BYTE_ARRAY "value" present=1 leaf=1 max=1/0 path=v.value`},
		{"converted types", []SchemaElement{root(4), el("s", Optional, typed(ByteArray), converted(ConvertedUTF8)), el("t", Optional, typed(Int32), converted(ConvertedTimeMillis)),
			el("n", Optional, typed(Int32), converted(ConvertedUint16)), el("d", Optional, typed(ByteArray), converted(ConvertedDecimal), func(e *SchemaElement) { e.Scale, e.Precision = ptr(int32(2)), ptr(int32(9)) })}, `
optional BYTE_ARRAY STRING "s" present=1 leaf=0 max=1/0 path=s
optional INT32 TIME(MILLIS,utc) "t" present=1 leaf=1 max=1/0 path=t
optional INT32 INTEGER(16,signed=false) "n" present=1 leaf=2 max=1/0 path=n
optional BYTE_ARRAY DECIMAL(9,2) "d" present=1 leaf=3 max=1/0 path=d`},
		{"no columns", []SchemaElement{root(0)}, "\n"},
	} {
		s, err := SchemaOf(c.elems)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := s.String(); got != strings.TrimPrefix(c.want+"\n", "\n") && !(got == "" && c.want == "\n") {
			t.Errorf("%s:\n%swant:%s", c.name, got, c.want)
		}
	}
}

func TestSchemaOfHostile(t *testing.T) {
	deep := []SchemaElement{root(1)}
	for range 10_000 {
		deep = append(deep, el("g", Optional, group(1)))
	}
	deep = append(deep, el("x", Optional, typed(Int32)))
	wide := []SchemaElement{root(1)} // 150 deep, 40,000 leaves: paths of 6 M parts
	for range 150 {
		wide = append(wide, el("g", Optional, group(1)))
	}
	wide[150].NumChildren = ptr(int32(40_000))
	for range 40_000 {
		wide = append(wide, el("x", Optional, typed(Int32)))
	}
	for name, elems := range map[string][]SchemaElement{
		"empty":             nil,
		"deep":              deep,
		"wide":              wide,
		"ends in a group":   {root(2), el("x", Optional, typed(Int32))},
		"too many elements": {root(1), el("x", Optional, typed(Int32)), el("y", Optional, typed(Int32))},
		"negative children": {root(1), el("x", Optional, group(-1))},
		"huge children":     {root(1), el("x", Optional, group(1<<30))},
		"unknown type":      {root(1), el("x", Optional, typed(Type(8)))},
		"unknown repeat":    {root(1), el("x", Repetition(3), typed(Int32))},
		"no fixed length":   {root(1), el("x", Optional, typed(FixedLenByteArray))},
	} {
		if _, err := SchemaOf(elems); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
