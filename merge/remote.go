package merge

import (
	"cmp"
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
//   - A gap follows each chunk: the kernel reads ahead across a chunk's end, and
//     what it finds there must not be a chunk that nobody asked for.

// remoteGap is the gap's length.
const remoteGap = 32 << 10

// remoteWorkers is how many data files are opened at a time if a request opens
// each of them.
const remoteWorkers = 16

func isRemote(object source.Object) bool {
	_, ok := object.(source.Remote)
	return ok
}

// remote reports whether any file of the chunk is in an object store.
func (r *rewrite) remote() bool { return anyRemote(r.sources) }

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
// has values, or fit into it.
func dictionaryBound(c *pqfile.Chunk, width int64) (entries int, bytes int64) {
	least := width
	if width == 0 {
		least = 4 // a byte array's length
	}
	size := max(c.Meta.TotalUncompressedSize, 0)
	n := min(c.Meta.NumValues, size/least)
	if width > 0 {
		return int(n), n * width
	}
	return int(n), size
}

// storedBound is what the page headers of a chunk that falls back from its
// dictionary would tell at most; false if it may be one that does something else.
func storedBound(c *pqfile.Chunk) (storedPages, bool) {
	for _, e := range c.Meta.Encodings {
		if !dictionaryCoded(e) && e != pqfile.Plain && e != pqfile.RLE && e != pqfile.BitPacked {
			return storedPages{}, false
		}
	}
	out := storedPages{dictRows: c.Meta.NumValues, plain: max(c.Meta.TotalUncompressedSize, 0)}
	out.dictN, out.dictBytes = dictionaryBound(c, 0)
	return out, out.dictN > 0
}

// remoteSegment is a stored chunk, or another run of bytes that is wanted as a
// whole, of a data file in an object store.
type remoteSegment struct {
	rawSegment
	remote source.Remote
}

func (s *remoteSegment) readAt(ctx context.Context, h *handle, p []byte, off int64) error {
	for n := 0; n < len(p); {
		at := off + int64(n)
		start := at / source.MaxExtent * source.MaxExtent
		key := heldKey{s, start}
		data := h.held(key)
		if data == nil {
			var err error
			data, err = s.remote.Extent(ctx, s.from+start, min(source.MaxExtent, s.n-start))
			if err != nil {
				return err
			}
			h.hold(key, data)
		}
		n += copy(p[n:], data[at-start:])
	}
	if s.served != nil {
		s.served.Add(int64(len(p)))
	}
	return nil
}

// gapSegment is zeros between chunks.
type gapSegment struct{ n int64 }

func (s gapSegment) size() int64 { return s.n }

func (s gapSegment) readAt(_ context.Context, _ *handle, p []byte, _ int64) error {
	clear(p)
	return nil
}

func (s gapSegment) describe() string { return "gap" }

// wholeRemote is the layout of a part that is its data file: its chunks, and what
// is between them.
func (e *Engine) wholeRemote(in *input) *layout {
	l := &layout{heap: in.heap()}
	var chunks []source.Range
	for g := range in.pq.Metadata.RowGroups {
		for i := range in.columns {
			if c, err := in.pq.Chunk(g, in.columns[i].Source); err == nil {
				chunks = append(chunks, source.Range{Off: c.Start, Len: c.Length})
			}
		}
	}
	slices.SortFunc(chunks, func(a, b source.Range) int { return cmp.Compare(a.Off, b.Off) })
	size := in.pq.Object.Size()
	at := int64(0)
	upTo := func(end int64) {
		if end > at {
			l.add(e.raw(in.pq.Object, at, end-at))
			at = end
		}
	}
	for _, c := range chunks {
		upTo(c.Off)
		upTo(c.Off + c.Len)
	}
	upTo(size)
	return l
}

// prefetch lets the sources' chunks of the column be fetched together.
func (r *rewrite) prefetch() {
	for i := range r.sources {
		s := &r.sources[i]
		if s.in.remote && s.in.pq != nil {
			s.in.pq.Prefetch(s.rowGroup, s.in.columns[r.form.leaf.Leaf:r.form.leaf.Leaf+1])
		}
	}
}
