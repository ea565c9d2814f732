package cases

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// foreign is a Parquet file as another writer left it: nodes with the entries
// of their leaves, column by column.
type foreign struct {
	nodes  schema.FieldList
	leaves []entries
	codec  compress.Compression
}

// entries are a leaf's levels (nil where all values are present) and values.
type entries struct {
	def, rep []int16
	values   any
}

// add adds a top-level node.
func (f *foreign) add(n schema.Node, leaves ...entries) *foreign {
	f.nodes = append(f.nodes, n)
	f.leaves = append(f.leaves, leaves...)
	return f
}

// adopt writes the file into the table and adds it in a commit of its own.
func (f *foreign) adopt(t *testing.T, tab *fixture.Table, rows int) *fixture.File {
	t.Helper()
	root, err := schema.NewGroupNode("root", parquet.Repetitions.Required, f.nodes, -1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCreatedBy(fixture.DefaultCreatedBy), parquet.WithCompression(f.codec))))
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range f.leaves {
		c, err := group.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(leaf.write(c), c.Close()); err != nil {
			t.Fatalf("column %s: %v", c.Descr().Path(), err)
		}
	}
	path := filepath.Join(tab.Dir(), "data", fmt.Sprintf("foreign-%d.parquet", len(tab.Snapshots())))
	if err := errors.Join(group.Close(), w.Close(), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	var out *fixture.File
	commit(tab, func(tx *fixture.Tx) { out = tx.Adopt(path, int64(rows), nil) })
	return out
}

func (e entries) write(c file.ColumnChunkWriter) (err error) {
	switch w := c.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(e.values.([]bool), e.def, e.rep)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(e.values.([]int32), e.def, e.rep)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(e.values.([]int64), e.def, e.rep)
	case *file.Int96ColumnChunkWriter:
		_, err = w.WriteBatch(e.values.([]parquet.Int96), e.def, e.rep)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(e.values.([]float32), e.def, e.rep)
	case *file.ByteArrayColumnChunkWriter:
		var values []parquet.ByteArray
		for _, s := range e.values.([]string) {
			values = append(values, parquet.ByteArray(s))
		}
		_, err = w.WriteBatch(values, e.def, e.rep)
	case *file.FixedLenByteArrayColumnChunkWriter:
		var values []parquet.FixedLenByteArray
		for _, s := range e.values.([]string) {
			values = append(values, parquet.FixedLenByteArray(s))
		}
		_, err = w.WriteBatch(values, e.def, e.rep)
	default:
		err = fmt.Errorf("no writer for %T", c)
	}
	return err
}

// must is a schema node that cannot fail.
func must(n schema.Node, err error) schema.Node {
	if err != nil {
		panic(err)
	}
	return n
}

// primitive is a leaf without a field id.
func primitive(name string, rep parquet.Repetition, typ parquet.Type, length int, logical schema.LogicalType) schema.Node {
	return must(schema.NewPrimitiveNodeLogical(name, rep, logical, typ, length, -1))
}

// group is a group without a field id, annotated or not.
func group(name string, rep parquet.Repetition, logical schema.LogicalType, children ...schema.Node) schema.Node {
	if logical == nil {
		return must(schema.NewGroupNode(name, rep, children, -1))
	}
	return must(schema.NewGroupNodeLogical(name, rep, children, logical, -1))
}

// imported is a table whose files have no field ids.
func imported(t *testing.T, version int, fields ...iceberg.NestedField) *fixture.Table {
	t.Helper()
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0, fields...), FormatVersion: version})
	tab.SetNameMapping(nil)
	return tab
}

var (
	required = parquet.Repetitions.Required
	optional = parquet.Repetitions.Optional
	repeated = parquet.Repetitions.Repeated
	types    = parquet.Types
)

