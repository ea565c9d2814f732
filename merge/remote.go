package merge

import (
	"context"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// Data files in an object store (source.Remote) are laid out for few requests:
//
//   - A layout is made of footers alone. What a local file is asked for in small
//     reads, the size of a dictionary and the headers of pages, is bounded by
//     what the footer says of the chunk. A bound that is too large costs zeros,
//     which are never fetched.
//   - A stored chunk is fetched as a whole when its first byte is read.
//   - Chunks start at pages of the kernel's cache, which asks for whole pages:
//     none has bytes of two chunks, of which one was not asked for. (It does not
//     read ahead either: fs.Options.NoReadAhead.)
//
// A part that is its data file has its chunks where that has them: a page with the
// end of one and the start of another comes with either.

// remotePage is what chunks are aligned to.
const remotePage = 4 << 10

// align appends a gap up to the next page.
func (l *layout) align() {
	if n := -l.length & (remotePage - 1); n > 0 {
		l.add(gapSegment{n})
	}
}

// remoteWorkers is how many data files are opened at a time if a request opens
// each of them.
const remoteWorkers = 16

// anyRemote reports whether any of the files is in an object store.
func anyRemote(sources []groupSource) bool {
	return slices.ContainsFunc(sources, func(s groupSource) bool { return s.in.remote })
}

// policy is the statistics policy of a view of these groups.
func (e *Engine) policy(groups []group) Statistics {
	if e.opt.Statistics != StatisticsAuto {
		return e.opt.Statistics
	}
	if slices.ContainsFunc(groups, func(g group) bool { return anyRemote(g.sources) }) {
		return StatisticsNone
	}
	return StatisticsExact
}

// dictionaryBound bounds a chunk's dictionary by its footer: it is no longer
// than the chunk's pages are uncompressed, and has no more entries than the chunk
// has values, or fit into it. Entries that it turns out not to have are filled in,
// and those of byte arrays have a length each: there is one more than fit, and
// room for the lengths of all beside whatever the values are.
func dictionaryBound(c *pqfile.Chunk, width int64) (entries int, bytes int64) {
	size := max(c.Meta.TotalUncompressedSize, 0)
	if width > 0 {
		n := min(c.Meta.NumValues, size/width)
		return int(n), n * width
	}
	n := min(c.Meta.NumValues, size/4) + 1
	return int(n), size + 4*n
}

// storedBound is what the page headers of a chunk that falls back from its
// dictionary would tell at most; false if it may be one that does something else.
func storedBound(c *pqfile.Chunk) (storedPages, bool) {
	for _, e := range c.Meta.Encodings {
		if !dictionaryCoded(e) && e != pqfile.Plain && e != pqfile.RLE && e != pqfile.BitPacked {
			return storedPages{}, false
		}
	}
	out := storedPages{bound: true, dictRows: c.Meta.NumValues, plain: max(c.Meta.TotalUncompressedSize, 0)}
	out.dictN, out.dictBytes = dictionaryBound(c, 0)
	return out, out.dictN > 0
}

// remoteSegment is a run of bytes of a data file in an object store that comes as
// part of a longer range: a stored chunk, as a rule, which is wanted as a whole.
type remoteSegment struct {
	rawSegment
	remote source.Remote
	// ranges each hold all of the segment. The last is fetched, unless another one
	// was.
	ranges []source.Range
}

// newRemoteSegment returns the segment of a range that is fetched as it is.
func newRemoteSegment(s rawSegment, remote source.Remote) *remoteSegment {
	return &remoteSegment{s, remote, []source.Range{{Off: s.from, Len: s.n}}}
}

func (s *remoteSegment) readAt(ctx context.Context, h *handle, p []byte, off int64) error {
	for n := 0; n < len(p); {
		at := s.from + off + int64(n)
		data, start, err := s.extent(ctx, h, at)
		if err != nil {
			return err
		}
		n += copy(p[n:], data[at-start:])
	}
	if s.served != nil {
		s.served.Add(int64(len(p)))
	}
	return nil
}

// extent returns an extent with the byte at a place in the file, and its start.
func (s *remoteSegment) extent(ctx context.Context, h *handle, at int64) ([]byte, int64, error) {
	var of heldKey
	var extent source.Range
	for _, r := range s.ranges {
		extent.Off = r.Off + (at-r.Off)/source.MaxExtent*source.MaxExtent
		extent.Len = min(source.MaxExtent, r.Off+r.Len-extent.Off)
		of = heldKey{s.remote, extent.Off, extent.Len}
		if data := h.held(of); data != nil {
			return data, extent.Off, nil
		}
	}
	data, err := s.remote.Extent(ctx, extent.Off, extent.Len)
	if err == nil {
		h.hold(of, data)
	}
	return data, extent.Off, err
}

// gapSegment is zeros between chunks.
type gapSegment struct{ n int64 }

func (s gapSegment) size() int64 { return s.n }

func (s gapSegment) readAt(_ context.Context, _ *handle, p []byte, _ int64) error {
	clear(p)
	return nil
}

func (s gapSegment) describe() string { return "gap" }

// wholeRemote is the layout of a part that is its data file.
func (e *Engine) wholeRemote(in *input, object source.Remote) *layout {
	var chunks []source.Range
	places := newChunkPlaces(len(in.pq.Metadata.RowGroups), len(in.columns))
	for g := range in.pq.Metadata.RowGroups {
		for i := range in.columns {
			if c, err := in.pq.Chunk(g, in.columns[i].Source); err == nil {
				chunks = append(chunks, source.Range{Off: c.Start, Len: c.Length})
				// A page with the end of another is this one's.
				places.at[g*len(in.columns)+i] = viewRange{c.Start &^ (remotePage - 1), (c.Start + c.Length) &^ (remotePage - 1)}
			}
		}
	}
	l := e.layRemote(object, chunks, in.heap())
	l.remote = true
	if places != nil {
		places.sort()
		l.places = places
	}
	return l
}

// layRemote lays out a file whose chunks, and what lies between them, are read as
// wholes, each with the pages it begins and ends in: it is one read of the store,
// whatever else is on them.
func (e *Engine) layRemote(file source.Remote, chunks []source.Range, heap int64) *layout {
	ends := []int64{0, file.Size()}
	for _, c := range chunks {
		ends = append(ends, c.Off, c.Off+c.Len)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	var wide []source.Range
	var cuts []int64
	for i := 0; i+1 < len(ends); i++ {
		from := ends[i] &^ (remotePage - 1)
		to := min((ends[i+1]+remotePage-1)&^(remotePage-1), file.Size())
		wide = append(wide, source.Range{Off: from, Len: to - from})
		cuts = append(cuts, from, to)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	l := &layout{heap: heap}
	first, last := 0, 0 // of wide, that hold a segment
	for i := 0; i+1 < len(cuts); i++ {
		for wide[first].Off+wide[first].Len <= cuts[i] {
			first++
		}
		for last+1 < len(wide) && wide[last+1].Off <= cuts[i] {
			last++
		}
		s := e.rawSegment(file, cuts[i], cuts[i+1]-cuts[i])
		l.add(&remoteSegment{s, file, slices.Compact([]source.Range{wide[first], wide[last]})})
		l.heap += 192
	}
	return l
}

// prefetch lets the sources' chunks of the column be fetched together.
func (r *rewrite) prefetch(ctx context.Context) {
	for object, extents := range r.stored() {
		object.Prefetch(ctx, extents)
	}
}

// stored are the extents of objects in a store that the chunk is made from.
func (r *rewrite) stored() map[source.Remote][]source.Range {
	var all map[source.Remote][]source.Range
	for i := range r.sources {
		s := &r.sources[i]
		if s.in.pq == nil {
			continue
		}
		if object, ok := s.in.pq.Object.(source.Remote); ok {
			if all == nil {
				all = make(map[source.Remote][]source.Range)
			}
			all[object] = append(all[object], s.in.pq.Extents(s.rowGroup, s.in.columns[r.form.leaf.Leaf:r.form.leaf.Leaf+1])...)
		}
	}
	return all
}
