package web

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/icefs/icefs/internal/tree"
)

// folder is a folder that a page shows.
type folder struct {
	dir   tree.Dir
	names []string // its path as asked for
	at    []string // without links
}

// perPage is how many entries a page shows; a table of many parts has more.
const perPage = 1000

// sizePatience is how long a page waits for sizes, all of them together: those
// of Parquet views take milliseconds, the first of a CSV view may take minutes.
const sizePatience = 300 * time.Millisecond

// pageData is what the template shows.
type pageData struct {
	Title  string
	Root   string // reference to the root
	Crumbs []crumb
	Real   *crumb // the path without links, if it is another
	Facts  string // how many rows are here
	// Described: the entries are those of a table's or a snapshot's folder.
	Described bool
	Rows      []row
	First     int // of the rows, counted from 1
	Total     int
	Previous  string // references to other pages of the same folder, or ""
	Next      string
	Read      []string // commands that read what is here
	Empty     string   // what is said where nothing is listed
}

// crumb is a folder above.
type crumb struct{ Name, Ref string }

// row is an entry.
type row struct {
	Name, Ref string
	Kind      string // "dir", "link" or "file"
	Target    string // of a link
	About     string // what it is, if the name is one of the tree's own
	Size      string
	Note      string // about the size
	Time      string
	Stamp     string // the time as RFC 3339
	when      time.Time
}

// page answers with a folder's page.
func (h *handler) page(w http.ResponseWriter, r *http.Request, f folder) {
	call := h.opt.Activity.Begin("http list", func() string { return strings.Join(f.at, "/") })
	data, err := h.pageData(r, f)
	call.End(0, err != nil)
	if err != nil {
		h.fail(w, r, "list", err)
		return
	}
	var b bytes.Buffer
	if err := h.template.Execute(&b, data); err != nil {
		h.fail(w, r, "list", err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	if r.Method == http.MethodHead {
		return
	}
	a := &answer{w: w, status: http.StatusOK}
	_, _ = a.Write(b.Bytes()) // the client is gone if it fails
}

func (h *handler) pageData(r *http.Request, f folder) (*pageData, error) {
	ctx := r.Context()
	entries, err := f.dir.Entries(ctx)
	if err != nil {
		return nil, err
	}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b tree.Entry) int {
		return cmp.Or(cmp.Compare(order(a.Kind), order(b.Kind)), cmp.Compare(a.Name, b.Name))
	})
	history := len(f.at) > 0 && slices.Contains([]string{"snapshots", "by-time"}, f.at[len(f.at)-1])
	if history { // the newest first, as far as names tell; rows are sorted by time below
		slices.Reverse(entries)
	}
	d := &pageData{Title: h.opt.Title, Total: len(entries), Root: "./" + strings.Repeat("../", len(f.names))}
	for i, name := range f.names {
		d.Crumbs = append(d.Crumbs, crumb{name, "./" + strings.Repeat("../", len(f.names)-1-i)})
	}
	if !slices.Equal(f.names, f.at) {
		d.Real = &crumb{"/" + strings.Join(f.at, "/"), relativeDir(f.names, f.at)}
	}
	from := 0
	if n, err := strconv.Atoi(r.URL.Query().Get("from")); err == nil {
		from = min(max(n, 0), len(entries))
	}
	to := min(from+perPage, len(entries))
	d.First = from + 1
	if from > 0 {
		d.Previous = "?from=" + strconv.Itoa(max(from-perPage, 0))
	}
	if to < len(entries) {
		d.Next = "?from=" + strconv.Itoa(to)
	}
	patient, cancel := context.WithTimeout(ctx, sizePatience)
	defer cancel()
	d.Facts = factsOf(patient, f.dir)
	d.Described = slices.ContainsFunc(entries, func(e tree.Entry) bool { return e.Name == "metadata.json" || e.Name == "schema.json" })
	d.Rows = rowsOf(ctx, patient, f.dir, entries[from:to])
	for i := range d.Rows {
		if d.Described {
			d.Rows[i].About = about(d.Rows[i].Name)
		}
	}
	if history {
		slices.SortStableFunc(d.Rows, func(a, b row) int { return b.when.Compare(a.when) })
	}
	d.Read = commands(r.Host, f, entries)
	d.Empty = "Nothing is listed here."
	if len(f.at) > 0 && f.at[len(f.at)-1] == "at" {
		d.Empty = "Any time leads to the snapshot of then: add a date such as 2026-11-30, or a time such as 2026-11-30T09:30:00Z, to the address."
	}
	return d, nil
}

