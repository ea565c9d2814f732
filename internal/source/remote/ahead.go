package remote

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/icefs/icefs/internal/source"
)

const (
	// DefaultAheadBytes bounds what is fetched and not yet asked for: what a fast
	// line brings in the time of a request.
	DefaultAheadBytes = 64 << 20
	// maxGap is how far apart extents may lie that are fetched in one request: a
	// request costs more than these bytes on any line.
	maxGap = 64 << 10
)

// ahead holds extents that were fetched before they were asked for, and those
// being fetched: each for the one load that takes it. The oldest make room.
type ahead struct {
	limit int64 // of bytes

	mu    sync.Mutex
	held  map[string]*list.Element // of *arrival
	order list.List                // oldest first
	bytes int64
}

// arrival is an extent, there once done is closed; nil if it could not be had.
// left is closed when it has lost its place.
type arrival struct {
	key        string
	n          int64
	done, left chan struct{}
	data       []byte
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
	for a.bytes+n > a.limit && a.order.Len() > 0 {
		a.remove(a.order.Front())
	}
	p := &arrival{key: key, n: n, done: make(chan struct{}), left: make(chan struct{})}
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
	close(p.left)
	return p
}

// drop gives up a place that nobody has taken.
func (a *ahead) drop(p *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.held[p.key]; e != nil && e.Value.(*arrival) == p {
		a.remove(e)
	}
}

// wanted is an extent to be fetched ahead.
type wanted struct {
	source.Range
	place *arrival
}

// Prefetch implements source.Remote.
func (o *object) Prefetch(ctx context.Context, extents []source.Range) {
	if o.changed.Load() {
		return
	}
	extents = slices.Clone(extents)
	slices.SortFunc(extents, func(a, b source.Range) int { return cmp.Compare(a.Off, b.Off) })
	at, _ := o.tail()
	var run []wanted
	room := o.stores.ahead.limit / 2
	for _, r := range extents {
		if r.Off < 0 || r.Len <= 0 || r.Len > source.MaxExtent || r.Off >= at || r.Len > o.info.Size-r.Off || r.Len > room {
			continue
		}
		key := o.extentKey(r.Off, r.Len)
		if o.stores.has(key) {
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
				go o.fetchAhead(ctx, run)
				run = nil
			}
		}
		run = append(run, wanted{r, place})
	}
	if len(run) > 0 {
		go o.fetchAhead(ctx, run)
	}
}

// has reports whether an extent is in memory, or on its way there, or on disk.
func (s *Stores) has(key string) bool {
	return s.opt.Memory.Has(key) || s.opt.Disk != nil && s.opt.Disk.Has(key)
}

// fetchAhead fetches extents with one request. What nobody has taken when ctx
// ends makes room.
func (o *object) fetchAhead(ctx context.Context, run []wanted) {
	o.fill(ctx, run)
	if ctx.Done() == nil {
		return
	}
	for _, w := range run {
		select {
		case <-w.place.left:
		case <-ctx.Done():
			o.stores.ahead.drop(w.place)
		}
	}
}

// fill fetches extents to their places. A failure is left to those who need the
// bytes: they ask again.
func (o *object) fill(ctx context.Context, run []wanted) {
	start, end := run[0].Off, run[0].Off
	for _, w := range run {
		end = max(end, w.Off+w.Len)
	}
	b, err := o.fetch(ctx, start, end-start)
	for _, w := range run {
		if err == nil {
			w.place.data = slices.Clone(b[w.Off-start:][:w.Len])
			o.stores.opt.Stats.Prefetched.Add(1)
		}
		close(w.place.done)
	}
}
