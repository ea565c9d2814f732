package merge

import (
	"slices"
	"sync"
)

// textHeldBytes bounds what the handles of all text views keep together; past
// it the handles read longest ago give up their blocks and cursors, and make
// them again when they are read on.
const textHeldBytes = 256 << 20

// textState is what the text views of an engine share. The zero value is ready.
// Its lock is taken before that of a handle, never after.
type textState struct {
	mu      sync.Mutex
	handles []*textHandle // read last at the end
	held    map[*textHandle]int64
	total   int64

	once      sync.Once
	measuring chan struct{}
}

// slots is what every measurement in progress takes one of; there are n.
func (s *textState) slots(n int) chan struct{} {
	s.once.Do(func() { s.measuring = make(chan struct{}, n) })
	return s.measuring
}

// use notes that h was read and keeps so many bytes.
func (s *textState) use(h *textHandle, bytes int64) {
	s.mu.Lock()
	if s.held == nil {
		s.held = make(map[*textHandle]int64)
	}
	s.remove(h)
	s.handles, s.held[h], s.total = append(s.handles, h), bytes, s.total+bytes
	var old []*textHandle
	for s.total > textHeldBytes && len(s.handles) > 1 {
		old = append(old, s.handles[0])
		s.remove(s.handles[0])
	}
	s.mu.Unlock()
	for _, o := range old {
		o.drop()
	}
}

// forget notes that h is closed.
func (s *textState) forget(h *textHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(h)
}

// remove takes h out. The caller holds mu.
func (s *textState) remove(h *textHandle) {
	if i := slices.Index(s.handles, h); i >= 0 {
		s.handles = slices.Delete(s.handles, i, i+1)
		s.total -= s.held[h]
		delete(s.held, h)
	}
}
