package merge

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Options.MemoryBytes is for everything that views need. It is divided up so
// that all of it together stays below, with an eighth for what is garbage until
// the collector has run, and for the process itself:
//
//	CacheShare     of it   values kept: footers, layouts, bitmaps, chunks, blocks
//	MetadataShare          tables: their metadata, and the files of their snapshots
//	heldShare              what open handles keep to read on
//	workShare              what is being made
//
// A chunk that is kept is often held as well, and counts twice; so do the files of
// a snapshot, as its own and as those of manifests.
const (
	CacheShare    = 0.375
	MetadataShare = 0.125
	heldShare     = 0.125
	workShare     = 0.25
)

// DefaultMemoryBytes is the budget when none is set.
const DefaultMemoryBytes = 1 << 30

// budget is the engine's budget for what is held and what is being made. Safe
// for concurrent use.
type budget struct {
	held     int64 // bytes that open handles may hold together
	capacity int64 // of work
	work     *semaphore.Weighted
	holdings holdings
	// sequential is how many readers what is fetched ahead is divided among.
	sequential atomic.Int64
}

func newBudget(bytes int64) *budget {
	if bytes <= 0 {
		bytes = DefaultMemoryBytes
	}
	m := &budget{held: int64(heldShare * float64(bytes)), capacity: int64(workShare * float64(bytes))}
	m.work = semaphore.NewWeighted(m.capacity)
	m.holdings.limit = m.held
	return m
}

// admit waits until n bytes more may be in the making, and returns what gives
// them back. What needs more than all of it has it alone. A load that has been
// admitted must not wait for another that has yet to be.
func (m *budget) admit(ctx context.Context, n int64) (release func(), err error) {
	n = min(max(n, 0), m.capacity)
	if err := m.work.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { m.work.Release(n) }, nil
}

// holder is a reader that keeps what it has read.
type holder interface {
	// drop gives up all that is kept, to be made again if it is read on.
	drop()
}

// holdings bounds what the readers of an engine keep together: past the limit
// those read longest ago give theirs up. Its lock is never held while a reader
// drops. Safe for concurrent use.
type holdings struct {
	limit int64

	mu    sync.Mutex
	order list.List // of holding, read last at the back
	at    map[holder]*list.Element
	total int64
}

type holding struct {
	holder holder
	bytes  int64
}

// use notes that h was read and keeps so many bytes.
func (s *holdings) use(h holder, bytes int64) {
	var old []holder
	s.mu.Lock()
	if s.at == nil {
		s.at = make(map[holder]*list.Element)
	}
	s.remove(h)
	s.at[h] = s.order.PushBack(holding{h, bytes})
	s.total += bytes
	for s.total > s.limit && s.order.Len() > 1 {
		first := s.order.Front().Value.(holding).holder
		old = append(old, first)
		s.remove(first)
	}
	s.mu.Unlock()
	for _, o := range old {
		o.drop()
	}
}

// forget notes that h is closed.
func (s *holdings) forget(h holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(h)
}

// remove takes h out. The caller holds mu.
func (s *holdings) remove(h holder) {
	if e := s.at[h]; e != nil {
		s.total -= s.order.Remove(e).(holding).bytes
		delete(s.at, h)
	}
}
