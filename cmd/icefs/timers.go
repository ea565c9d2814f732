package main

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// timerSlack is how late the kernel may wake a thread of a server whose sleep
	// is over; 50 µs is what processes have otherwise.
	timerSlack = 500 * time.Microsecond
	// timersEnv is set in the environment of a process that has begun anew, or that
	// must not: one that has more to do than a single command.
	timersEnv = "ICEFS_TIMERS"
)

// coarseTimers begins this process anew, under the same id and with the same
// command line, with timers as late as timerSlack. The thread by which Go's
// scheduler watches system calls sleeps 20 µs at a time while there are some, and
// in a server of reads there always are: it took a fifth of a mount's processor
// time. Threads have the slack of the one that starts them, and that thread is
// started before main, so that only exec hands it on. Where that cannot be,
// timers stay as they are.
func coarseTimers() {
	if os.Getenv(timersEnv) != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack.Nanoseconds()), 0, 0, 0) == nil {
		// It returns only where it fails.
		_ = unix.Exec(self, os.Args, append(os.Environ(), timersEnv+"=1"))
	}
}
