package deletes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// equalityFiles makes n files of a few records, in memory.
func equalityFiles(n int, records int64) []equalityFile {
	files := make([]equalityFile, n)
	for i := range files {
		var obj source.Object = &memObject{location: fmt.Sprint("e", i)}
		files[i] = newEqualityFile(&snapshot.DataFile{Records: records}, obj)
	}
	return files
}

func identities(runs []*run) []string {
	ids := make([]string, len(runs))
	for i, n := range runs {
		ids[i] = n.identity()
	}
	return ids
}

func TestClosedRuns(t *testing.T) {
	files := equalityFiles(5000, 10)
	runs := closedRuns(files, maxRunLevel)
	if len(runs) > 60 || len(runs) < 10 {
		t.Errorf("%d runs of %d files", len(runs), len(files))
	}
	at, level := 0, maxRunLevel
	for i, n := range runs {
		if len(n.files) == 0 || &n.files[0] != &files[at] {
			t.Fatalf("run %d does not follow the one before it", i)
		}
		at += len(n.files)
		if n.level > level {
			t.Errorf("run %d of level %d follows one of level %d", i, n.level, level)
		}
		level = n.level
		if last := n.files[len(n.files)-1]; last.level < n.level {
			t.Errorf("run %d of level %d ends with a file of level %d", i, n.level, last.level)
		}
		for _, f := range n.files[:len(n.files)-1] {
			if f.level >= n.level {
				t.Errorf("run %d of level %d has a file of level %d inside", i, n.level, f.level)
			}
		}
	}
	if at != len(files) {
		t.Errorf("runs hold %d of %d files", at, len(files))
	}
	// All suffixes share their runs, but for the first.
	all := identities(runs)
	for _, from := range []int{1, 100, 777, 4990} {
		for _, id := range identities(closedRuns(files[from:], maxRunLevel))[1:] {
			if !slices.Contains(all, id) {
				t.Errorf("the files from %d on have a run of their own", from)
			}
		}
	}
	if n := len(closedRuns(equalityFiles(50, runRecords), maxRunLevel)); n != 50 {
		t.Errorf("50 large files make %d runs", n)
	}
	if n := len(closedRuns(nil, maxRunLevel)); n != 0 {
		t.Errorf("no files make %d runs", n)
	}
}

// TestEqualityGrows adds a delete file at a time: each step reads that file
// alone, whatever runs it closes, and all steps together give what one does.
func TestEqualityGrows(t *testing.T) {
	const files = 80
	var values []any
	for i := range files + 5 {
		values = append(values, int64(i*2))
	}
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 100, ones[int64](values...))
	var stats pqfile.Stats
	persist := &mapPersist{}
	composite := 0
	for i := range files {
		l.addEquality(parquetOf(t, 9, ones[int64](int64(i*2), int64(i*2+1))), 1)
		before := stats.Footers.Load()
		// Another mount at each step: only what is persisted is known.
		got, err := l.resolve(NewResolver(Options{Cache: &mapCache{}, Persist: persist, Stats: &stats}))
		if want := fmt.Sprintf("[{0 %d}]", i+1); got != want || err != nil {
			t.Fatalf("step %d: %s, %v, want %s", i, got, err, want)
		}
		if n := stats.Footers.Load() - before; n != 2 {
			t.Errorf("step %d: %d footers read, want those of the new file and the data file", i, n)
		}
		obj, _ := l.Open(t.Context(), fmt.Sprint("equality-", i))
		if newEqualityFile(l.file.Equality[i], obj).level > 0 {
			composite++
		}
	}
	if composite < 5 {
		t.Errorf("only %d files closed a run of several", composite)
	}
	if got, err := l.resolve(NewResolver(Options{})); got != fmt.Sprintf("[{0 %d}]", files) || err != nil {
		t.Errorf("at once: %s, %v", got, err)
	}
}
