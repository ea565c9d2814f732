// Package activity watches the calls that an adapter of the tree (FUSE, HTTP)
// serves: those under way, how long they take, the last that failed; and it logs
// each slow one with what was done meanwhile.
//
// The adapter calls Begin when a call starts and End when it is answered. The
// two together cost well below a microsecond: a call is timed, linked into a
// list, and its path is spelled out only if somebody asks.
//
// A nil *Log watches nothing. Everything here is safe for concurrent use.
// Log.mu is held for list operations only.
package activity

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultSlow is how long a call may take before it is logged: a first read that
// decodes a chunk takes a second or so, a first stat of a large CSV longer.
const DefaultSlow = 10 * time.Second

// keepFailures is how many of the last failures are told.
const keepFailures = 20

// Kinds of Work: what a call may have waited for.
const (
	SourceReads     = iota // reads from the source
	SourceBytes            // bytes they gave
	SourceNanos            // their time together, in ns
	Manifests              // manifests parsed
	Footers                // Parquet footers parsed
	ChunksRewritten        // column chunks rewritten
	ChunksMeasured         // column chunks measured
	GroupsMeasured         // row groups measured for text
	PagesDecoded           // data pages decoded
	kinds
)

// Work is how much of each kind has been done since the start, by all calls
// together.
type Work [kinds]int64

// Options of New. The zero value of each field is its default.
type Options struct {
	Log *slog.Logger
	// Slow is how long a call may take before it is logged; 0 = DefaultSlow,
	// negative: none is logged.
	Slow time.Duration
	// Work reads the counters of work; nil: reasons are not told.
	Work func() Work
	// Observe is told of every call that ended; nil: nobody is.
	Observe func(call string, took time.Duration, failed bool)
}

// Log watches calls.
type Log struct {
	opt Options

	mu       sync.Mutex
	running  list.List // of *Call, oldest first
	failures []Failure // oldest first, at most keepFailures
	failed   int64
}

// New returns a Log.
func New(opt Options) *Log {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Slow == 0 {
		opt.Slow = DefaultSlow
	}
	return &Log{opt: opt}
}

// Call is one call under way. Begin makes it, End ends it.
type Call struct {
	log     *Log
	name    string
	path    func() string
	begun   time.Time
	before  Work
	element *list.Element
}

// Begin notes that a call begins. name is that of the operation ("read"); path
// gives the path in the tree, and is called later or never.
func (l *Log) Begin(name string, path func() string) *Call {
	if l == nil {
		return nil
	}
	c := &Call{log: l, name: name, path: path, begun: time.Now()}
	if l.opt.Work != nil && l.opt.Slow > 0 {
		c.before = l.opt.Work()
	}
	l.mu.Lock()
	c.element = l.running.PushBack(c)
	l.mu.Unlock()
	return c
}

// End notes that the call is answered, with n bytes, or not served.
func (c *Call) End(n int, failed bool) {
	if c == nil {
		return
	}
	l := c.log
	took := time.Since(c.begun)
	l.mu.Lock()
	l.running.Remove(c.element)
	others := l.running.Len()
	l.mu.Unlock()
	if l.opt.Observe != nil {
		l.opt.Observe(c.name, took, failed)
	}
	if l.opt.Slow <= 0 || took < l.opt.Slow {
		return
	}
	reason := "unknown"
	if l.opt.Work != nil {
		reason = l.opt.Work().since(c.before).reason()
	}
	l.opt.Log.Warn("slow "+c.name, "path", c.path(), "took", took.Round(time.Millisecond).String(),
		"bytes", n, "failed", failed, "meanwhile", reason, "other_calls", others)
}

// since is the work done between two moments.
func (w Work) since(before Work) Work {
	for i := range w {
		w[i] -= before[i]
	}
	return w
}

// reason tells what was done, the most telling first.
func (w Work) reason() string {
	var parts []string
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(w[GroupsMeasured], "row groups measured for text")
	add(w[ChunksMeasured], "column chunks measured")
	add(w[ChunksRewritten], "column chunks rewritten")
	add(w[PagesDecoded], "pages decoded")
	add(w[Footers], "footers parsed")
	add(w[Manifests], "manifests parsed")
	if w[SourceReads] > 0 {
		parts = append(parts, fmt.Sprintf("%d reads of %d bytes from the source, which took %s",
			w[SourceReads], w[SourceBytes], time.Duration(w[SourceNanos]).Round(time.Millisecond)))
	}
	if parts == nil {
		return "nothing was read or decoded: the processor, the cache folder or one long read of the source"
	}
	return strings.Join(parts, ", ")
}

// Failure is a call that was not served, and why.
type Failure struct {
	Time  time.Time `json:"time"`
	Path  string    `json:"path"`
	Call  string    `json:"call"`
	Errno string    `json:"errno"`
	Cause string    `json:"cause"` // the whole chain
}

// Failed notes a failure and logs it once, the whole chain.
func (l *Log) Failed(ctx context.Context, f Failure) {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.failed++
	if len(l.failures) == keepFailures {
		l.failures = slices.Delete(l.failures, 0, 1)
	}
	l.failures = append(l.failures, f)
	l.mu.Unlock()
	l.opt.Log.ErrorContext(ctx, "cannot serve a file", "path", f.Path, "call", f.Call, "errno", f.Errno, "cause", f.Cause)
}

// Running is a call under way.
type Running struct {
	Call    string  `json:"call"`
	Path    string  `json:"path"`
	Seconds float64 `json:"seconds"` // since it began
}

// Status is what a Log knows at a moment.
type Status struct {
	Running  []Running // oldest first
	Failures []Failure // the last ones, newest first
	Failed   int64     // how many there have been, repetitions left out
}

// Status returns the calls under way, most of them by their number alone (the
// oldest max are spelled out), and the last failures.
func (l *Log) Status(max int) (s Status, running int) {
	if l == nil {
		return s, 0
	}
	l.mu.Lock()
	running = l.running.Len()
	calls := make([]*Call, 0, min(max, running))
	for e := l.running.Front(); e != nil && len(calls) < max; e = e.Next() {
		calls = append(calls, e.Value.(*Call))
	}
	s.Failures = slices.Clone(l.failures)
	s.Failed = l.failed
	l.mu.Unlock()
	slices.Reverse(s.Failures)
	for _, c := range calls {
		s.Running = append(s.Running, Running{Call: c.name, Path: c.path(), Seconds: time.Since(c.begun).Seconds()})
	}
	return s, running
}
