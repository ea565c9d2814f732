package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// storeFault is a way in which a store lets its reader down.
type storeFault int

const (
	answers500     storeFault = iota // InternalError
	answers503                       // SlowDown
	answersReset                     // the connection ends before the answer
	answersCut                       // the connection ends halfway through the body
	answersShort                     // half of the body is all there is, and the answer says so
	answersNothing                   // 200 and no body
	answersLate                      // after storeDelay
	answersNever                     // until the reader gives up
	answers403                       // AccessDenied
	answers404                       // NoSuchKey
	answers416                       // InvalidRange
	answersNewer                     // with another ETag
	answersElse                      // the bytes beside those that were asked for, and the answer says so
	answersFlipped                   // a bit is another one
)

func (k storeFault) String() string {
	return [...]string{"500", "503", "reset", "cut", "short", "empty", "late", "no answer", "403", "404", "416", "other ETag", "other range", "bit flip"}[k]
}

// storeDelay is how long a late answer takes: long beside any other.
const storeDelay = 100 * time.Millisecond

// storeCall is a request.
type storeCall struct {
	method string
	object string // BUCKET/KEY
	bytes  string // the Range header's
	prefix string // of a listing
}

func (c storeCall) listing() bool { return c.object == "" }

func (c storeCall) String() string {
	if c.listing() {
		return "list " + c.prefix
	}
	return fmt.Sprintf("%s %s %s", c.method, c.object, c.bytes)
}

// storeCallFault is a request that is answered wrongly, once or whenever it is
// made.
type storeCallFault struct {
	kind   storeFault
	at     storeCall
	always bool
	flip   int // the byte of the body that is damaged, with answersFlipped
	fired  atomic.Int64
}

func (f *storeCallFault) String() string {
	text := fmt.Sprintf("%v of %v", f.kind, f.at)
	if !f.always {
		text += ", once"
	}
	if f.kind == answersFlipped {
		text += fmt.Sprintf(", at %d", f.flip)
	}
	return text
}

// faultStore is a store that answers one request wrongly. Safe for concurrent
// use.
type faultStore struct {
	URL   string
	store http.Handler
	fault atomic.Pointer[storeCallFault] // nil: none

	calls recorder[storeCall]
}

func newFaultStore(t *testing.T, store http.Handler) *faultStore {
	s := &faultStore{store: store}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *faultStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := storeCall{method: r.Method, object: strings.TrimPrefix(r.URL.Path, "/"), bytes: r.Header.Get("Range")}
	if q := r.URL.Query(); q.Has("list-type") {
		c = storeCall{method: r.Method, prefix: q.Get("prefix")}
	}
	s.calls.note(c)
	f := s.fault.Load()
	if f == nil || f.at != c || f.fired.Add(1) > 1 && !f.always {
		s.store.ServeHTTP(w, r)
		return
	}
	f.answer(w, r, s.store)
}

// answer answers a request wrongly.
func (f *storeCallFault) answer(w http.ResponseWriter, r *http.Request, store http.Handler) {
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}
	switch f.kind {
	case answers500:
		refuse(http.StatusInternalServerError, "InternalError")
	case answers503:
		refuse(http.StatusServiceUnavailable, "SlowDown")
	case answers403:
		refuse(http.StatusForbidden, "AccessDenied")
	case answers404:
		refuse(http.StatusNotFound, "NoSuchKey")
	case answers416:
		refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	case answersNothing:
		w.WriteHeader(http.StatusOK)
	case answersReset:
		panic(http.ErrAbortHandler)
	case answersNever:
		<-r.Context().Done()
	case answersLate:
		time.Sleep(storeDelay)
		store.ServeHTTP(w, r)
	default:
		answer := httptest.NewRecorder()
		if f.kind == answersElse {
			r = r.Clone(r.Context())
			r.Header.Set("Range", beside(r.Header.Get("Range")))
		}
		store.ServeHTTP(answer, r)
		f.harm(w, answer)
	}
}

// beside returns the range one byte before another, or one byte shorter.
func beside(header string) string {
	var from, to int64
	if _, err := fmt.Sscanf(header, "bytes=%d-%d", &from, &to); err != nil || from <= 0 {
		fmt.Sscanf(header, "bytes=-%d", &to)
		return fmt.Sprintf("bytes=0-%d", to/2)
	}
	return fmt.Sprintf("bytes=%d-%d", from-1, to-1)
}

// harm gives a right answer, with something wrong in it.
func (f *storeCallFault) harm(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	body := answer.Body.Bytes()
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	if f.at.method != http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	switch f.kind {
	case answersShort:
		body = body[:len(body)/2]
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	case answersNewer:
		w.Header().Set("ETag", `"another"`)
	case answersFlipped:
		if f.flip < len(body) {
			body[f.flip] ^= 1 << (f.flip % 8)
		}
	}
	w.WriteHeader(answer.Code)
	if f.kind == answersCut {
		w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler) // the length was promised: the connection ends
	}
	w.Write(body)
}
