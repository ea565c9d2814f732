package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/merge"
)

// oddNames could be taken for URLs' escapes, queries or fragments. They are in
// order, as the views' rows are.
func oddNames() []string {
	return []string{"p=%2F%00/1.parquet", "p=12:00:00/1.parquet", "p=50%/1.parquet", "p=R&D+1/1.parquet", "p=a b/1.parquet", "p=a%252Fb/1.parquet",
		"p=a?b=c/1.parquet", "p=x y/1.parquet", "p=x%20y/1.parquet", "p=é#1/1.parquet", "p=é%231/1.parquet"}
}

// The path that metadata states is the file's name as it is: nothing in it is
// decoded or encoded. Deletes find their file when they spell the scheme in
// another of its local forms.
func TestOddPaths(t *testing.T) {
	for _, version := range []int{2, 3} {
		for _, scheme := range []string{"", "file:", "file://"} {
			dir := filepath.Join(t.TempDir(), "with space %41#")
			tab := fixture.New(dir, fixture.Options{Schema: idAndText(), FormatVersion: version, Location: scheme + dir})
			lines := []string{"id,s"}
			var files []*fixture.File
			commit(tab, func(tx *fixture.Tx) {
				for i, name := range oddNames() {
					files = append(files, tx.AppendFile(fixture.FileOptions{Name: name},
						fixture.Row{"id": i, "s": name}, fixture.Row{"id": -i, "s": "dead"}))
					lines = append(lines, fmt.Sprintf("%d,%s", i, name))
				}
			})
			commit(tab, func(tx *fixture.Tx) {
				for i, f := range files {
					if version == 3 {
						tx.DeleteVector(f, 1)
						continue
					}
					local := strings.TrimPrefix(f.Path, scheme)
					other := []string{local, "file:" + local, "file://" + local}[i%3]
					tx.DeletePositionsFile(fixture.PositionOptions{Referenced: i%2 == 0}, fixture.Position{Path: other, Pos: 1})
				}
			})
			open(t, tab).rows(lines...)
			if scheme == "file://" {
				openDir(t, moveTable(t, dir)).rows(lines...)
			}
		}
	}
}

// Partition values of such names are the values themselves.
func TestOddPartitionValues(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Partition: []iceberg.PartitionField{
		{SourceIDs: []int{2}, Name: "s", Transform: iceberg.IdentityTransform{}}}})
	lines := []string{"id,s"}
	commit(tab, func(tx *fixture.Tx) {
		for i, v := range []string{"12:00:00", "50%", "R&D", "a b", "a%2Fb", "x y", "x%20y", "é#1"} {
			tx.AppendFile(fixture.FileOptions{Omit: []int{2}, Name: "s=" + v + "/1.parquet"}, fixture.Row{"id": i, "s": v})
			lines = append(lines, fmt.Sprintf("%d,%s", i, v))
		}
	})
	open(t, tab).rows(lines...)
}

// A reader of data/ sees rows twice after a compaction, deleted rows and files
// that never were the table's; the views never do.
func TestOrphansAndCompaction(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	var a, b *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 3)...), tx.Append(numbered(4, 6)...) })
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(a, 0) })
	open(t, tab).rows("id,s", "2,", "3,", "4,", "5,", "6,")
	commit(tab, func(tx *fixture.Tx) { // compaction
		tx.RemoveAll()
		tx.Append(numbered(2, 6)...)
	})
	open(t, tab).rows("id,s", "2,", "3,", "4,", "5,", "6,")
	orphan, err := os.ReadFile(b.Local)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orphan.parquet", "00099-0-orphan.parquet", "part-0.parquet"} {
		if err := os.WriteFile(filepath.Join(tab.Dir(), "data", name), orphan, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(t, tab).rows("id,s", "2,", "3,", "4,", "5,", "6,")
	commit(tab, func(tx *fixture.Tx) { // overwrite
		tx.RemoveAll()
		tx.Append(numbered(7, 7)...)
	})
	o := open(t, tab)
	o.rows("id,s", "7,")
	o.shows(o.scan(tab.Snapshots()[0].ID, nil), "id,s\n1,\n2,\n3,\n4,\n5,\n6,\n")
}

// A handle that was opened before a commit reads its snapshot to the end, byte
// for byte; who opens anew sees the new one.
func TestCommitWhileOpen(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	rows, lines := words(1, 400)
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
	o := open(t, tab)
	s := o.scan(0, nil)
	views, _ := o.views(s)
	type half struct {
		view   merge.Opener
		handle merge.Handle
		got    []byte
	}
	var halves []*half
	for _, v := range []any{views.Parquet, views.CSV, views.JSONL} {
		h := &half{view: v.(merge.Opener)}
		size, err := h.view.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.handle, h.got = h.view.Open(), make([]byte, size)
		defer h.handle.Close()
		if _, err := h.handle.ReadAt(t.Context(), h.got[:size/2], 0); err != nil {
			t.Fatal(err)
		}
		halves = append(halves, h)
	}
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0, 399); tx.Append(numbered(1000, 1000)...) })
	open(t, tab).rows(append(append([]string{"id,s"}, lines[1:399]...), "1000,")...)
	commit(tab, func(tx *fixture.Tx) { tx.RemoveAll() })
	open(t, tab).rows("id,s")
	again := openDir(t, tab.Dir())
	old, _ := again.views(again.scan(tab.Snapshots()[0].ID, nil))
	for i, v := range []any{old.Parquet, old.CSV, old.JSONL} {
		h := halves[i]
		if _, err := h.handle.ReadAt(t.Context(), h.got[len(h.got)/2:], int64(len(h.got)/2)); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, len(h.got))
		size, err := v.(merge.View).Size(t.Context())
		if err == nil {
			_, err = v.(merge.View).ReadAt(t.Context(), want, 0)
		}
		if err != nil || size != int64(len(want)) || string(want) != string(h.got) {
			t.Errorf("view %d: other bytes than the snapshot's (%d, %d; %v)", i, len(h.got), size, err)
		}
	}
}

// A copy of a table says of itself all that the original says. Each is served
// from its own files, whichever is read first.
func TestCopyOfATable(t *testing.T) {
	tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: idAndText()})
	var a *fixture.File
	commit(tab, func(tx *fixture.Tx) { a = tx.Append(numbered(1, 4)...) })
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(a, 1) })
	first := open(t, tab)
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(tab.Dir())); err != nil {
		t.Fatal(err)
	}
	removed := filepath.Base(first.scan(0, nil).Plan.Files[0].Positions[0].Path)
	first.rows("id,s", "1,", "3,", "4,")
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == removed {
			err = os.Remove(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	broken := openDir(t, dir)
	broken.engine = first.engine
	broken.refuses(removed, 0)
	first.rows("id,s", "1,", "3,", "4,")
}
