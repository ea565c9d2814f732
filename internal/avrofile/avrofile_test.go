package avrofile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/pqfile"
)

// object is an object in memory.
type object []byte

func (o object) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(o)) {
		return 0, fmt.Errorf("read of %d at %d of %d", len(p), off, len(o))
	}
	return copy(p, o[off:]), nil
}
func (o object) Size() int64      { return int64(len(o)) }
func (o object) Version() string  { return "" }
func (o object) Location() string { return "mem.avro" }

// write writes rows under a schema, three to a block.
func write(t testing.TB, schema string, codec ocf.Codec, rows ...map[string]any) object {
	t.Helper()
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, avro.MustParse(schema), ocf.WithCodec(codec))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// reader opens an object as a table's schema.
func reader(t testing.TB, obj object, target pqfile.Target) *RowReader {
	t.Helper()
	f, err := Open(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Project(target)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.RowReader(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// show prints a vector's entries: levels, then the value.
func show(v *pqfile.Vector, leaf *pqfile.Node) string {
	var out []string
	entries, k := v.Rows, 0
	if v.Def != nil {
		entries = len(v.Def)
	}
	for i := range entries {
		text := ""
		if v.Rep != nil {
			text = fmt.Sprintf("r%d ", v.Rep[i])
		}
		if v.Def != nil && int(v.Def[i]) != leaf.MaxDef {
			out = append(out, fmt.Sprintf("%sd%d", text, v.Def[i]))
			continue
		}
		out = append(out, text+value(&v.Values, k))
		if !v.Repeat {
			k++
		}
	}
	if !v.Repeat && k != v.Values.N {
		out = append(out, fmt.Sprintf("%d values too many", v.Values.N-k))
	}
	return strings.Join(out, ", ")
}

func value(v *pqfile.Values, k int) string {
	switch v.Type {
	case pqfile.Boolean:
		return fmt.Sprint(v.Bools[k] == 1)
	case pqfile.Int32:
		return fmt.Sprint(int32(binary.LittleEndian.Uint32(v.Fixed[4*k:])))
	case pqfile.Int64:
		return fmt.Sprint(int64(binary.LittleEndian.Uint64(v.Fixed[8*k:])))
	case pqfile.Float:
		return fmt.Sprint(math.Float32frombits(binary.LittleEndian.Uint32(v.Fixed[4*k:])))
	case pqfile.Double:
		return fmt.Sprint(math.Float64frombits(binary.LittleEndian.Uint64(v.Fixed[8*k:])))
	case pqfile.ByteArray:
		return fmt.Sprintf("%q", v.Data[v.Offsets[k]:v.Offsets[k+1]])
	}
	return fmt.Sprintf("%x", v.Fixed[k*v.Width:(k+1)*v.Width])
}

// columns reads a whole file in batches of n rows; batch borders are not shown.
func columns(t *testing.T, r *RowReader, view *pqfile.Schema, n int) []string {
	t.Helper()
	out := make([]string, len(view.Leaves))
	for {
		vectors, err := r.Read(t.Context(), n)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range vectors {
			if out[i] != "" {
				out[i] += ", "
			}
			out[i] += show(v, view.Leaves[i])
		}
	}
}

const typesSchema = `{"type":"record","name":"table","fields":[
 {"name":"b","type":["null","boolean"],"field-id":1},
 {"name":"i","type":"int","field-id":2},
 {"name":"f","type":["float","null"],"field-id":3},
 {"name":"s","type":["null","string"],"field-id":4},
 {"name":"x","type":["null",{"type":"fixed","name":"ns.f2","size":2}],"field-id":5},
 {"name":"y","type":["null","ns.f2"],"field-id":6},
 {"name":"d","type":{"type":"fixed","name":"dec","size":3,"logicalType":"decimal","precision":6,"scale":2},"field-id":7},
 {"name":"e","type":["null",{"type":"bytes","logicalType":"decimal","precision":6,"scale":2}],"field-id":8},
 {"name":"t","type":{"type":"long","logicalType":"timestamp-millis","adjust-to-utc":false},"field-id":9},
 {"name":"gone","type":{"type":"array","items":"string","element-id":31},"field-id":30}]}`

func typesRows() []map[string]any {
	var rows []map[string]any
	for i := range 7 {
		row := map[string]any{
			"b": nil, "i": int32(i - 3), "f": nil, "s": nil, "x": nil, "y": nil, "e": nil,
			"d": [3]byte{0xff, 0xff, byte(0xff - i)}, "t": int64(-1 - i), "gone": []string{"a", strings.Repeat("b", i)},
		}
		if i%2 == 0 {
			row["b"], row["f"], row["s"], row["x"], row["y"] = i%4 == 0, float32(i)/4, strings.Repeat("s", i), [2]byte{1, byte(i)}, [2]byte{2, byte(i)}
			row["e"] = []byte{0x7f, byte(i)}
		}
		rows = append(rows, row)
	}
	return rows
}

func typesTarget() pqfile.Target {
	return pqfile.Target{Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "b", Type: iceberg.PrimitiveTypes.Bool},
		iceberg.NestedField{ID: 2, Name: "i", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 3, Name: "f", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: 4, Name: "s2", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 5, Name: "x", Type: iceberg.FixedTypeOf(2)},
		iceberg.NestedField{ID: 6, Name: "y", Type: iceberg.FixedTypeOf(2)},
		iceberg.NestedField{ID: 7, Name: "d", Type: iceberg.DecimalTypeOf(20, 2)},
		iceberg.NestedField{ID: 8, Name: "e", Type: iceberg.DecimalTypeOf(8, 2)},
		iceberg.NestedField{ID: 9, Name: "t", Type: iceberg.PrimitiveTypes.Timestamp},
		iceberg.NestedField{ID: 20, Name: "new", Type: iceberg.PrimitiveTypes.Int32},
		iceberg.NestedField{ID: 21, Name: "part", Type: iceberg.PrimitiveTypes.String},
	), Constants: map[int]any{21: "p"}}
}

var typesWant = []string{
	"true, d0, false, d0, true, d0, false",
	"-3, -2, -1, 0, 1, 2, 3",
	"0, d0, 0.5, d0, 1, d0, 1.5",
	`"", d0, "ss", d0, "ssss", d0, "ssssss"`,
	"0100, d0, 0102, d0, 0104, d0, 0106",
	"0200, d0, 0202, d0, 0204, d0, 0206",
	"ffffffffffffffffff, fffffffffffffffffe, fffffffffffffffffd, fffffffffffffffffc, fffffffffffffffffb, fffffffffffffffffa, fffffffffffffffff9",
	"32512, d0, 32514, d0, 32516, d0, 32518",
	"-1000, -2000, -3000, -4000, -5000, -6000, -7000",
	"d0, d0, d0, d0, d0, d0, d0",
	`"p", "p", "p", "p", "p", "p", "p"`,
}

func TestTypes(t *testing.T) {
	zstd, err := ocf.ZstdCodec(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	view, err := pqfile.ViewOf(typesTarget().Schema)
	if err != nil {
		t.Fatal(err)
	}
	for name, codec := range map[string]ocf.Codec{"null": nil, "deflate": ocf.DeflateCodec(6), "snappy": ocf.SnappyCodec(), "zstandard": zstd} {
		obj := write(t, typesSchema, codec, typesRows()...)
		for _, n := range []int{1, 2, 3, 7, 100} {
			if got := columns(t, reader(t, obj, typesTarget()), view, n); !slices.Equal(got, typesWant) {
				t.Errorf("%s, batches of %d:\n%s\nwant\n%s", name, n, strings.Join(got, "\n"), strings.Join(typesWant, "\n"))
			}
		}
		for skip := range 9 {
			r := reader(t, obj, typesTarget())
			if err := r.Skip(t.Context(), int64(skip)); (err != nil) != (skip > 7) {
				t.Fatalf("skip of %d: %v", skip, err)
			}
			if skip >= 7 {
				continue
			}
			vectors, err := r.Read(t.Context(), 100)
			if err != nil || vectors[1].Rows != 7-skip || value(&vectors[1].Values, 0) != fmt.Sprint(skip-3) {
				t.Errorf("%s: after %d rows: %v %v", name, skip, vectors[1], err)
			}
		}
	}
}

const nestedSchema = `{"type":"record","name":"table","fields":[
 {"name":"st","type":["null",{"type":"record","name":"r","fields":[
   {"name":"l","type":["null",{"type":"array","items":["null","int"],"element-id":3}],"field-id":2},
   {"name":"m","type":{"type":"array","logicalType":"map","items":{"type":"record","name":"k5_v6","fields":[
     {"name":"key","type":"int","field-id":5},{"name":"value","type":["null","string"],"field-id":6}]}},"field-id":4}]}],"field-id":1},
 {"name":"sm","type":{"type":"map","values":{"type":"array","items":"long","element-id":10},"key-id":8,"value-id":9},"field-id":7}]}`

func TestNested(t *testing.T) {
	obj := write(t, nestedSchema, nil,
		map[string]any{"st": map[string]any{"l": []any{int32(1), nil, int32(3)}, "m": []any{map[string]any{"key": int32(1), "value": "a"}, map[string]any{"key": int32(2), "value": nil}}}, "sm": map[string]any{"k": []int64{7, 8}}},
		map[string]any{"st": nil, "sm": map[string]any{}},
		map[string]any{"st": map[string]any{"l": []any{}, "m": []any{}}, "sm": map[string]any{"e": []int64{}}},
		map[string]any{"st": map[string]any{"l": nil, "m": []any{}}, "sm": map[string]any{}},
	)
	str, long := iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Int64
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 4, Name: "m", Type: &iceberg.MapType{KeyID: 5, KeyType: iceberg.PrimitiveTypes.Int32, ValueID: 6, ValueType: str}},
			{ID: 2, Name: "l", Type: &iceberg.ListType{ElementID: 3, Element: long}},
			{ID: 11, Name: "added", Type: long, InitialDefault: int64(5)},
		}}},
		iceberg.NestedField{ID: 7, Name: "sm", Type: &iceberg.MapType{KeyID: 8, KeyType: str, ValueID: 9, ValueType: &iceberg.ListType{ElementID: 10, Element: long}}},
	)
	view, err := pqfile.ViewOf(schema)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"r0 1, r1 2, r0 d0, r0 d2, r0 d2",
		`r0 "a", r1 d3, r0 d0, r0 d2, r0 d2`, // m is required in the file, optional in the view
		"r0 1, r1 d3, r1 3, r0 d0, r0 d2, r0 d1",
		"5, d0, 5, 5",
		`r0 "k", r0 d1, r0 "e", r0 d1`,
		"r0 7, r2 8, r0 d1, r0 d3, r0 d1",
	}
	for _, n := range []int{1, 3, 10} {
		if got := columns(t, reader(t, obj, pqfile.Target{Schema: schema}), view, n); !slices.Equal(got, want) {
			t.Errorf("batches of %d:\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestNameMapping(t *testing.T) {
	obj := write(t, `{"type":"record","name":"table","fields":[{"name":"old","type":"int"},{"name":"other","type":"long"}]}`, nil,
		map[string]any{"old": int32(4), "other": int64(5)})
	id := 1
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "new", Type: iceberg.PrimitiveTypes.Int32})
	view, _ := pqfile.ViewOf(schema)
	target := pqfile.Target{Schema: schema, NameMapping: iceberg.NameMapping{{FieldID: &id, Names: []string{"new", "old"}}}}
	if got := columns(t, reader(t, obj, target), view, 10); got[0] != "4" {
		t.Error(got)
	}
	f, err := Open(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Project(pqfile.Target{Schema: schema}); !errors.Is(err, pqfile.ErrNoFieldIDs) {
		t.Errorf("without a name mapping: %v", err)
	}
}

func TestRequiredNull(t *testing.T) {
	obj := write(t, `{"type":"record","name":"table","fields":[{"name":"a","type":["null","int"],"field-id":1}]}`, nil, map[string]any{"a": nil})
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int32, Required: true})
	if _, err := reader(t, obj, pqfile.Target{Schema: schema}).Read(t.Context(), 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("NULL in a required column: %v", err)
	}
}