// One list column in every shape that writers gave lists, and a row of
// each deleted.
func TestLegacyLists(t *testing.T) {
	tab := imported(t, 2, iceberg.NestedField{ID: 1, Name: "l", Type: &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.Int64}})
	list := schema.NewListLogicalType()
	signed := schema.NewIntLogicalType(32, true)
	// [1, 2], NULL, [], [NULL]
	three := entries{[]int16{3, 3, 0, 1, 2}, []int16{0, 1, 0, 0, 0}, []int64{1, 2}}
	var want []string
	for _, names := range [][2]string{{"list", "element"}, {"bag", "array_element"}, {"list", "item"}, {"list", "array"}} {
		f := (&foreign{}).add(group("l", optional, list, group(names[0], repeated, nil, primitive(names[1], optional, types.Int64, 0, nil))), three).adopt(t, tab, 4)
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 1) })
		want = append(want, `"[1,2]"`, "[]", "[null]")
	}
	// Two levels: no NULL elements. [3], NULL, []
	two := entries{[]int16{2, 0, 1}, []int16{0, 0, 0}, []int32{3}}
	for _, name := range []string{"array", "l_tuple", "anything"} {
		f := (&foreign{}).add(group("l", optional, list, primitive(name, repeated, types.Int32, 0, signed)), two).adopt(t, tab, 3)
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0) })
		want = append(want, `""`, "[]") // one column: NULL is ""
	}
	// A repeated field of its own: [4, 5], []
	f := (&foreign{}).add(primitive("l", repeated, types.Int64, 0, nil), entries{[]int16{1, 1, 0}, []int16{0, 1, 0}, []int64{4, 5}}).adopt(t, tab, 2)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 1) })
	open(t, tab).rows(append([]string{"l"}, append(want, `"[4,5]"`)...)...)
}

// Lists of structs, and maps, in old shapes.
func TestLegacyListsOfStructs(t *testing.T) {
	st := &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 3, Name: "x", Type: iceberg.PrimitiveTypes.Int64}, {ID: 4, Name: "y", Type: iceberg.PrimitiveTypes.String},
	}}
	tab := imported(t, 2,
		iceberg.NestedField{ID: 1, Name: "l", Type: &iceberg.ListType{ElementID: 2, Element: st}},
		iceberg.NestedField{ID: 5, Name: "m", Type: &iceberg.MapType{KeyID: 6, KeyType: iceberg.PrimitiveTypes.String, ValueID: 7, ValueType: iceberg.PrimitiveTypes.Int32}},
	)
	list, maps := schema.NewListLogicalType(), schema.MapLogicalType{}
	x, y := primitive("x", optional, types.Int64, 0, nil), primitive("y", optional, types.ByteArray, 0, schema.StringLogicalType{})
	key, value := primitive("k", required, types.ByteArray, 0, schema.StringLogicalType{}), primitive("v", optional, types.Int32, 0, nil)
	// {"a": 1, "b": NULL}, {}, NULL
	m := []entries{{[]int16{2, 2, 1, 0}, []int16{0, 1, 0, 0}, []string{"a", "b"}}, {[]int16{3, 2, 1, 0}, []int16{0, 1, 0, 0}, []int32{1}}}
	var want []string
	for i, name := range []string{"array", "l_tuple", "element"} {
		// The repeated group is the element: [{1, "p"}, {NULL, "q"}], NULL, []
		l := []entries{{[]int16{3, 2, 0, 1}, []int16{0, 1, 0, 0}, []int64{1}}, {[]int16{3, 3, 0, 1}, []int16{0, 1, 0, 0}, []string{"p", "q"}}}
		f := (&foreign{codec: compress.Codecs.Snappy}).
			add(group("l", optional, list, group(name, repeated, nil, x, y)), l...).
			add(group("m", optional, maps, group([]string{"map", "key_value", "entries"}[i], repeated, nil, key, value)), m...).adopt(t, tab, 3)
		want = append(want, `"[{""x"":1,""y"":""p""},{""x"":null,""y"":""q""}]","{""a"":1,""b"":null}"`, `,{}`)
		if i == 1 {
			commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 2) })
		} else {
			want = append(want, "[],")
		}
	}
	// A group of one field named array is the element, or the list is one of structs
	// with one field that has the name of the list.
	l := entries{[]int16{3, 0, 1}, []int16{0, 0, 0}, []int64{7}}
	for _, name := range []string{"array", "l_tuple"} {
		(&foreign{}).add(group("l", optional, list, group(name, repeated, nil, x)), l).adopt(t, tab, 3)
		want = append(want, `"[{""x"":7,""y"":null}]",`, ",", "[],")
	}
	open(t, tab).rows(append([]string{"l,m"}, want...)...)
}

