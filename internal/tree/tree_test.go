package tree_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/snapshot"
)

const uuid = "11111111-2222-3333-4444-555555555555"

// fixture is a tree over one table t in namespace db.
type fixture struct {
	tree  *tree.Tree
	table *treetest.Table
	views *treetest.Views
}

func newFixture(t *testing.T, meta *snapshot.Table, change ...func(*tree.Options)) fixture {
	t.Helper()
	f := fixture{table: treetest.NewTable(meta), views: &treetest.Views{}}
	db := &treetest.Namespace{Tabs: []treetest.Named[*treetest.Table]{{Name: "t", Of: f.table}}}
	root := &treetest.Namespace{Spaces: []treetest.Named[*treetest.Namespace]{{Name: "db", Of: db}}}
	f.tree = newTree(t, treetest.Catalog{Space: root}, f.views, change...)
	return f
}

func newTree(t *testing.T, c tree.Catalog, v *treetest.Views, change ...func(*tree.Options)) *tree.Tree {
	t.Helper()
	opt := tree.Options{Catalog: c, Views: v, Control: []tree.ControlFile{
		{Name: "version", Content: func(context.Context) ([]byte, error) { return []byte("v1\n"), nil }},
	}}
	for _, c := range change {
		c(&opt)
	}
	tr, err := tree.New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func names(t *testing.T, tr *tree.Tree, path string) []string {
	t.Helper()
	n, err := tr.Resolve(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := n.(tree.Dir).Entries(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.Name
	}
	return list
}

func target(t *testing.T, tr *tree.Tree, path string) string {
	t.Helper()
	n, err := tr.ResolveLink(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.(tree.Link).Target(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

func content(t *testing.T, tr *tree.Tree, path string) string {
	t.Helper()
	n, err := tr.Resolve(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(t.Context(), n.(tree.File))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// read opens a file and reads it by small pieces, and checks its size.
func read(ctx context.Context, f tree.File) (string, error) {
	h, err := f.Open(ctx)
	if err != nil {
		return "", err
	}
	defer h.Close()
	var b strings.Builder
	buf := make([]byte, 7)
	for {
		n, err := h.ReadAt(ctx, buf, int64(b.Len()))
		b.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	size, err := f.Size(ctx)
	if a, _ := f.Attr(ctx); err == nil && !a.Dynamic && size != int64(b.Len()) {
		return "", fmt.Errorf("size %d, but %d bytes are read", size, b.Len())
	}
	return b.String(), err
}

func attr(t *testing.T, tr *tree.Tree, path string) tree.Attr {
	t.Helper()
	n, err := tr.ResolveLink(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := n.Attr(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

func missing(t *testing.T, tr *tree.Tree, path string) {
	t.Helper()
	if n, err := tr.Resolve(t.Context(), path); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("%s: %v, %v; want no such entry", path, n, err)
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestTable(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 2))
	same(t, "root", names(t, f.tree, ""), []string{".icefs", "db"})
	same(t, "db", names(t, f.tree, "/db/"), []string{"t"})
	same(t, "table", names(t, f.tree, "db/t"),
		[]string{"current", "snapshots", "branches", "tags", "by-time", "at", "metadata.json"})
	same(t, "snapshots", names(t, f.tree, "db/t/snapshots"), []string{"1", "2"})
	same(t, "snapshot", names(t, f.tree, "db/t/snapshots/1"),
		[]string{"data.parquet", "data.csv", "data.jsonl", "parts", "schema.json", "snapshot.json", "files.csv"})
	if got, want := content(t, f.tree, "db/t/snapshots/1/data.parquet"), "parquet of 1, schema 0, 0 files\n"; got != want {
		t.Errorf("snapshot: %q, want %q", got, want)
	}
	if got, want := content(t, f.tree, "db/t/current/data.csv"), "csv of 2, schema 1, 0 files\n"; got != want {
		t.Errorf("current: %q, want %q", got, want)
	}
	if got, want := content(t, f.tree, "db/t/snapshots/2@schema-1/data.jsonl"), "jsonl of 2, schema 1, 0 files\n"; got != want {
		t.Errorf("another schema: %q, want %q", got, want)
	}
	if got := content(t, f.tree, "db/t/snapshots/1/snapshot.json"); got != `{"snapshot-id":1}`+"\n" {
		t.Errorf("snapshot.json: %q", got)
	}
	if got := content(t, f.tree, "db/t/current/schema.json"); !strings.Contains(got, `"more"`) {
		t.Errorf("schema.json: %q", got)
	}
	if got := content(t, f.tree, ".icefs/version"); got != "v1\n" {
		t.Errorf("version: %q", got)
	}
	for _, p := range []string{"x", "db/x", "db/t/x", "db/t/snapshots/3", "db/t/snapshots/01", "db/t/snapshots/+1",
		"db/t/snapshots/1@schema-9", "db/t/snapshots/1@schema-", "db/t/snapshots/1@schema-00", "db/t/current/x", "db/t/at/x"} {
		missing(t, f.tree, p)
	}
}

func TestLinks(t *testing.T) {
	meta := treetest.Metadata(uuid, 3)
	meta.Snapshots[2].SchemaID = 1
	meta.Refs = append(meta.Refs,
		snapshot.Ref{Name: "feature/x", SnapshotID: 2}, snapshot.Ref{Name: "v1", SnapshotID: 1, Tag: true})
	f := newFixture(t, meta)
	for path, want := range map[string]string{
		"db/t/current":                          "snapshots/3", // its own schema is the table's
		"db/t/branches/main":                    "../snapshots/3",
		"db/t/branches/feature%2Fx":             "../snapshots/2@schema-1",
		"db/t/tags/v1":                          "../snapshots/1",
		"db/t/by-time/2026-11-30T02-53-01.123Z": "../snapshots/1",
		"db/t/at/2026-11-30T02:53:02.123Z":      "../snapshots/2",
		"db/t/at/2026-11-30T02:53:02.122Z":      "../snapshots/1",
		"db/t/at/2026-11-30T03-53-03.123+01-00": "../snapshots/3",
		"db/t/at/2026-12-01":                    "../snapshots/3",
	} {
		if got := target(t, f.tree, path); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
		if _, err := f.tree.Resolve(t.Context(), path+"/data.csv"); err != nil {
			t.Error(err)
		}
	}
	missing(t, f.tree, "db/t/at/2026-11-30")
	same(t, "at", names(t, f.tree, "db/t/at"), nil)
	same(t, "tags", names(t, f.tree, "db/t/tags"), []string{"v1"})
	same(t, "branches", names(t, f.tree, "db/t/branches"), []string{"feature%2Fx", "main"})
}

func TestSameMillisecond(t *testing.T) {
	meta := treetest.Metadata(uuid, 3)
	for i := range meta.Log {
		meta.Log[i].Time = treetest.Moment(1).Add(time.Duration(i) * time.Microsecond)
	}
	f := newFixture(t, meta)
	same(t, "by-time", names(t, f.tree, "db/t/by-time"),
		[]string{"2026-11-30T02-53-01.123Z~1", "2026-11-30T02-53-01.123Z~2", "2026-11-30T02-53-01.123Z"})
	if got := target(t, f.tree, "db/t/by-time/2026-11-30T02-53-01.123Z"); got != "../snapshots/3" {
		t.Errorf("the plain name leads to %q", got)
	}
}

func TestExpiredLogEntry(t *testing.T) {
	meta := treetest.Metadata(uuid, 3)
	meta.Snapshots = slices.Delete(meta.Snapshots, 1, 2)
	f := newFixture(t, meta)
	same(t, "by-time", names(t, f.tree, "db/t/by-time"), []string{"2026-11-30T02-53-01.123Z", "2026-11-30T02-53-03.123Z"})
	missing(t, f.tree, "db/t/at/2026-11-30T02:53:02.5Z") // snapshot 1 was not current then
	if got := target(t, f.tree, "db/t/at/2026-11-30T02:53:01.5Z"); got != "../snapshots/1" {
		t.Errorf("at leads to %q", got)
	}
}

func TestNoSnapshot(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 0))
	same(t, "current", names(t, f.tree, "db/t/current"),
		[]string{"data.parquet", "data.csv", "data.jsonl", "parts", "schema.json", "files.csv"})
	same(t, "parts", names(t, f.tree, "db/t/current/parts"), nil)
	same(t, "snapshots", names(t, f.tree, "db/t/snapshots"), nil)
	if got, want := content(t, f.tree, "db/t/current/data.csv"), "csv of -1, schema 1, 0 files\n"; got != want {
		t.Errorf("data.csv: %q, want %q", got, want)
	}
	if a := attr(t, f.tree, "db/t/current"); a.Kind != tree.KindDir || a.Immutable {
		t.Errorf("current is %+v", a)
	}
}

func TestBrokenTable(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 1))
	f.table.Fail(errors.New("format version 4 is not supported"))
	same(t, "without metadata", names(t, f.tree, "db/t"), []string{"error.txt"})
	f.table.Raw = []byte("{}")
	same(t, "with metadata", names(t, f.tree, "db/t"), []string{"metadata.json", "error.txt"})
	if got := content(t, f.tree, "db/t/error.txt"); !strings.Contains(got, "format version 4") {
		t.Errorf("error.txt: %q", got)
	}
	if got := content(t, f.tree, "db/t/metadata.json"); got != "{}" {
		t.Errorf("metadata.json: %q", got)
	}
	missing(t, f.tree, "db/t/snapshots")
	f.table.Fail(fmt.Errorf("dropped: %w", iofs.ErrNotExist))
	missing(t, f.tree, "db/t/error.txt")
	if _, err := f.tree.Resolve(t.Context(), "db/t/snapshots"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("a dropped table: %v", err)
	}
}

func TestCancelIsNoBrokenTable(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 1))
	n, err := f.tree.Resolve(t.Context(), "db/t")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := n.(tree.Dir).Entries(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted listing gives %v, %v", list, err)
	}
}

func TestNamesOfNamespace(t *testing.T) {
	sub, tab := &treetest.Namespace{}, treetest.NewTable(treetest.Metadata(uuid, 0))
	space := &treetest.Namespace{}
	for _, n := range []string{"a", "x/y", ".icefs"} {
		space.Spaces = append(space.Spaces, treetest.Named[*treetest.Namespace]{Name: n, Of: sub})
	}
	for _, n := range []string{"a", "a~table", "b", "..", strings.Repeat("n", 300)} {
		space.Tabs = append(space.Tabs, treetest.Named[*treetest.Table]{Name: n, Of: tab})
	}
	tr := newTree(t, treetest.Catalog{Space: space}, &treetest.Views{})
	got := names(t, tr, "")
	same(t, "escaped", got[:8], []string{".icefs", "a", "x%2Fy", "%2Eicefs", "a~table", "b", "%2E%2E", got[7]})
	if len(got) != 9 || got[8] != "a~table~table" || len(got[7]) != 255 {
		t.Errorf("names: %q", got)
	}
	for _, n := range got[4:] {
		if names(t, tr, n)[0] != "current" {
			t.Errorf("%s is not a table", n)
		}
	}
	space.Folders = true
	tr = newTree(t, treetest.Catalog{Space: &treetest.Namespace{Folders: true, Spaces: space.Spaces}}, &treetest.Views{})
	same(t, "folders", names(t, tr, ""), []string{".icefs", "a", "x/y", ".icefs~namespace"})
}

func TestTableAsRoot(t *testing.T) {
	tr := newTree(t, treetest.Catalog{Tab: treetest.NewTable(treetest.Metadata(uuid, 1))}, &treetest.Views{})
	same(t, "root", names(t, tr, ""),
		[]string{".icefs", "current", "snapshots", "branches", "tags", "by-time", "at", "metadata.json"})
	if got, want := content(t, tr, "current/data.csv"), "csv of 1, schema 1, 0 files\n"; got != want {
		t.Errorf("data.csv: %q", got)
	}
	if a := attr(t, tr, ""); a.Ino != 1 {
		t.Errorf("the root is inode %d", a.Ino)
	}
}

func TestListingsAskForNoSize(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 3))
	f.table.Current().Files = dataFiles("a/1.parquet", "a/2.parquet")
	for _, p := range []string{"", "db", "db/t", "db/t/snapshots", "db/t/branches", "db/t/by-time", "db/t/tags"} {
		names(t, f.tree, p)
	}
	if n := f.table.Current().Plans.Load(); n != 0 {
		t.Errorf("listings above a snapshot read %d plans", n)
	}
	names(t, f.tree, "db/t/snapshots/1")
	names(t, f.tree, "db/t/snapshots/1/parts")
	if n := f.views.Sizes.Load(); n != 0 {
		t.Errorf("listings asked for %d sizes", n)
	}
	if n := f.table.Current().Plans.Load(); n != 1 {
		t.Errorf("listing a snapshot and its parts read %d plans, want 1", n)
	}
}

func TestTimes(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 2))
	for path, want := range map[string]time.Time{
		"":                               tree.Fixed(),
		"db":                             tree.Fixed(),
		"db/t":                           treetest.Moment(2),
		"db/t/snapshots/1":               treetest.Moment(1),
		"db/t/snapshots/1/data.parquet":  treetest.Moment(1),
		"db/t/snapshots/1/schema.json":   treetest.Moment(1),
		"db/t/snapshots/1/parts":         treetest.Moment(1),
		"db/t/snapshots/2@schema-1":      treetest.Moment(2),
		"db/t/at/2026-11-30T02:53:01.5Z": treetest.Moment(1),
		"db/t/current":                   treetest.Moment(2),
		"db/t/metadata.json":             treetest.Moment(2),
	} {
		if got := attr(t, f.tree, path).MTime; !got.Equal(want) {
			t.Errorf("%q: time %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]bool{
		"db": false, "db/t": false, "db/t/current": false, "db/t/snapshots": false, "db/t/branches/main": false,
		"db/t/at/2026-12-01": false, "db/t/metadata.json": false, "db/t/snapshots/1": true, "db/t/snapshots/1/data.csv": true,
	} {
		if got := attr(t, f.tree, path).Immutable; got != want {
			t.Errorf("%q: immutable %t", path, got)
		}
	}
}

func TestCommitWhileOpen(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 1))
	n, err := f.tree.Resolve(t.Context(), "db/t/current/data.csv")
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.(tree.File).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	f.table.Commit(&treetest.Loaded{Meta: treetest.Metadata(uuid, 2)})
	buf := make([]byte, 8)
	if _, err := h.ReadAt(t.Context(), buf, 0); err != nil || string(buf) != "csv of 1" {
		t.Errorf("the open file reads %q, %v", buf, err)
	}
	if got := content(t, f.tree, "db/t/current/data.csv"); !strings.HasPrefix(got, "csv of 2") {
		t.Errorf("a new reader gets %q", got)
	}
}

