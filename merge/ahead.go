package merge

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/icefs/icefs/internal/source"
)

// A reader of a view over an object store waits for a request at every chunk that
// it comes to. Where its reads tell what it will come to, that is fetched before:
//
//   - A sequential reader (cat, cp, rsync) reads on. All its reads follow one
//     another from the view's first byte, or the last ones for longer than most row
//     groups are. Readers of columns begin with the footer, and leave columns out.
//   - A reader that has read some columns of one row group and of another from
//     their start, and begins a third with one of them, takes the others as well.
//
// Nothing else is: who reads here and there fetches what it asks for. What is
// fetched ahead is bounded for all readers together by the memory budget, and
// dropped when its reader closes the view.
const (
	// aheadAfter is how long a run of reads from the view's start is before
	// anything is fetched ahead: tools that look at a file's first bytes read less.
	aheadAfter = 256 << 10
	// aheadRun is how long a run of reads from elsewhere is.
	aheadRun = 64 << 20
	// maxAhead is the longest window: a few requests of source.MaxExtent.
	maxAhead = 4 * source.MaxExtent
	// aheadShare is the part of what handles may hold that is fetched ahead.
	aheadShare = 4
)

// viewRange is a range of a view.
type viewRange struct{ from, to int64 }

// chunkPlaces is where the chunks of a view over an object store lie.
type chunkPlaces struct {
	leaves int
	at     []viewRange // of the chunk of a leaf in a group: at[group*leaves+leaf]
	order  []int32     // of at, as they lie in the view
}

// newChunkPlaces returns the places of a view of so many groups, to be filled in;
// nil if it has no column.
func newChunkPlaces(groups, leaves int) *chunkPlaces {
	if leaves == 0 {
		return nil
	}
	return &chunkPlaces{leaves: leaves, at: make([]viewRange, groups*leaves)}
}

// sort completes the places.
func (c *chunkPlaces) sort() {
	c.order = make([]int32, len(c.at))
	for i := range c.order {
		c.order[i] = int32(i)
	}
	slices.SortFunc(c.order, func(a, b int32) int { return cmp.Compare(c.at[a].from, c.at[b].from) })
}

// reads is what a handle has seen of its reader. The handle's mu guards it.
type reads struct {
	run    viewRange // of reads that followed one another, the last one included
	jumped bool      // there are others
	asked  int64     // up to where what follows has been asked for
	counts bool      // among budget.sequential
	// groups are the row groups begun last, the newest first.
	groups [3]groupReads
}

// groupReads is what was read of a row group.
type groupReads struct {
	group  int // from 1 on; 0 = none
	leaves []leafRead
}

// leafRead is a leaf whose chunk was read from its start, up to a place in the view.
type leafRead struct {
	leaf int
	to   int64
}

// follow notes a read, and has that fetched which its reader will come to.
func (h *handle) follow(l *layout, off, n int64) {
	if !l.remote || n <= 0 || off >= l.length {
		return
	}
	n = min(n, l.length-off)
	h.mu.Lock()
	var ahead []viewRange
	if !h.closed {
		if l.places != nil {
			ahead = h.reads.takes(l.places, off, n)
		}
		if s, ok := h.readsOn(l, off, n); ok {
			ahead = []viewRange{s}
		} else if h.reads.counts {
			ahead = nil
		}
	}
	h.mu.Unlock()
	if len(ahead) > 0 {
		h.view.engine.fetchAhead(h.ctx, l, ahead)
	}
}

// readsOn returns what a sequential reader comes to next, if enough of it has not
// been asked for. The caller holds mu.
func (h *handle) readsOn(l *layout, off, n int64) (viewRange, bool) {
	r, m := &h.reads, h.view.engine.memory
	if off != r.run.to {
		r.jumped = true
		r.run.from, r.asked = off, 0
	}
	r.run.to = off + n
	long := r.run.to - r.run.from
	if long < aheadAfter || r.jumped && long < aheadRun {
		r.uncount(m)
		return viewRange{}, false
	}
	r.count(m)
	window := min(2*long, maxAhead, m.held/aheadShare/m.sequential.Load())
	from, to := max(r.asked, l.extentEnd(off)), min(r.run.to+window, l.length)
	if to-from < window/2 && to < l.length || to <= from {
		return viewRange{}, false // few long requests rather than many
	}
	r.asked = l.extentEnd(to - 1)
	return viewRange{from, r.asked}, true
}

// count and uncount note whether the handle's reader is one of those that the
// budget is divided among.
func (r *reads) count(m *budget) {
	if !r.counts {
		r.counts = true
		m.sequential.Add(1)
	}
}

func (r *reads) uncount(m *budget) {
	if r.counts {
		r.counts = false
		m.sequential.Add(-1)
	}
}

