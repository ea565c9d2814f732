package activity

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func path(s string) func() string { return func() string { return s } }

func TestNilWatchesNothing(t *testing.T) {
	var l *Log
	l.Begin("read", path("a")).End(1, false)
	l.Failed(context.Background(), Failure{})
	if s, n := l.Status(9); n != 0 || s.Running != nil || s.Failures != nil {
		t.Errorf("%+v", s)
	}
}

func TestSlowCallIsLoggedWithItsReason(t *testing.T) {
	var out bytes.Buffer
	var work Work
	l := New(Options{
		Log:  slog.New(slog.NewTextHandler(&out, nil)),
		Slow: 5 * time.Millisecond,
		Work: func() Work { return work },
	})
	l.Begin("read", path("quick")).End(1, false)
	c := l.Begin("stat", path("t/data.csv"))
	work[GroupsMeasured], work[SourceReads], work[SourceBytes], work[SourceNanos] = 7, 3, 4096, int64(2*time.Second)
	time.Sleep(6 * time.Millisecond)
	c.End(0, false)
	text := out.String()
	for _, want := range []string{`level=WARN msg="slow stat"`, "path=t/data.csv",
		"7 row groups measured for text, 3 reads of 4096 bytes from the source, which took 2s", "other_calls=0"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if strings.Contains(text, "quick") {
		t.Errorf("a quick call is logged: %q", text)
	}
}

func TestReasonOfNothing(t *testing.T) {
	if r := (Work{}).reason(); !strings.HasPrefix(r, "nothing was read") {
		t.Error(r)
	}
}

func TestNoneIsSlow(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{Log: slog.New(slog.NewTextHandler(&out, nil)), Slow: -1})
	c := l.Begin("read", path("x"))
	time.Sleep(time.Millisecond)
	c.End(0, true)
	if out.Len() > 0 {
		t.Error(out.String())
	}
}

func TestStatus(t *testing.T) {
	var observed []string
	l := New(Options{Observe: func(call string, took time.Duration, failed bool) {
		observed = append(observed, fmt.Sprint(call, " ", failed, " ", took >= 0))
	}})
	first := l.Begin("read", path("a"))
	second := l.Begin("list", path("b"))
	third := l.Begin("read", path("c"))
	second.End(0, true)
	for i := range keepFailures + 5 {
		l.Failed(context.Background(), Failure{Path: fmt.Sprint(i)})
	}
	s, n := l.Status(1)
	if n != 2 || len(s.Running) != 1 || s.Running[0].Path != "a" || s.Running[0].Call != "read" || s.Running[0].Seconds < 0 {
		t.Errorf("%d calls run, told %+v", n, s.Running)
	}
	if len(s.Failures) != keepFailures || s.Failures[0].Path != "24" || s.Failures[keepFailures-1].Path != "5" || s.Failed != 25 {
		t.Errorf("%d failures, %+v", s.Failed, s.Failures)
	}
	first.End(1, false)
	third.End(1, false)
	if s, n := l.Status(9); n != 0 || len(s.Running) != 0 {
		t.Errorf("%d calls run, told %+v", n, s.Running)
	}
	if want := "[list true true read false true read false true]"; fmt.Sprint(observed) != want {
		t.Errorf("observed %v", observed)
	}
}

func TestManyAtOnce(t *testing.T) {
	l := New(Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				c := l.Begin("read", path("x"))
				l.Status(4)
				c.End(1, false)
			}
		})
	}
	wg.Wait()
	if _, n := l.Status(4); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

func BenchmarkCall(b *testing.B) {
	l := New(Options{Work: func() Work { return Work{} }})
	at := path("x")
	for b.Loop() {
		l.Begin("read", at).End(1, false)
	}
}
