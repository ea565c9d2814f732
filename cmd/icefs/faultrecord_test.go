package main

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// recorder notes what is asked of a source that has faults. Safe for concurrent
// use.
type recorder[C comparable] struct {
	mu   sync.Mutex
	seen map[C]bool // nil: calls are not recorded
	all  []C        // in order, each once
}

// record notes all calls until the function that it returns is called, which
// gives each of them once.
func (r *recorder[C]) record() func() []C {
	r.mu.Lock()
	r.seen, r.all = map[C]bool{}, nil
	r.mu.Unlock()
	return func() []C {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = nil
		return r.all
	}
}

func (r *recorder[C]) note(c C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen != nil && !r.seen[c] {
		r.seen[c] = true
		r.all = append(r.all, c)
	}
}

// checkFailures wants one of the errnos that are allowed for each path that failed,
// and a line of the log that names the path, and whose cause tells why. what is the
// fault.
func checkFailures(t *testing.T, what any, lines []logLine, got wholeTree, failed []string, allowed []syscall.Errno, tells func(cause string) bool) {
	t.Helper()
	for _, l := range lines {
		if l.Panic != "" || strings.Contains(l.Msg, "internal error") {
			t.Errorf("%v: %+v", what, l)
		}
	}
	for _, p := range failed {
		errno := errnoOf(got[p].err)
		if !slices.Contains(allowed, errno) {
			t.Errorf("%v: %s: %v", what, p, got[p].err)
		}
		if !slices.ContainsFunc(lines, func(l logLine) bool { return l.Path == p && l.Errno == errno.Error() && tells(l.Cause) }) {
			t.Errorf("%v: %s fails with %v, and no line of the log tells why", what, p, errno)
		}
	}
}
