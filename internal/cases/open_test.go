package cases

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// opened is a table opened as icefs opens it.
type opened struct {
	*testing.T
	*warehouse.Loaded
	engine *merge.Engine
}

// open opens a fixture.
func open(t *testing.T, tab *fixture.Table) *opened {
	t.Helper()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	return openDir(t, tab.Dir())
}

// openDir opens the table in a folder.
func openDir(t *testing.T, dir string) *opened {
	t.Helper()
	c, err := warehouse.Open(t.Context(), dir, warehouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := c.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := table.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return (&opened{T: t, Loaded: loaded}).with(merge.Options{})
}

// with is the table opened with an engine of its own.
func (o *opened) with(opt merge.Options) *opened { return o.withCache(opt, cache.Options{}) }

// cached is the table opened with an engine whose cache has so many bytes.
func (o *opened) cached(bytes int64) *opened {
	return o.withCache(merge.Options{}, cache.Options{MaxBytes: bytes})
}

func (o *opened) withCache(opt merge.Options, size cache.Options) *opened {
	o.Helper()
	memory, err := cache.New(size)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(memory.Close)
	opt.Cache, opt.Stats = memory, &pqfile.Stats{}
	opt.Deletes = deletes.NewResolver(deletes.Options{Cache: memory, Stats: opt.Stats})
	return &opened{o.T, o.Loaded, merge.NewEngine(opt)}
}

// apart is the table opened with an engine that joins no row groups, so that
// small ones are spliced and rewritten as large ones are.
func (o *opened) apart() *opened { return o.with(merge.Options{NoCoalesce: true}) }

// scan plans a snapshot (0 = main's) under a schema (nil = the snapshot's).
func (o *opened) scan(id int64, schema *iceberg.Schema) merge.Scan {
	o.Helper()
	table := o.Table()
	if id == 0 {
		id = table.Current
	}
	for i := range table.Snapshots {
		if s := &table.Snapshots[i]; s.ID == id {
			plan, err := o.Plan(o.Context(), id)
			if err != nil {
				o.Fatal(err)
			}
			if schema == nil {
				schemaID, err := o.SchemaOf(o.Context(), s)
				if err != nil {
					o.Fatal(err)
				}
				schema = table.Schema(schemaID)
			}
			return merge.Scan{Table: table, Schema: schema, Plan: plan, Store: o.Store()}
		}
	}
	o.Fatalf("no snapshot %d", id)
	return merge.Scan{}
}

// views are all views of a scan.
func (o *opened) views(s merge.Scan) (reference.Views, []viewtest.View) {
	v := reference.Views{Parquet: o.engine.Parquet(s), CSV: o.engine.CSV(s), JSONL: o.engine.JSONL(s)}
	all := []viewtest.View{v.Parquet, v.CSV, v.JSONL}
	for i := range s.Plan.Files {
		part := o.engine.Part(s, i)
		v.Parts = append(v.Parts, part)
		all = append(all, part)
	}
	return v, all
}

// shows checks a scan's rows: data.csv is text, all other views hold the same
// rows, and every view reads the same in all ways.
func (o *opened) shows(s merge.Scan, text string) {
	o.Helper()
	o.showsRows(s, text, int64(strings.Count(text, "\n")-1))
}

// showsRows is shows for a text of so many rows, which may have line breaks.
func (o *opened) showsRows(s merge.Scan, text string, rows int64) {
	o.Helper()
	views, all := o.views(s)
	for _, v := range all {
		viewtest.Check(o.T, v)
	}
	if got := string(viewtest.Bytes(o.T, views.CSV)); got != text {
		o.Errorf("data.csv is\n%s\nwant\n%s", got, text)
	}
	report := o.report(s, views)
	for _, p := range report.Problems {
		o.Errorf("%s: %v", p.Name, p.Err)
	}
	if report.Views != len(all) || rows != report.Rows {
		o.Errorf("%d of %d views hold the rows of the naive merge, which are %d", report.Views, len(all), report.Rows)
	}
}

// rows checks the rows of main's newest snapshot; each is a CSV line.
func (o *opened) rows(lines ...string) {
	o.Helper()
	o.shows(o.scan(0, nil), strings.Join(lines, "\n")+"\n")
}

func (o *opened) report(s merge.Scan, views reference.Views) *reference.Report {
	o.Helper()
	m := &reference.Merge{Table: s.Table, Schema: s.Schema, Plan: s.Plan, Store: s.Store}
	report, err := reference.Verify(o.Context(), m, views, reference.TextOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return report
}

// refuses checks that main's newest snapshot cannot be read in any view, with
// an error that says why, and that only the parts of the files with the given
// indexes fail.
func (o *opened) refuses(why string, parts ...int) {
	o.Helper()
	s := o.scan(0, nil)
	views, _ := o.views(s)
	check := func(name string, v reference.View, refused bool) {
		o.Helper()
		err := readAll(o.Context(), v)
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), why)):
			o.Errorf("%s: got %v, want an error with %q", name, err, why)
		case !refused && err != nil:
			o.Errorf("%s: %v", name, err)
		}
	}
	check("data.parquet", views.Parquet, true)
	check("data.csv", views.CSV, true)
	check("data.jsonl", views.JSONL, true)
	for i, part := range views.Parts {
		refused := false
		for _, p := range parts {
			refused = refused || p == i
		}
		check("part of "+filepath.Base(s.Plan.Files[i].Path), part, refused)
	}
	// The naive merge finds the table just as bad; of a vector's file it may have
	// more to say.
	report := o.report(s, views)
	for _, p := range report.Problems {
		if !strings.HasSuffix(p.Name, "-deletes.puffin") {
			o.Errorf("%s: %v", p.Name, p.Err)
		}
	}
	if report.Refused != 3+len(parts) {
		o.Errorf("report: %+v", *report)
	}
}

// readAll reads a view to its end.
func readAll(ctx context.Context, v reference.View) error {
	size, err := v.Size(ctx)
	if err != nil {
		return err
	}
	_, err = v.ReadAt(ctx, make([]byte, size), 0)
	return err
}

// idAndText has the columns of most cases.
func idAndText() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String},
	)
}

// numbered are rows with ids from first to last and no text.
func numbered(first, last int) []fixture.Row {
	var rows []fixture.Row
	for id := first; id <= last; id++ {
		rows = append(rows, fixture.Row{"id": id})
	}
	return rows
}

// commit makes one commit on main.
func commit(tab *fixture.Table, do func(tx *fixture.Tx)) *fixture.Snapshot {
	tx := tab.Begin()
	do(tx)
	return tx.Commit()
}

// moveTable renames a table's folder.
func moveTable(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	return to
}
