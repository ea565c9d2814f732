package warehouse

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
)

func TestLoadIsTheSameWhileNothingChanged(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "t", "metadata")
	write(t, filepath.Join(folder, "v1.metadata.json"), string(document(2, twoSnapshots)))
	stats := &Stats{}
	table := openTable(t, filepath.Join(dir, "t"), Options{Refresh: -1, Stats: stats})
	first := load(t, table)
	for range 3 {
		if load(t, table) != first {
			t.Fatal("another Loaded of the same file")
		}
	}
	if n := stats.MetadataRead.Load(); n != 1 {
		t.Errorf("metadata read %d times", n)
	}
	write(t, filepath.Join(folder, "v2.metadata.json"), string(document(2, twoSnapshots, `"current-snapshot-id":1`)))
	second := load(t, table)
	if second == first || second.Table().Current != 1 || first.Table().Current != -1 {
		t.Errorf("after a commit: current %d, before %d", second.Table().Current, first.Table().Current)
	}
}

func TestLoadWaitsForTheRefreshInterval(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "t", "metadata")
	write(t, filepath.Join(folder, "v1.metadata.json"), string(document(2)))
	table := openTable(t, filepath.Join(dir, "t"), Options{Refresh: time.Hour})
	first := load(t, table)
	write(t, filepath.Join(folder, "v2.metadata.json"), string(document(2)))
	if load(t, table) != first {
		t.Error("read anew within the interval")
	}
	table.at = table.at.Add(-2 * time.Hour)
	if load(t, table) == first {
		t.Error("not read anew after the interval")
	}
}

func TestBrokenMetadataSurfacesAndIsLoggedOnce(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	folder := filepath.Join(dir, "t", "metadata")
	write(t, filepath.Join(folder, "v1.metadata.json"), string(document(2, twoSnapshots)))
	var log logBuffer
	stats := &Stats{}
	table := openTable(t, filepath.Join(dir, "t"), Options{Refresh: -1, Log: log.logger(), Stats: stats})
	load(t, table)
	broken := write(t, filepath.Join(folder, "v2.metadata.json"), `{"format-version":2}`)
	for range 3 {
		if _, err := table.Load(ctx); !errors.Is(err, ErrCorrupt) || strings.Count(err.Error(), broken) != 1 {
			t.Errorf("broken metadata: %v", err)
		}
		if raw, err := table.RawMetadata(ctx); err != nil || string(raw) != `{"format-version":2}` {
			t.Errorf("raw metadata %q, %v", raw, err)
		}
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], broken) {
		t.Errorf("logged %q", lines)
	}
	if n := stats.MetadataRead.Load(); n != 2 {
		t.Errorf("metadata parsed %d times", n)
	}
	write(t, filepath.Join(folder, "v3.metadata.json"), string(document(2, twoSnapshots)))
	load(t, table)
}

// TestHalfWrittenMetadata writes a version as writers do that rename nothing:
// what was shown stays until the file is whole, or has been half-written for
// longer than any writer takes.
func TestHalfWrittenMetadata(t *testing.T) {
	whole := document(2, twoSnapshots)
	for _, c := range []struct{ name, half string }{
		{"empty", ""},
		{"cut JSON", string(whole[:len(whole)/2])},
		{"cut gzip", compressed(string(whole))[:20]},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			folder := filepath.Join(dir, "t", "metadata")
			write(t, filepath.Join(folder, "v1.metadata.json"), string(whole))
			var log logBuffer
			table := openTable(t, filepath.Join(dir, "t"), Options{Refresh: -1, Log: log.logger()})
			first := load(t, table)
			second := write(t, filepath.Join(folder, "v2.metadata.json"), c.half)
			for range 2 {
				if got := load(t, table); got != first {
					t.Error("another version is shown next to a half-written one")
				}
			}
			if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], second) {
				t.Errorf("logged %q", lines)
			}
			table.doubted = table.doubted.Add(-halfWritten)
			if _, err := table.Load(context.Background()); !errors.Is(err, ErrCorrupt) {
				t.Errorf("after a minute: %v", err)
			}
			write(t, second, string(whole))
			if got := load(t, table); got == first {
				t.Error("the finished version is not shown")
			}
		})
	}
}

func TestPinnedMetadataFile(t *testing.T) {
	dir := t.TempDir()
	first := write(t, filepath.Join(dir, "t", "metadata", "v1.metadata.json"), string(document(2)))
	write(t, filepath.Join(dir, "t", "metadata", "v2.metadata.json"), string(document(2, twoSnapshots)))
	write(t, filepath.Join(dir, "t", "data", "x"), "x")
	write(t, filepath.Join(dir, "secret"), "x")
	l := load(t, openTable(t, first, Options{Refresh: -1}))
	if len(l.Table().Snapshots) != 0 {
		t.Error("another version than the pinned one")
	}
	if _, err := l.Store().Open(context.Background(), dir+"/t/data/x"); err != nil {
		t.Errorf("data beside the metadata folder: %v", err)
	}
	if _, err := l.Store().Open(context.Background(), dir+"/secret"); !errors.Is(err, source.ErrOutside) {
		t.Errorf("above the table: %v", err)
	}
	other := write(t, filepath.Join(dir, "o", "meta", "v1.metadata.json"), string(document(2)))
	write(t, filepath.Join(dir, "o", "data", "x"), "x")
	l = load(t, openTable(t, other, Options{}))
	if _, err := l.Store().Open(context.Background(), dir+"/o/data/x"); !errors.Is(err, source.ErrOutside) {
		t.Errorf("above a folder that is not named metadata: %v", err)
	}
}

func TestReplacedFilesStayChanged(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	folder := filepath.Join(dir, "t", "metadata")
	write(t, filepath.Join(folder, "v1.metadata.json"), string(document(2, twoSnapshots)))
	data := write(t, filepath.Join(dir, "t", "data", "x"), "first")
	table := openTable(t, filepath.Join(dir, "t"), Options{Refresh: -1})
	if _, err := load(t, table).Store().Open(ctx, data); err != nil {
		t.Fatal(err)
	}
	write(t, data, "second")
	write(t, filepath.Join(folder, "v2.metadata.json"), string(document(2, twoSnapshots)))
	if _, err := load(t, table).Store().Open(ctx, data); !errors.Is(err, source.ErrChanged) {
		t.Errorf("a data file replaced between two loads: %v", err)
	}
}

func TestWaitersLeaveOnTheirOwn(t *testing.T) {
	table := openTable(t, testdata+"/warehouse/db/one_col", Options{})
	if err := table.gate.enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := table.Load(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("a waiter that left: %v", err)
			}
		})
	}
	cancel()
	wg.Wait()
	table.gate.leave()
	if _, err := table.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("load after cancel: %v", err)
	}
	load(t, table) // the cancelled load is not remembered
}

func TestUnreadableMetadata(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "t", "metadata", "v1.metadata.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	table := openTable(t, filepath.Join(dir, "t"), Options{})
	if _, err := table.Load(context.Background()); !errors.Is(err, source.ErrRead) {
		t.Errorf("a folder in the place of a metadata file: %v", err)
	}
}
