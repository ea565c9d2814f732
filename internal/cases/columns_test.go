package cases

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// Constants of identity partitions, of every type, for files that do not
// store the column; NULL is one too. A rename changes nothing.
func TestPartitionConstants(t *testing.T) {
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		typ    iceberg.Type
		values []any
		texts  []string
	}{
		{p.Bool, []any{true, false}, []string{"true", "false"}},
		{p.Int32, []any{-7, math.MaxInt32}, []string{"-7", "2147483647"}},
		{p.Int64, []any{int64(math.MinInt64), int64(1)<<53 + 1}, []string{"-9223372036854775808", "9007199254740993"}},
		{p.Float32, []any{float32(0.1), float32(math.Inf(-1))}, []string{"0.1", "-Infinity"}},
		{p.Float64, []any{0.1, math.NaN(), math.Copysign(0, -1)}, []string{"0.1", "NaN", "-0"}},
		{iceberg.DecimalTypeOf(9, 2), []any{"-0.50", "9999999.99"}, []string{"-0.50", "9999999.99"}},
		{iceberg.DecimalTypeOf(18, 3), []any{"-123456789012345.678"}, []string{"-123456789012345.678"}},
		{iceberg.DecimalTypeOf(38, 10), []any{"1234567890.1234567890", "-0.0000000001"}, []string{"1234567890.1234567890", "-0.0000000001"}},
		{p.Date, []any{"0001-01-01", "1969-12-31"}, []string{"0001-01-01", "1969-12-31"}},
		{p.Time, []any{"00:00:00.000001", "23:59:59.5"}, []string{"00:00:00.000001", "23:59:59.5"}},
		{p.Timestamp, []any{"1969-12-31 23:59:59.999999"}, []string{"1969-12-31 23:59:59.999999"}},
		{p.TimestampTz, []any{"9999-12-31 23:59:59.999999"}, []string{"9999-12-31 23:59:59.999999Z"}},
		{p.TimestampNs, []any{"1969-12-31 23:59:59.999999999"}, []string{"1969-12-31 23:59:59.999999999"}},
		{p.TimestampTzNs, []any{"2026-11-30 02:53:19.123456789"}, []string{"2026-11-30 02:53:19.123456789Z"}},
		{p.String, []any{"", "a/b=é %41"}, []string{`""`, "a/b=é %41"}},
		{p.UUID, []any{"f79c3e09-677c-4bbd-a479-3f349cb785e7"}, []string{"f79c3e09-677c-4bbd-a479-3f349cb785e7"}},
		{iceberg.FixedTypeOf(4), []any{"\x00\xa2\xff\x01"}, []string{"00a2ff01"}},
		{p.Binary, []any{"", "\x00\xa2"}, []string{`""`, "00a2"}},
	} {
		t.Run(c.typ.String(), func(t *testing.T) {
			fields := []iceberg.NestedField{{ID: 1, Name: "id", Type: p.Int32}, {ID: 2, Name: "p", Type: c.typ}}
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0, fields...), FormatVersion: 3,
				Partition: []iceberg.PartitionField{{SourceIDs: []int{2}, Name: "p", Transform: iceberg.IdentityTransform{}}}})
			var want []string
			for i, v := range append(c.values, nil) {
				text := append(c.texts, "")[i]
				var f *fixture.File
				commit(tab, func(tx *fixture.Tx) {
					f = tx.AppendFile(fixture.FileOptions{Omit: []int{2}}, fixture.Row{"id": i, "p": v}, fixture.Row{"id": -i, "p": v})
				})
				want = append(want, fmt.Sprintf("%d,%s", i, text))
				if i > 0 {
					commit(tab, func(tx *fixture.Tx) { tx.DeleteVector(f, 1) })
				} else {
					want = append(want, fmt.Sprintf("0,%s", text))
				}
			}
			open(t, tab).rows(append([]string{"id,p"}, want...)...)
			tab.Evolve(func(e *fixture.Evolution) { e.Rename("p", "q") })
			commit(tab, func(tx *fixture.Tx) { tx.Summary = map[string]string{"renamed": "p"} })
			open(t, tab).rows(append([]string{"id,q"}, want...)...)
		})
	}
}

