package merge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
)

// textView is a snapshot's rows as CSV or JSON Lines.
//
// Its bytes are a head and, in the order of the rows, one unit for each row
// group of each data file. A unit's length is known once it has been formatted;
// the measurement (length and checkpoints about every checkpointBytes) is kept
// in the cache and on disk under the unit's key, so that it is made once for
// all snapshots that show the unit alike. Checkpoints cut a unit into blocks,
// the pieces that are formatted, cached and read ahead.
//
// Safe for concurrent use.
type textView struct {
	engine   *Engine
	scan     Scan
	makeForm func(*pqfile.Schema) (*textForm, error)

	prepare func() (*textSetup, error)

	mu     sync.Mutex
	layout *textLayout // nil until measured
}

var (
	_ Opener    = (*textView)(nil)
	_ Streamer  = (*textView)(nil)
	_ Explainer = (*textView)(nil)
)

// textSetup is what a view knows without reading any data file.
type textSetup struct {
	view *pqfile.Schema
	form *textForm
	key  string // hash of everything but the data file that the rows' bytes depend on
	// batches keeps *textBatches of closed cursors, for their memory.
	batches sync.Pool
}

// batch returns a formatter of the view's rows.
func (s *textSetup) batch() (*textBatch, error) {
	if b, ok := s.batches.Get().(*textBatch); ok {
		return b, nil
	}
	return newTextBatch(s.view, s.form)
}

// maxKeptBatch bounds the memory of a batch that is kept for another cursor.
const maxKeptBatch = 16 << 20

// keep takes a batch back.
func (s *textSetup) keep(b *textBatch) {
	if b.bytes() <= maxKeptBatch {
		b.release()
		s.batches.Put(b)
	}
}

// text returns a view of all rows in a form.
func (e *Engine) text(s Scan, makeForm func(*pqfile.Schema) (*textForm, error)) View {
	v := &textView{engine: e, scan: e.withMetadata(s), makeForm: makeForm}
	v.prepare = sync.OnceValues(v.setup)
	return v
}

// setup builds the view schema and the form.
func (v *textView) setup() (*textSetup, error) {
	if v.scan.invalid != nil {
		return nil, v.scan.invalid
	}
	view, err := pqfile.ViewOf(v.scan.Schema)
	if err != nil {
		return nil, err
	}
	form, err := v.makeForm(view)
	if err != nil {
		return nil, err
	}
	if _, err := newTextBatch(view, form); err != nil {
		return nil, err
	}
	schema, err := json.Marshal(v.scan.Schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	mapping, err := json.Marshal(v.scan.Table.NameMapping)
	if err != nil {
		return nil, fmt.Errorf("name mapping: %w", err)
	}
	key := textKey(fmt.Sprint(textFormat), form.options, string(schema), string(mapping))
	return &textSetup{view: view, form: form, key: key}, nil
}

// textKey hashes parts to a key.
func textKey(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return string(h.Sum(nil))
}

// Size implements View. The first call formats every unit that has not been
// measured before.
func (v *textView) Size(ctx context.Context) (int64, error) {
	l, err := v.measured(ctx)
	if err != nil {
		return 0, err
	}
	return l.size(), nil
}

// measured returns the layout, measuring what has to be.
func (v *textView) measured(ctx context.Context) (*textLayout, error) {
	v.mu.Lock()
	l := v.layout
	v.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l, err := v.measure(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.layout == nil {
		v.layout = l
	}
	return v.layout, nil
}

// ReadAt implements View, for single reads; readers that come back use Open.
func (v *textView) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	h := v.Open()
	defer h.Close()
	return h.ReadAt(ctx, p, off)
}

// WriteTo implements Streamer: rows are written as they are formatted, and
// nothing is measured.
func (v *textView) WriteTo(ctx context.Context, w io.Writer) error {
	set, err := v.prepare()
	if err != nil {
		return err
	}
	if _, err := w.Write(set.form.head); err != nil {
		return err
	}
	for i := range v.scan.Plan.Files {
		in, err := v.engine.openText(ctx, v.scan, set, i)
		if err != nil {
			return err
		}
		if err := in.resolve(ctx); err != nil {
			return err
		}
		for g := range in.groups() {
			if err := in.writeUnit(ctx, w, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeUnit writes the rows of row group g.
func (in *textInput) writeUnit(ctx context.Context, w io.Writer, g int) error {
	c, err := in.cursor(g, in.engine.workers())
	if err != nil {
		return err
	}
	defer c.close()
	var buf []byte
	var head []deletes.Range
	for {
		more, err := c.fill(ctx, c.rows)
		if err != nil || !more {
			return err
		}
		for live := c.live; len(live) > 0; {
			var bytes int
			head, live, bytes = c.batch.cut(head[:0], live, checkpointBytes)
			buf = c.batch.appendRows(buf[:0], head, bytes, c.workers)
			if _, err := w.Write(buf); err != nil {
				return err
			}
		}
	}
}

// Explain implements Explainer.
func (v *textView) Explain(ctx context.Context, w io.Writer) error {
	l, err := v.measured(ctx)
	if err != nil {
		return err
	}
	form := l.setup.form
	if _, err := fmt.Fprintf(w, "%s %d bytes, head %d bytes, %d units\n", form.name, l.size(), len(form.head), len(l.units)); err != nil {
		return err
	}
	for _, u := range l.units {
		_, err := fmt.Fprintf(w, "%12d %12d bytes  %d of %d rows  %d blocks  row group %d of %s\n",
			u.start, u.measure.size, u.measure.live, u.rows, u.measure.blocks(), u.group, v.scan.Plan.Files[u.file].Path)
		if err != nil {
			return err
		}
	}
	return nil
}

// textLayout says where every row group's text lies. Immutable.
type textLayout struct {
	setup *textSetup
	units []textUnit // in the order of the rows; some are empty
}

// textUnit is one row group of one data file.
type textUnit struct {
	file    int // index in the plan
	group   int
	rows    int64  // stored, deleted rows included
	key     string // cache identity
	start   int64  // offset of its first byte in the view
	measure *textMeasure
}

// size is the view's length.
func (l *textLayout) size() int64 {
	if n := len(l.units); n > 0 {
		return l.units[n-1].start + l.units[n-1].measure.size
	}
	return int64(len(l.setup.form.head))
}

// place sets the units' offsets.
func (l *textLayout) place() {
	at := int64(len(l.setup.form.head))
	for i := range l.units {
		l.units[i].start = at
		at += l.units[i].measure.size
	}
}

// blockID names a block: unit i, from its checkpoint k to the next.
type blockID struct{ unit, block int }

// after reports whether the block comes after o.
func (id blockID) after(o blockID) bool {
	return id.unit > o.unit || id.unit == o.unit && id.block > o.block
}

// find returns the block that byte off lies in, and the offset of its first
// byte; off is past the head and before the end.
func (l *textLayout) find(off int64) (blockID, int64) {
	i, _ := slices.BinarySearchFunc(l.units, off, func(u textUnit, off int64) int {
		if u.start+u.measure.size <= off {
			return -1
		}
		return 1
	})
	u := &l.units[i]
	k := u.measure.find(off - u.start)
	return blockID{i, k}, u.start + u.measure.marks[k].offset
}

// next returns the block after id, or false at the end.
func (l *textLayout) next(id blockID) (blockID, bool) {
	if id.block+1 < l.units[id.unit].measure.blocks() {
		return blockID{id.unit, id.block + 1}, true
	}
	for i := id.unit + 1; i < len(l.units); i++ {
		if l.units[i].measure.size > 0 {
			return blockID{i, 0}, true
		}
	}
	return blockID{}, false
}
