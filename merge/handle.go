package merge

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/icefs/icefs/internal/source"
)

// handle is one reader of a Parquet view. It keeps the layout and the chunks
// that it was given as a whole last. Safe for concurrent use.
type handle struct {
	view   *parquetView
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	layout *layout
	chunks []heldChunk // most recent last
	bytes  int64
	reads  reads
	closed bool
}

// heldKey is what is held as a whole: a rewritten chunk (by its *rewrite), or an
// extent of a source.Remote.
type heldKey struct {
	of      any
	from, n int64
}

type heldChunk struct {
	of   heldKey
	data []byte
}

var _ Handle = (*handle)(nil)

// ReadAt implements Handle.
func (h *handle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	l, err := h.its(ctx)
	if err != nil {
		return 0, err
	}
	h.follow(l, off, int64(len(p)))
	return l.readAt(ctx, h, p, off)
}

// its returns the layout, which the handle then keeps.
func (h *handle) its(ctx context.Context) (*layout, error) {
	h.mu.Lock()
	l := h.layout
	h.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l, err := h.view.layout(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.layout = l
	return l, nil
}

var _ Passthrough = (*handle)(nil)

// OpenFile implements Passthrough.
func (h *handle) OpenFile(ctx context.Context) (*os.File, error) {
	l, err := h.its(ctx)
	if err != nil {
		return nil, err
	}
	if f, ok := l.whole.(source.Filer); ok {
		return f.OpenFile()
	}
	return nil, nil
}

// Stored implements Passthrough.
func (h *handle) Stored(ctx context.Context) (stored, remote bool) {
	l, err := h.its(ctx)
	if err != nil {
		return false, false
	}
	return l.raw > l.length/2, l.remote
}

// Borrow implements Passthrough.
func (h *handle) Borrow(ctx context.Context, off int64, n int, each func(f *os.File, at int64, n int) error) (bool, error) {
	l, err := h.its(ctx)
	if err != nil {
		return false, err
	}
	segments, skip := l.stored(off, int64(n))
	for _, s := range segments {
		if _, local := s.object.(source.Filer); !local {
			return false, nil
		}
	}
	left := int64(n)
	for _, s := range segments {
		piece := min(left, s.n-skip)
		if err := s.lend(skip, piece, each); err != nil {
			return false, err
		}
		left, skip = left-piece, 0
	}
	return len(segments) > 0, nil
}

// lend calls each with the file that has the segment's n bytes at off.
func (s *rawSegment) lend(off, n int64, each func(f *os.File, at int64, n int) error) error {
	f, release, err := s.object.(source.Filer).Borrow()
	if err != nil {
		return err
	}
	if s.served != nil {
		s.served.Add(n)
	}
	err = each(f, s.from+off, int(n))
	if changed := release(); err == nil {
		err = changed
	}
	return err
}

var _ Piecer = (*handle)(nil)

// Pieces implements Piecer: of a chunk that was made.
func (h *handle) Pieces(ctx context.Context, n int, off int64) ([][]byte, error) {
	l, err := h.its(ctx)
	if err != nil {
		return nil, err
	}
	r, at := l.made(off, int64(n))
	if r == nil {
		return nil, nil
	}
	data := h.held(heldKey{of: r})
	switch {
	case data != nil:
	case r.isKept(): // ReadAt looks into the folder first
		return nil, nil
	default:
		if data, err = r.bytes(ctx, h); err != nil {
			return nil, err
		}
	}
	h.follow(l, off, int64(n))
	return [][]byte{data[at : at+int64(n)]}, nil
}

// Close implements Handle. What is being fetched ahead is given up.
func (h *handle) Close() error {
	h.cancel()
	h.mu.Lock()
	h.reads.uncount(h.view.engine.memory)
	h.layout, h.chunks, h.bytes, h.closed = nil, nil, 0, true
	h.mu.Unlock()
	h.view.engine.memory.holdings.forget(h)
	return nil
}

// drop implements holder.
func (h *handle) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chunks, h.bytes = nil, 0
}

// held returns the bytes of a chunk that the handle keeps, or nil. h may be nil.
func (h *handle) held(of heldKey) []byte {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.chunks) - 1; i >= 0; i-- {
		if c := h.chunks[i]; c.of == of {
			copy(h.chunks[i:], h.chunks[i+1:])
			h.chunks[len(h.chunks)-1] = c
			return c.data
		}
	}
	return nil
}

// hold keeps a chunk, and drops those read longest ago: a reader takes a chunk in
// many small reads, several columns at a time, and the cache may decline any
// value. h may be nil.
func (h *handle) hold(of heldKey, data []byte) {
	if h == nil {
		return
	}
	if bytes, more := h.add(of, data); more {
		h.view.engine.memory.holdings.use(h, bytes)
	}
}

// add keeps a chunk, and returns how much is kept, and whether that is news.
func (h *handle) add(of heldKey, data []byte) (int64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || slices.ContainsFunc(h.chunks, func(c heldChunk) bool { return c.of == of }) {
		return 0, false
	}
	h.chunks = append(h.chunks, heldChunk{of, data})
	h.bytes += int64(len(data))
	for len(h.chunks) > 1 && h.bytes > h.view.engine.memory.held {
		h.bytes -= int64(len(h.chunks[0].data))
		h.chunks = slices.Delete(h.chunks, 0, 1)
	}
	return h.bytes, true
}
