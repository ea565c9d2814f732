package reference_test

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/fixture/random"
	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/merge"
)

var (
	seeds     = flag.Uint64("seeds", 20, "small random tables to compare")
	firstSeed = flag.Uint64("first-seed", 1000, "seed of the first of them")
	seedsTime = flag.Duration("seeds-time", 0, "compare as many more as this takes")
)

// TestSeeds compares many small random tables: what was written, the naive
// merge, and every view, of each table's last two snapshots, some under the
// newest schema, with metadata columns, or without spliced chunks. A failure names
// its seed; run it alone with -first-seed N -seeds 1.
func TestSeeds(t *testing.T) {
	start := time.Now()
	for seed := *firstSeed; seed < *firstSeed+*seeds || time.Since(start) < *seedsTime; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { compareSeed(t, seed) })
	}
}

// compareSeed compares the last two snapshots of one table.
func compareSeed(t *testing.T, seed uint64) {
	tab := random.New(t.TempDir(), seed, random.Options{Commits: 5, MaxRows: 25})
	l := load(t, tab)
	var metadata []string
	if seed%4 == 0 {
		metadata = merge.AllMetadataColumns()
	}
	e := engine(t, merge.Options{MetadataColumns: metadata, NoCoalesce: seed%3 == 1, NoSplice: seed%5 == 1})
	snapshots := tab.Snapshots()
	for i, s := range snapshots[max(0, len(snapshots)-2):] {
		schema := s.Schema
		if i == 0 && seed%2 == 1 { // as a branch's head is shown
			schema = tab.Schema()
		}
		want := tab.Expected(s, schema)
		got, err := rows(t.Context(), l, s.ID, schema)
		if err != nil {
			t.Fatalf("snapshot %d: %v", s.ID, err)
		}
		if len(got) != len(want) {
			t.Fatalf("snapshot %d: %d rows, want %d", s.ID, len(got), len(want))
		}
		for i := range want {
			if w := reform(want[i]); !reference.Equal(got[i], w) {
				t.Fatalf("snapshot %d, row %d:\n%v\nwant\n%v", s.ID, i, got[i], w)
			}
		}
		report, scan := verify(t, e, l, s.ID, schema, metadata...)
		for _, p := range report.Problems {
			t.Errorf("snapshot %d: %s: %v", s.ID, p.Name, p.Err)
		}
		if report.Views != 3+len(scan.Plan.Files) || len(report.Unverified) > 0 {
			t.Errorf("snapshot %d: %d views right; unverified: %v", s.ID, report.Views, report.Unverified)
		}
	}
}
