package reference_test

import (
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture/random"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// engine returns an engine with caches of its own.
func engine(t *testing.T, opt merge.Options) *merge.Engine {
	t.Helper()
	memory, err := cache.New(cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	opt.Cache = memory
	opt.Stats = &pqfile.Stats{}
	opt.Deletes = deletes.NewResolver(deletes.Options{Cache: memory, Stats: opt.Stats})
	return merge.NewEngine(opt)
}

// views makes all views of a snapshot under a schema.
func views(e *merge.Engine, scan merge.Scan) reference.Views {
	v := reference.Views{Parquet: e.Parquet(scan), CSV: e.CSV(scan), JSONL: e.JSONL(scan)}
	for i := range scan.Plan.Files {
		v.Parts = append(v.Parts, e.Part(scan, i))
	}
	return v
}

// verify compares all views of a snapshot with the naive merge; metadata names
// the metadata columns that they have.
func verify(t *testing.T, e *merge.Engine, l *warehouse.Loaded, snapshot int64, schema *iceberg.Schema, metadata ...string) (*reference.Report, merge.Scan) {
	t.Helper()
	plan, err := l.Plan(t.Context(), snapshot)
	if err != nil {
		t.Fatal(err)
	}
	scan := merge.Scan{Table: l.Table(), Schema: schema, Plan: plan, Store: l.Store()}
	m := &reference.Merge{Table: l.Table(), Schema: schema, Plan: plan, Store: l.Store(), Metadata: metadata}
	report, err := reference.Verify(t.Context(), m, views(e, scan), reference.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return report, scan
}

// FuzzRandomViews compares all views of random tables with the naive merge, and
// reads them in every way that files can be read. Its input is a seed.
func FuzzRandomViews(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { compareRandom(t, merge.Options{}, seed, 1) })
}

// compareRandom builds the tables of some seeds and compares the views of an
// engine with options.
func compareRandom(t *testing.T, opt merge.Options, firstSeed, seeds uint64) {
	t.Helper()
	for seed := firstSeed; seed < firstSeed+seeds; seed++ {
		tab := random.New(t.TempDir(), seed, random.Options{Commits: 8})
		l := load(t, tab)
		e := engine(t, opt)
		for i, s := range tab.Snapshots() {
			schema := s.Schema
			if i%3 == 2 {
				schema = tab.Schema()
			}
			report, scan := verify(t, e, l, s.ID, schema)
			for _, p := range report.Problems {
				t.Errorf("seed %d, snapshot %d (%d of %d): %s: %v", seed, s.ID, i, len(tab.Snapshots()), p.Name, p.Err)
			}
			if n := len(tab.Expected(s, schema)); report.Rows != int64(n) || report.Views != 3+len(scan.Plan.Files) || len(report.Unverified) > 0 {
				t.Errorf("seed %d, snapshot %d: %d rows, want %d; %d views right; unverified: %v", seed, s.ID, report.Rows, n, report.Views, report.Unverified)
			}
			if i == len(tab.Snapshots())-1 && !t.Failed() {
				fresh := engine(t, opt)
				viewtest.Check(t, e.Parquet(scan), func() viewtest.View { return fresh.Parquet(scan) })
				viewtest.Check(t, e.CSV(scan), func() viewtest.View { return fresh.CSV(scan) })
				viewtest.Check(t, e.JSONL(scan), func() viewtest.View { return fresh.JSONL(scan) })
			}
		}
	}
}
