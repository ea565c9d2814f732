package main

import (
	"runtime"
	"testing"
)

// Calls that wait get processors of Go's beside the workers, unless the user has
// said how many there are.
func TestServeCalls(t *testing.T) {
	was := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(was)
	t.Setenv("GOMAXPROCS", "3")
	if workers := serveCalls(); workers != 3 || runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("GOMAXPROCS=3: %d workers, %d processors", workers, runtime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "")
	if workers := serveCalls(); workers != 3 || runtime.GOMAXPROCS(0) != 3*callProcessors {
		t.Errorf("%d workers, %d processors", workers, runtime.GOMAXPROCS(0))
	}
}
