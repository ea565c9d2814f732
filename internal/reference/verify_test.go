package reference_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/merge"
)

// fixed is a view of given bytes, or of an error.
type fixed struct {
	b   []byte
	err error
}

func (f fixed) Size(context.Context) (int64, error) { return int64(len(f.b)), f.err }

func (f fixed) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return bytes.NewReader(f.b).ReadAt(p, off)
}

// read copies a view.
func read(t *testing.T, v reference.View) []byte {
	t.Helper()
	size, err := v.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := v.ReadAt(t.Context(), b, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return b
}

// shop is a small table with a vector and an equality delete; its visible rows
// are 1, 3 and 4, or, before both, 1 to 5.
func shop(t *testing.T, opt fixture.VectorOptions) *fixture.Table {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String},
	)
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema, FormatVersion: 3, Parquet: fixture.ParquetOptions{Codec: fixture.Uncompressed}})
	tx := tab.Begin()
	f := tx.Append(fixture.Row{"id": 1, "s": "a"}, fixture.Row{"id": 2, "s": "b"}, fixture.Row{"id": 3}, fixture.Row{"id": 4, "s": ""}, fixture.Row{"id": 5, "s": "e"})
	tx.Commit()
	tx = tab.Begin()
	tx.DeleteVectorFile(opt, f, 1)
	tx.DeleteEqual([]int{2}, fixture.Row{"s": "e"})
	tx.Commit()
	return tab
}

// TestVerifyFindsFaults gives Verify the views of another snapshot, damaged
// bytes and errors.
func TestVerifyFindsFaults(t *testing.T) {
	tab := shop(t, fixture.VectorOptions{})
	l := load(t, tab)
	e := engine(t, merge.Options{})
	now, before := tab.Snapshots()[1], tab.Snapshots()[0]
	report, scan := verify(t, e, l, now.ID, now.Schema)
	if report.Rows != 3 || report.Views != 4 || report.Vectors != 1 || len(report.Problems)+len(report.Unverified)+report.Refused > 0 {
		t.Fatalf("sound views: %+v", *report)
	}
	_, old := verify(t, e, l, before.ID, before.Schema)
	good, stale := views(e, scan), views(e, old)
	boom := errors.New("boom")

	for name, c := range map[string]struct {
		views reference.Views
		want  string
	}{
		"undeleted Parquet": {reference.Views{Parquet: stale.Parquet}, "row 1"},
		"undeleted part":    {reference.Views{Parts: stale.Parts}, "row 1"},
		"undeleted CSV":     {reference.Views{CSV: stale.CSV}, "row 1"},
		"undeleted JSONL":   {reference.Views{JSONL: stale.JSONL}, "row 1"},
		"CSV for JSONL":     {reference.Views{JSONL: good.CSV}, "row 0"},
		"header":            {reference.Views{CSV: fixed{b: bytes.Replace(read(t, good.CSV), []byte("id"), []byte("ID"), 1)}}, "the header"},
		"cut CSV":           {reference.Views{CSV: fixed{b: read(t, good.CSV)[:12]}}, "row 2"},
		"long CSV":          {reference.Views{CSV: fixed{b: append(read(t, good.CSV), "9,\n"...)}}, "size is"},
		"NULL for empty":    {reference.Views{CSV: fixed{b: bytes.Replace(read(t, good.CSV), []byte(`""`), nil, 1)}}, "row 2"},
		"no Parquet":        {reference.Views{Parquet: good.CSV}, "parquet"},
		"damaged footer":    {reference.Views{Parquet: fixed{b: flipLast(read(t, good.Parquet))}}, "data.parquet"},
		"another value":     {reference.Views{Parquet: fixed{b: bytes.Replace(read(t, good.Parquet), long(3), long(9), 1)}}, "row 1"},
		"failing":           {reference.Views{CSV: fixed{err: boom}}, "boom"},
		"failing Parquet":   {reference.Views{Parquet: fixed{err: boom}}, "boom"},
	} {
		m := &reference.Merge{Table: l.Table(), Schema: scan.Schema, Plan: scan.Plan, Store: l.Store()}
		report, err := reference.Verify(t.Context(), m, c.views, reference.TextOptions{})
		if err != nil || len(report.Problems) != 1 || report.Views != 0 {
			t.Errorf("%s: %+v, %v", name, *report, err)
			continue
		}
		if p := report.Problems[0]; !strings.Contains(p.Name+": "+p.Err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, p, c.want)
		}
	}
}

// flipLast damages the last byte.
func flipLast(b []byte) []byte {
	b[len(b)-1] ^= 0x55
	return b
}