// A file in Hadoop's LZ4 framing next to others; a row of each deleted.
func TestCodecsOfOneTable(t *testing.T) {
	const rows = 3
	tab := imported(t, 2, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64})
	a := primitive("a", optional, types.Int64, 0, nil)
	var want []string
	for i, codec := range []compress.Compression{compress.Codecs.Lz4Raw, compress.Codecs.Zstd, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Uncompressed} {
		n := int64(10 * i)
		f := (&foreign{codec: codec}).add(a, entries{[]int16{1, 0, 1}, nil, []int64{n, n + 2}}).adopt(t, tab, rows)
		if i%2 == 0 {
			commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0) })
			want = append(want, `""`, fmt.Sprint(n+2))
		} else {
			want = append(want, fmt.Sprint(n), `""`, fmt.Sprint(n+2))
		}
	}
	// Java's LZ4 (5) has a framing that no codec of its number promises.
	for i, name := range []string{"hadoop-lz4-1.parquet", "hadoop-lz4-2.parquet"} {
		b, err := os.ReadFile("../../testdata/pqfile/" + name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(tab.Dir(), "data", name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Adopt(path, 1000, nil) })
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 998) })
		for id := range 1000 {
			if id != 998 {
				want = append(want, fmt.Sprint(8000+1000*i+id))
			}
		}
	}
	open(t, tab).rows(append([]string{"a"}, want...)...)
}

// INT96 timestamps are micros in the views, next to INT64 ones, far from
// the years that nanoseconds reach, repeated and NULL; statistics are not theirs.
func TestInt96(t *testing.T) {
	tab := imported(t, 2,
		iceberg.NestedField{ID: 1, Name: "ts", Type: iceberg.PrimitiveTypes.Timestamp},
		iceberg.NestedField{ID: 2, Name: "tz", Type: iceberg.PrimitiveTypes.TimestampTz})
	texts := []string{"3332-12-14 11:33:10.965", "0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999", "", "1970-01-01 00:00:00.000001"}
	var rows []fixture.Row
	var want []string
	for i := range 24 {
		text := texts[i%len(texts)]
		row, line := fixture.Row{}, ","
		if text != "" {
			row, line = fixture.Row{"ts": text, "tz": text}, text+","+text+"Z"
		}
		rows, want = append(rows, row), append(want, line)
	}
	for _, form := range []fixture.ParquetOptions{
		{Int96: true, NoFieldIDs: true}, {Int96: true, NoDictionary: true}, {}, {Int96: true, RowGroup: 7, PageSize: 64, Tighten: true},
	} {
		commit(tab, func(tx *fixture.Tx) { tx.AppendFile(fixture.FileOptions{Parquet: &form}, rows...) })
	}
	var all []string
	for range 4 {
		all = append(all, want...)
	}
	open(t, tab).rows(append([]string{"ts,tz"}, all...)...)
	commit(tab, func(tx *fixture.Tx) {
		for _, f := range tab.Head("").Files() {
			tx.DeletePositions(f, 1, 4, 23)
		}
	})
	all = nil
	for range 4 {
		for i, line := range want {
			if i != 1 && i != 4 && i != 23 {
				all = append(all, line)
			}
		}
	}
	open(t, tab).rows(append([]string{"ts,tz"}, all...)...)
}

