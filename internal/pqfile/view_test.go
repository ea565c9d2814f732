package pqfile

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares text with testdata/pqproject/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("..", "..", "testdata", "pqproject", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s\nwant:\n%s", name, got, want)
	}
}

func field(id int, name string, typ iceberg.Type, required bool) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: typ, Required: required}
}

func structOf(fields ...iceberg.NestedField) *iceberg.StructType {
	return &iceberg.StructType{FieldList: fields}
}

// everyType has every Iceberg type and nests every container in every other.
func everyType(t *testing.T) *iceberg.Schema {
	t.Helper()
	p := iceberg.PrimitiveTypes
	geometry, err := iceberg.GeometryTypeOf("EPSG:3857")
	if err != nil {
		t.Fatal(err)
	}
	geography, err := iceberg.GeographyTypeOf(iceberg.DefaultGeoCRS, "karney")
	if err != nil {
		t.Fatal(err)
	}
	inner := structOf(field(41, "x", p.Int32, true), field(42, "tags", &iceberg.ListType{ElementID: 43, Element: p.String}, false))
	return iceberg.NewSchema(0,
		field(1, "b", p.Bool, true), field(2, "i", p.Int32, false), field(3, "l", p.Int64, false),
		field(4, "f", p.Float32, false), field(5, "d", p.Float64, false), field(6, "date", p.Date, false),
		field(7, "time", p.Time, false), field(8, "ts", p.Timestamp, false), field(9, "tstz", p.TimestampTz, false),
		field(10, "tsns", p.TimestampNs, false), field(11, "tstzns", p.TimestampTzNs, false),
		field(12, "s", p.String, false), field(13, "u", p.UUID, false), field(14, "fx", iceberg.FixedTypeOf(7), false),
		field(15, "bin", p.Binary, false), field(16, "d9", iceberg.DecimalTypeOf(9, 2), false),
		field(17, "d18", iceberg.DecimalTypeOf(18, 0), false), field(18, "d19", iceberg.DecimalTypeOf(19, 4), false),
		field(19, "d38", iceberg.DecimalTypeOf(38, 38), false), field(20, "geom", geometry, false),
		field(21, "geog", geography, false), field(22, "unk", p.Unknown, false), field(23, "v", iceberg.VariantType{}, false),
		field(24, "st", structOf(field(25, "a", p.Int32, true), field(26, "v", iceberg.VariantType{}, true)), false),
		field(27, "ls", &iceberg.ListType{ElementID: 28, Element: inner, ElementRequired: true}, true),
		field(29, "m", &iceberg.MapType{KeyID: 30, KeyType: p.String, ValueID: 31,
			ValueType: &iceberg.ListType{ElementID: 32, Element: p.Int64}}, false),
	)
}

func TestViewOf(t *testing.T) {
	view, err := ViewOf(everyType(t))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "view.txt", view.String())
	again, err := SchemaOf(view.Elements())
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != view.String() {
		t.Errorf("elements of the view read back as\n%s", again)
	}
	if clone := view.Clone(); clone.String() != view.String() {
		t.Errorf("clone is\n%s", clone)
	}
}

func TestRelevel(t *testing.T) {
	view, err := ViewOf(everyType(t))
	if err != nil {
		t.Fatal(err)
	}
	c := view.Clone()
	for _, n := range c.Root.Children {
		n.Optional = !n.Optional
	}
	c.Relevel()
	if got := c.Root.Children[0].MaxDef; got != 1 {
		t.Errorf("required made optional: MaxDef %d", got)
	}
	if got := view.Root.Children[0].MaxDef; got != 0 {
		t.Errorf("the original changed: MaxDef %d", got)
	}
	m, was := c.Root.Children[len(c.Root.Children)-1], view.Root.Children[len(c.Root.Children)-1]
	if m.Entry != was.Entry-1 || m.Children[1].Children[0].MaxDef != was.Children[1].Children[0].MaxDef-1 {
		t.Errorf("levels below did not follow: %+v", m)
	}
}