// TestDamage cuts a file at every length and flips every byte: an error, or a
// damage that plain data cannot show, but no panic.
func TestDamage(t *testing.T) {
	obj := write(t, typesSchema, nil, typesRows()...)
	for n := range len(obj) {
		f, err := Open(t.Context(), obj[:n])
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		if err := f.CheckRows(7); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d: %d rows, %v", n, f.Rows, err)
		}
	}
	rows := func(obj object) error {
		f, err := Open(t.Context(), obj)
		if err != nil {
			return err
		}
		p, err := f.Project(typesTarget())
		if err != nil {
			return err
		}
		r, err := f.RowReader(p)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = r.Read(t.Context(), 100)
		return err
	}
	known := []error{ErrCorrupt, ErrUnsupported, pqfile.ErrCorrupt, pqfile.ErrUnsupported, pqfile.ErrNoFieldIDs, io.EOF}
	for i := range obj {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := slices.Clone(obj)
			bad[i] ^= flip
			if err := rows(bad); err != nil && !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
	if f, err := Open(t.Context(), obj); err != nil || f.CheckRows(7) != nil || f.CheckRows(6) != nil || f.CheckRows(8) == nil {
		t.Errorf("the whole file: %v, %v", f, err)
	}
	// A sync marker that differs.
	bad := slices.Clone(obj)
	bad[len(bad)-1] ^= 1
	if err := rows(bad); !errors.Is(err, ErrCorrupt) {
		t.Errorf("sync marker: %v", err)
	}
}

