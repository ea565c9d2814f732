package merge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
)

// rewrite is a chunk whose bytes are made from decoded rows: the same bytes
// every time, of a size known before.
type rewrite struct {
	engine  *Engine
	sources []groupSource
	form    pageForm
	// headless runs have no dictionary page: parts of a chunk after the first, and
	// where it is served as stored.
	headless bool
	// encoded is the stored chunk if its pages are compacted as they are encoded;
	// those from offset from up to to are the run's.
	encoded  *pqfile.Chunk
	from, to int64
	// plainBytes bounds the PLAIN bytes of the visible values, or is unknown; in a
	// chunk that falls back, of those that no index stands for.
	plainBytes int64
	// length is the chunk's size; measured tells that it is the pages' own, else
	// it is a reserve that slack fills.
	length   int64
	measured bool
	values   int64 // entries, NULLs included
	identity string
	// statistics asks for exact statistics to be found as the chunk is made;
	// discard for nothing else: the chunk's pages are not made.
	statistics, discard bool
	// together makes the run with others, of which it is number index; nil if it
	// is made on its own.
	together *together
	index    int
	// found are the statistics of a measured chunk, nil if it can have none, once
	// isFound is set.
	found   *pqfile.Statistics
	isFound bool
}

var _ segment = (*rewrite)(nil)

func (r *rewrite) size() int64 { return r.length }

func (r *rewrite) describe() string {
	return fmt.Sprintf("rewritten %s (%s)", r.form.leaf.Name, r.how())
}

// how tells how the length was found and how the pages are encoded.
func (r *rewrite) how() string {
	found, form := "reserved", "plain"
	if r.measured {
		found = "measured"
	}
	if r.form.dict {
		form = fmt.Sprintf("dictionary of %d", r.form.dictN)
	}
	if r.form.fallback {
		form += ", then plain"
	}
	if r.form.kept > 0 {
		form += ", as stored"
	}
	return found + ", " + form
}

func (r *rewrite) readAt(ctx context.Context, h *handle, p []byte, off int64) error {
	data := h.held(heldKey{of: r})
	if data == nil && r.isKept() && r.engine.readKept(runKey(r.key()), r.length, p, off) {
		return nil
	}
	if data == nil {
		var err error
		if data, err = r.bytes(ctx, h); err != nil {
			return err
		}
	}
	copy(p, data[off:])
	return nil
}

// made is a chunk's bytes, its number of entries, and its statistics if asked
// for.
type made struct {
	data       []byte
	values     int64
	statistics *collector
}

