package tree_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
)

// walk visits everything listed below a folder, and returns each path's inode
// number as its listing and as its attributes tell.
func walk(t *testing.T, dir tree.Dir, path string, visit func(path string, listed tree.Entry, a tree.Attr)) {
	t.Helper()
	entries, err := dir.Entries(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, e := range entries {
		n, err := dir.Lookup(t.Context(), e.Name)
		if err != nil {
			t.Fatalf("%s/%s: %v", path, e.Name, err)
		}
		a, err := n.Attr(t.Context())
		if err != nil {
			t.Fatalf("%s/%s: %v", path, e.Name, err)
		}
		visit(path+"/"+e.Name, e, a)
		if d, ok := n.(tree.Dir); ok {
			walk(t, d, path+"/"+e.Name, visit)
		}
	}
}

func inodes(t *testing.T, f fixture) map[string]uint64 {
	t.Helper()
	seen := make(map[string]uint64)
	walk(t, f.tree.Root(), "", func(path string, e tree.Entry, a tree.Attr) {
		if e.Ino != a.Ino || e.Kind != a.Kind {
			t.Errorf("%s is listed as %+v, but is %+v", path, e, a)
		}
		if a.Ino == 0 || a.Ino == 1 || a.Ino>>63 != 0 {
			t.Errorf("%s has inode number %d", path, a.Ino)
		}
		seen[path] = a.Ino
	})
	return seen
}

func TestInodes(t *testing.T) {
	build := func(n int, change ...func(*tree.Options)) fixture {
		f := newFixture(t, treetest.Metadata(uuid, n), change...)
		f.table.Current().Files = dataFiles("a/1.parquet", "a/2.parquet", "b/2.parquet")
		return f
	}
	first, again, later := inodes(t, build(2)), inodes(t, build(2)), inodes(t, build(3))
	if !maps.Equal(first, again) {
		t.Error("two trees of one table have different inode numbers")
	}
	byIno := map[uint64]string{}
	for path, ino := range first {
		if other, ok := byIno[ino]; ok {
			t.Errorf("%s and %s have one inode number", path, other)
		}
		byIno[ino] = path
		if strings.Contains(path, "/snapshots") && later[path] != ino {
			t.Errorf("a later commit changed the inode number of %s", path)
		}
	}
	csv := inodes(t, build(2, func(o *tree.Options) { o.CSVOptions = "delimiter=;" }))
	for path, ino := range first {
		if isCSV := strings.HasSuffix(path, "data.csv"); isCSV == (csv[path] == ino) {
			t.Errorf("with another delimiter, %s: same inode number: %t", path, csv[path] == ino)
		}
	}
}

func TestOneInodePerSnapshotAndFile(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 2))
	a := attr(t, f.tree, "db/t/snapshots/2@schema-1/data.parquet")
	if b := attr(t, f.tree, "db/t/current/data.parquet"); a != b {
		t.Errorf("the same file is %+v and %+v", a, b)
	}
	if b := attr(t, f.tree, "db/t/snapshots/2/data.parquet"); a.Ino == b.Ino {
		t.Error("another schema has the same inode number")
	}
}

func TestTwoCopiesOfATable(t *testing.T) {
	space := &treetest.Namespace{}
	for _, n := range []string{"t", "copy"} {
		tab := treetest.NewTable(treetest.Metadata(uuid, 1))
		space.Tabs = append(space.Tabs, treetest.Named[*treetest.Table]{Name: n, Of: tab})
	}
	tr := newTree(t, treetest.Catalog{Space: space}, &treetest.Views{})
	for _, p := range []string{"", "/snapshots", "/snapshots/1", "/snapshots/1/data.csv", "/current", "/metadata.json"} {
		a, b := attr(t, tr, "t"+p), attr(t, tr, "copy"+p)
		if a.Ino == b.Ino && a.Generation == b.Generation {
			t.Errorf("%q of both copies are one to the kernel", p)
		}
	}
}