func TestUnsupported(t *testing.T) {
	for _, schema := range []string{
		`"int"`,
		`{"type":"record","name":"t","fields":[{"name":"a","type":["int","string"]}]}`,
		`{"type":"record","name":"t","fields":[{"name":"a","type":{"type":"enum","name":"e","symbols":["A"]}}]}`,
		`{"type":"record","name":"t","fields":[{"name":"a","type":["null","t"]}]}`,
	} {
		var b bytes.Buffer
		w, err := ocf.NewWriter(&b, avro.MustParse(schema))
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if _, err := Open(t.Context(), object(b.Bytes())); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(write(f, typesSchema, nil, typesRows()...)))
	f.Add([]byte(write(f, nestedSchema, ocf.DeflateCodec(1))))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Open(t.Context(), object(b))
		if err != nil {
			return
		}
		p, err := file.Project(typesTarget())
		if err != nil {
			return
		}
		r, err := file.RowReader(p)
		if err != nil {
			return
		}
		defer r.Close()
		for range 4 {
			if _, err := r.Read(t.Context(), 64); err != nil {
				return
			}
		}
	})
}

// A file that stores no lineage: its rows' ids are counted, or they have none.
func TestInheritedLineage(t *testing.T) {
	const schema = `{"type":"record","name":"r","fields":[{"name":"id","type":"long","field-id":1}]}`
	table := iceberg.NewSchema(0, iceberg.RowID(), iceberg.LastUpdatedSequenceNumber(),
		iceberg.NestedField{ID: pqfile.PosFieldID, Name: "_pos", Type: iceberg.PrimitiveTypes.Int64})
	view, err := pqfile.ViewOf(table)
	if err != nil {
		t.Fatal(err)
	}
	obj := write(t, schema, nil, map[string]any{"id": int64(1)}, map[string]any{"id": int64(2)}, map[string]any{"id": int64(3)})
	for firstRow, want := range map[int64]string{100: "101, 102|7, 7|1, 2", -1: "d0, d0|d0, d0|1, 2"} {
		r := reader(t, obj, pqfile.Target{Schema: table, Origin: &pqfile.Origin{Path: "f", FirstRowID: firstRow, Sequence: 7}})
		if err := r.Skip(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		vectors, err := r.Read(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, v := range vectors {
			got = append(got, show(v, view.Leaves[i]))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("first row id %d: %q, want %q", firstRow, got, want)
		}
	}
}

// Metadata columns: positions count from the file's start over skipped rows and
// blocks, and stand in for ids that the file does not store.
func TestMetadataColumns(t *testing.T) {
	const schema = `{"type":"record","name":"r","fields":[
		{"name":"_row_id","type":["null","long"],"field-id":2147483540}]}`
	var rows []map[string]any
	for i := range 10 {
		row := map[string]any{"_row_id": nil}
		if i%2 == 1 {
			row["_row_id"] = int64(500 + i)
		}
		rows = append(rows, row)
	}
	table := iceberg.NewSchema(0,
		iceberg.NestedField{ID: pqfile.FileFieldID, Name: "_file", Type: iceberg.PrimitiveTypes.String, Required: true},
		iceberg.NestedField{ID: pqfile.PosFieldID, Name: "_pos", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.RowID(), iceberg.LastUpdatedSequenceNumber(),
	)
	view, err := pqfile.ViewOf(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, origin := range []pqfile.Origin{{Path: "f", FirstRowID: 100, Sequence: 7}, {Path: "f", FirstRowID: -1, Sequence: 7}} {
		r := reader(t, write(t, schema, nil, rows...), pqfile.Target{Schema: table, Origin: &origin})
		var got []string
		for _, step := range []struct{ skip, read int }{{1, 1}, {5, 3}} { // over a block of three
			if err := r.Skip(t.Context(), int64(step.skip)); err != nil {
				t.Fatal(err)
			}
			vectors, err := r.Read(t.Context(), step.read)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range vectors {
				got = append(got, show(v, view.Leaves[i]))
			}
		}
		want := []string{`"f"`, "1", "501", "7", `"f", "f", "f"`, "7, 8, 9", "507, 108, 509", "7, 7, 7"}
		if origin.FirstRowID < 0 {
			want = []string{`"f"`, "1", "501", "d0", `"f", "f", "f"`, "7, 8, 9", "507, d0, 509", "d0, d0, d0"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", origin, got, want)
		}
	}
}
