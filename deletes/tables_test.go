package deletes_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/faulty"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/snapshot"
)

var tables = flag.String("tables", "../testdata", "folder with tables in warehouse/ and their writers' answers in expected/")

// expectedTable is what an index.json of expected/ says that matters here.
type expectedTable struct {
	Source        string `json:"source"`
	MountPath     string `json:"mount_path"`
	FormatVersion int    `json:"format_version"`
	Snapshots     []struct {
		ID    int64            `json:"snapshot_id"`
		Count int64            `json:"count"`
		Live  map[string]int64 `json:"live_rows_per_file"`
	} `json:"snapshots"`
}

// TestRealTables resolves every file of every snapshot of tables that Spark,
// Java Iceberg and pyiceberg wrote, and compares its live rows with what the
// writer counted.
func TestRealTables(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(*tables, "expected", "*", "index.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no tables in %s: %v", *tables, err)
	}
	c, err := cache.New(cache.Options{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	disk, err := cache.OpenDisk(t.TempDir(), cache.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	checked := 0
	for _, index := range found {
		t.Run(filepath.Base(filepath.Dir(index)), func(t *testing.T) {
			b, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			var want expectedTable
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			if want.FormatVersion > 3 {
				return
			}
			src := filepath.Join(*tables, want.Source, want.MountPath)
			loaded := load(t, src)
			for _, resolver := range []*deletes.Resolver{
				deletes.NewResolver(deletes.Options{Cache: c, Persist: disk}),
				deletes.NewResolver(deletes.Options{Persist: disk}), // what the first left on disk
				deletes.NewResolver(deletes.Options{}),
			} {
				for _, s := range want.Snapshots {
					checked += checkSnapshot(t, resolver, loaded, s.ID, s.Count, s.Live)
				}
			}
		})
	}
	if checked < 100 {
		t.Errorf("only %d files with deletes were checked", checked)
	}
}

func load(t *testing.T, src string) *warehouse.Loaded {
	t.Helper()
	catalog, err := warehouse.Open(context.Background(), src, warehouse.Options{AllowPaths: []string{*tables}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { catalog.Close() })
	_, table, err := catalog.Root(context.Background())
	if err != nil || table == nil {
		t.Fatalf("no table at %s: %v", src, err)
	}
	loaded, err := table.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// checkSnapshot returns how many files with deletes it checked.
func checkSnapshot(t *testing.T, r *deletes.Resolver, loaded *warehouse.Loaded, id, count int64, live map[string]int64) (checked int) {
	t.Helper()
	plan, err := loaded.Plan(context.Background(), id)
	if err != nil {
		t.Errorf("snapshot %d: %v", id, err)
		return 0
	}
	seen := map[string]bool{}
	sum := int64(0)
	for _, n := range live {
		sum += n
	}
	if sum != count {
		live = nil // counted by an engine that is known to be wrong there, or not at all
	}
	total, failed := int64(0), false
	for i := range plan.Files {
		f := &plan.Files[i]
		seen[f.Path] = true
		p, err := r.Resolve(context.Background(), loaded.Table(), loaded.Store(), f)
		if err != nil {
			failed = true
			if !mayFail(f, err) {
				t.Errorf("snapshot %d, %s: %v", id, f.Path, err)
			}
			continue
		}
		got := f.Records - p.CountRange(0, f.Records)
		total += got
		if want, counted := live[f.Path]; got != want && (counted || len(live) > 0) {
			t.Errorf("snapshot %d, %s: %d live rows, want %d", id, f.Path, got, want)
		}
		if p != nil {
			checked++
		}
	}
	if !failed && total != count {
		t.Errorf("snapshot %d: %d live rows, want %d", id, total, count)
	}
	for path, n := range live {
		if n > 0 && !seen[path] {
			t.Errorf("snapshot %d: %s is not in the plan", id, path)
		}
	}
	return checked
}

// mayFail reports whether a file is of a format that deletes cannot be resolved
// for, or misses a delete file on purpose.
func mayFail(f *snapshot.File, err error) bool {
	if errors.Is(err, source.ErrNotFound) {
		return strings.Contains(err.Error(), "/neg_") // a table with a file removed on purpose
	}
	if !errors.Is(err, deletes.ErrUnsupported) {
		return false
	}
	for _, d := range append(append([]*snapshot.DataFile{f.DataFile}, f.Positions...), f.Equality...) {
		if d.Format == snapshot.ORC {
			return true
		}
	}
	return false
}

// TestFaultSweep fails every read and open of a resolve in turn: each surfaces,
// and none is remembered or changes the result.
func TestFaultSweep(t *testing.T) {
	for _, name := range []string{"v2_eq", "pos_odd", "eq_default_v3"} {
		t.Run(name, func(t *testing.T) {
			loaded := load(t, filepath.Join(*tables, "warehouse", "db", name))
			plan, err := loaded.Plan(context.Background(), loaded.Table().Current)
			if err != nil {
				t.Fatal(err)
			}
			for i := range plan.Files {
				sweep(t, loaded, &plan.Files[i])
			}
		})
	}
}

func sweep(t *testing.T, loaded *warehouse.Loaded, f *snapshot.File) {
	t.Helper()
	want, err := deletes.NewResolver(deletes.Options{}).Resolve(context.Background(), loaded.Table(), loaded.Store(), f)
	if err != nil || want == nil {
		return // a format that cannot be read, or nothing to read
	}
	memory, err := cache.New(cache.Options{MaxBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	r := deletes.NewResolver(deletes.Options{Cache: memory})
	for n := int64(1); n < 200; n++ {
		for _, opt := range []faulty.Options{{FailRead: n}, {ShortRead: n}, {FailOpen: n}} {
			uncached := deletes.NewResolver(deletes.Options{})
			if p, err := uncached.Resolve(context.Background(), loaded.Table(), faulty.New(loaded.Store(), opt), f); err == nil {
				same(t, p, want, f.Records)
			} else if p != nil || !errors.Is(err, faulty.ErrInjected) {
				t.Errorf("%s, fault %+v: %v", f.Path, opt, err)
			}
		}
		// With a cache: what a failed resolve left behind does no harm.
		store := faulty.New(loaded.Store(), faulty.Options{FailRead: n})
		if p, err := r.Resolve(context.Background(), loaded.Table(), store, f); err == nil {
			same(t, p, want, f.Records)
			if store.Reads() < n {
				return
			}
			t.Errorf("%s: read %d failed and nothing was said", f.Path, n)
		}
	}
	t.Errorf("%s: more than 200 reads", f.Path)
}

func same(t *testing.T, got, want *deletes.Positions, rows int64) {
	t.Helper()
	if !slices.Equal(got.DeletedRanges(nil, 0, rows+1), want.DeletedRanges(nil, 0, rows+1)) {
		t.Errorf("deleted %v, want %v", got.DeletedRanges(nil, 0, rows), want.DeletedRanges(nil, 0, rows))
	}
}