// A constant of a column that was promoted since.
func TestPromotedPartitionConstants(t *testing.T) {
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		from, to iceberg.Type
		value    any
		text     string
	}{
		{p.Int32, p.Int64, -5, "-5"},
		{p.Float32, p.Float64, float32(0.1), "0.10000000149011612"},
		{iceberg.DecimalTypeOf(4, 2), iceberg.DecimalTypeOf(20, 2), "-0.50", "-0.50"},
		{p.Date, p.Timestamp, "1969-12-31", "1969-12-31 00:00:00"},
		{p.Date, p.TimestampNs, "1969-12-31", "1969-12-31 00:00:00"},
	} {
		t.Run(c.from.String()+" to "+c.to.String(), func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3,
				Schema:    iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: p.Int32}, iceberg.NestedField{ID: 2, Name: "p", Type: c.from}),
				Partition: []iceberg.PartitionField{{SourceIDs: []int{2}, Name: "p", Transform: iceberg.IdentityTransform{}}}})
			commit(tab, func(tx *fixture.Tx) {
				tx.AppendFile(fixture.FileOptions{Omit: []int{2}}, fixture.Row{"id": 1, "p": c.value})
				tx.Append(fixture.Row{"id": 2, "p": c.value})
			})
			tab.Evolve(func(e *fixture.Evolution) { e.Promote("p", c.to) })
			o := open(t, tab)
			o.shows(o.scan(0, tab.Schema()), fmt.Sprintf("id,p\n1,%s\n2,%s\n", c.text, c.text))
		})
	}
}

// Names of nested columns are mapped at their own level; a name in other
// letters is another name; columns that the table lacks are left out, those that
// the file lacks are NULL.
func TestNestedNameMapping(t *testing.T) {
	p := iceberg.PrimitiveTypes
	fields := []iceberg.NestedField{
		{ID: 1, Name: "id", Type: p.Int64},
		{ID: 2, Name: "l", Type: &iceberg.ListType{ElementID: 3, Element: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 4, Name: "id", Type: p.Int32}, {ID: 5, Name: "gone", Type: p.String},
		}}}},
		{ID: 6, Name: "m", Type: &iceberg.MapType{KeyID: 7, KeyType: p.String, ValueID: 8, ValueType: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 9, Name: "a.b", Type: p.Int32},
		}}}},
		{ID: 10, Name: "Col", Type: p.Int32}, {ID: 11, Name: "col", Type: p.Int32},
	}
	tab := imported(t, 2, fields...)
	none := fixture.FileOptions{Parquet: &fixture.ParquetOptions{NoFieldIDs: true}}
	row := fixture.Row{"id": 1, "l": []any{fixture.Row{"id": 7, "gone": "x"}, nil}, "m": map[string]any{"k": fixture.Row{"a.b": 8}}, "Col": 3, "col": 4}
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.AppendFile(none, row, fixture.Row{"id": 2}) })
	const first = `1,"[{""id"":7,""gone"":""x""},null]","{""k"":{""a.b"":8}}",3,4`
	open(t, tab).rows("id,l,m,Col,col", first, "2,,,,")
	// Names of other columns, in other letters or of other places.
	int32s := func(name string) schema.Node { return primitive(name, required, types.Int32, 0, nil) }
	w := (&foreign{}).add(int32s("ID"), entries{values: []int32{5}}).add(int32s("extra"), entries{values: []int32{6}}).
		add(int32s("COL"), entries{values: []int32{7}}).add(int32s("col"), entries{values: []int32{8}}).
		add(int32s("a.b"), entries{values: []int32{9}}).add(int32s("element"), entries{values: []int32{10}})
	w.adopt(t, tab, 1)
	open(t, tab).rows("id,l,m,Col,col", first, "2,,,,", ",,,,8")
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 1) })
	tab.Evolve(func(e *fixture.Evolution) {
		e.Promote("l.element.id", p.Int64)
		e.Rename("l.element.id", "renamed")
		e.Drop("l.element.gone")
		e.Rename("Col", "COL")
	})
	o := open(t, tab)
	o.shows(o.scan(0, tab.Schema()), "id,l,m,COL,col\n"+`1,"[{""renamed"":7},null]","{""k"":{""a.b"":8}}",3,4`+"\n,,,,8\n")
}

// A file whose rows are all deleted does not hold up the others: it may lack a
// column that they have in every row.
func TestDeadFileWithoutColumn(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{Tighten: true}})
	var old *fixture.File
	commit(tab, func(tx *fixture.Tx) { old = tx.Append(fixture.Row{"id": 1, "s": "a"}, fixture.Row{"id": 2}) })
	tab.Evolve(func(e *fixture.Evolution) {
		e.Add("", fixture.Column{Name: "n", Type: iceberg.PrimitiveTypes.Int32})
		e.Add("", fixture.Column{Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 1, Name: "x", Type: iceberg.PrimitiveTypes.Int32}}}})
	})
	commit(tab, func(tx *fixture.Tx) {
		tx.Append(fixture.Row{"id": 3, "s": "b", "n": 1, "st": fixture.Row{"x": 5}})
		tx.DeletePositions(old, 0, 1)
	})
	open(t, tab).rows("id,s,n,st", `3,b,1,"{""x"":5}"`)
}

