package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go"
	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/internal/fixture"
)

// change is what happens to a data file under a mount.
type change struct {
	name string
	do   func(path string, other []byte) error // other are valid bytes of the same length
	// hidden: size, time and inode number are what they were. Nobody can tell, and
	// the new rows are shown.
	hidden  bool
	inPlace bool
}

// sourceChanges are the ways in which a file can go from under a mount.
func sourceChanges() []change {
	return []change{
		{name: "deleted", do: func(path string, _ []byte) error { return os.Remove(path) }},
		{name: "replaced by a longer file", do: func(path string, other []byte) error { return replaceFile(path, append(other, "more"...), false) }},
		{name: "replaced by a file of the same size and time", do: func(path string, other []byte) error { return replaceFile(path, other, true) }},
		{name: "replaced by a folder", do: func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
		{name: "cut", inPlace: true, do: func(path string, other []byte) error { return os.Truncate(path, int64(len(other)/2)) }},
		{name: "emptied", inPlace: true, do: func(path string, _ []byte) error { return os.Truncate(path, 0) }},
		{name: "written over", inPlace: true, do: func(path string, other []byte) error { return os.WriteFile(path, other, 0o600) }},
		{name: "written over, and its time put back", inPlace: true, hidden: true, do: func(path string, other []byte) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path, other, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
		}},
	}
}

// replaceFile puts another file in a file's place, if asked with its time.
func replaceFile(path string, content []byte, sameTime bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	if sameTime {
		if err := os.Chtimes(next, info.ModTime(), info.ModTime()); err != nil {
			return err
		}
	}
	return os.Rename(next, path)
}

// twinTables are two tables whose files have the same names and sizes, and other
// rows: two data files, one of them with deleted rows.
func twinTables(t *testing.T) (dir string, other map[string][]byte) {
	t.Helper()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String})
	make := func(mark string) string {
		tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: schema, FormatVersion: 3,
			Parquet: fixture.ParquetOptions{Codec: fixture.Uncompressed, NoDictionary: true, PageSize: 16 << 10, RowGroup: 8000}})
		rows := func(from int) (list []fixture.Row) {
			for i := range 24_000 {
				list = append(list, fixture.Row{"id": from + i, "s": fmt.Sprintf("%s%015d", mark, from+i)})
			}
			return list
		}
		tx := tab.Begin()
		files := []*fixture.File{tx.Append(rows(1_000_000)...), tx.Append(rows(2_000_000)...)}
		tx.DeleteVector(files[1], 1, 7, 9_000, 20_000, 20_001)
		tx.Commit()
		if err := tab.Err(); err != nil {
			t.Fatal(err)
		}
		return tab.Dir()
	}
	dir, other = make("A"), map[string][]byte{}
	twin := make("B")
	names, err := filepath.Glob(filepath.Join(dir, "data", "*.parquet"))
	if err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		rel := strings.TrimPrefix(name, dir)
		a, errA := os.ReadFile(name)
		b, errB := os.ReadFile(twin + rel)
		if errA != nil || errB != nil || len(a) != len(b) || bytes.Equal(a, b) {
			t.Fatalf("%s: %d and %d bytes, %v, %v", rel, len(a), len(b), errA, errB)
		}
		other[rel] = b
	}
	return dir, other
}

// TestChangedSource: whatever happens to data files under a mount, a reader gets
// the bytes of before or an error, never rows of another file: with a view opened
// before or after, and with whatever icefs has kept of it.
func TestChangedSource(t *testing.T) {
	table, other := twinTables(t)
	server := startMountServer(t)
	before := readViews(t, server, table)
	twin := filepath.Join(t.TempDir(), "t")
	if err := os.CopyFS(twin, os.DirFS(table)); err != nil {
		t.Fatal(err)
	}
	for file, b := range other {
		if err := os.WriteFile(twin+file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after := readViews(t, server, twin)
	for _, flags := range [][]string{nil, {"--layout-options", "kernel=off"}} {
		for _, c := range sourceChanges() {
			for _, state := range []changedState{unread, opened, readWhole} {
				t.Run(fmt.Sprintf("%s, %v, %v", c.name, state, flags), func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "t")
					if err := os.CopyFS(dir, os.DirFS(table)); err != nil {
						t.Fatal(err)
					}
					m, err := server.mount(t, dir, t.TempDir(), flags...)
					if err != nil {
						t.Fatal(err)
					}
					defer m.unmount()
					checkChanged(t, m, changed{c, state, dir, before, after, other, flags == nil && kernelPasses(t, dir)})
				})
			}
		}
	}
}

