package merge

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// A handle keeps its last heldBlocks blocks. Of those after the one that a
// sequential reader is in it asks for firstAhead, then twice as many with each
// block, up to mostAhead or a textAheadShare-th of what handles may hold. A unit's
// blocks are made one after another: so that all processors have work, blocks of
// up to aheadUnits units are made at a time, if there is room for wideAhead blocks;
// what a unit has decoded takes more than they do.
const (
	heldBlocks     = 3
	firstAhead     = 2
	mostAhead      = 32
	textAheadShare = 8
	aheadUnits     = 2
	wideAhead      = 16
)

// textHandle is one reader of a text view. It owns what it reads: the blocks it
// was in last, and cursors that stand where a block ended, so that reading on
// decodes nothing twice, whatever the cache keeps. Blocks are made on the
// handle's own context: a reader that gives up stops no other one.
type textHandle struct {
	view   *textView
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	blocks  []*textBlock // read last at the end; those being made included
	cursors []heldCursor // idle
	input   *textInput   // of the file opened last
	file    int          // its index
	last    blockID      // asked for last
	reads   bool         // last is set
	window  int          // blocks to ask for ahead
}

// textBlock is a block, or one being made.
type textBlock struct {
	id    blockID
	after *textBlock    // the block before it, if that is being made
	done  chan struct{} // closed when data or err is set
	data  []byte
	err   error
}

// heldCursor is an idle cursor of a unit.
type heldCursor struct {
	unit int
	*textCursor
}

var (
	_ Handle = (*textHandle)(nil)
	_ Piecer = (*textHandle)(nil)
)

