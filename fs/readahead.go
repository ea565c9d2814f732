package fs

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

// Read-ahead by what a file is made of, in KiB. The kernel reads ahead across the
// ends of column chunks, into columns that nobody asked for: of stored chunks
// that costs a copy, so they are read in long requests, as long as a pipe of the
// kernel's default limit can take (passthrough.go); of rewritten ones it costs
// decoding, so that they keep the kernel's default (docs/performance.md).
const (
	storedReadAhead    = 512
	rewrittenReadAhead = 128
)

// readAhead is the mount's read-ahead. The kernel gives it to a file as it is
// opened, just after the server has answered: a file opened at the same time by
// another reader may get the other value, which changes no byte.
type readAhead struct {
	mu   sync.Mutex
	name string // of the setting; empty = not ours to change
	kib  int
}

// open finds the setting of a mount, which root alone may change.
func (r *readAhead) open(dir string, none bool) error {
	m, ok, err := MountedOn(dir)
	if err != nil || !ok {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name = fmt.Sprintf("/sys/class/bdi/%s/read_ahead_kb", m.Device)
	if none {
		return r.write(0)
	}
	return r.write(rewrittenReadAhead)
}

// set chooses the read-ahead of the file being opened: a Parquet file, of stored
// chunks for the most part or from an object store, or another one.
func (r *readAhead) set(stored, remote bool) {
	kib := rewrittenReadAhead
	switch {
	case remote:
		kib = 0
	case stored:
		kib = storedReadAhead
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name != "" && r.kib != kib {
		r.write(kib) // it has worked once; a hint in any case
	}
}

// write changes the setting. The caller holds mu.
func (r *readAhead) write(kib int) error {
	if err := os.WriteFile(r.name, []byte(strconv.Itoa(kib)), 0); err != nil {
		r.name = ""
		return err
	}
	r.kib = kib
	return nil
}
