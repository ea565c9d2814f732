package storetest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Front is a proxy before a store that delays and fails requests as told. Safe
// for concurrent use, also while its faults are changed.
type Front struct {
	mu     sync.Mutex
	faults Faults
	random *rand.Rand
	proxy  *httputil.ReverseProxy

	requests atomic.Int64
	gets     atomic.Int64
	bytes    atomic.Int64
	failed   atomic.Int64
}

// Faults say what goes wrong. Rates are of requests, from 0 to 1.
type Faults struct {
	Down  bool          // nothing is answered: connections are reset
	Delay time.Duration // before each request
	Rate  float64       // of requests that fail in one of the ways of Kinds
	Kinds []Fault       // empty = all
}

// Fault is a way in which a request fails.
type Fault int

// The faults. Cut ends the connection within the body.
const (
	Answer503 Fault = iota
	Answer429
	Answer404
	Answer416
	Cut
	kinds
)

// NewFront returns a front before the store at target.
func NewFront(target string) (*Front, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("front: %w", err)
	}
	f := &Front{random: rand.New(rand.NewPCG(1, 2))}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host // it is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
	}
	return f, nil
}

// Set changes the faults.
func (f *Front) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// Counts are the requests so far: all, those for bytes of objects, the bytes
// they were answered, and those that were made to fail.
func (f *Front) Counts() (requests, gets, bytes, failed int64) {
	return f.requests.Load(), f.gets.Load(), f.bytes.Load(), f.failed.Load()
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	faults := f.faults
	fails := f.random.Float64() < faults.Rate
	kind := Fault(f.random.IntN(int(kinds)))
	if len(faults.Kinds) > 0 {
		kind = faults.Kinds[f.random.IntN(len(faults.Kinds))]
	}
	f.mu.Unlock()
	f.requests.Add(1)
	if r.Method == http.MethodGet && !r.URL.Query().Has("list-type") {
		f.gets.Add(1)
	}
	time.Sleep(faults.Delay)
	if faults.Down {
		panic(http.ErrAbortHandler)
	}
	counted := &counting{ResponseWriter: w, bytes: &f.bytes}
	if !fails {
		f.proxy.ServeHTTP(counted, r)
		return
	}
	f.failed.Add(1)
	switch kind {
	case Answer503:
		fail(w, http.StatusServiceUnavailable, "SlowDown")
	case Answer429:
		fail(w, http.StatusTooManyRequests, "TooManyRequests")
	case Answer404:
		fail(w, http.StatusNotFound, "NoSuchKey")
	case Answer416:
		fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	default:
		counted.left, counted.cuts = 100, true
		f.proxy.ServeHTTP(counted, r)
		panic(http.ErrAbortHandler) // the length was promised: the connection ends
	}
}

// counting counts a body's bytes, and ends it early.
type counting struct {
	http.ResponseWriter
	bytes *atomic.Int64
	cuts  bool
	left  int
}

func (c *counting) Write(p []byte) (int, error) {
	if c.cuts {
		p = p[:min(len(p), c.left)]
		if c.left -= len(p); len(p) == 0 {
			return 0, io.ErrShortWrite
		}
	}
	n, err := c.ResponseWriter.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController find what is behind.
func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }
