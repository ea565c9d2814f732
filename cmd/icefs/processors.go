package main

import (
	"os"
	"runtime"
)

// A mount has callProcessors of Go's processors for each of the machine's. A
// goroutine that waits in the kernel, for the next request or for a reply to be
// copied, keeps its processor until the runtime takes it away, which it does once
// in up to 10 ms: with as many processors as the machine has, a fifth to a third
// of the time one of these was idle although there was work (docs/performance.md).
const callProcessors = 2

// serveCalls makes room for goroutines that wait in the kernel, and returns how
// many may compute at a time. A GOMAXPROCS in the environment is left as it is.
func serveCalls() (workers int) {
	workers = runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(callProcessors * workers)
	}
	return workers
}
