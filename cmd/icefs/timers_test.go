package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestCoarseTimers: every thread of a mount has coarse timers, the one of Go's
// scheduler, which is started before any code of ours, too.
func TestCoarseTimers(t *testing.T) {
	s := startServer(t, "../../testdata/warehouse", t.TempDir())
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid))
	if err != nil || len(threads) < 2 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		slack, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(slack)); got != fmt.Sprint(timerSlack.Nanoseconds()) {
			t.Errorf("thread %s: %s ns", thread.Name(), got)
		}
	}
}