// Bytes, identifiers and nested values have a form in text that loses
// nothing, and one odd value does not end the file.
func TestOddValues(t *testing.T) {
	p := iceberg.PrimitiveTypes
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "b", Type: p.Binary},
		iceberg.NestedField{ID: 2, Name: "u", Type: p.UUID},
		iceberg.NestedField{ID: 3, Name: "x", Type: iceberg.FixedTypeOf(4)},
		iceberg.NestedField{ID: 4, Name: "l", Type: &iceberg.ListType{ElementID: 5, Element: p.String}},
		iceberg.NestedField{ID: 6, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 7, Name: "f", Type: p.Float64}, {ID: 8, Name: "b", Type: p.Binary},
		}}},
		iceberg.NestedField{ID: 9, Name: "m", Type: &iceberg.MapType{KeyID: 10, KeyType: p.Int32, ValueID: 11, ValueType: p.String}},
	)})
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) {
		f = tx.Append(
			fixture.Row{"b": "\xa2\x00", "u": "F79C3E09-677C-4BBD-A479-3F349CB785E7", "x": "\x00\x01\xfe\xff", "l": []any{nil, "say \"hi\"\n"},
				"st": fixture.Row{"f": math.NaN(), "b": "\x00"}, "m": fixture.Map{{Key: 1, Value: "a,b"}, {Key: -1, Value: nil}}},
			fixture.Row{"b": "", "l": []any{}, "st": fixture.Row{}, "m": fixture.Map{}},
			fixture.Row{"b": "\xff", "st": fixture.Row{"f": math.Inf(-1)}},
			fixture.Row{},
		)
	})
	want := []string{
		`a200,f79c3e09-677c-4bbd-a479-3f349cb785e7,0001feff,"[null,""say \""hi\""\n""]","{""f"":""NaN"",""b"":""00""}","[{""key"":1,""value"":""a,b""},{""key"":-1,""value"":null}]"`,
		`"",,,[],"{""f"":null,""b"":null}",[]`,
		`ff,,,,"{""f"":""-Infinity"",""b"":null}",`,
		`,,,,,`,
	}
	open(t, tab).rows(append([]string{"b,u,x,l,st,m"}, want...)...)
	commit(tab, func(tx *fixture.Tx) { tx.DeleteVector(f, 1) })
	open(t, tab).rows(append([]string{"b,u,x,l,st,m"}, slices.Delete(want, 1, 2)...)...)
}

// Text that is no UTF-8 is the same bytes in Parquet and CSV, and JSON
// all the same.
func TestInvalidText(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	commit(tab, func(tx *fixture.Tx) {
		tx.Append(fixture.Row{"id": 1, "s": "a\xffb"}, fixture.Row{"id": 2, "s": "\xed\xa0\x80"}, fixture.Row{"id": 3, "s": "ok"})
	})
	o := open(t, tab)
	views, _ := o.views(o.scan(0, nil))
	if got := csv(t, views.CSV); got != "id,s\n1,a\xffb\n2,\xed\xa0\x80\n3,ok\n" {
		t.Errorf("CSV is %q", got)
	}
	lines := strings.SplitAfter(csv(t, views.JSONL), "\n")
	if len(lines) != 4 || lines[0] != "{\"id\":1,\"s\":\"a\uFFFDb\"}\n" || !strings.Contains(lines[1], "\uFFFD") || lines[2] != "{\"id\":3,\"s\":\"ok\"}\n" {
		t.Errorf("JSONL is %q", lines)
	}
	if n := parquetRows(t, views.Parquet); n != 3 {
		t.Errorf("data.parquet has %d rows", n)
	}
}

// Names that differ in their letters alone or hold a dot stay as they
// are; numbers are the shortest text that reads back the same; no byte order
// mark.
func TestNamesAndNumbers(t *testing.T) {
	p := iceberg.PrimitiveTypes
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "Col", Type: p.Float32},
		iceberg.NestedField{ID: 2, Name: "col", Type: p.Float64},
		iceberg.NestedField{ID: 3, Name: "a.b", Type: p.Int64},
		iceberg.NestedField{ID: 4, Name: `q"uote, `, Type: p.Int32},
		iceberg.NestedField{ID: 5, Name: "é", Type: p.Int32},
	)})
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) {
		f = tx.Append(
			fixture.Row{"Col": float32(0.1), "col": 1e21, "a.b": int64(1)<<53 + 1, `q"uote, `: 1, "é": 2},
			fixture.Row{"Col": float32(math.NaN()), "col": 5e-324, "a.b": int64(math.MinInt64)},
			fixture.Row{"Col": float32(math.Inf(-1)), "col": 123456789012345680000.0},
			fixture.Row{"Col": float32(16777216), "col": 1e-7},
			fixture.Row{"Col": float32(3.4028235e38), "col": math.Copysign(0, -1)},
		)
	})
	const head = `Col,col,a.b,"q""uote, ",é`
	want := []string{
		"0.1,1e+21,9007199254740993,1,2",
		"NaN,5e-324,-9223372036854775808,,",
		"-Infinity,123456789012345680000,,,",
		"16777216,1e-7,,,",
		"3.4028235e+38,-0,,,",
	}
	open(t, tab).rows(append([]string{head}, want...)...)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0, 2) })
	open(t, tab).rows(head, want[1], want[3], want[4])
}
