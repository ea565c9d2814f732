// Package cache keeps work in memory, bounded by bytes, with one load per key
// at a time (Cache, over ristretto), and on disk across mounts (Disk). It knows
// no value type.
package cache

import (
	"context"
	"log/slog"
)

// Options of New.
type Options struct {
	MaxBytes int64 // 0 = DefaultMaxBytes
}

// DefaultMaxBytes is the memory budget when none is set.
const DefaultMaxBytes = 1 << 30

// Cache is a bounded memory cache with single flight. A load runs on a context
// of its own, cancelled only when every waiter has left; waiters honour theirs.
// The value reaches every waiter even if the cache declines to keep it. Errors
// are not kept. Safe for concurrent use.
type Cache struct{ _ int }

// New returns a Cache.
func New(opt Options) (*Cache, error) { panic("skeleton") }

// Get returns the value of key, loading it if needed. load returns the value
// and its size in bytes.
func (c *Cache) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	panic("skeleton")
}

// Stats of a Cache.
type Stats struct {
	Hits, Misses, Loads, Rejected int64
	Bytes, MaxBytes               int64
}

// Stats returns counters.
func (c *Cache) Stats() Stats { panic("skeleton") }

// Close frees the cache.
func (c *Cache) Close() { panic("skeleton") }

// DiskOptions of OpenDisk.
type DiskOptions struct {
	MaxBytes int64 // 0 = DefaultDiskBytes
	Log      *slog.Logger
}

// DefaultDiskBytes is the disk cache's size when none is set.
const DefaultDiskBytes = 10 << 30

// Disk is a persistent store of small and large values in one directory (0700,
// refused if another user owns it): checksummed, written atomically, shared by
// processes, bounded, safe to delete at any time. A nil *Disk keeps nothing.
type Disk struct{ _ int }

// OpenDisk opens or creates the store.
func OpenDisk(dir string, opt DiskOptions) (*Disk, error) { panic("skeleton") }

// Get returns the value stored for key, or false. A damaged entry is removed.
func (d *Disk) Get(key string) ([]byte, bool) { panic("skeleton") }

// Put stores a value; failures are logged, not returned.
func (d *Disk) Put(key string, value []byte) { panic("skeleton") }
