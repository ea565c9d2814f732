package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// secret is in every file outside of the warehouse, and may be in nothing that a
// mount says.
const secret = "outside-7f3a9c"

// hostileBudget is the --memory of the mount, and hostileBound what its process may
// have resident: a page of 128 MiB is decoded whatever the budget is.
const (
	hostileBudget = 256 << 20
	hostileBound  = 768 << 20
	wideBound     = 1 << 30 // 100,000 columns take some KiB each
)

// hostile is a table that somebody made to do harm.
type hostile struct {
	name string
	make func(w *hostileWarehouse, dir string)
	// says is what error.txt, or the log, has to say about it. Empty: the table is
	// read as if nothing were wrong with it.
	says string
	csv  string // how data.csv begins then; empty: it is hostileText
}

// hostileWarehouse is a warehouse of hostile tables, and what lies outside of it.
type hostileWarehouse struct {
	t       *testing.T
	dir     string
	outside string        // with a table t, and secret.json
	store   string        // an address where nobody may call
	calls   *atomic.Int32 // those who did
	bombs   *bombs
}

func hostileSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String, Required: true},
	)
}

// rowsOf are four rows; hostileText is the CSV of what is left of them.
func rowsOf(text string) (rows []fixture.Row) {
	for id := 1; id <= 4; id++ {
		rows = append(rows, fixture.Row{"id": id, "s": text})
	}
	return rows
}

const hostileText = "id,s\n1,fine\n3,fine\n4,fine\n"

// table makes a table of one data file and one position-delete file. edit may
// take part in the first commit, harm change the data file when it is written.
func (w *hostileWarehouse) table(dir, text string, opt fixture.Options, file fixture.FileOptions) (*fixture.Table, *fixture.File, *fixture.File) {
	w.t.Helper()
	opt.Schema = hostileSchema()
	opt.Parquet.NoDictionary = true
	tab := fixture.New(dir, opt)
	tx := tab.Begin()
	data := tx.AppendFile(file, rowsOf(text)...)
	tx.Commit()
	tx = tab.Begin()
	deleted := tx.DeletePositions(data, 1)
	tx.Commit()
	if err := tab.Err(); err != nil {
		w.t.Fatal(err)
	}
	return tab, data, deleted
}

func (w *hostileWarehouse) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// fine makes a table with nothing wrong.
func fine(w *hostileWarehouse, dir string) {
	w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
}

// newHostileWarehouse makes what lies outside.
func newHostileWarehouse(t *testing.T) *hostileWarehouse {
	t.Helper()
	base := t.TempDir()
	w := &hostileWarehouse{t: t, dir: filepath.Join(base, "wh"), outside: filepath.Join(base, "outside"), calls: new(atomic.Int32), bombs: newBombs(t)}
	w.table(filepath.Join(w.outside, "t"), secret, fixture.Options{}, fixture.FileOptions{Name: "f.parquet"})
	w.check(os.WriteFile(filepath.Join(w.outside, "secret.json"), fmt.Appendf(nil, "{%q: %q}", secret, secret), 0o644))
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	w.store = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.calls.Add(1)
			c.Close()
		}
	}()
	return w
}

// reads reports whether data.csv is what it should be.
func (h *hostile) reads(text string) bool {
	if h.csv == "" {
		return text == hostileText
	}
	return strings.HasPrefix(text, h.csv)
}

