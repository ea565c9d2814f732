package source

import (
	"context"
	"fmt"
	"sync"
)

// pinned remembers the version of every location it has opened.
type pinned struct {
	store Store
	mu    sync.Mutex
	seen  map[string]string // location -> version
}

// Pinned returns a store in which a location keeps its first version: opening
// it again after it was replaced is ErrChanged, for good. What belongs to a
// table's snapshots is opened through it, so that a view never mixes the bytes
// of two files.
func Pinned(s Store) Store { return &pinned{store: s, seen: map[string]string{}} }

var _ Store = (*pinned)(nil)

// Open implements Store.
func (p *pinned) Open(ctx context.Context, location string) (Object, error) {
	o, err := p.store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first, ok := p.seen[location]
	if !ok {
		p.seen[location] = o.Version()
	} else if first != o.Version() {
		return nil, fmt.Errorf("%w: %s", ErrChanged, location)
	}
	return o, nil
}
