package merge

import (
	"sync"
	"time"
)

// textState is what the text views of an engine share. The zero value is ready.
type textState struct {
	once      sync.Once
	measuring chan struct{}

	mu    sync.Mutex
	under []*progress   // views being measured, oldest first
	long  time.Duration // 0 = longMeasure
}

// slots is what every measurement in progress takes one of; there are n.
func (s *textState) slots(n int) chan struct{} {
	s.once.Do(func() { s.measuring = make(chan struct{}, n) })
	return s.measuring
}
