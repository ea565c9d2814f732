package warehouse

import (
	"context"
	"sync"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// lookAgain is how long a manifest that was looked at is taken for what it was.
const lookAgain = time.Second

// recent opens manifests, each once in a while: a walk over snapshots comes to
// mostly the same ones with each, and to look at a file costs more than to find its
// entries, which are kept. One that is written to or replaced meanwhile is noticed
// when it is read, or that much later. Safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	since   time.Time // that objects are of
	objects map[string]source.Object
}

// open returns the object at a location.
func (r *recent) open(ctx context.Context, store source.Store, location string) (source.Object, error) {
	r.mu.Lock()
	if time.Since(r.since) >= lookAgain {
		r.since, r.objects = time.Now(), map[string]source.Object{}
	}
	objects := r.objects
	o := objects[location]
	r.mu.Unlock()
	if o != nil {
		return o, nil
	}
	o, err := store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	objects[location] = o
	r.mu.Unlock()
	return o, nil
}