// Open implements Opener.
func (v *textView) Open() Handle {
	h := &textHandle{view: v}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Close implements Handle. Blocks being made are abandoned.
func (h *textHandle) Close() error {
	h.cancel()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.view.engine.memory.holdings.forget(h)
	h.drop()
	return nil
}

// drop gives up everything that is not being made.
func (h *textHandle) drop() {
	h.mu.Lock()
	cursors := h.cursors
	h.cursors, h.input = nil, nil
	h.blocks = slices.DeleteFunc(h.blocks, (*textBlock).finished)
	h.mu.Unlock()
	for _, c := range cursors {
		c.close()
	}
}

// ReadAt implements Handle.
func (h *textHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	pieces, err := h.Pieces(ctx, len(p), off)
	n := 0
	for _, piece := range pieces {
		n += copy(p[n:], piece)
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Pieces implements Piecer: they are of blocks.
func (h *textHandle) Pieces(ctx context.Context, n int, off int64) ([][]byte, error) {
	if off < 0 {
		return nil, fmt.Errorf("internal error: read at offset %d", off)
	}
	l, err := h.view.measured(ctx)
	if err != nil {
		return nil, err
	}
	var pieces [][]byte
	add := func(b []byte) {
		b = b[:min(n, len(b))]
		pieces = append(pieces, b)
		n -= len(b)
		off += int64(len(b))
	}
	if head := l.setup.form.head; n > 0 && off < int64(len(head)) {
		add(head[off:])
	}
	for size := l.size(); n > 0 && off < size; {
		id, start := l.find(off)
		data, err := h.block(ctx, l, id)
		if err != nil {
			return pieces, err
		}
		add(data[off-start:])
	}
	h.note()
	return pieces, nil
}

// block returns a block's bytes, and has the next ones made if the reader is
// sequential.
func (h *textHandle) block(ctx context.Context, l *textLayout, id blockID) ([]byte, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, fmt.Errorf("internal error: read of a closed handle")
	}
	next, more := l.next(h.last)
	known := h.has(id) // requests side by side overtake one another
	switch {
	case h.reads && (more && id == next || known && id.after(h.last)):
		h.window = min(max(2*h.window, firstAhead), max(h.mostAhead(), firstAhead))
		h.last = id
	case !h.reads || !known:
		h.window, h.last, h.reads = 0, id, true
	}
	b := h.want(l, id)
	if id == h.last {
		h.askAhead(l, b)
	}
	h.trim()
	h.mu.Unlock()
	select {
	case <-b.done:
		return b.data, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mostAhead is how many blocks the handle may have made ahead.
func (h *textHandle) mostAhead() int {
	return int(min(mostAhead, h.view.engine.memory.held/textAheadShare/checkpointBytes))
}

// askAhead has the blocks after b made that the window has room for. The caller
// holds mu.
func (h *textHandle) askAhead(l *textLayout, b *textBlock) {
	units, unit, most := 0, -1, aheadUnits // being made, and the last of them
	if h.mostAhead() < wideAhead {
		most = 1
	}
	for range h.window {
		if !b.finished() && b.id.unit != unit {
			units, unit = units+1, b.id.unit
		}
		next, more := l.next(b.id)
		if !more || units == most && next.unit != unit && !h.has(next) {
			return
		}
		b = h.want(l, next)
	}
}

// has reports whether a block has been asked for. The caller holds mu.
func (h *textHandle) has(id blockID) bool {
	return slices.ContainsFunc(h.blocks, func(b *textBlock) bool { return b.id == id })
}

// want returns the block, and starts making it if the handle does not have it.
// The caller holds mu.
func (h *textHandle) want(l *textLayout, id blockID) *textBlock {
	for i, b := range h.blocks {
		if b.id == id {
			h.blocks = append(slices.Delete(h.blocks, i, i+1), b)
			return b
		}
	}
	b := &textBlock{id: id, done: make(chan struct{})}
	for _, o := range h.blocks {
		if o.id.unit == id.unit && o.id.block+1 == id.block && !o.finished() {
			b.after = o
		}
	}
	h.blocks = append(h.blocks, b)
	go h.make(l, b)
	return b
}

// trim forgets the blocks read longest ago. The caller holds mu.
func (h *textHandle) trim() {
	for i := 0; i < len(h.blocks) && len(h.blocks) > heldBlocks+h.window; {
		if h.blocks[i].finished() {
			h.blocks = slices.Delete(h.blocks, i, i+1)
		} else {
			i++
		}
	}
}

// finished reports whether a block has been made.
func (b *textBlock) finished() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// make makes a block, after the one before it, whose cursor it goes on with.
func (h *textHandle) make(l *textLayout, b *textBlock) {
	if b.after != nil {
		<-b.after.done
		b.after = nil
	}
	err := pqfile.Protect(func() error {
		u := &l.units[b.id.unit]
		key := "text|block|" + u.key + strconv.Itoa(b.id.block)
		data, err := h.view.engine.cached(h.ctx, key, func(ctx context.Context) (any, int64, error) {
			data, err := h.format(ctx, l, b.id)
			return data, int64(len(data)), err
		})
		if err == nil {
			b.data = data.([]byte)
		}
		return err
	})
	h.mu.Lock()
	b.err = err
	close(b.done)
	if err != nil { // the next reader tries again
		h.blocks = slices.DeleteFunc(h.blocks, func(o *textBlock) bool { return o == b })
	}
	h.mu.Unlock()
	h.note()
}

// note tells what the handle keeps: what is made ahead comes after the read that
// asked for it, and perhaps after the handle was dropped or closed.
func (h *textHandle) note() {
	all := &h.view.engine.memory.holdings
	all.use(h, h.bytes())
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		all.forget(h)
		h.drop()
	}
}

// format formats a block.
func (h *textHandle) format(ctx context.Context, l *textLayout, id blockID) ([]byte, error) {
	u := &l.units[id.unit]
	from, to := u.measure.marks[id.block], u.measure.end(id.block, u.rows)
	c, err := h.take(ctx, l, id.unit, from.row)
	if err != nil {
		return nil, err
	}
	release, err := h.view.engine.memory.admit(ctx, c.bytes()+2*checkpointBytes)
	if err != nil {
		c.close()
		return nil, err
	}
	defer release()
	c.row, c.workers = from.row, h.share()
	data, err := c.appendTo(ctx, make([]byte, 0, to.offset-from.offset), to.row)
	if err == nil && int64(len(data)) != to.offset-from.offset {
		err = fmt.Errorf("%s: %w: row group %d: a block has %d bytes, measured %d", c.in.file.Path, ErrCorrupt, u.group, len(data), to.offset-from.offset)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	h.park(id.unit, c, id.block+1 < u.measure.blocks())
	return data, nil
}

// share is how many workers a block has for itself: those of the engine are
// divided among the units that blocks are made of. Units side by side need not
// wait for each other; the workers of one block do, at the end of each batch.
func (h *textHandle) share() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	units := map[int]bool{}
	for _, b := range h.blocks {
		if !b.finished() {
			units[b.id.unit] = true
		}
	}
	return max(1, h.view.engine.workers()/max(1, len(units)))
}

// take returns a cursor of a unit that has not passed row: the nearest idle
// one, else a new one.
func (h *textHandle) take(ctx context.Context, l *textLayout, unit int, row int64) (*textCursor, error) {
	h.mu.Lock()
	best := -1
	for i, c := range h.cursors {
		if c.unit == unit && c.row <= row && (best < 0 || c.row > h.cursors[best].row) {
			best = i
		}
	}
	if best >= 0 {
		c := h.cursors[best].textCursor
		h.cursors = slices.Delete(h.cursors, best, best+1)
		h.mu.Unlock()
		return c, nil
	}
	in, u := h.input, &l.units[unit]
	if h.file != u.file {
		in = nil
	}
	h.mu.Unlock()
	if in == nil {
		var err error
		if in, err = h.open(ctx, l, u); err != nil {
			return nil, err
		}
	}
	return in.cursor(u.group, h.view.engine.workers())
}

// open opens the data file of a unit, checks that it is the file that was
// measured, and resolves its deletes.
func (h *textHandle) open(ctx context.Context, l *textLayout, u *textUnit) (*textInput, error) {
	in, err := h.view.engine.openText(ctx, h.view.scan, l.setup, u.file)
	if err != nil {
		return nil, err
	}
	if in.unitKey(u.group) != u.key {
		return nil, fmt.Errorf("%s: %w", in.file.Path, source.ErrChanged)
	}
	if err := in.resolve(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.input, h.file = in, u.file
	}
	return in, nil
}

// park keeps a cursor for the block after the one it made, or closes it.
func (h *textHandle) park(unit int, c *textCursor, more bool) {
	h.mu.Lock()
	old := c
	if more && !h.closed {
		h.cursors = append(h.cursors, heldCursor{unit, c})
		old = nil
		if len(h.cursors) > max(h.view.engine.workers(), aheadUnits) {
			old = h.cursors[0].textCursor
			h.cursors = slices.Delete(h.cursors, 0, 1)
		}
	}
	h.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// bytes estimates the heap that the handle keeps.
func (h *textHandle) bytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	total := int64(0)
	for _, b := range h.blocks {
		if b.finished() {
			total += int64(len(b.data))
		} else {
			total += checkpointBytes
		}
	}
	for _, c := range h.cursors {
		total += c.bytes()
	}
	return total
}
