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

// vectorReader reads one leaf of a run of rows as vectors in the view's terms:
// a pqfile.ColumnReader, or a reader of row-wise data.
type vectorReader interface {
	// Read returns the next n rows; the vector is valid until the next call.
	Read(ctx context.Context, n int) (*pqfile.Vector, error)
	// Skip passes over n rows.
	Skip(ctx context.Context, n int64) error
	Close()
}

var _ vectorReader = (*pqfile.ColumnReader)(nil)

// rewrite is a chunk whose bytes are made from decoded rows: the same bytes
// every time, of a size known before.
type rewrite struct {
	engine  *Engine
	sources []groupSource
	form    pageForm
	// headless runs are parts of a chunk after the first: they have no dictionary
	// page.
	headless bool
	// plainBytes bounds the PLAIN bytes of the visible values, or is unknown.
	plainBytes int64
	// length is the chunk's size; measured tells that it is the pages' own, else
	// it is a reserve that slack fills.
	length   int64
	measured bool
	values   int64 // entries, NULLs included
	identity string
	// statistics asks for exact statistics to be found as the chunk is made.
	statistics bool
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
	return found + ", " + form
}

func (r *rewrite) readAt(ctx context.Context, h *handle, p []byte, off int64) error {
	data, err := r.bytes(ctx, h)
	if err != nil {
		return err
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
	key := "chunk|" + r.key()
	if r.statistics {
		key += "|statistics"
	}
	v, err := r.engine.cached(ctx, key, func(ctx context.Context) (any, int64, error) {
		size := r.length
		if r.measured {
			size = -1
		}
		m, err := r.make(ctx, size)
		if err != nil {
			return nil, 0, err
		}
		return m, int64(len(m.data)), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*made), nil
}

// bytes returns the chunk for a read, which the handle then owns.
func (r *rewrite) bytes(ctx context.Context, h *handle) ([]byte, error) {
	if data := h.held(r); data != nil {
		return data, nil
	}
	m, err := r.get(ctx)
	if err != nil {
		return nil, err
	}
	if int64(len(m.data)) != r.length || m.values != r.values {
		return nil, fmt.Errorf("%w: column %q: chunk of %d bytes and %d entries, not %d and %d as planned",
			ErrCorrupt, r.form.leaf.Name, len(m.data), m.values, r.length, r.values)
	}
	h.hold(r, m.data)
	return m.data, nil
}

// measure makes the chunk without slack, once, and keeps its size.
func (r *rewrite) measure(ctx context.Context) error {
	r.statistics = ordered(r.form.leaf) && r.engine.opt.Statistics != StatisticsNone // it costs little now
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
	h := sha256.New()
	f := &r.form
	fmt.Fprintf(h, "%d|%d|%d|%d|%d|%d|%d|%d|%d|%v|%d|%d|%v|%d|", LayoutFormat, f.leaf.Type, f.leaf.TypeLength, f.leaf.MaxDef, f.leaf.MaxRep,
		f.leaf.Logical.Kind, f.codec, f.rows, f.bytes, f.dict, f.dictN, f.dictBytes, r.headless, r.reserved())
	for _, s := range r.sources {
		fmt.Fprintf(h, "%s|%d|%d|%d|", s.in.columnKey(f.leaf.Leaf), s.rowGroup, s.first, s.rows)
	}
	return hex.EncodeToString(h.Sum(nil))
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
	w, _ := r.engine.writers.Get().(*pageWriter)
	if w == nil {
		w = &pageWriter{}
	}
	defer r.engine.writers.Put(w)
	w.reset(r.form, r.headless)
	var collect *collector
	if r.statistics {
		collect = &collector{leaf: r.form.leaf}
	}
	for i := range r.sources {
		if err := r.addSource(ctx, w, collect, &r.sources[i]); err != nil {
			return nil, fmt.Errorf("%s: column %q: row group %d: %w",
				r.sources[i].in.file.Path, r.form.leaf.Name, r.sources[i].rowGroup, err)
		}
	}
	if err := w.endPage(); err != nil {
		return nil, err
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
	bytes := int64(0)
	for _, src := range s.in.columns[r.form.leaf.Leaf].Stored() {
		meta := s.in.pq.Metadata.RowGroups[s.rowGroup].Columns[src.Leaf].MetaData
		bytes += max(meta.TotalUncompressedSize, meta.TotalCompressedSize, 0)
	}
	per := bytes / max(s.rows, 1)
	return min(windowRows, max(windowBytes/max(per, 1), 1))
}

// addSource appends the visible rows of one source.
func (r *rewrite) addSource(ctx context.Context, w *pageWriter, collect *collector, s *groupSource) error {
	col := &s.in.columns[r.form.leaf.Leaf]
	var reader vectorReader
	reader, err := s.in.pq.Column(s.rowGroup, col)
	if err != nil {
		return err
	}
	defer reader.Close()
	a := adder{w: w, collect: collect}
	window := r.window(s)
	var live []deletes.Range
	at := s.in.pq.FirstRow[s.rowGroup] // of the reader
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
		v, err := reader.Read(ctx, int(end-start))
		if err != nil {
			return err
		}
		if int64(v.Rows) != end-start {
			return fmt.Errorf("%w: %d rows where there should be %d", ErrCorrupt, v.Rows, end-start)
		}
		at = end
		if err := a.add(v, live, start); err != nil {
			return err
		}
	}
	if collect != nil {
		collect.endSource()
	}
	return nil
}
