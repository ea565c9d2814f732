package merge

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/viewtest"
)

// shreddedCase is a file of testdata/shredded-variant.
type shreddedCase struct {
	File     string
	Test     string
	Invalid  string
	Variants []*string // hexadecimal metadata and value; nil for NULL
}

func shreddedCases(t *testing.T) (valid, invalid []shreddedCase) {
	t.Helper()
	b, err := os.ReadFile("../testdata/shredded-variant/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(b)); dec.More(); {
		var c shreddedCase
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Invalid != "" {
			invalid = append(invalid, c)
		} else {
			valid = append(valid, c)
		}
	}
	return valid, invalid
}

// text is variant i as JSON.
func (c *shreddedCase) text(t *testing.T, i int) string {
	t.Helper()
	if c.Variants[i] == nil {
		return "null"
	}
	b, err := hex.DecodeString(*c.Variants[i])
	if err != nil {
		t.Fatal(err)
	}
	width := int(b[0]>>6) + 1
	n, rest, _ := variantCount(b[1:], width)
	names, _, ok := variantCount(rest[n*width:], width)
	if !ok {
		t.Fatalf("%s: metadata", c.File)
	}
	end := 1 + width + (n+1)*width + names
	out, err := appendVariant(nil, b[:end], b[end:])
	if err != nil {
		t.Fatalf("%s: %v", c.File, err)
	}
	return string(out)
}

// variantTable is a table over the given files, in that order, one commit each.
func variantTable(t *testing.T, cases []shreddedCase) Scan {
	t.Helper()
	table := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32},
		iceberg.NestedField{ID: 2, Name: "var", Type: iceberg.VariantType{}})})
	tx := table.Begin()
	for i, c := range cases {
		b, err := os.ReadFile("../testdata/shredded-variant/" + c.File)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(table.Dir(), "data", fmt.Sprintf("%03d-%s", i, c.File))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		tx.Adopt(path, int64(max(len(c.Variants), 1)), nil)
	}
	tx.Commit()
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	l := loadFolder(t, table.Dir())
	return scanOf(t, l, &l.Table().Snapshots[0])
}

