package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// faulty are views of which reads fail from an offset on.
type faulty struct {
	*treetest.Views
	from atomic.Int64 // -1 = no failure
	err  error
}

func (f *faulty) CSV(s merge.Scan) merge.View { return &faultyView{f.Views.CSV(s), f} }

type faultyView struct {
	merge.View
	f *faulty
}

func (v *faultyView) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	from := v.f.from.Load()
	if from >= 0 && off+int64(len(p)) > from {
		return 0, v.f.err
	}
	return v.View.ReadAt(ctx, p, off)
}

// served is a tree of one table "a b" in a namespace "n%2F<x>", over HTTP.
type served struct {
	*httptest.Server
	views *faulty
	table *treetest.Table
	log   *bytes.Buffer
}

const pad = 3 << 20 // more than is read at once

// serve serves views of about padding bytes.
func serve(t *testing.T, padding int) served {
	t.Helper()
	s := served{views: &faulty{Views: &treetest.Views{Pad: padding}, err: errBroken}, table: treetest.NewTable(treetest.Metadata("11111111-2222-3333-4444-555555555555", 3)), log: new(bytes.Buffer)}
	s.views.from.Store(-1)
	s.table.Current().Files = []snapshot.File{{DataFile: &snapshot.DataFile{Path: "file:/wh/t/data/a.parquet"}}}
	db := &treetest.Namespace{Tabs: []treetest.Named[*treetest.Table]{{Name: "a b", Of: s.table}}}
	root := &treetest.Namespace{Spaces: []treetest.Named[*treetest.Namespace]{{Name: "n/<x>", Of: db}}}
	tr, err := tree.New(context.Background(), tree.Options{
		Catalog: treetest.Catalog{Space: root},
		Views:   s.views,
		Control: []tree.ControlFile{{Name: "version", Content: func(context.Context) ([]byte, error) { return []byte("1.2.3\n"), nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	h := NewHandler(Options{Tree: tr, Errno: errnoOf, Title: "wh & co", Activity: activity.New(activity.Options{Log: logger})})
	s.Server = httptest.NewUnstartedServer(GuardHost(h, []string{"data.example"}))
	s.Config = NewServer(s.Config.Handler, logger)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

var (
	errBroken = errors.New("a secret path: broken")
	errGone   = errors.New("gone")
	errNever  = errors.New("never")
	errLate   = errors.New("late")
)

func errnoOf(err error) syscall.Errno {
	switch {
	case errors.Is(err, errGone):
		return syscall.ESTALE
	case errors.Is(err, errNever):
		return syscall.EOPNOTSUPP
	case errors.Is(err, errLate):
		return syscall.ETIMEDOUT
	case errors.Is(err, iofs.ErrNotExist):
		return syscall.ENOENT
	}
	return syscall.EIO
}

// table is the URL path of the table's folder: the namespace's name is shown
// escaped, "n%2F<x>", and encoded once more in a URL.
const table = "/n%252F%3Cx%3E/a%20b/"

// ask sends a request with headers given as "Name: value".
func (s served) ask(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		body = append(body, "\nERROR: "+err.Error()...)
	}
	return resp, string(body)
}

func TestFile(t *testing.T) {
	s := serve(t, pad)
	want := "csv of 3, schema 1, 1 files\n" + strings.Repeat("x", pad)
	resp, body := s.ask(t, "GET", table+"current/data.csv")
	h := resp.Header
	if resp.StatusCode != 200 || body != want || resp.ContentLength != int64(len(want)) {
		t.Errorf("%s, %d bytes of %d", resp.Status, len(body), len(want))
	}
	etag := h.Get("Etag")
	if !regexp.MustCompile(`^"[0-9a-f]{32}"$`).MatchString(etag) || h.Get("Last-Modified") != "Mon, 30 Nov 2026 02:53:03 GMT" ||
		h.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || h.Get("Accept-Ranges") != "bytes" ||
		h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
	// By way of a link it has to be asked for again; at its own place not.
	if h.Get("Cache-Control") != "private, no-cache" || h.Get("Content-Location") != "../../../n%252F%3Cx%3E/a%20b/snapshots/3@schema-1/data.csv" {
		t.Errorf("headers of a path with a link: %v", h)
	}
	at, err := url.Parse(h.Get("Content-Location"))
	if err != nil {
		t.Fatal(err)
	}
	direct, body := s.ask(t, "GET", resp.Request.URL.ResolveReference(at).EscapedPath())
	if body != want || direct.Header.Get("Etag") != etag || direct.Header.Get("Cache-Control") != "private, max-age=3600" {
		t.Errorf("%s, %d bytes, %v", direct.Status, len(body), direct.Header)
	}
	if other, _ := s.ask(t, "GET", table+"snapshots/2/data.csv"); other.Header.Get("Etag") == etag {
		t.Error("two snapshots have one ETag")
	}
	head, body := s.ask(t, "HEAD", table+"current/data.csv")
	if head.StatusCode != 200 || body != "" || head.ContentLength != int64(len(want)) || head.Header.Get("Etag") != etag {
		t.Errorf("HEAD: %s, %q, %v", head.Status, body, head.Header)
	}
}

func TestRangesAndConditions(t *testing.T) {
	s := serve(t, 100)
	path := table + "snapshots/2/data.csv"
	whole, want := s.ask(t, "GET", path)
	etag, when := whole.Header.Get("Etag"), whole.Header.Get("Last-Modified")
	size := len(want)
	for _, c := range []struct {
		headers string // separated by |
		status  int
		body    string
		span    string
	}{
		{"Range: bytes=0-2", 206, "csv", fmt.Sprintf("bytes 0-2/%d", size)},
		{"Range: bytes=-3", 206, "xxx", fmt.Sprintf("bytes %d-%d/%d", size-3, size-1, size)},
		{fmt.Sprintf("Range: bytes=%d-", size-1), 206, "x", fmt.Sprintf("bytes %d-%d/%d", size-1, size-1, size)},
		{"Range: bytes=4-99999", 206, want[4:], fmt.Sprintf("bytes 4-%d/%d", size-1, size)},
		{fmt.Sprintf("Range: bytes=%d-", size), 416, "invalid range: failed to overlap\n", fmt.Sprintf("bytes */%d", size)},
		{"Range: bytes=0-2|If-Range: " + etag, 206, "csv", fmt.Sprintf("bytes 0-2/%d", size)},
		{"Range: bytes=0-2|If-Range: " + when, 206, "csv", fmt.Sprintf("bytes 0-2/%d", size)},
		{`Range: bytes=0-2|If-Range: "other"`, 200, want, ""},
		{"If-None-Match: " + etag, 304, "", ""},
		{`If-None-Match: "other"`, 200, want, ""},
		{`If-None-Match: "other"|If-Modified-Since: ` + when, 200, want, ""},
		{"If-Modified-Since: " + when, 304, "", ""},
		{"If-Match: " + etag, 200, want, ""},
		{`If-Match: "other"`, 412, "", ""},
		{"If-Unmodified-Since: Mon, 30 Nov 2020 02:53:02 GMT", 412, "", ""},
	} {
		resp, body := s.ask(t, "GET", path, strings.Split(c.headers, "|")...)
		if resp.StatusCode != c.status || body != c.body || resp.Header.Get("Content-Range") != c.span {
			t.Errorf("%s: %s, %q, %d bytes of %d", c.headers, resp.Status, resp.Header.Get("Content-Range"), len(body), len(c.body))
		}
	}
	resp, body := s.ask(t, "GET", path, "Range: bytes=0-2,5-7")
	_, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(strings.NewReader(body), params["boundary"])
	for _, want := range []string{want[0:3], want[5:8]} {
		p, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(p); err != nil || string(got) != want {
			t.Errorf("a part is %q, %v; want %q", got, err, want)
		}
	}
}

// TestErrors: a failure before the first byte is a status, and says nothing of
// the source; a later one ends the connection.
func TestErrors(t *testing.T) {
	s := serve(t, pad)
	path := table + "current/data.csv"
	for err, status := range map[error]int{errBroken: 500, errGone: 410, errNever: 501, errLate: 504} {
		s.views.Fail.Store(&err)
		resp, body := s.ask(t, "GET", path)
		if resp.StatusCode != status || strings.Contains(body, err.Error()) || resp.Header.Get("Etag") != "" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %s, %q, %v", err, resp.Status, body, resp.Header)
		}
	}
	s.views.Fail.Store(nil)
	s.views.from.Store(0)
	for _, headers := range [][]string{nil, {"Range: bytes=5-9"}} {
		resp, body := s.ask(t, "GET", path, headers...)
		if resp.StatusCode != 500 || strings.Contains(body, "secret") || resp.Header.Get("Content-Range") != "" || resp.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
			t.Errorf("%v: %s, %q, %v", headers, resp.Status, body, resp.Header)
		}
	}
	s.views.from.Store(2 << 20)
	if resp, body := s.ask(t, "GET", path); resp.StatusCode != 200 || !strings.HasSuffix(body, "ERROR: unexpected EOF") || len(body) > 2<<20+100 {
		t.Errorf("a failure after 2 MiB: %s, %d bytes", resp.Status, len(body))
	}
	s.views.from.Store(-1)
	if resp, body := s.ask(t, "GET", path); resp.StatusCode != 200 || strings.Contains(body, "ERROR") {
		t.Errorf("after it: %s", resp.Status)
	}
	if n := strings.Count(s.log.String(), "a secret path: broken"); n != 1 {
		t.Errorf("the failure is in the log %d times:\n%s", n, s.log.String())
	}
}

func TestPaths(t *testing.T) {
	s := serve(t, 0)
	for _, c := range []struct {
		path   string
		status int
		where  string
	}{
		{"/", 200, ""},
		{"/n%252F%3Cx%3E", 301, "./n%252F%3Cx%3E/"},
		{"/n%252F%3Cx%3E/", 200, ""},
		{table, 200, ""},
		{strings.TrimSuffix(table, "/"), 301, "./a%20b/"},
		{table + "current", 301, "./current/"},
		{table + "current/", 200, ""},
		{table + "at/2026-11-30T02:53:02Z/data.jsonl", 200, ""},
		{table + "at/2020-01-01/data.jsonl", 404, ""},
		{table + "metadata.json", 200, ""},
		{table + "metadata.json/", 404, ""},
		{table + "metadata.json/x", 404, ""},
		{table + "snapshots/2/parts/a.parquet", 200, ""},
		{"/.icefs/version", 200, ""},
		{"/nothing", 404, ""},
		{"/n%2F%3Cx%3E/", 404, ""},          // a slash inside a name
		{"/n%252F%3Cx%3E//a%20b/", 404, ""}, // an empty name
		{table + "../a%20b/", 404, ""},      // no cleaning
		{table + "%2e%2e/a%20b/", 404, ""},  // nor when encoded
		{table + "current/%00", 404, ""},    // NUL
		{"//evil.example/%2f..", 404, ""},   // no way to another host
		{table + "current/..;/x", 404, ""},  //
		{table + "snapshots/02/", 404, ""},  // no other spelling
		{table + "current/data.csv?a=b", 200, ""},
	} {
		resp, body := s.ask(t, "GET", c.path)
		if resp.StatusCode != c.status || resp.Header.Get("Location") != c.where {
			t.Errorf("%s: %s to %q: %.80s", c.path, resp.Status, resp.Header.Get("Location"), body)
		}
	}
	if _, body := s.ask(t, "GET", "/.icefs/version"); body != "1.2.3\n" {
		t.Errorf("version is %q", body)
	}
	if resp, body := s.ask(t, "HEAD", "/.icefs/version"); body != "" || resp.ContentLength != 6 {
		t.Errorf("HEAD of version: %q, %d", body, resp.ContentLength)
	}
}

func TestMethods(t *testing.T) {
	s := serve(t, 0)
	for _, m := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "MKCOL", "TRACE"} {
		if resp, _ := s.ask(t, m, table+"metadata.json"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s", m, resp.Status)
		}
	}
	r, err := http.NewRequest("GET", s.URL+"/", strings.NewReader("data"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a GET with a body: %s", resp.Status)
	}
}

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8333": true, "[::1]:8333": true, "[::1]": true, "::1": true, "10.1.2.3": true,
		"localhost": true, "LocalHost:80": true, "localhost.": true, "data.example": true, "Data.Example:8": true,
		"evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "": false,
		"sub.data.example": false, "localhost@evil": false, ":80": false, "0x7f000001": false,
	} {
		if got := hostAllowed(host, []string{"data.example"}); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
	s := serve(t, 0)
	if resp, _ := s.ask(t, "GET", "/", "Host: evil.example"); resp.StatusCode != 403 {
		t.Errorf("another host: %s", resp.Status)
	}
	if resp, _ := s.ask(t, "GET", "/", "Host: data.example"); resp.StatusCode != 200 {
		t.Errorf("an allowed host: %s", resp.Status)
	}
}
