package warehouse

import (
	"context"
	"net/http"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/resttest"
)

// release waits until what was parsed of a table that nobody uses is collected.
func release(t *testing.T, table *Table) {
	t.Helper()
	table.env.newest.Store(nil)
	for late := time.Now().Add(20 * time.Second); table.loaded.Value() != nil; runtime.GC() {
		if time.Now().After(late) {
			t.Fatal("what was parsed of a table is held though nobody uses it")
		}
	}
}

func TestParsedMetadataIsGivenUp(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "t", "metadata")
	write(t, filepath.Join(folder, "v1.metadata.json"), string(document(2, twoSnapshots)))
	stats := &Stats{}
	table := openTable(t, filepath.Dir(folder), Options{Refresh: time.Hour, Stats: stats})
	load(t, table)
	held := load(t, table)
	runtime.GC()
	if load(t, table) != held || stats.MetadataRead.Load() != 1 {
		t.Errorf("read %d times though it is in use", stats.MetadataRead.Load())
	}
	runtime.KeepAlive(held)
	release(t, table)
	if l := load(t, table); len(l.Table().Snapshots) != 2 || stats.MetadataRead.Load() != 2 {
		t.Errorf("%d snapshots, read %d times", len(l.Table().Snapshots), stats.MetadataRead.Load())
	}
	// A version that looks half-written: the one before it is read again.
	release(t, table)
	table.at = time.Time{}
	write(t, filepath.Join(folder, "v2.metadata.json"), `{"format-version":`)
	if l := load(t, table); len(l.Table().Snapshots) != 2 {
		t.Errorf("%d snapshots", len(l.Table().Snapshots))
	}
}

// What a catalog has sent is given up, too, and asked for again in full.
func TestSentMetadataIsGivenUp(t *testing.T) {
	s := resttest.New(t)
	s.Put([]string{"db"}, "t", "s3://b/t/metadata/1.json", document(2, twoSnapshots))
	c := openAt(t, s, Options{Refresh: -1, Timeout: 300 * time.Millisecond, Remotes: &fakeRemotes{}})
	table, err := tableAt(t, c, "db", "t")
	if err != nil {
		t.Fatal(err)
	}
	release(t, table)
	if sent := table.finder.(*catalogTable).sent.Value(); sent != nil {
		t.Error("the text is held")
	}
	if l := load(t, table); len(l.Table().Snapshots) != 2 || s.Requests("table") != 2 {
		t.Errorf("%d snapshots, asked %d times", len(l.Table().Snapshots), s.Requests("table"))
	}
	release(t, table)
	s.Fail(http.StatusServiceUnavailable)
	if _, err := table.Load(context.Background()); err == nil {
		t.Error("a table is shown of which nothing is known")
	}
	s.Fail(0)
	if l := load(t, table); len(l.Table().Snapshots) != 2 {
		t.Errorf("%d snapshots", len(l.Table().Snapshots))
	}
}