// check reads all of a table in the mount.
func (h *hostile) check(t *testing.T, dir string, log *served) {
	t.Helper()
	failed := ""
	if b, err := os.ReadFile(filepath.Join(dir, "error.txt")); err == nil {
		failed = string(b)
	} else {
		for _, view := range []string{"data.parquet", "data.csv", "data.jsonl"} {
			b, err := os.ReadFile(filepath.Join(dir, "current", view))
			switch {
			case h.says != "" && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.EOPNOTSUPP):
				t.Errorf("%s: %s: %d bytes, %v", h.name, view, len(b), err)
			case h.says == "" && (err != nil || view == "data.csv" && !h.reads(string(b))):
				t.Errorf("%s: %s: %.100q, %v", h.name, view, b, err)
			}
		}
	}
	if h.says == "" {
		return
	}
	if failed != "" && strings.Contains(failed, h.says) {
		return
	}
	about := "no line of the log is about it"
	for range 100 { // what the process says takes a while to arrive
		for line := range strings.Lines(log.said()) {
			if strings.Contains(line, "/"+h.name+"/") {
				if about = line; strings.Contains(line, h.says) {
					return
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s: %q is not said: %s%.500s", h.name, h.says, failed, about)
}

// TestHostileWarehouse: one warehouse with everything that a hostile one may have.
// Each bad table fails by itself, with its reason; the others are read right, in
// bounded memory; nothing from outside shows up anywhere, and nobody is called.
func TestHostileWarehouse(t *testing.T) {
	w := newHostileWarehouse(t)
	tables := slices.Concat(hostileNames(), hostilePlaces(), hostileMetadata(), hostileManifests(), hostileFiles())
	for i := range tables {
		h := &tables[i]
		h.make(w, filepath.Join(w.dir, "db", h.name))
	}
	w.check(os.Symlink(filepath.Join(w.outside, "t"), filepath.Join(w.dir, "db", "linked_table")))
	w.check(os.Symlink(w.outside, filepath.Join(w.dir, "linked_folder")))
	fine(w, filepath.Join(w.dir, ".icefs"))
	w.bombs = nil

	log := &served{}
	mnt := mountHostile(t, w.dir, log, "--refresh", "1h")
	began := time.Now()
	listed := map[string]bool{}
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(mnt, "db"))) {
		listed[e.Name()] = true
	}
	for i := range tables {
		h := &tables[i]
		if !listed[h.name] {
			t.Errorf("%q is not listed", h.name)
		}
		delete(listed, h.name)
		h.check(t, filepath.Join(mnt, "db", h.name), log)
	}
	if len(listed) > 0 {
		t.Errorf("listed as well: %q", slices.Sorted(maps.Keys(listed)))
	}
	bombed := map[string]bool{} // they were read, and each look at one costs
	for _, h := range slices.Concat(hostileManifests(), hostileFiles()) {
		bombed[filepath.Join(mnt, "db", h.name, "snapshots")] = true
	}
	files := walkHostile(t, mnt, bombed)
	t.Logf("%d tables, %d files read in %v", len(tables), files, time.Since(began).Round(time.Millisecond))
	searchSecret(t, "the log", strings.NewReader(log.said()))
	if n := w.calls.Load(); n != 0 {
		t.Errorf("%d connections to an address that metadata names", n)
	}
	if peak := peakMemory(t, serverOf(mnt)); peak > hostileBound {
		t.Errorf("%d MiB were resident at the most, of %d", peak>>20, hostileBound>>20)
	} else {
		t.Logf("%d MiB were resident at the most", peak>>20)
	}
	if strings.Contains(log.said(), "panic") {
		t.Errorf("a panic:\n%s", log.said())
	}
}

// TestWideTables: 100,000 columns, of the table or of a file, are shown.
func TestWideTables(t *testing.T) {
	w := &hostileWarehouse{t: t, dir: filepath.Join(t.TempDir(), "wh")}
	for _, h := range wideTables() {
		h.make(w, filepath.Join(w.dir, h.name))
	}
	log := &served{}
	mnt := mountHostile(t, w.dir, log)
	for _, h := range wideTables() {
		h.check(t, filepath.Join(mnt, h.name), log)
	}
	if peak := peakMemory(t, serverOf(mnt)); peak > wideBound {
		t.Errorf("%d MiB were resident at the most, of %d", peak>>20, wideBound>>20)
	}
}

// mountHostile mounts a source in a process that cannot have more than 4 GiB of
// address space, so that a failing test harms nobody.
func mountHostile(t *testing.T, src string, log *served, flags ...string) string {
	t.Helper()
	log.dir = t.TempDir()
	args := append([]string{"-c", `ulimit -v 4194304; exec "$@"`, "sh", icefsBinary(t), "mount", "--memory", fmt.Sprint(hostileBudget),
		"--cache-dir", filepath.Join(t.TempDir(), "cache")}, flags...)
	cmd := exec.Command("sh", append(args, src, log.dir)...)
	cmd.Stderr = log
	serveMount(t, cmd, log.dir, log.said)
	return log.dir
}

// walkHostile looks at everything in a mount: names, links, attributes, contents
// and errors, and searches it for the secret. It returns the number of files read.
func walkHostile(t *testing.T, mnt string, but map[string]bool) (files int) {
	t.Helper()
	err := filepath.WalkDir(mnt, func(path string, d iofs.DirEntry, err error) error {
		if err != nil {
			searchSecret(t, path, strings.NewReader(strings.ReplaceAll(err.Error(), mnt, "")))
			return nil
		}
		if but[path] {
			return iofs.SkipDir
		}
		searchSecret(t, path, strings.NewReader(d.Name()))
		if link, err := os.Readlink(path); err == nil {
			if searchSecret(t, path, strings.NewReader(link)); filepath.IsAbs(link) {
				t.Errorf("%s leads to %s", path, link)
			}
			return nil
		}
		searchSecret(t, path, bytes.NewReader(attributes(path)))
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer f.Close()
		files++
		searchSecret(t, path, f)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

// attributes are the extended attributes of a file, with their values.
func attributes(path string) []byte {
	names := make([]byte, 4096)
	n, err := unix.Llistxattr(path, names)
	if err != nil {
		return nil
	}
	all := names[:n]
	for _, name := range strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00") {
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(path, name, value); err == nil {
			all = append(all, value[:n]...)
		}
	}
	return all
}

// searchSecret reads all of r, up to an error, and looks for the secret.
func searchSecret(t *testing.T, what string, r io.Reader) {
	t.Helper()
	buf := make([]byte, len(secret)+1<<20)
	have := 0
	for {
		n, err := r.Read(buf[have:])
		have += n
		if bytes.Contains(buf[:have], []byte(secret)) {
			t.Errorf("%s: shows what lies outside of the warehouse", what)
			return
		}
		if err != nil {
			return
		}
		if keep := min(have, len(secret)); keep < have {
			copy(buf, buf[have-keep:have])
			have = keep
		}
	}
}

// hostileNames are tables with names that harm whoever does not expect them.
func hostileNames() (list []hostile) {
	for _, name := range []string{
		"plain", "Plain", "PLAIN", "a%2Fb", "%2e%2e", "..%2f..", "new\nline", "tab\there", "\x1b[31mred", " ", "-rf", "$(id)", "`id`", "a'b\"c",
		"...", "~table", "*", "\\", "é", "e\u0301", "\u202egnp", "\xff\xfe", "a\x7fb", "NUL", "t=1", strings.Repeat("n", 255), ".hidden", "metadata", "current",
	} {
		list = append(list, hostile{name: name, make: fine})
	}
	return list
}

// document is the text of a metadata file of one schema, with further members.
func document(dir, schema, more string) string {
	return fmt.Sprintf(`{"format-version":2,"table-uuid":"3f1c9c4e-3a34-4b6f-8ad3-0d2f6a5b7c11","location":%q,"last-updated-ms":1767603600000,
		"last-column-id":2,"current-schema-id":0,"schemas":[%s],"partition-specs":[{"spec-id":0,"fields":[]}],"default-spec-id":0,"snapshots":[]%s}`,
		dir, schema, more)
}

const twoColumns = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"s","required":true,"type":"string"}]}`

// metadata returns a maker of a table that has nothing but a metadata file.
func metadata(name string, text func(w *hostileWarehouse, dir string) []byte) func(*hostileWarehouse, string) {
	return func(w *hostileWarehouse, dir string) {
		folder := filepath.Join(dir, "metadata")
		w.check(os.MkdirAll(folder, 0o755))
		w.check(os.WriteFile(filepath.Join(folder, name), text(w, dir), 0o644))
	}
}

// edited returns a maker of a table whose last metadata file is changed.
func edited(edit func(w *hostileWarehouse, m map[string]any)) func(*hostileWarehouse, string) {
	return func(w *hostileWarehouse, dir string) {
		tab, _, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
		tab.EditMetadata(func(m map[string]any) {
			var plain map[string]any // instead of the fixture's own types
			w.check(json.Unmarshal(must[[]byte](w.t)(json.Marshal(m)), &plain))
			edit(w, plain)
			maps.Copy(m, plain)
		})
		w.check(tab.Err())
	}
}