// Decimals, times and numbers in every form that the format
// allows, next to each other in one column.
func TestPhysicalForms(t *testing.T) {
	p := iceberg.PrimitiveTypes
	tab := imported(t, 3,
		iceberg.NestedField{ID: 1, Name: "d", Type: iceberg.DecimalTypeOf(9, 2)},
		iceberg.NestedField{ID: 2, Name: "w", Type: iceberg.DecimalTypeOf(38, 10)},
		iceberg.NestedField{ID: 3, Name: "ts", Type: p.Timestamp},
		iceberg.NestedField{ID: 4, Name: "tz", Type: p.TimestampTz},
		iceberg.NestedField{ID: 5, Name: "ns", Type: p.TimestampNs},
		iceberg.NestedField{ID: 6, Name: "tm", Type: p.Time},
		iceberg.NestedField{ID: 7, Name: "n", Type: p.Int64},
		iceberg.NestedField{ID: 8, Name: "f", Type: p.Float64},
	)
	commit(tab, func(tx *fixture.Tx) {
		tx.Append(fixture.Row{"d": "-0.50", "w": "1234567890.1234567890", "ts": "1848-03-15 09:23:59.764999", "tz": "1969-12-31 23:59:59.999999",
			"ns": "1969-12-31 23:59:59.999999999", "tm": "00:00:00.000001", "n": int64(1)<<53 + 1, "f": 0.1})
	})
	want := []string{"-0.50,1234567890.1234567890,1848-03-15 09:23:59.764999,1969-12-31 23:59:59.999999Z,1969-12-31 23:59:59.999999999,00:00:00.000001,9007199254740993,0.1"}
	dec := func(p, s int32) schema.LogicalType { return schema.NewDecimalLogicalType(p, s) }
	stamp := func(utc bool, unit schema.TimeUnitType) schema.LogicalType {
		return schema.NewTimestampLogicalType(utc, unit)
	}
	clock := func(unit schema.TimeUnitType) schema.LogicalType { return schema.NewTimeLogicalType(true, unit) }
	millis, micros, nanos := schema.TimeUnitMillis, schema.TimeUnitMicros, schema.TimeUnitNanos
	one := func(v any) entries { return entries{[]int16{1, 0}, nil, v} } // the value and NULL
	add := func(w *foreign, line string) {
		t.Helper()
		w.adopt(t, tab, 2)
		want = append(want, line, ",,,,,,,")
	}
	add((&foreign{}).
		add(primitive("d", optional, types.Int64, 0, dec(9, 2)), one([]int64{-1})).
		add(primitive("w", optional, types.Int64, 0, dec(18, 10)), one([]int64{-999_999_999_999_999_999})).
		add(primitive("ts", optional, types.Int64, 0, stamp(false, millis)), one([]int64{-1})).
		add(primitive("tz", optional, types.Int64, 0, stamp(true, millis)), one([]int64{253402300799999})).
		add(primitive("ns", optional, types.Int64, 0, stamp(false, micros)), one([]int64{-1})).
		add(primitive("tm", optional, types.Int32, 0, clock(millis)), one([]int32{86399999})).
		add(primitive("n", optional, types.Int32, 0, schema.NewIntLogicalType(16, true)), one([]int32{-32768})).
		add(primitive("f", optional, types.Float, 0, nil), one([]float32{0.5})),
		"-0.01,-99999999.9999999999,1969-12-31 23:59:59.999,9999-12-31 23:59:59.999Z,1969-12-31 23:59:59.999999,23:59:59.999,-32768,0.5")
	add((&foreign{}).
		add(primitive("d", optional, types.FixedLenByteArray, 5, dec(9, 2)), one([]string{"\xff\xff\xff\xff\x9c"})).
		add(primitive("w", optional, types.ByteArray, 0, dec(38, 10)), one([]string{"\x80"})).
		add(primitive("ts", optional, types.Int64, 0, stamp(false, nanos)), one([]int64{-1})).
		add(primitive("tz", optional, types.Int64, 0, stamp(true, nanos)), one([]int64{1_001})).
		add(primitive("ns", optional, types.Int64, 0, stamp(false, millis)), one([]int64{-62135})).
		add(primitive("tm", optional, types.Int64, 0, clock(nanos)), one([]int64{1_999})).
		add(primitive("n", optional, types.Int32, 0, schema.NewIntLogicalType(8, false)), one([]int32{255})).
		add(primitive("f", optional, types.Float, 0, nil), one([]float32{0.1})),
		"-1.00,-0.0000000128,1969-12-31 23:59:59.999999,1970-01-01 00:00:00.000001Z,1969-12-31 23:58:57.865,00:00:00.000001,255,0.10000000149011612")
	add((&foreign{}).
		add(primitive("d", optional, types.ByteArray, 0, dec(4, 2)), one([]string{"\x00"})).
		add(primitive("w", optional, types.FixedLenByteArray, 16, dec(38, 10)), one([]string{"\x4b\x3b\x4c\xa8\x5a\x86\xc4\x7a\x09\x8a\x22\x3f\xff\xff\xff\xff"})).
		// Local by the file's word, UTC by the table's, and the other way round.
		add(primitive("ts", optional, types.Int64, 0, stamp(true, micros)), one([]int64{-62135596800000000})).
		add(primitive("tz", optional, types.Int64, 0, stamp(false, micros)), one([]int64{-62135596800000000})).
		add(primitive("ns", optional, types.Int64, 0, stamp(true, nanos)), one([]int64{1})).
		add(primitive("tm", optional, types.Int64, 0, clock(micros)), one([]int64{0})).
		add(primitive("n", optional, types.Int32, 0, nil), one([]int32{-1 << 31})).
		add(primitive("f", optional, types.Float, 0, nil), one([]float32{float32(math.Copysign(0, -1))})),
		"0.00,9999999999999999999999999999.9999999999,0001-01-01 00:00:00,0001-01-01 00:00:00Z,1970-01-01 00:00:00.000000001,00:00:00,-2147483648,-0")
	open(t, tab).rows(append([]string{"d,w,ts,tz,ns,tm,n,f"}, want...)...)
	commit(tab, func(tx *fixture.Tx) {
		for _, f := range tab.Head("").Files() {
			if f.Count > 1 {
				tx.DeletePositions(f, 1)
			}
		}
	})
	var live []string
	for i, line := range want {
		if i == 0 || i%2 == 1 {
			live = append(live, line)
		}
	}
	open(t, tab).rows(append([]string{"d,w,ts,tz,ns,tm,n,f"}, live...)...)
}
