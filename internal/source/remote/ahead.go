package remote

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/icefs/icefs/internal/source"
)

const (
	// aheadBytes bounds what is fetched and not yet asked for.
	aheadBytes = 64 << 20
	// maxGap is how far apart extents may lie that are fetched in one request: a
	// request costs more than these bytes on any line.
	maxGap = 64 << 10
)

// ahead holds extents that were fetched before they were asked for, and those
// being fetched: each for the one load that takes it. The oldest make room.
type ahead struct {
	mu    sync.Mutex
	held  map[string]*list.Element // of *arrival
	order list.List                // oldest first
	bytes int64
}

// arrival is an extent, there once done is closed; nil if it could not be had.
type arrival struct {
	key  string
	n    int64
	done chan struct{}
	data []byte
}

// add puts an extent that is there.
func (a *ahead) add(key string, data []byte) {
	if p := a.expect(key, int64(len(data))); p != nil {
		p.data = data
		close(p.done)
	}
}

// expect makes a place for an extent on its way; nil if there is one.
func (a *ahead) expect(key string, n int64) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[key] != nil {
		return nil
	}
	if a.held == nil {
		a.held = make(map[string]*list.Element)
	}
	for a.bytes+n > aheadBytes && a.order.Len() > 0 {
		a.remove(a.order.Front())
	}
	p := &arrival{key: key, n: n, done: make(chan struct{})}
	a.held[key] = a.order.PushBack(p)
	a.bytes += n
	return p
}

// take returns an extent and gives up its place.
func (a *ahead) take(ctx context.Context, key string) ([]byte, bool) {
	a.mu.Lock()
	e := a.held[key]
	if e == nil {
		a.mu.Unlock()
		return nil, false
	}
	p := a.remove(e)
	a.mu.Unlock()
	select {
	case <-p.done:
		return p.data, p.data != nil
	case <-ctx.Done():
		return nil, false
	}
}

// remove drops a place. The caller holds mu.
func (a *ahead) remove(e *list.Element) *arrival {
	p := a.order.Remove(e).(*arrival)
	delete(a.held, p.key)
	a.bytes -= p.n
	return p
}

// wanted is an extent to be fetched ahead.
type wanted struct {
	source.Range
	place *arrival
}

// Prefetch implements source.Remote.
func (o *object) Prefetch(extents []source.Range) {
	if o.changed.Load() {
		return
	}
	extents = slices.Clone(extents)
	slices.SortFunc(extents, func(a, b source.Range) int { return int(max(-1, min(1, a.Off-b.Off))) })
	at, _ := o.tail()
	var run []wanted
	room := int64(aheadBytes) / 2
	for _, r := range extents {
		if r.Off < 0 || r.Len <= 0 || r.Len > source.MaxExtent || r.Off >= at || r.Len > o.info.Size-r.Off || r.Len > room {
			continue
		}
		key := o.extentKey(r.Off, r.Len)
		if d := o.stores.opt.Disk; d != nil && d.Has(key) {
			continue
		}
		place := o.stores.ahead.expect(key, r.Len)
		if place == nil {
			continue
		}
		room -= r.Len
		if len(run) > 0 {
			last := run[len(run)-1]
			if r.Off-last.Off-last.Len > maxGap || r.Off+r.Len-run[0].Off > source.MaxExtent {
				go o.fetchAhead(run)
				run = nil
			}
		}
		run = append(run, wanted{r, place})
	}
	if len(run) > 0 {
		go o.fetchAhead(run)
	}
}

// fetchAhead fetches extents with one request. A failure is left to those who
// need the bytes: they ask again.
func (o *object) fetchAhead(run []wanted) {
	start, end := run[0].Off, run[0].Off
	for _, w := range run {
		end = max(end, w.Off+w.Len)
	}
	b, err := o.fetch(context.Background(), start, end-start)
	for _, w := range run {
		if err == nil {
			w.place.data = slices.Clone(b[w.Off-start:][:w.Len])
			o.stores.opt.Stats.Prefetched.Add(1)
		}
		close(w.place.done)
	}
}
