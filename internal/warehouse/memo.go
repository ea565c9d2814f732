package warehouse

import (
	"context"
	"sync"
)

// memo is the Cache when none is given: it keeps every value but those that are
// NotKept, and loads each once at a time, on a context that outlives the caller
// that began it.
type memo struct {
	mu    sync.Mutex
	calls map[string]*call
}

type call struct {
	done  chan struct{}
	value any
	err   error
}

var _ Cache = (*memo)(nil)

// Get implements Cache.
func (m *memo) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	m.mu.Lock()
	c := m.calls[key]
	if c == nil {
		c = &call{done: make(chan struct{})}
		if m.calls == nil {
			m.calls = map[string]*call{}
		}
		m.calls[key] = c
		go m.run(context.WithoutCancel(ctx), key, c, load)
	}
	m.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memo) run(ctx context.Context, key string, c *call, load func(context.Context) (any, int64, error)) {
	var bytes int64
	if c.value, bytes, c.err = load(ctx); c.err != nil || bytes == NotKept {
		m.mu.Lock()
		delete(m.calls, key)
		m.mu.Unlock()
	}
	close(c.done)
}
