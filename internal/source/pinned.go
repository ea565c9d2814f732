package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pinned remembers the version of every location it has opened, for good: by
// hashes, since texts would be several times as long, and locations hold on to the
// texts of whole manifests.
type pinned struct {
	store Store
	mu    sync.Mutex
	seen  map[hash]pin // by location
}

type pin struct {
	version hash
	remote  *remotePin // nil = not in an object store
}

type remotePin struct {
	object Remote
	at     time.Time
}

// hash stands for a text: no two that differ are ever met with one.
type hash [16]byte

func hashOf(text string) hash {
	sum := sha256.Sum256([]byte(text))
	return hash(sum[:16])
}

// openAgain is how long an object in an object store stands for its location: a
// request that asked again would tell nothing that reading it does not.
const openAgain = 10 * time.Second

// Pinned returns a store in which a location keeps its first version: opening
// it again after it was replaced is ErrChanged, for good. What belongs to a
// table's snapshots is opened through it, so that a view never mixes the bytes
// of two files.
func Pinned(s Store) Store { return &pinned{store: s, seen: map[hash]pin{}} }

var _ Classifier = (*pinned)(nil)

// InStore implements Classifier.
func (p *pinned) InStore(location string) bool { return InStore(p.store, location) }

// Open implements Store.
func (p *pinned) Open(ctx context.Context, location string) (Object, error) {
	place := hashOf(location)
	p.mu.Lock()
	last := p.seen[place].remote
	p.mu.Unlock()
	if last != nil && time.Since(last.at) < openAgain {
		return last.object, nil
	}
	o, err := p.store.Open(ctx, location)
	if last != nil && errors.Is(err, ErrNotFound) {
		return last.object, nil // is it not? Reading it will tell
	}
	if err != nil {
		return nil, err
	}
	now := pin{version: hashOf(o.Version())}
	if remote, ok := o.(Remote); ok {
		now.remote = &remotePin{remote, time.Now()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, ok := p.seen[place]; ok && first.version != now.version {
		return nil, fmt.Errorf("%w: %s", ErrChanged, location)
	}
	p.seen[place] = now
	return o, nil
}
