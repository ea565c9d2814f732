// Package storetest is an object store for tests: a server that speaks as much of
// S3 as icefs asks for, from memory, and a front that makes a store slow and
// unreliable. Both count what they are asked. Signatures are not verified.
package storetest

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a store in memory. Objects are addressed in path style.
type Server struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string]object // by bucket/key
	seen    []*Request
	// NoTags leaves ETags out, as gateways over plain files do.
	NoTags bool
	// PageSize bounds a page of a listing; 0 = 1000.
	PageSize int
}

type object struct {
	body     []byte
	tag      string
	modified time.Time
}

// Request is one that was made.
type Request struct {
	Method, Path, Range, IfMatch string
	Listing                      bool
	Authorization                string
	Status                       int
	Bytes                        int64 // of the body answered
}

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB) *Server {
	s := &Server{objects: make(map[string]object)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Put stores an object; name is BUCKET/KEY.
func (s *Server) Put(name string, body []byte) {
	sum := md5.Sum(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = object{body, `"` + hex.EncodeToString(sum[:]) + `"`, time.Now()}
}

// PutDir stores the files below a local folder under BUCKET/PREFIX.
func (s *Server) PutDir(t testing.TB, name, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		s.Put(name+"/"+filepath.ToSlash(rel), body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Delete removes an object.
func (s *Server) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// Requests returns the requests made since the last call. One that is still being
// answered has no status.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make([]Request, len(s.seen))
	for i, r := range s.seen {
		seen[i] = *r
	}
	s.seen = nil
	return seen
}

// recorder notes how a request was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{w, http.StatusOK, 0}
	name := strings.TrimPrefix(r.URL.Path, "/")
	seen := &Request{
		Method: r.Method, Path: name, Range: r.Header.Get("Range"), IfMatch: r.Header.Get("If-Match"),
		Listing: r.URL.Query().Has("list-type"), Authorization: r.Header.Get("Authorization"),
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen) // before the client has its answer
	s.mu.Unlock()
	if seen.Listing {
		s.list(rec, strings.Trim(name, "/"), r.URL.Query())
	} else {
		s.object(rec, r, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen.Status, seen.Bytes = rec.status, rec.bytes
}

func (s *Server) object(w http.ResponseWriter, r *http.Request, name string) {
	s.mu.Lock()
	o, ok := s.objects[name]
	s.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	if !s.NoTags {
		w.Header().Set("ETag", o.tag)
	}
	w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	if match := r.Header.Get("If-Match"); match != "" && match != o.tag {
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	from, to, partial, ok := byteRange(r.Header.Get("Range"), int64(len(o.body)))
	if !ok {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(to-from, 10))
	if partial {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(o.body)))
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(o.body[from:to])
	}
}

// byteRange parses a header for an object of a size.
func byteRange(header string, size int64) (from, to int64, partial, ok bool) {
	if header == "" {
		return 0, size, false, true
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		return max(size-n, 0), size, true, err == nil && size > 0
	}
	from, err := strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	return from, min(to+1, size), true, err == nil && err2 == nil && from < size
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>for a test</Message></Error>", code)
}

type listResult struct {
	XMLName               xml.Name   `xml:"ListBucketResult"`
	Name                  string     `xml:"Name"`
	IsTruncated           bool       `xml:"IsTruncated"`
	EncodingType          string     `xml:"EncodingType"`
	NextContinuationToken string     `xml:"NextContinuationToken,omitempty"`
	Contents              []listed   `xml:"Contents"`
	CommonPrefixes        []prefixed `xml:"CommonPrefixes"`
}

type listed struct{ Key string }
type prefixed struct{ Prefix string }

func (s *Server) list(w http.ResponseWriter, bucket string, q url.Values) {
	prefix, after := q.Get("prefix"), q.Get("continuation-token")
	s.mu.Lock()
	names := map[string]bool{} // true = a folder
	for name := range s.objects {
		key, ok := strings.CutPrefix(name, bucket+"/")
		rest, below := strings.CutPrefix(key, prefix)
		if !ok || !below {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			names[prefix+rest[:i+1]] = true
		} else {
			names[key] = false
		}
	}
	page := s.PageSize
	s.mu.Unlock()
	if page == 0 {
		page = 1000
	}
	var sorted []string
	for name := range names {
		if name > after {
			sorted = append(sorted, name)
		}
	}
	slices.Sort(sorted)
	out := listResult{Name: bucket, EncodingType: "url"}
	for i, name := range sorted {
		if i == page {
			out.IsTruncated, out.NextContinuationToken = true, sorted[i-1]
			break
		}
		if names[name] {
			out.CommonPrefixes = append(out.CommonPrefixes, prefixed{url.QueryEscape(name)})
		} else {
			out.Contents = append(out.Contents, listed{url.QueryEscape(name)})
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}
