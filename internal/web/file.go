package web

import (
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/icefs/icefs/internal/tree"
)

// file answers with a file. names is its path as asked for, at the one without
// links.
func (h *handler) file(w http.ResponseWriter, r *http.Request, f tree.File, names, at []string) {
	ctx := r.Context()
	call := h.opt.Activity.Begin("http "+r.Method, func() string { return strings.Join(at, "/") })
	a := &answer{w: w}
	defer func() { call.End(int(a.sent), a.err != nil) }()
	attr, err := f.Attr(ctx)
	if err != nil {
		a.err = err
		h.fail(w, r, "stat", err)
		return
	}
	w.Header().Set("Content-Type", contentType(at[len(at)-1]))
	if attr.Dynamic {
		h.dynamic(a, r, f)
		return
	}
	size, err := f.Size(ctx)
	if err != nil {
		a.err = err
		h.fail(w, r, "stat", err)
		return
	}
	setIdentity(w.Header(), attr, slices.Equal(names, at))
	w.Header().Set("Content-Location", relative(names, at))
	open, err := f.Open(ctx)
	if err != nil {
		a.err = err
		h.fail(w, r, "open", err)
		return
	}
	a.from = &reader{ctx: ctx, file: open, size: size}
	defer a.from.close()
	http.ServeContent(a, r, "", attr.MTime, a.from)
	h.finish(a, r)
}

// finish ends an answer: with the status of an error if nothing was sent yet,
// else by aborting the connection.
func (h *handler) finish(a *answer, r *http.Request) {
	if a.err = a.from.failure(); a.err == nil {
		a.begin()
		return
	}
	if !a.begun {
		h.fail(a.w, r, "read", a.err)
		return
	}
	if r.Context().Err() == nil {
		h.log(r, "read", a.err)
	}
	panic(http.ErrAbortHandler)
}

// dynamic answers with a file of .icefs, whose size is known once it is read.
func (h *handler) dynamic(a *answer, r *http.Request, f tree.File) {
	open, err := f.Open(r.Context())
	if err != nil {
		a.err = err
		h.fail(a.w, r, "open", err)
		return
	}
	defer open.Close()
	a.w.Header().Set("Cache-Control", "no-store")
	body, err := readAll(r.Context(), open)
	if err != nil {
		a.err = err
		h.fail(a.w, r, "read", err)
		return
	}
	a.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		n, _ := a.w.Write(body)
		a.sent = int64(n)
	}
}

// setIdentity sets what tells a client which bytes these are. Below
// snapshots/<id> they stay the same, and are there for an hour at least; by a path
// that leads through a link (current) a client has to ask again.
func setIdentity(h http.Header, a tree.Attr, direct bool) {
	h.Set("Etag", fmt.Sprintf(`"%016x%016x"`, a.Ino, a.Generation))
	if a.Immutable && direct {
		h.Set("Cache-Control", "private, max-age=3600")
	} else {
		h.Set("Cache-Control", "private, no-cache")
	}
}

// contentType is told by the name alone: nothing is ever guessed from data, and
// nothing is HTML.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".parquet":
		return "application/vnd.apache.parquet"
	case ".csv":
		return mime.FormatMediaType("text/csv", map[string]string{"charset": "utf-8", "header": "present"})
	case ".jsonl":
		return "application/jsonl; charset=utf-8"
	case ".json":
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