// Files that shred one column in every way make one view, whose variants are
// whole again.
func TestShreddedVariants(t *testing.T) {
	cases, invalid := shreddedCases(t)
	if len(cases) < 120 || len(invalid) < 8 {
		t.Fatalf("%d and %d cases", len(cases), len(invalid))
	}
	scan := variantTable(t, cases)
	var want []string
	for _, c := range cases {
		for i := range c.Variants {
			want = append(want, c.text(t, i))
		}
	}
	e := testEngine(t, Options{})
	jsonl := e.JSONL(scan)
	viewtest.Check(t, jsonl)
	got := strings.Split(strings.TrimSuffix(string(viewtest.Bytes(t, jsonl)), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if _, v, _ := strings.Cut(got[i], `"var":`); v != want[i]+"}" {
			t.Errorf("row %d: %s, want %s", i, got[i], want[i])
		}
	}
	for _, opt := range []Options{{}, {NoCoalesce: true, Statistics: StatisticsAll}} {
		v := testEngine(t, opt).Parquet(scan)
		viewtest.Check(t, v)
		data := viewtest.Bytes(t, v)
		checkParquet(t, data)
		served := variantsOf(t, data)
		if len(served) != len(want) {
			t.Fatalf("data.parquet has %d rows, want %d", len(served), len(want))
		}
		for i := range served {
			if served[i] != want[i] {
				t.Errorf("data.parquet, row %d: %s, want %s", i, served[i], want[i])
			}
		}
	}
	for i := range scan.Plan.Files {
		if v := variantsOf(t, viewtest.Bytes(t, e.Part(scan, i))); v[0] != cases[i].text(t, 0) {
			t.Errorf("part %s: %s", cases[i].File, v)
		}
	}
}

// variantsOf reads the variants of a view, none of which are shredded, as JSON.
func variantsOf(t *testing.T, data []byte) []string {
	t.Helper()
	f, err := pqfile.Open(t.Context(), memoryObject(data), pqfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	group := f.Schema.Root.Children[1]
	if group.Kind != pqfile.KindVariant || group.FieldID != 2 || len(group.Children) != 2 ||
		group.Children[0].Name != "metadata" || group.Children[1].Name != "value" {
		t.Fatalf("the view has\n%s", f.Schema)
	}
	column := nestedOf(t, group)
	var out []string
	for g := range f.Metadata.RowGroups {
		rows := int(f.FirstRow[g+1] - f.FirstRow[g])
		var vectors []*pqfile.Vector
		for _, leaf := range group.Children {
			c := &pqfile.Column{Leaf: leaf, Source: leaf, Convert: pqfile.Conversion{From: leaf}}
			for d := range leaf.MaxDef + 1 {
				c.DefMap = append(c.DefMap, uint8(d))
			}
			r, err := f.Column(g, c)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			v, err := r.Read(t.Context(), rows)
			if err != nil {
				t.Fatal(err)
			}
			vectors = append(vectors, v)
		}
		if err := column.format(rows, vectors); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			text := string(column.cells.text[column.cells.start[i]:column.cells.end[i]])
			out = append(out, text)
		}
	}
	return out
}

// nestedOf is a formatter of one column as JSON.
func nestedOf(t *testing.T, n *pqfile.Node) *textColumn {
	t.Helper()
	c, err := newTextColumn(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What a file should not hold is an error of all views of that file.
func TestInvalidShreddedVariants(t *testing.T) {
	_, cases := shreddedCases(t)
	for _, c := range cases {
		scan := variantTable(t, []shreddedCase{c})
		e := testEngine(t, Options{})
		for name, v := range map[string]View{"parquet": e.Parquet(scan), "csv": e.CSV(scan), "jsonl": e.JSONL(scan), "part": e.Part(scan, 0)} {
			size, err := v.Size(t.Context())
			if err == nil {
				_, err = v.ReadAt(t.Context(), make([]byte, size), 0)
			}
			if !errors.Is(err, pqfile.ErrCorrupt) && !errors.Is(err, pqfile.ErrUnsupported) || !strings.Contains(err.Error(), c.File) {
				t.Errorf("%s (%s), %s: %v", c.File, c.Invalid, name, err)
			}
		}
	}
}

// Shredded variants below a list, with deleted rows between.
func TestShreddedVariantsInLists(t *testing.T) {
	table := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "l", Type: &iceberg.ListType{ElementID: 2, Element: iceberg.VariantType{}}})})
	path := filepath.Join(table.Dir(), "data", "lists.parquet")
	const repeats = 500
	writeShreddedLists(t, path, repeats)
	tx := table.Begin()
	f := tx.Adopt(path, 4*repeats, nil)
	tx.Commit()
	tx = table.Begin()
	tx.DeleteVector(f, 0, 5, 6, 1001, 1002, 1003)
	tx.Commit()
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	l := loadFolder(t, table.Dir())
	for i := range l.Table().Snapshots {
		scan := scanOf(t, l, &l.Table().Snapshots[i])
		var want strings.Builder
		for pos := range 4 * repeats {
			if i == 0 || pos != 0 && pos != 5 && pos != 6 && pos != 1001 && pos != 1002 && pos != 1003 {
				want.WriteString([]string{`{"l":[[1,2],"x"]}`, `{"l":null}`, `{"l":[]}`, `{"l":[null,[],["s",3]]}`}[pos%4] + "\n")
			}
		}
		jsonl := testEngine(t, Options{}).JSONL(scan)
		viewtest.Check(t, jsonl)
		if got := string(viewtest.Bytes(t, jsonl)); got != want.String() {
			t.Errorf("snapshot %d: JSONL is\n%.200s\nwant\n%.200s", i, got, want.String())
		}
		v := testEngine(t, Options{}).Parquet(scan)
		viewtest.Check(t, v)
		data := viewtest.Bytes(t, v)
		checkParquet(t, data)
		// The view as a table's file again.
		again := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: scan.Schema})
		copied := filepath.Join(again.Dir(), "data", "view.parquet")
		if err := os.WriteFile(copied, data, 0o644); err != nil {
			t.Fatal(err)
		}
		tx := again.Begin()
		tx.Adopt(copied, int64(strings.Count(want.String(), "\n")), nil)
		tx.Commit()
		second := loadFolder(t, again.Dir())
		served := testEngine(t, Options{}).JSONL(scanOf(t, second, &second.Table().Snapshots[0]))
		if got := string(viewtest.Bytes(t, served)); got != want.String() {
			t.Errorf("snapshot %d: data.parquet holds\n%.200s\nwant\n%.200s", i, got, want.String())
		}
	}
}