func TestUnreadableManifests(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 1))
	broken := errors.New("manifest is damaged")
	f.table.Current().PlanErr = broken
	if got := names(t, f.tree, "db/t/snapshots/1"); len(got) != 7 {
		t.Errorf("files that cannot be served are not listed: %q", got)
	}
	n, err := f.tree.Resolve(t.Context(), "db/t/snapshots/1/data.csv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.(tree.File).Size(t.Context()); !errors.Is(err, broken) || errors.Is(err, tree.ErrExpired) {
		t.Errorf("size: %v", err)
	}
	if _, err := n.(tree.File).Open(t.Context()); !errors.Is(err, broken) {
		t.Errorf("open: %v", err)
	}
}

func TestExpiredSnapshot(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 2))
	n, err := f.tree.Resolve(t.Context(), "db/t/snapshots/1/data.csv")
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.(tree.File).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("no such object")
	f.views.Fail.Store(&gone)
	if _, err := h.ReadAt(t.Context(), make([]byte, 4), 0); !errors.Is(err, gone) || errors.Is(err, tree.ErrExpired) {
		t.Errorf("a missing file of a live snapshot: %v", err)
	}
	later := treetest.Metadata(uuid, 3)
	later.Snapshots = later.Snapshots[1:]
	f.table.Commit(&treetest.Loaded{Meta: later})
	if _, err := h.ReadAt(t.Context(), make([]byte, 4), 0); !errors.Is(err, gone) || !errors.Is(err, tree.ErrExpired) {
		t.Errorf("a missing file of an expired snapshot: %v", err)
	}
	f.table.Fail(iofs.ErrNotExist)
	if _, err := n.(tree.File).Size(t.Context()); !errors.Is(err, tree.ErrExpired) {
		t.Errorf("a missing file of a dropped table: %v", err)
	}
}

func TestParseShown(t *testing.T) {
	if s, err := tree.ParseShown("parquet, csv,jsonl,parts"); err != nil || s != tree.DefaultShown() {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := tree.ParseShown("parts.csv,parts.jsonl"); err != nil || s != (tree.Shown{PartsCSV: true, PartsJSONL: true}) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "parquet,", "CSV", "orc"} {
		if s, err := tree.ParseShown(bad); err == nil {
			t.Errorf("%q gives %+v", bad, s)
		}
	}
}

func TestResolve(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 1))
	a := attr(t, f.tree, "db/t/current/../../../../db/./t/snapshots")
	if b := attr(t, f.tree, "db/t/snapshots"); a != b {
		t.Errorf("%+v, want %+v", a, b)
	}
	if _, err := f.tree.Resolve(t.Context(), "db/t/metadata.json/x"); err == nil {
		t.Error("a file was entered")
	}
}