// order puts what leads to data first.
func order(k tree.Kind) int {
	switch k {
	case tree.KindLink:
		return 0
	case tree.KindDir:
		return 1
	}
	return 2
}

// rowsOf asks every entry for what the page shows of it. What fails is shown as
// such; the entry is there.
func rowsOf(ctx, patient context.Context, dir tree.Dir, entries []tree.Entry) []row {
	rows := make([]row, len(entries))
	for i, e := range entries {
		rows[i] = rowOf(ctx, patient, dir, e)
	}
	return rows
}

func rowOf(ctx, patient context.Context, dir tree.Dir, e tree.Entry) row {
	r := row{Name: e.Name, Ref: "./" + url.PathEscape(e.Name), Kind: "file"}
	n, err := dir.Lookup(ctx, e.Name)
	if err == nil {
		var a tree.Attr
		if a, err = n.Attr(ctx); err == nil && !a.MTime.Equal(tree.Fixed()) {
			r.when = a.MTime.UTC()
			r.Time, r.Stamp = r.when.Format("2006-01-02 15:04:05"), r.when.Format(time.RFC3339Nano)
		}
	}
	switch n := n.(type) {
	case tree.Dir:
		r.Kind, r.Ref = "dir", r.Ref+"/"
	case tree.Link:
		r.Kind, r.Ref = "link", r.Ref+"/"
		r.Target, err = n.Target(ctx)
	case tree.File:
		r.size(ctx, patient, n)
	}
	if err != nil {
		r.Note = "cannot be shown"
	}
	return r
}

// size fills in a file's size, if it can be told soon.
func (r *row) size(ctx, patient context.Context, f tree.File) {
	if a, err := f.Attr(ctx); err != nil || a.Dynamic {
		return
	}
	n, err := f.Size(patient)
	switch {
	case err == nil:
		r.Size, r.Note = humanize.IBytes(uint64(n)), humanize.Comma(n)+" bytes"
	case patient.Err() != nil:
		r.Note = "not measured yet"
	default:
		r.Note = "cannot be served"
	}
}

// factsOf tells how many rows a snapshot's folder shows; empty if that cannot be
// told soon, and for other folders.
func factsOf(patient context.Context, dir tree.Dir) string {
	s, ok := dir.(tree.SnapshotFolder)
	if !ok {
		return ""
	}
	facts, ok := s.(tree.Facts)
	if !ok {
		return ""
	}
	rows, deleted, err := facts.Rows(patient)
	if err != nil {
		return ""
	}
	text := humanize.Comma(rows) + " rows"
	if deleted > 0 {
		text += "; " + humanize.Comma(deleted) + " deleted ones are left out"
	}
	return text + "."
}

// about says what an entry of a table's or a snapshot's folder is.
func about(name string) string {
	switch name {
	case "current":
		return "the table as it is now"
	case "snapshots":
		return "every commit, by its id"
	case "branches", "tags":
		return "snapshots that have a name"
	case "by-time":
		return "every commit, by its time"
	case "at":
		return "any time, such as at/2026-11-30"
	case "metadata.json":
		return "the table's metadata"
	case "parts":
		return "one Parquet file for each data file"
	case "data.csv", "data.jsonl", "data.parquet":
		return "all rows"
	case "files.csv":
		return "the data files, and what is deleted from them"
	case "schema.json":
		return "the columns"
	case "snapshot.json":
		return "the commit, as in the metadata"
	}
	return ""
}

// commands are what people can type to read a folder's files. Shell quoting is
// needed for no character that url.PathEscape leaves, but for '.
func commands(host string, f folder, entries []tree.Entry) []string {
	if !slices.ContainsFunc(entries, func(e tree.Entry) bool { return e.Name == "data.parquet" }) {
		return nil
	}
	base := "http://" + host + "/"
	for _, name := range f.at {
		base += strings.ReplaceAll(url.PathEscape(name), "'", "%27") + "/"
	}
	return []string{
		`duckdb -c "FROM '` + base + `data.parquet' LIMIT 10"`,
		`curl -s '` + base + `data.csv' | head`,
	}
}