// takes notes what a read is of, and returns the chunks of a row group that it
// begins as it began two before.
func (r *reads) takes(c *chunkPlaces, off, n int64) []viewRange {
	first := sort.Search(len(c.order), func(i int) bool { return c.at[c.order[i]].to > off })
	var ahead []viewRange
	for _, i := range c.order[first:] {
		if c.at[i].from >= off+n {
			break
		}
		group, leaf := int(i)/c.leaves+1, int(i)%c.leaves
		at := slices.IndexFunc(r.groups[:], func(g groupReads) bool { return g.group == group })
		if at < 0 {
			if off > c.at[i].from {
				continue
			}
			for _, one := range r.usual(c, leaf) { // leaf as well: what lies together comes together
				ahead = append(ahead, c.at[(group-1)*c.leaves+one])
			}
			old := r.groups[len(r.groups)-1].leaves[:0]
			copy(r.groups[1:], r.groups[:])
			r.groups[0], at = groupReads{group, old}, 0
		}
		r.groups[at].read(leaf, c.at[i], off, off+n)
	}
	return ahead
}

// read notes that the chunk of a leaf is read, if that goes on where the last read
// of it ended.
func (g *groupReads) read(leaf int, at viewRange, off, to int64) {
	i := slices.IndexFunc(g.leaves, func(l leafRead) bool { return l.leaf == leaf })
	switch {
	case i < 0 && off <= at.from:
		g.leaves = append(g.leaves, leafRead{leaf, to})
	case i >= 0 && off <= g.leaves[i].to:
		g.leaves[i].to = max(g.leaves[i].to, to)
	}
}

// taken reports whether the chunk of a leaf was read by half from its start on.
func (g *groupReads) taken(c *chunkPlaces, leaf int) bool {
	return slices.ContainsFunc(g.leaves, func(l leafRead) bool {
		at := c.at[(g.group-1)*c.leaves+leaf]
		return l.leaf == leaf && l.to-at.from >= (at.to-at.from)/2
	})
}

// usual are the leaves that were taken of both of the groups begun last, if there
// are several and leaf is one of them.
func (r *reads) usual(c *chunkPlaces, leaf int) []int {
	var both []int
	for _, one := range r.groups[0].leaves {
		if r.groups[0].taken(c, one.leaf) && r.groups[1].taken(c, one.leaf) {
			both = append(both, one.leaf)
		}
	}
	if len(both) < 2 || !slices.Contains(both, leaf) {
		return nil
	}
	return both
}

// fetchAhead has what lies in ranges of the view fetched from the objects it comes
// from.
func (e *Engine) fetchAhead(ctx context.Context, l *layout, ranges []viewRange) {
	wanted := make(map[source.Remote][]source.Range)
	for _, s := range ranges {
		l.gather(s, wanted)
	}
	for object, extents := range wanted {
		e.count(func(c *Counters) { c.ExtentsAhead.Add(int64(len(extents))) })
		object.Prefetch(ctx, extents)
	}
}

// gather adds the extents that begin in a range of the view, and what the chunks
// rewritten there are made from.
func (l *layout) gather(s viewRange, wanted map[source.Remote][]source.Range) {
	var before *rewrite
	for i := l.segmentAt(s.from); i < len(l.segments) && l.starts[i] < s.to; i++ {
		switch seg := l.segments[i].(type) {
		case *remoteSegment:
			r, base := seg.last(l.starts[i])
			for _, e := range source.Extents(r) {
				at := base + e.Off - r.Off
				if at >= s.from && at < s.to && !slices.Contains(wanted[seg.remote], e) {
					wanted[seg.remote] = append(wanted[seg.remote], e)
				}
			}
		case *rewrite:
			if before == nil || !before.continues(seg) {
				for object, extents := range seg.stored() {
					wanted[object] = append(wanted[object], extents...)
				}
			}
			before = seg
		}
	}
}

// continues reports whether next is another part of the same chunk.
func (r *rewrite) continues(next *rewrite) bool {
	a, b := &r.sources[0], &next.sources[0]
	return r.form.leaf == next.form.leaf && a.in == b.in && a.rowGroup == b.rowGroup
}

// last is the last range that the segment, which begins at a place in the view, is
// read in, and where in the view that begins.
func (s *remoteSegment) last(start int64) (r source.Range, base int64) {
	r = s.ranges[len(s.ranges)-1]
	return r, start - (s.from - r.Off)
}

// extentEnd is where that ends which is fetched for the byte at off.
func (l *layout) extentEnd(off int64) int64 {
	i := l.segmentAt(off)
	end := l.starts[i] + l.segments[i].size()
	s, ok := l.segments[i].(*remoteSegment)
	if !ok {
		return end
	}
	r, base := s.last(l.starts[i])
	return min(base+r.Len, base+((off-base)/source.MaxExtent+1)*source.MaxExtent)
}
