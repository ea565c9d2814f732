package cache

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// usageAge is how old a scan may get before Bytes scans again.
	usageAge = time.Minute
	// usageShare bounds the time that scans for Bytes take to a thousandth.
	usageShare = 1000
)

// usage follows what the entries take. What other processes write, and entries
// that are replaced or found damaged, are noticed by the next scan.
type usage struct {
	bytes atomic.Int64 // at the last scan, and what this process has added since

	mu  sync.Mutex // held while Bytes scans; guards due
	due time.Time  // of the next scan; zero = there was none
}

// Bytes returns what the entries of all processes take on the disk, in whole
// blocks. It counts what this process writes and evicts; the directory itself is
// only looked at now and then, at most once a minute.
func (d *Disk) Bytes() int64 {
	if d == nil {
		return 0
	}
	d.usage.mu.Lock()
	defer d.usage.mu.Unlock()
	if start := time.Now(); start.After(d.usage.due) {
		_, total := d.scan()
		d.usage.bytes.Store(total)
		took := time.Since(start)
		d.usage.due = start.Add(max(usageAge, usageShare*took))
	}
	return d.usage.bytes.Load()
}