// get returns the chunk from the cache, or newly made.
func (r *rewrite) get(ctx context.Context) (*made, error) {
	if r.together != nil {
		all, err := r.together.get(ctx)
		if err != nil {
			return nil, err
		}
		return all[r.index], nil
	}
	id := r.key()
	key := "chunk|" + id
	switch {
	case r.discard:
		key = "extremes|" + id
	case r.statistics:
		key += "|statistics"
	}
	v, err := r.engine.cached(ctx, key, func(ctx context.Context) (any, int64, error) {
		release, err := r.engine.memory.admit(ctx, r.workBytes())
		if err != nil {
			return nil, 0, err
		}
		defer release()
		m, err := r.make(ctx, r.reserved())
		if err != nil {
			return nil, 0, err
		}
		r.keep(m)
		return m, int64(len(m.data)), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*made), nil
}

// workBytes estimates what making the chunk needs: its pages and then the chunk,
// a window of decoded values with the pages they come from, and, before it is
// measured, what the sources say of its length.
func (r *rewrite) workBytes() int64 {
	n := r.length
	if n <= 0 {
		for i := range r.sources {
			n += r.sources[i].storedBytes(r.form.leaf.Leaf)
		}
	}
	return 2*n + 2*windowBytes/4
}

// keptBytes is the length from which on a rewritten chunk is kept on disk:
// shorter ones are made as fast as they are found there.
const keptBytes = 4 << 10

// isKept reports whether the chunk is kept on disk once it was made.
func (r *rewrite) isKept() bool {
	return !r.discard && r.together == nil && r.length >= keptBytes && r.engine.opt.Persist != nil
}

// runKey is what a chunk is kept by.
func runKey(identity string) string { return "pages|" + identity }

// keep stores the chunk on disk, so that it is made once a machine.
func (r *rewrite) keep(m *made) {
	if !r.discard && len(m.data) >= keptBytes && r.engine.opt.Persist != nil {
		r.engine.opt.Persist.Put(runKey(r.key()), m.data)
	}
}

// bytes returns the chunk for a read, which the handle then owns.
func (r *rewrite) bytes(ctx context.Context, h *handle) ([]byte, error) {
	if r.together != nil {
		return r.together.bytes(ctx, h, r.index)
	}
	m, err := r.get(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.check(m); err != nil {
		return nil, err
	}
	h.hold(heldKey{of: r}, m.data)
	return m.data, nil
}

// check compares what was made with the plan.
func (r *rewrite) check(m *made) error {
	if int64(len(m.data)) != r.length || m.values != r.values {
		return fmt.Errorf("%w: column %q: chunk of %d bytes and %d entries, not %d and %d as planned",
			ErrCorrupt, r.form.leaf.Name, len(m.data), m.values, r.length, r.values)
	}
	return nil
}

// wantsStatistics reports whether a measured chunk is to have statistics: they
// cost little then.
func (r *rewrite) wantsStatistics() bool {
	return ordered(r.form.leaf) && r.engine.policy([]group{{sources: r.sources}}) != StatisticsNone
}

// measure makes the chunk without slack, once, and keeps its size.
func (r *rewrite) measure(ctx context.Context) error {
	r.statistics = r.wantsStatistics()
	key := "measure|" + r.key()
	r.identity = r.key()
	if length, values, ok := r.engine.loadMeasurement(key); ok {
		r.length, r.values = length, values
		return nil
	}
	m, err := r.get(ctx)
	if err != nil {
		return err
	}
	r.length, r.values = int64(len(m.data)), m.values
	r.engine.count(func(c *Counters) { c.ChunksMeasured.Add(1) })
	r.engine.saveMeasurement(key, r.length, r.values)
	return nil
}

// loadMeasured takes what saveMeasured kept; false unless all of it is there.
func (r *rewrite) loadMeasured() bool {
	length, values, ok := r.engine.loadMeasurement("measure|" + r.identity)
	if !ok {
		return false
	}
	if r.statistics {
		b, ok := r.engine.opt.Persist.Get("statistics|" + r.identity)
		if !ok {
			return false
		}
		if r.found, r.isFound = decodeStatistics(r.form.leaf, b); !r.isFound {
			return false
		}
	}
	r.length, r.values = length, values
	return true
}

// saveMeasured takes a chunk's length, entries and statistics from what was
// made of it, and keeps them.
func (r *rewrite) saveMeasured(m *made) {
	r.length, r.values = int64(len(m.data)), m.values
	r.engine.count(func(c *Counters) { c.ChunksMeasured.Add(1) })
	r.engine.saveMeasurement("measure|"+r.identity, r.length, r.values)
	if !r.statistics {
		return
	}
	r.found, r.isFound = m.statistics.result(), true
	if p := r.engine.opt.Persist; p != nil {
		p.Put("statistics|"+r.identity, encodeStatistics(r.found))
	}
}

func (e *Engine) loadMeasurement(key string) (length, values int64, ok bool) {
	if e.opt.Persist == nil {
		return 0, 0, false
	}
	b, ok := e.opt.Persist.Get(key)
	if !ok || len(b) != 16 {
		return 0, 0, false
	}
	length, values = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	return length, values, length > 0 && values > 0
}

func (e *Engine) saveMeasurement(key string, length, values int64) {
	if e.opt.Persist == nil {
		return
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(length))
	e.opt.Persist.Put(key, binary.LittleEndian.AppendUint64(b, uint64(values)))
}

// key is the cache identity: the sources' bytes and deletes, the view's form of
// the column, and the encoding.
func (r *rewrite) key() string {
	if r.identity != "" {
		return r.identity
	}
	f := &r.form
	l := &f.leaf.Logical
	b := make([]byte, 0, 1<<10)
	for _, n := range [...]int64{
		LayoutFormat, int64(f.leaf.Type), int64(f.leaf.TypeLength), int64(f.leaf.MaxDef), int64(f.leaf.MaxRep),
		int64(l.Kind), int64(l.Scale), int64(l.Precision), bit(l.UTC), int64(l.Unit), int64(f.codec), int64(f.rows), int64(f.bytes),
		bit(f.dict), int64(f.dictN), f.dictBytes, bit(r.headless), r.reserved(), bit(f.fallback), f.kept, bit(r.encoded != nil),
	} {
		b = binary.AppendVarint(b, n)
	}
	for _, s := range r.sources {
		for _, n := range [...]int64{int64(s.rowGroup), s.first, s.rows} {
			b = binary.AppendVarint(b, n)
		}
		b = s.in.appendColumnKey(b, f.leaf.Leaf)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// reserved is the chunk's length if it was reserved.
func (r *rewrite) reserved() int64 {
	if r.measured {
		return -1
	}
	return r.length
}

// make decodes and encodes the chunk; size -1 = without slack.
func (r *rewrite) make(ctx context.Context, size int64) (*made, error) {
	r.prefetch(ctx)
	w, collect := r.begin()
	defer r.engine.putWriter(w)
	if w.encoded {
		if err := r.makeEncoded(ctx, w); err != nil {
			return nil, err
		}
		return r.end(w, collect, size)
	}
	for i := range r.sources {
		if err := r.addSource(ctx, w, collect, &r.sources[i]); err != nil {
			return nil, err
		}
	}
	return r.end(w, collect, size)
}

// begin returns a writer of the chunk, which goes back to the engine's pool, and
// what gathers its statistics if they are asked for.
func (r *rewrite) begin() (*pageWriter, *collector) {
	w, _ := r.engine.writers.Get().(*pageWriter)
	if w == nil {
		w = &pageWriter{}
	}
	w.reset(r.form, r.headless, r.encoded != nil && !r.statistics)
	w.discard = r.discard
	if r.statistics {
		return w, &collector{leaf: r.form.leaf}
	}
	return w, nil
}

// end finishes the chunk.
func (r *rewrite) end(w *pageWriter, collect *collector, size int64) (*made, error) {
	if err := w.endPage(); err != nil {
		return nil, err
	}
	if r.discard {
		return &made{statistics: collect}, nil
	}
	data, err := w.assemble(size)
	if err != nil {
		return nil, err
	}
	r.engine.count(func(c *Counters) {
		c.ChunksRewritten.Add(1)
		if len(r.sources) > 1 {
			c.ChunksCoalesced.Add(1)
		}
	})
	return &made{data: data, values: w.total, statistics: collect}, nil
}

// Windows of decoding: so many rows at most, and so many bytes on average, are
// held as a vector at a time.
const (
	windowRows  = 16 << 10
	windowBytes = 4 << 20
)

// window is how many rows of a source to decode at a time.
func (r *rewrite) window(s *groupSource) int64 {
	per := s.storedBytes(r.form.leaf.Leaf) / max(s.rows, 1)
	return min(windowRows, max(windowBytes/max(per, 1), 1))
}

// addSource appends the visible rows of one source, a Parquet file.
func (r *rewrite) addSource(ctx context.Context, w *pageWriter, collect *collector, s *groupSource) error {
	if err := r.addChunk(ctx, w, collect, s); err != nil {
		return fmt.Errorf("%s: column %q: row group %d: %w", s.in.file.Path, r.form.leaf.Name, s.rowGroup, err)
	}
	return nil
}

func (r *rewrite) addChunk(ctx context.Context, w *pageWriter, collect *collector, s *groupSource) error {
	reader, err := s.in.pq.Column(s.rowGroup, &s.in.columns[r.form.leaf.Leaf])
	if err != nil {
		return err
	}
	defer reader.Close()
	if r.form.fallback {
		reader.KeepEncodings()
	}
	a := adder{w: w, collect: collect}
	window := r.window(s)
	var live []deletes.Range
	at := s.in.firstRow[s.rowGroup] // of the reader
	for from := s.first; from < s.first+s.rows; from += window {
		live = s.in.deleted.LiveRanges(live[:0], from, min(from+window, s.first+s.rows))
		if len(live) == 0 {
			continue
		}
		start, end := live[0].Start, live[len(live)-1].End
		if start > at {
			if err := reader.Skip(ctx, start-at); err != nil {
				return err
			}
		}
		for at = start; at < end; {
			v, err := reader.Read(ctx, int(end-at))
			if err != nil {
				return err
			}
			next := at + int64(v.Rows)
			if next != end {
				if !r.form.fallback || next <= at || next > end {
					return fmt.Errorf("%w: %d rows where there should be %d", ErrCorrupt, v.Rows, end-at)
				}
				live = s.in.deleted.LiveRanges(live[:0], at, next)
			} else if at > start {
				live = s.in.deleted.LiveRanges(live[:0], at, end)
			}
			if err := a.add(v, live, at); err != nil {
				return err
			}
			at = next
		}
	}
	if collect != nil {
		collect.endSource()
	}
	return nil
}
