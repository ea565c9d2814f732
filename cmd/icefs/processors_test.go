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
	runtime.SetDefaultGOMAXPROCS()
	own := runtime.GOMAXPROCS(0)
	for range 2 { // a process of two mounts
		if workers := serveCalls(); workers != own || runtime.GOMAXPROCS(0) != callProcessors*own {
			t.Errorf("%d workers, %d processors", workers, runtime.GOMAXPROCS(0))
		}
	}
}
