package tree_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/snapshot"
)

// manyTables is a tree of tables t0, t1, … whose plans say that they take so much.
func manyTables(t *testing.T, n int, planBytes, metadataBytes int64) (*tree.Tree, []*treetest.Table) {
	t.Helper()
	tables := make([]*treetest.Table, n)
	space := &treetest.Namespace{}
	for i := range tables {
		tables[i] = treetest.NewTable(treetest.Metadata(fmt.Sprintf("00000000-0000-0000-0000-%012d", i), 2))
		tables[i].Current().PlanBytes = planBytes
		tables[i].Current().Files = dataFiles("/wh/a.parquet", "/wh/b.parquet")
		space.Tabs = append(space.Tabs, treetest.Named[*treetest.Table]{Name: fmt.Sprint("t", i), Of: tables[i]})
	}
	tr := newTree(t, treetest.Catalog{Space: space}, &treetest.Views{}, func(o *tree.Options) { o.MetadataBytes = metadataBytes })
	return tr, tables
}

// plansOf is how often the plans of a table's current version were made.
func plansOf(table *treetest.Table) int64 { return table.Current().Plans.Load() }

func TestKeptOfTablesIsBounded(t *testing.T) {
	const limit, plan = 1 << 20, 200 << 10
	tr, tables := manyTables(t, 50, plan, limit)
	for i := range tables {
		path := fmt.Sprintf("t%d/current/", i)
		for range 3 {
			attr(t, tr, path+"data.parquet")
			content(t, tr, path+"files.csv")
			names(t, tr, path+"parts")
		}
		if n := plansOf(tables[i]); n != 1 {
			t.Fatalf("the snapshot in use was planned %d times", n)
		}
		if kept, max := tr.MetadataBytes(); kept > limit || max != limit || i > 10 && kept < limit/2 {
			t.Fatalf("after %d tables %d bytes are kept, of %d", i+1, kept, max)
		}
	}
	if n := plansOf(tables[48]); n != 1 {
		t.Errorf("planned %d times", n)
	}
	attr(t, tr, "t48/current/data.parquet")
	attr(t, tr, "t0/current/data.parquet")
	if last, first := plansOf(tables[48]), plansOf(tables[0]); last != 1 || first != 2 {
		t.Errorf("a table used lately was planned %d times, the one used first %d", last, first)
	}
}

// What is larger than the whole budget is kept while it is in use, also beside
// other tables of which only the folder is looked at.
func TestLargerThanTheBudgetIsKeptAlone(t *testing.T) {
	tr, tables := manyTables(t, 3, 100<<20, 1<<20)
	for range 3 {
		attr(t, tr, "t0/current/data.parquet")
		names(t, tr, "t1")
		names(t, tr, "t2")
	}
	if n := plansOf(tables[0]); n != 1 {
		t.Errorf("planned %d times", n)
	}
	attr(t, tr, "t1/current/data.parquet")
	attr(t, tr, "t0/current/data.parquet")
	if n := plansOf(tables[0]); n != 2 {
		t.Errorf("planned %d times: two that are too large are kept", n)
	}
}

// waitForRelease collects garbage until gone is told.
func waitForRelease(t *testing.T, gone <-chan bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-late:
			t.Fatal("what was read of a table is held though nobody uses it")
		case <-time.After(time.Millisecond):
		}
	}
}

// Nodes outlive what they were made of. The tables' memory can be had back while
// the kernel still knows them; what is open stays.
func TestNodesDoNotHoldTables(t *testing.T) {
	tr, tables := manyTables(t, 2, 100<<20, 1<<20)
	paths := []string{"data.parquet", "data.csv", "parts/a.parquet", "schema.json", "snapshot.json", "files.csv"}
	var nodes []tree.File
	var before []string
	find := func(path string) {
		n, err := tr.Resolve(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n.(tree.File))
		text, err := read(t.Context(), n.(tree.File))
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, text)
	}
	for _, p := range paths {
		find("t0/snapshots/1/" + p)
	}
	find("t0/metadata.json")
	open, err := nodes[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	gone := make(chan bool, 1)
	old := tables[0].Current()
	runtime.AddCleanup(old, func(struct{}) { gone <- true }, struct{}{})
	// The same table, read again.
	again := &treetest.Loaded{Meta: treetest.Metadata(old.Meta.UUID, 2), Files: old.Files, PlanBytes: old.PlanBytes}
	old = nil
	tables[0].Commit(again)
	attr(t, tr, "t1/current/data.parquet")
	waitForRelease(t, gone)
	for i, n := range nodes {
		if text, err := read(t.Context(), n); err != nil || text != before[i] {
			t.Errorf("%d: %q, %v; was %q", i, text, err, before[i])
		}
	}
	if plansOf(tables[0]) == 0 {
		t.Error("read from what was given up")
	}
}

// A node whose table was given up has to find what it was, or fail: its inode stands
// for its bytes.
func TestNodesOfGivenUpTables(t *testing.T) {
	mapping := func(m *snapshot.Table, _ *treetest.Loaded) {
		m.NameMapping = iceberg.NameMapping{{Names: []string{"other"}}}
	}
	for _, c := range []struct {
		what   string
		change func(*snapshot.Table, *treetest.Loaded)
		fail   string // names of the files that then fail
	}{
		{"a commit", func(m *snapshot.Table, _ *treetest.Loaded) { *m = *treetest.Metadata(m.UUID, 3) }, ""},
		{"the snapshot expires", func(m *snapshot.Table, _ *treetest.Loaded) { m.Snapshots = m.Snapshots[1:] },
			"data.parquet parts/b.parquet schema.json snapshot.json files.csv"},
		{"another name mapping", mapping, "data.parquet parts/b.parquet"},
		{"a data file less", func(_ *snapshot.Table, l *treetest.Loaded) { l.Files = l.Files[:1] },
			"data.parquet parts/b.parquet files.csv"},
		{"other deletes", func(_ *snapshot.Table, l *treetest.Loaded) {
			l.Files = dataFiles("/wh/a.parquet", "/wh/b.parquet")
			l.Files[1].Positions = []*snapshot.DataFile{{Path: "/wh/deletes.parquet"}}
		}, "data.parquet parts/b.parquet files.csv"},
		{"another text of the snapshot", func(m *snapshot.Table, _ *treetest.Loaded) { m.Snapshots[0].JSON = []byte("{}") }, "snapshot.json"},
	} {
		t.Run(c.what, func(t *testing.T) {
			tr, tables := manyTables(t, 2, 100<<20, 1<<20)
			files := map[string]tree.File{}
			for _, name := range []string{"data.parquet", "parts/b.parquet", "schema.json", "snapshot.json", "files.csv"} {
				n, err := tr.Resolve(t.Context(), "t0/snapshots/1/"+name)
				if err != nil {
					t.Fatal(err)
				}
				files[name] = n.(tree.File)
				if _, err := n.Attr(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			gone := make(chan bool, 1)
			runtime.AddCleanup(tables[0].Current(), func(struct{}) { gone <- true }, struct{}{})
			next := &treetest.Loaded{Meta: treetest.Metadata(tables[0].Current().Meta.UUID, 2), Files: tables[0].Current().Files}
			c.change(next.Meta, next)
			tables[0].Commit(next)
			attr(t, tr, "t1/current/data.parquet")
			waitForRelease(t, gone)
			for name, f := range files {
				_, err := read(t.Context(), f)
				if want := strings.Contains(c.fail, name); want != errors.Is(err, tree.ErrExpired) || !want && err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