// writeShreddedLists writes the rows [[1,2],"x"], NULL, [], [NULL,[],["s",3]]
// again and again.
func writeShreddedLists(t *testing.T, path string, repeats int) {
	t.Helper()
	repetitions := parquet.Repetitions
	must := func(n schema.Node, err error) schema.Node {
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	leaf := func(name string, rep parquet.Repetition, typ parquet.Type) schema.Node {
		return must(schema.NewPrimitiveNodeLogical(name, rep, nil, typ, 0, -1))
	}
	list := func(name string, id int32, element schema.Node) schema.Node {
		entries := must(schema.NewGroupNode("list", repetitions.Repeated, schema.FieldList{element}, -1))
		return must(schema.NewGroupNodeLogical(name, repetitions.Optional, schema.FieldList{entries}, schema.NewListLogicalType(), id))
	}
	piece := must(schema.NewGroupNode("element", repetitions.Required, schema.FieldList{
		leaf("value", repetitions.Optional, parquet.Types.ByteArray), leaf("typed_value", repetitions.Optional, parquet.Types.Int64),
	}, -1))
	variant := must(schema.NewGroupNodeLogical("element", repetitions.Optional, schema.FieldList{
		leaf("metadata", repetitions.Required, parquet.Types.ByteArray), leaf("value", repetitions.Optional, parquet.Types.ByteArray), list("typed_value", -1, piece),
	}, schema.VariantLogicalType{}, 2))
	root, err := schema.NewGroupNode("table", repetitions.Required, schema.FieldList{list("l", 1, variant)}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCreatedBy(fixture.DefaultCreatedBy), parquet.WithDataPageSize(512), parquet.WithBatchSize(64))))
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	texts := func(rep, def []int16, values ...string) {
		c, err := group.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		for range repeats {
			var v []parquet.ByteArray
			for _, s := range values {
				v = append(v, parquet.ByteArray(s))
			}
			if _, err := c.(*file.ByteArrayColumnChunkWriter).WriteBatch(v, def, rep); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const none = "\x01\x00\x00" // metadata without names
	texts([]int16{0, 1, 0, 0, 0, 1, 1}, []int16{3, 3, 0, 1, 2, 3, 3}, none, none, none, none)
	texts([]int16{0, 1, 0, 0, 0, 1, 1}, []int16{3, 4, 0, 1, 2, 3, 3}, "\x05x")
	texts([]int16{0, 2, 1, 0, 0, 0, 1, 1, 2}, []int16{5, 5, 3, 0, 1, 2, 4, 6, 5}, "\x05s")
	c, err := group.NextColumn()
	if err != nil {
		t.Fatal(err)
	}
	for range repeats {
		rep, def := []int16{0, 2, 1, 0, 0, 0, 1, 1, 2}, []int16{6, 6, 3, 0, 1, 2, 4, 5, 6}
		if _, err := c.(*file.Int64ColumnChunkWriter).WriteBatch([]int64{1, 2, 3}, def, rep); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Close(), group.Close(), w.Close(), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