// changedState is what was done with the views before the change.
type changedState int

const (
	unread    changedState = iota
	opened                 // and their beginning read
	readWhole              // and dropped by the kernel, not by icefs
)

func (s changedState) String() string { return [...]string{"unread", "opened", "read"}[s] }

// changed is a change of the data files of the table in dir.
type changed struct {
	change
	state  changedState
	dir    string
	before map[string][]byte // of the views
	after  map[string][]byte // of those that nobody had read before, if anything
	other  map[string][]byte // of the data files, after
	passes bool              // the kernel reads parts that are files by itself
}

// viewsOfRows returns all files with rows, below a mountpoint.
func viewsOfRows(t *testing.T, dir string) (views []string) {
	t.Helper()
	for _, pattern := range []string{"current/data.*", "current/parts/*"} {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			views = append(views, strings.TrimPrefix(v, dir))
		}
	}
	if len(views) != 5 {
		t.Fatalf("views: %v", views)
	}
	return views
}

// readViews reads the views of a table.
func readViews(t *testing.T, server *mountServer, table string) map[string][]byte {
	t.Helper()
	m, err := server.mount(t, table, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.unmount()
	content := map[string][]byte{}
	for _, v := range viewsOfRows(t, m.dir) {
		if content[v], err = os.ReadFile(filepath.Join(m.dir, v)); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

// checkChanged reads all views before and after a change.
func checkChanged(t *testing.T, m *mounted, c changed) {
	t.Helper()
	open := map[string]*os.File{}
	for v := range c.before {
		if c.state == unread {
			break
		}
		f, err := os.Open(filepath.Join(m.dir, v))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if c.state == opened {
			_, err = f.ReadAt(make([]byte, 100), 0)
			open[v] = f
		} else if _, err = io.Copy(io.Discard, f); err == nil {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for file, b := range c.other {
		if err := c.do(c.dir+file, slices.Clone(b)); err != nil {
			t.Fatal(err)
		}
	}
	for v, want := range c.before {
		if f := open[v]; f != nil {
			passed := c.passes && c.isFile(v)
			c.checkPieces(t, m, v, f, want, c.hidden || c.inPlace && passed)
		} else if c.state == unread {
			want = c.after[v]
		}
		f, err := os.Open(filepath.Join(m.dir, v))
		if err != nil {
			c.checkRefused(t, m, v, err)
			continue
		}
		c.checkPieces(t, m, v, f, want, c.hidden)
		f.Close()
	}
}

// isFile reports whether a view is a data file byte for byte.
func (c *changed) isFile(view string) bool {
	stem := strings.TrimSuffix(filepath.Base(view), ".parquet")
	for file, b := range c.other {
		if strings.Contains(file, stem) && len(b) == len(c.before[view]) {
			return true
		}
	}
	return false
}

// checkPieces reads a view bit by bit: each piece is as before, or an error.
func (c *changed) checkPieces(t *testing.T, m *mounted, view string, f *os.File, want []byte, anything bool) {
	t.Helper()
	buf := make([]byte, 96<<10)
	for off := 0; off < len(want); off += len(buf) {
		n := min(len(buf), len(want)-off)
		got, err := f.ReadAt(buf[:n], int64(off))
		switch {
		case anything:
		case err == io.EOF:
			t.Errorf("%s ends at %d, not at %d", view, off+got, len(want))
			return
		case err != nil:
			c.checkRefused(t, m, view, err)
		case !bytes.Equal(buf[:n], want[off:off+n]):
			t.Errorf("%s has other bytes from %d on", view, off+firstDifference(buf[:n], want[off:off+n]))
		}
	}
}

// names reports whether a message names one of the data files.
func (c *changed) names(message string) bool {
	for file := range c.other {
		if strings.Contains(message, filepath.Base(file)) {
			return true
		}
	}
	return false
}

// checkRefused wants an errno of the contract, and a line of the log.
func (c *changed) checkRefused(t *testing.T, m *mounted, view string, err error) {
	t.Helper()
	errno := errnoOf(err)
	if errno != syscall.ESTALE && errno != syscall.EIO {
		t.Errorf("%s: %v", view, err)
	}
	if !slices.ContainsFunc(m.said(), func(l logLine) bool {
		return filepath.Base(l.Path) == filepath.Base(view) && l.Errno == errno.Error() && c.names(l.Cause)
	}) {
		t.Errorf("%s: %v, and the log does not tell why: %+v", view, err, m.said())
	}
}
