package warehouse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWarehouseFolder(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a/b/c/t", "a/t", "top", "with space/t%2Fx", ".hidden/t", "a/b/n/metadata"} {
		write(t, filepath.Join(dir, path, "metadata", "v1.metadata.json"), versionFile("u", 1))
	}
	for _, path := range []string{
		"junk/x/y/z/file", "a/junk2/file", "file", "a/file", "empty_metadata/metadata/snap.avro", "metadata2/v1.metadata.json",
		"top/inner/metadata/v1.metadata.json", // below a table
		"only_crc/metadata/.v1.metadata.json.crc", "a/metadata/file",
	} {
		write(t, filepath.Join(dir, path), versionFile("u", 1))
	}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "t", "metadata", "v1.metadata.json"), versionFile("u", 1))
	for link, target := range map[string]string{
		"linked":    "a/t",
		"loop":      "a",
		"a/up":      "..",
		"elsewhere": filepath.Join(outside, "t"),
		"dangling":  "none",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, dir, Options{})
	tables := tablesOf(t, c)
	want := []string{".hidden/t", "a/b/c/t", "a/b/n/metadata", "a/t", "linked", "top", "with space/t%2Fx"}
	if got := sortedKeys(tables); !slices.Equal(got, want) {
		t.Errorf("tables %q, want %q", got, want)
	}
	for path, table := range tables {
		if path != "linked" {
			if _, err := table.Load(context.Background()); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	root, _, _ := c.Root(context.Background())
	if !root.Verbatim() {
		t.Error("folders are to keep their names")
	}
	namespaces, err := root.Namespaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range namespaces {
		got = append(got, name)
	}
	if want := []string{".hidden", "a", "with space"}; !slices.Equal(got, want) {
		t.Errorf("namespaces %q, want %q", got, want)
	}
}

func TestSearchEndsAndHidesNothing(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		write(t, filepath.Join(dir, "data", fmt.Sprint("p=", i), "file"), "")
	}
	e, err := newEnv(Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for budget, want := range map[int]bool{100: false, 61: false, 60: true, 31: true, 1: true} {
		left := budget
		if found, err := e.hasTable(context.Background(), filepath.Join(dir, "data"), &left); err != nil || found != want {
			t.Errorf("budget %d: %v, %v", budget, found, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	left := 40
	if _, err := e.hasTable(ctx, dir, &left); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}

func TestListingsRefreshAndKeepIdentity(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	add := func(path string) {
		write(t, filepath.Join(dir, path, "metadata", "v1.metadata.json"), versionFile("u", 1))
	}
	add("db/one")
	c := open(t, dir, Options{Refresh: -1})
	before := tablesOf(t, c)
	root, _, _ := c.Root(ctx)
	children, err := root.Namespaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var db *Namespace
	for _, child := range children {
		db = child
	}
	add("db/two")
	after := tablesOf(t, c)
	if got := sortedKeys(after); !slices.Equal(got, []string{"db/one", "db/two"}) {
		t.Errorf("tables %v", got)
	}
	if before["db/one"] != after["db/one"] {
		t.Error("a table that stayed is another one")
	}
	if err := os.RemoveAll(filepath.Join(dir, "db")); err != nil {
		t.Fatal(err)
	}
	if got := tablesOf(t, c); len(got) != 0 {
		t.Errorf("tables %v after they were removed", got)
	}
	for _, err := range db.Tables(ctx) {
		if !errors.Is(err, ErrGone) {
			t.Errorf("listing a folder that is gone: %v", err)
		}
	}
	if _, err := db.Table(ctx, "one"); !errors.Is(err, ErrGone) {
		t.Errorf("a table in a folder that is gone: %v", err)
	}

	slow := open(t, dir, Options{})
	if got := tablesOf(t, slow); len(got) != 0 {
		t.Errorf("tables %v", got)
	}
	add("db/three")
	if got := tablesOf(t, slow); len(got) != 0 {
		t.Errorf("a listing within the refresh interval shows %v", got)
	}
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	warehouse := filepath.Join(dir, "metadata") // a warehouse may have that name
	write(t, filepath.Join(warehouse, "t", "metadata", "v1.metadata.json"), versionFile("u", 1))
	if got := sortedKeys(tablesOf(t, open(t, warehouse, Options{}))); !slices.Equal(got, []string{"t"}) {
		t.Errorf("%v", got)
	}
	for _, src := range []string{"s3://bucket/wh", "rest:https://x", "ftp://h/x", "postgresql://u:p@h/db", "http://u:p@h/db", "sqlite://relative.db", "sqlite:///", "sqlite:///x.db?catlog=x"} {
		_, err := Open(context.Background(), src, Options{})
		if !errors.Is(err, ErrUnsupportedSource) {
			t.Errorf("%s: %v, want ErrUnsupportedSource", src, err)
		}
	}
	for _, src := range []string{filepath.Join(dir, "none"), "file://" + dir + "/none", "file:///nowhere/at/all"} {
		if _, err := Open(context.Background(), src, Options{}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", src, err)
		}
	}
	if got := sortedKeys(tablesOf(t, open(t, "file:"+warehouse, Options{}))); !slices.Equal(got, []string{"t"}) {
		t.Errorf("by its file: URL: %v", got)
	}
	if _, err := Open(context.Background(), dir, Options{AllowPaths: []string{filepath.Join(dir, "none")}}); err == nil {
		t.Error("an allowed path that does not exist was taken")
	}
}
