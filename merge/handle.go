package merge

import (
	"context"
	"sync"
)

// heldBytes bounds the chunks that one handle keeps for itself: a reader takes
// a chunk in many small reads, several columns at a time, and the cache may
// decline any value.
const heldBytes = 64 << 20

// handle is one reader of a Parquet view. It keeps the layout and the chunks
// that it was given as a whole last. Safe for concurrent use.
type handle struct {
	view *parquetView

	mu     sync.Mutex
	layout *layout
	chunks []heldChunk // most recent last
	bytes  int64
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
	h.mu.Lock()
	l := h.layout
	h.mu.Unlock()
	if l == nil {
		var err error
		if l, err = h.view.layout(ctx); err != nil {
			return 0, err
		}
		h.mu.Lock()
		h.layout = l
		h.mu.Unlock()
	}
	return l.readAt(ctx, h, p, off)
}

// Close implements Handle.
func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.layout, h.chunks, h.bytes = nil, nil, 0
	return nil
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

// hold keeps a chunk, and drops those read longest ago. h may be nil.
func (h *handle) hold(of heldKey, data []byte) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.chunks {
		if c.of == of {
			return
		}
	}
	h.chunks = append(h.chunks, heldChunk{of, data})
	h.bytes += int64(len(data))
	for len(h.chunks) > 1 && h.bytes > heldBytes {
		h.bytes -= int64(len(h.chunks[0].data))
		h.chunks = append(h.chunks[:0], h.chunks[1:]...)
	}
}
