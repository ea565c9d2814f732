package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pinned remembers the version of every location it has opened.
type pinned struct {
	store Store
	mu    sync.Mutex
	seen  map[string]pin // by location
}

type pin struct {
	version string
	remote  Remote // nil = not in an object store
	at      time.Time
}

// openAgain is how long an object in an object store stands for its location: a
// request that asked again would tell nothing that reading it does not.
const openAgain = 10 * time.Second

// Pinned returns a store in which a location keeps its first version: opening
// it again after it was replaced is ErrChanged, for good. What belongs to a
// table's snapshots is opened through it, so that a view never mixes the bytes
// of two files.
func Pinned(s Store) Store { return &pinned{store: s, seen: map[string]pin{}} }

var _ Classifier = (*pinned)(nil)

// InStore implements Classifier.
func (p *pinned) InStore(location string) bool { return InStore(p.store, location) }

// Open implements Store.
func (p *pinned) Open(ctx context.Context, location string) (Object, error) {
	p.mu.Lock()
	last, ok := p.seen[location]
	p.mu.Unlock()
	if ok && last.remote != nil && time.Since(last.at) < openAgain {
		return last.remote, nil
	}
	o, err := p.store.Open(ctx, location)
	if ok && last.remote != nil && errors.Is(err, ErrNotFound) {
		return last.remote, nil // is it not? Reading it will tell
	}
	if err != nil {
		return nil, err
	}
	remote, _ := o.(Remote)
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, ok := p.seen[location]; ok && first.version != o.Version() {
		return nil, fmt.Errorf("%w: %s", ErrChanged, location)
	}
	p.seen[location] = pin{o.Version(), remote, time.Now()}
	return o, nil
}
