// Package web serves internal/tree over read-only HTTP, for places without FUSE.
//
// The paths are those of the tree, each name percent-encoded. A file answers GET
// and HEAD with its exact size, ranges, a strong ETag (the identity that is its
// inode number in a mount) and Last-Modified; a folder with a page for people
// (page.go). Links are followed where they are; Content-Location tells the path
// without links, by which a client that sends several requests stays on one
// snapshot.
//
// Invariants:
//
//   - Headers of success are sent once the first bytes are there (answer.go): an
//     error of the tree is a status of its own, and one that comes later aborts
//     the connection, so that no client takes part of a file for the whole.
//   - A request whose Host is a name that was not allowed is refused (host.go):
//     a web site cannot read the tree by letting its name lead here.
//   - Nothing is changed by any request.
//
// There is no TLS and no password: a proxy in front adds both.
package web

import (
	"context"
	"errors"
	"html/template"
	iofs "io/fs"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/internal/tree"
)

// Options of NewHandler.
type Options struct {
	Tree *tree.Tree
	// Errno maps an error of the tree to what a file system would say.
	Errno func(error) syscall.Errno
	// Title is shown on the pages: what is served.
	Title    string
	Activity *activity.Log // may be nil
}

// Times of a server. A reply may take as long as it needs, but not a client that
// reads nothing of it.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stallTimeout  = time.Minute
)

// maxHeader is the longest head of a request, in bytes.
const maxHeader = 64 << 10

// NewServer returns a server of a handler with time limits on its clients.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(logWriter{logger}, "", 0),
	}
}

// logWriter passes the messages of net/http on: about clients.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("http", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}

// handler serves a tree.
type handler struct {
	opt      Options
	template *template.Template // of a folder's page
}

// NewHandler returns a handler of the whole tree. See GuardHost.
func NewHandler(opt Options) http.Handler {
	return &handler{opt, template.Must(template.New("page").Parse(pageTemplate))}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSafety(w.Header())
	if r.ContentLength != 0 { // nothing is read from clients
		w.Header().Set("Connection", "close")
		h.refuse(w, http.StatusBadRequest, "This tree takes no data.")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.refuse(w, http.StatusMethodNotAllowed, "This tree is read-only.")
		return
	}
	names, dir, ok := parsePath(r.URL)
	if !ok {
		h.refuse(w, http.StatusNotFound, "There is no such path.")
		return
	}
	node, at, err := h.opt.Tree.Find(r.Context(), names)
	if err != nil {
		h.fail(w, r, "lookup", err)
		return
	}
	switch n := node.(type) {
	case tree.Dir:
		if !dir {
			redirect(w, names)
			return
		}
		h.page(w, r, folder{n, names, at})
	case tree.File:
		if dir {
			h.refuse(w, http.StatusNotFound, "This is a file: take the slash away.")
			return
		}
		h.file(w, r, n, names, at)
	}
}

// setSafety keeps a browser from taking data for a page, and other sites from
// using it.
func setSafety(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
}

// parsePath splits a path into names of the tree; dir reports a slash at its end.
// Each name is decoded by itself, so that %2F is not a slash between names. Empty
// names, "." and ".." are none.
func parsePath(u *url.URL) (names []string, dir, ok bool) {
	path, rooted := strings.CutPrefix(u.EscapedPath(), "/")
	if !rooted {
		return nil, false, false
	}
	if path == "" {
		return nil, true, true
	}
	path, dir = strings.CutSuffix(path, "/")
	for part := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(part)
		if err != nil || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return nil, false, false
		}
		names = append(names, name)
	}
	return names, dir, true
}

// redirect sends a client to the folder's own path. The target is relative, and
// begins with "./": it cannot lead to another host.
func redirect(w http.ResponseWriter, names []string) {
	w.Header().Set("Location", "./"+url.PathEscape(names[len(names)-1])+"/")
	w.WriteHeader(http.StatusMovedPermanently)
}

// relative is the path of a file at, as a reference on the page of the path
// names: it holds behind a proxy that puts the tree below a path of its own.
func relative(names, at []string) string {
	var b strings.Builder
	b.WriteString(strings.Repeat("../", max(len(names)-1, 0)))
	if b.Len() == 0 {
		b.WriteString("./") // a name with a colon is not a scheme
	}
	for i, n := range at {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(url.PathEscape(n))
	}
	return b.String()
}

// relativeDir is relative from a folder's page to a folder.
func relativeDir(names, at []string) string {
	return "../" + relative(names, at) + "/"
}

// fail answers with the status of an error of the tree, and tells of it what a
// client may know; the chain goes to the log.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, call string, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // nobody is left to answer
	}
	status, text := h.statusOf(err)
	if status == http.StatusNotFound && call == "lookup" {
		h.refuse(w, status, text)
		return
	}
	h.log(r, call, err)
	h.refuse(w, status, text)
}

// log notes a failure, the whole chain.
func (h *handler) log(r *http.Request, call string, err error) {
	h.opt.Activity.Failed(r.Context(), activity.Failure{Time: time.Now().UTC(), Path: strings.TrimPrefix(r.URL.Path, "/"),
		Call: call, Errno: h.opt.Errno(err).Error(), Cause: err.Error()})
}

// statusOf maps an error by its errno. What is broken or gone at the source is
// not "not found": the name is there.
func (h *handler) statusOf(err error) (int, string) {
	switch errno := h.opt.Errno(err); {
	case errors.Is(err, iofs.ErrNotExist) && errno == syscall.ENOENT, errors.Is(err, tree.ErrNotDir):
		return http.StatusNotFound, "There is no such path."
	case errno == syscall.ESTALE:
		return http.StatusGone, "This snapshot has expired, or a file of it was replaced."
	case errno == syscall.EOPNOTSUPP:
		return http.StatusNotImplemented, "This file needs something that icefs does not support; its log tells what."
	case errno == syscall.ETIMEDOUT:
		return http.StatusGatewayTimeout, "The source did not answer in time."
	case errno == syscall.EINTR, errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "The request was interrupted."
	}
	return http.StatusInternalServerError, "This file cannot be served: a file of the source is missing or damaged; the log tells which."
}

// refuse answers with a status and a line of text, the one body that is not of
// the tree.
func (h *handler) refuse(w http.ResponseWriter, status int, text string) {
	for _, name := range []string{"Etag", "Last-Modified", "Cache-Control", "Content-Location", "Content-Length", "Content-Range", "Accept-Ranges"} {
		w.Header().Del(name)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}
