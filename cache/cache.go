// Package cache keeps work in memory, bounded by bytes, with one load per key
// at a time (Cache, over ristretto), and on disk across mounts (Disk). It knows
// no value type.
//
// What a cache keeps is a matter of luck: ristretto applies a Set later, may
// drop it under load, and refuses newcomers while it is full of hot keys. So a
// value always travels to those who asked for it, and whoever reads the same
// value again and again (an open handle) holds on to it.
//
// Everything here is safe for concurrent use. Cache.mu is held for map
// operations only, never while a load or ristretto runs.
package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

// ErrLoad is wrapped by the error of a load that panicked or ended its
// goroutine.
var ErrLoad = errors.New("internal error: cache load did not return")

// PanicError is what the waiters of a load that panicked get. It wraps ErrLoad.
type PanicError struct {
	Key   string
	Value any    // as given to panic
	Stack []byte // of the goroutine that panicked, for the log
}

// Error names the key and the panic value, without the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: panic loading %s: %v", ErrLoad, e.Key, e.Value)
}

// Unwrap returns ErrLoad.
func (e *PanicError) Unwrap() error { return ErrLoad }

// Options of New.
type Options struct {
	MaxBytes int64 // 0 = DefaultMaxBytes
}

// DefaultMaxBytes is the memory budget when none is set.
const DefaultMaxBytes = 1 << 30

const (
	// entryOverhead is charged for each entry on top of its value and key:
	// ristretto's item, its policy's and its store's map slots. It also keeps
	// values of no size from being free.
	entryOverhead = 160
	// typicalEntry is the value size for which the admission counters are laid
	// out: ten counters (3 bytes each) for each entry of a full cache.
	typicalEntry = 64 << 10
	minCounters  = 1 << 14
	maxCounters  = 1 << 22
)

// Cache is a bounded memory cache with single flight. A load runs on a context
// of its own, cancelled only when every waiter has left; waiters honour theirs.
// The value reaches every waiter even if the cache declines to keep it. Errors
// are not kept. Safe for concurrent use.
type Cache struct {
	max int64
	mem *ristretto.Cache[string, kept]

	mu      sync.Mutex
	flights map[string]*flight
	running sync.WaitGroup

	hits, misses, loads, rejected atomic.Int64
}

// kept is a value in memory. The key is compared on every hit, so that two keys
// of one hash never share a value.
type kept struct {
	key   string
	value any
}

// flight is one load. value and err are set before done is closed; waiters is
// guarded by Cache.mu.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	value   any
	err     error
}

// New returns a Cache.
func New(opt Options) (*Cache, error) {
	c := &Cache{max: opt.MaxBytes, flights: make(map[string]*flight)}
	if c.max == 0 {
		c.max = DefaultMaxBytes
	}
	mem, err := ristretto.NewCache(&ristretto.Config[string, kept]{
		NumCounters:        min(max(c.max/typicalEntry*10, minCounters), maxCounters),
		MaxCost:            c.max,
		BufferItems:        64,
		IgnoreInternalCost: true, // entryOverhead stands for it
		OnReject:           func(*ristretto.Item[kept]) { c.rejected.Add(1) },
	})
	if err != nil {
		return nil, fmt.Errorf("memory cache of %d bytes: %w", c.max, err)
	}
	c.mem = mem
	return c, nil
}

// Get returns the value of key, loading it if needed. load returns the value
// and its size in bytes; it must not ask the cache for the same key. A value
// larger than the whole budget is returned and not kept, nor is one of a negative
// size.
//
// Get returns ctx.Err() as soon as ctx ends; the load goes on for the other
// waiters. A panic in load is a *PanicError for every waiter.
func (c *Cache) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	if k, ok := c.mem.Get(key); ok && k.key == key {
		c.hits.Add(1)
		return k.value, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := c.join(key, load)
	select {
	case <-f.done:
		c.leave(key, f)
		return f.value, f.err
	case <-ctx.Done():
		c.leave(key, f)
		return nil, ctx.Err()
	}
}

// Has reports whether a value is kept, or is being loaded. It may be gone, or have
// failed, by the time it is asked for.
func (c *Cache) Has(key string) bool {
	if k, ok := c.mem.Get(key); ok && k.key == key {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flights[key] != nil
}

// join enters the flight of key, starting one if there is none.
func (c *Cache) join(key string, load func(context.Context) (any, int64, error)) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		f.waiters++
		c.hits.Add(1)
		return f
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{done: make(chan struct{}), cancel: cancel, waiters: 1}
	c.flights[key] = f
	c.misses.Add(1)
	c.running.Add(1)
	go c.fly(ctx, key, f, load)
	return f
}

// leave gives up a place in a flight. The last waiter to leave a load that still
// runs cancels it and frees the key, so that whoever comes next starts afresh.
func (c *Cache) leave(key string, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	f.cancel()
	select {
	case <-f.done: // fly frees the key once the value can be found
	default:
		if c.flights[key] == f {
			delete(c.flights, key)
		}
	}
}

// fly runs a load, hands its result to the waiters and offers it to ristretto.
// The flight stays joinable until ristretto has applied the Set: a Get in
// between finds the finished flight and not a gap.
func (c *Cache) fly(ctx context.Context, key string, f *flight, load func(context.Context) (any, int64, error)) {
	defer c.running.Done()
	var size int64
	returned := false
	defer func() {
		if !returned {
			f.value, f.err = nil, ErrLoad
			if r := recover(); r != nil {
				f.err = &PanicError{Key: key, Value: r, Stack: debug.Stack()}
			}
		}
		close(f.done)
		if f.err == nil && size >= 0 {
			c.keep(key, f.value, size)
		}
		c.mu.Lock()
		if c.flights[key] == f {
			delete(c.flights, key)
		}
		c.mu.Unlock()
	}()
	c.loads.Add(1)
	deepen()
	f.value, size, f.err = load(ctx)
	if f.err != nil {
		f.value = nil
	}
	returned = true
}

// deepen grows the stack of a goroutine that has just begun as far as most loads
// need, at once: growing is copying, frame by frame, and longer the deeper it is.
//
//go:noinline
func deepen() {
	var room [12 << 10]byte
	runtime.KeepAlive(&room)
}

// keep offers a value to ristretto and waits until the offer is decided. A Set
// dropped because the queue was full is tried once more after the queue drained.
func (c *Cache) keep(key string, value any, size int64) {
	cost := size + int64(len(key)) + entryOverhead
	if cost > c.max {
		c.rejected.Add(1)
		return
	}
	if !c.mem.Set(key, kept{key, value}, cost) {
		c.mem.Wait()
		if !c.mem.Set(key, kept{key, value}, cost) {
			c.rejected.Add(1)
			return
		}
	}
	c.mem.Wait()
}

// Stats of a Cache.
type Stats struct {
	Hits     int64 // values found, finished or being loaded
	Misses   int64 // Gets that started a load
	Loads    int64 // loads run
	Rejected int64 // values not kept: too large, dropped, or not worth an eviction
	Bytes    int64 // held now, overhead included
	MaxBytes int64
}

// Stats returns counters.
func (c *Cache) Stats() Stats {
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Loads: c.loads.Load(), Rejected: c.rejected.Load(),
		Bytes: c.max - c.mem.RemainingCost(), MaxBytes: c.max,
	}
}

// Close cancels the loads that run, waits for them and frees the cache. No Get
// may follow.
func (c *Cache) Close() {
	c.mu.Lock()
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
	c.mem.Close()
}