// long is a long as Parquet stores it.
func long(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// TestVerifyMetadataColumns: the columns that tell where rows come from are
// compared like the table's own, and expected where they are asked for alone.
func TestVerifyMetadataColumns(t *testing.T) {
	tab := shop(t, fixture.VectorOptions{})
	l := load(t, tab)
	s := tab.Head("")
	all := merge.AllMetadataColumns()
	plain, told := engine(t, merge.Options{}), engine(t, merge.Options{MetadataColumns: all})
	if report, _ := verify(t, told, l, s.ID, s.Schema, all...); report.Views != 4 || len(report.Problems) > 0 {
		t.Errorf("all columns: %+v", *report)
	}
	some := engine(t, merge.Options{MetadataColumns: all[1:3]})
	if report, _ := verify(t, some, l, s.ID, s.Schema, all[1:3]...); report.Views != 4 || len(report.Problems) > 0 {
		t.Errorf("some columns: %+v", *report)
	}
	if report, _ := verify(t, plain, l, s.ID, s.Schema, all...); report.Views != 0 || len(report.Problems) != 4 {
		t.Errorf("views without the columns: %+v", *report)
	}
	if report, _ := verify(t, told, l, s.ID, s.Schema); report.Views != 0 || len(report.Problems) != 4 {
		t.Errorf("views with columns that nobody asked for: %+v", *report)
	}
	_, scan := verify(t, told, l, s.ID, s.Schema, all...)
	plan := *scan.Plan
	plan.Files = slices.Clone(plan.Files)
	moved := *plan.Files[0].DataFile
	moved.FirstRowID++
	plan.Files[0].DataFile = &moved
	m := &reference.Merge{Table: scan.Table, Schema: scan.Schema, Plan: &plan, Store: scan.Store, Metadata: all}
	report, err := reference.Verify(t.Context(), m, views(told, scan), reference.TextOptions{})
	if err != nil || report.Views != 0 || len(report.Problems) != 4 {
		t.Errorf("other row ids: %+v, %v", *report, err)
	}
	tab.Evolve(func(e *fixture.Evolution) { e.Rename("id", "_pos") })
	if report, _ := verify(t, told, load(t, tab), s.ID, tab.Schema(), all...); report.Refused != 4 || len(report.Problems) > 0 {
		t.Errorf("a column of the table's called _pos: %+v", *report)
	}
}

// TestVerifyRefusals: what has to be refused may not be served, and is no
// problem if it is not.
func TestVerifyRefusals(t *testing.T) {
	tab := shop(t, fixture.VectorOptions{FlipCRC: true})
	l := load(t, tab)
	e := engine(t, merge.Options{})
	now, before := tab.Snapshots()[1], tab.Snapshots()[0]
	report, scan := verify(t, e, l, now.ID, now.Schema)
	if report.Refused != 4 || report.Views+len(report.Problems)+len(report.Unverified) > 0 {
		t.Fatalf("%+v", *report)
	}
	_, old := verify(t, e, l, before.ID, before.Schema)
	m := &reference.Merge{Table: l.Table(), Schema: scan.Schema, Plan: scan.Plan, Store: l.Store()}
	report, err := reference.Verify(t.Context(), m, views(e, old), reference.TextOptions{})
	if err != nil || len(report.Problems) != 4 || !strings.Contains(report.Problems[0].Err.Error(), "has to be refused") {
		t.Errorf("%+v, %v", *report, err)
	}
}

// TestVerifyFooters compares Puffin footers with manifests.
func TestVerifyFooters(t *testing.T) {
	for want, opt := range map[string]fixture.VectorOptions{
		`cardinality "1" in the footer, 3 in the manifest`: {Cardinality: 2},
		"": {Bare: true},
	} {
		tab := shop(t, opt)
		l := load(t, tab)
		now := tab.Snapshots()[1]
		report, _ := verify(t, engine(t, merge.Options{}), l, now.ID, now.Schema)
		switch {
		case want == "":
			if report.Views != 4 || len(report.Unverified) != 1 || len(report.Problems) > 0 {
				t.Errorf("bare vector: %+v", *report)
			}
		case len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Err.Error(), want):
			t.Errorf("%+v, want %q", *report, want)
		}
	}
}

// TestOptions compares views made in every way that must not change their rows.
func TestOptions(t *testing.T) {
	for name, opt := range map[string]merge.Options{
		"no splice": {NoSplice: true}, "no coalesce": {NoCoalesce: true}, "neither": {NoSplice: true, NoCoalesce: true},
		"all statistics": {Statistics: merge.StatisticsAll}, "no statistics": {Statistics: merge.StatisticsNone}, "one worker": {Workers: 1},
	} {
		t.Run(name, func(t *testing.T) { compareRandom(t, opt, 100, 2) })
	}
}
