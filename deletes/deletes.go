// Package deletes turns delete files into one bitmap of deleted positions per
// data file, and answers which ranges of rows are live.
//
// A Resolver reads the three kinds of delete files (dv.go, position*.go,
// equality*.go) into Positions. Roaring builds and unites bitmaps; Positions
// keeps their portable bytes, of a deletion vector the very bytes of its blob,
// with an index of the containers, and walks those itself (container.go): the
// library has no way into a window of a bitmap that is both right and fast. Of
// its calls NextAbsentValue, PreviousAbsentValue, UnsetIterator and Unset are
// wrong and must not be used.
//
// Nothing here costs time by the row: a window is answered by the deleted runs
// or 64-bit words in it, and one that is all live or all deleted by counts.
package deletes

import (
	"slices"
	"sort"
	"unsafe"
)

// Range is a half-open run [Start, End) of positions.
type Range struct{ Start, End int64 }

// Positions is the immutable set of deleted positions of one data file. A nil
// *Positions has none. Positions at or past the file's rows are harmless;
// negative ones do not exist and count as live. Safe for concurrent use.
type Positions struct {
	bitmaps    []bitmap    // ascending by high; one, of high 0, for any ordinary file
	containers []container // of all bitmaps, ascending by key
	count      int64
}

// bitmap is a 32-bit portable roaring bitmap: the positions whose bits above
// the lowest 32 are high.
type bitmap struct {
	high uint32
	data []byte
}

// Count is how many positions are deleted, those past the file's rows included.
func (p *Positions) Count() int64 {
	if p == nil {
		return 0
	}
	return p.count
}

// CountRange returns how many positions in [start, end) are deleted.
func (p *Positions) CountRange(start, end int64) int64 {
	start = max(start, 0)
	if p == nil || start >= end || len(p.containers) == 0 {
		return 0
	}
	first, last := p.overlap(start, end)
	if first >= last {
		return 0
	}
	c := &p.containers[first]
	lo, hi := c.window(start, end)
	n := int64(c.countIn(lo, hi))
	if last-first == 1 {
		return n
	}
	// The containers between the outer two are counted by their running totals.
	c = &p.containers[last-1]
	lo, hi = c.window(start, end)
	n += int64(c.countIn(lo, hi))
	return n + c.before - p.containers[first+1].before
}

// overlap returns the index range of the containers that meet [start, end),
// which is not empty and not negative.
func (p *Positions) overlap(start, end int64) (first, last int) {
	low, high := start>>16, (end-1)>>16
	first = sort.Search(len(p.containers), func(i int) bool { return p.containers[i].key >= low })
	last = first
	if high-low < 8 { // a window of a few containers: look on from here
		for last < len(p.containers) && p.containers[last].key <= high {
			last++
		}
		return first, last
	}
	rest := p.containers[first:]
	return first, first + sort.Search(len(rest), func(i int) bool { return rest[i].key > high })
}

// LiveRanges appends the maximal live ranges within [start, end) to dst, in
// ascending order. A fully live or fully dead window costs O(1).
func (p *Positions) LiveRanges(dst []Range, start, end int64) []Range {
	if start >= end {
		return dst
	}
	switch p.CountRange(start, end) {
	case 0:
		return append(dst, Range{start, end})
	case end - start:
		return dst
	}
	first, last := p.overlap(max(start, 0), end)
	live := start // where the current live range begins
	for i := first; i < last; i++ {
		c := &p.containers[i]
		lo, hi := c.window(start, end)
		dst, live = c.appendLive(dst, live, lo, hi)
	}
	if live < end {
		dst = append(dst, Range{live, end})
	}
	return dst
}

// DeletedRanges appends the maximal deleted ranges within [start, end).
func (p *Positions) DeletedRanges(dst []Range, start, end int64) []Range {
	n := len(dst)
	dst = p.LiveRanges(dst, start, end)
	// Turn the live ranges into the gaps between them, in place: before each
	// live range at most one gap is written, and never past the range just read.
	live := dst[n:]
	dst = dst[:n]
	for _, r := range live {
		if start < r.Start {
			dst = append(dst, Range{start, r.Start})
		}
		start = r.End
	}
	if start < end {
		dst = append(dst, Range{start, end})
	}
	return dst
}

// LiveWords fills dst with one bit per position of [start, end), set if live,
// lowest bit first; bits past end are clear. dst is grown as needed.
func (p *Positions) LiveWords(dst []uint64, start, end int64) []uint64 {
	rows := max(end-start, 0)
	words := int((rows + 63) / 64)
	dst = slices.Grow(dst[:0], words)[:words]
	dead := p.CountRange(start, end)
	if dead == rows {
		clear(dst)
		return dst
	}
	for i := range dst {
		dst[i] = ^uint64(0)
	}
	if tail := uint(rows % 64); tail != 0 {
		dst[words-1] = 1<<tail - 1
	}
	if dead == 0 {
		return dst
	}
	first, last := p.overlap(max(start, 0), end)
	for i := first; i < last; i++ {
		c := &p.containers[i]
		lo, hi := c.window(start, end)
		c.clearWords(dst, start, lo, hi)
	}
	return dst
}

// Bytes estimates the heap kept, for a cache's budget.
func (p *Positions) Bytes() int64 {
	if p == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(*p)) +
		int64(cap(p.bitmaps))*int64(unsafe.Sizeof(bitmap{})) +
		int64(cap(p.containers))*int64(unsafe.Sizeof(container{}))
	for _, b := range p.bitmaps {
		n += int64(cap(b.data))
	}
	return n
}
