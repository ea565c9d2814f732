package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/icefs/icefs/internal/pqfile"
)

// together makes the rewritten chunks of a row group that has rows of an Avro
// file. Rows are decoded for all columns at once, so the chunks are made, and
// measured, all at once too, and cached as one value. Immutable once measured.
type together struct {
	engine   *Engine
	sources  []groupSource
	chunks   []*chunk
	runs     []*rewrite // of the chunks, one each
	identity string
}

// together returns the maker of a group's chunks, or nil if each is made on its
// own.
func (e *Engine) together(g *group) *together {
	for i := range g.sources {
		if g.sources[i].in.avro != nil {
			return &together{engine: e, sources: g.sources}
		}
	}
	return nil
}

// add makes c one of the chunks.
func (t *together) add(c *chunk, leaf *pqfile.Node) {
	r := &rewrite{engine: t.engine, sources: t.sources, form: pageForm{leaf: leaf, codec: c.codec}, together: t, index: len(t.runs)}
	r.toMeasure()
	if w := valueWidth(leaf); w > 0 {
		r.form.rows = fixedRows(w)
	}
	r.statistics = r.wantsStatistics()
	r.identity = r.key()
	t.chunks, t.runs = append(t.chunks, c), append(t.runs, r)
}

// measure fixes the chunks' lengths and statistics: kept from before, or by
// making the chunks once.
func (t *together) measure(ctx context.Context) error {
	h := sha256.New()
	kept := true
	for _, r := range t.runs {
		io.WriteString(h, r.identity)
		kept = kept && r.loadMeasured()
	}
	t.identity = hex.EncodeToString(h.Sum(nil))
	if !kept {
		all, err := t.get(ctx)
		if err != nil {
			return err
		}
		for i, r := range t.runs {
			r.saveMeasured(all[i])
		}
	}
	for i, r := range t.runs {
		t.chunks[i].add(r)
		t.chunks[i].describeForm(&r.form)
	}
	return nil
}

// get returns what was made of every run, from the cache or newly made.
func (t *together) get(ctx context.Context) ([]*made, error) {
	if len(t.runs) == 0 {
		return nil, nil
	}
	v, err := t.engine.cached(ctx, "together|"+t.identity, func(ctx context.Context) (any, int64, error) {
		release, err := t.engine.memory.admit(ctx, t.workBytes())
		if err != nil {
			return nil, 0, err
		}
		defer release()
		all, err := t.make(ctx)
		if err != nil {
			return nil, 0, err
		}
		bytes := int64(0)
		for _, m := range all {
			bytes += int64(len(m.data))
		}
		return all, bytes, nil
	})
	if err != nil {
		return nil, err
	}
	return v.([]*made), nil
}

// workBytes estimates what making the chunks needs: twice their values.
func (t *together) workBytes() int64 {
	n := int64(windowBytes)
	for i := range t.sources {
		n += 2 * t.sources[i].bytes
	}
	return n
}

// bytes returns the chunk of a run for a read, and lets the handle keep it and
// the others, those that follow it before those that precede it.
func (t *together) bytes(ctx context.Context, h *handle, index int) ([]byte, error) {
	all, err := t.get(ctx)
	if err != nil {
		return nil, err
	}
	for i, r := range t.runs {
		if err := r.check(all[i]); err != nil {
			return nil, err
		}
	}
	n := len(all)
	for k := n - 1; k >= 0; k-- { // what is kept last is dropped last
		i := (index + k) % n
		h.hold(heldKey{of: t.runs[i]}, all[i].data)
	}
	return all[index].data, nil
}

// maxTogether bounds the encoded bytes of a group. Its rows are bounded and its
// stored bytes too, so that only data which decodes to some hundred times its
// size can be more.
const maxTogether = 4 << 30

// make decodes the sources and encodes the chunks.
func (t *together) make(ctx context.Context) ([]*made, error) {
	adders := make([]adder, len(t.runs))
	for i, r := range t.runs {
		adders[i].w, adders[i].collect = r.begin()
		defer t.engine.putWriter(adders[i].w)
	}
	for i := range t.sources {
		if err := t.addSource(ctx, &t.sources[i], adders); err != nil {
			return nil, err
		}
	}
	all := make([]*made, len(t.runs))
	for i, r := range t.runs {
		var err error
		if all[i], err = r.end(adders[i].w, adders[i].collect, -1); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addSource appends the visible rows of one source to all runs.
func (t *together) addSource(ctx context.Context, s *groupSource, adders []adder) error {
	if s.in.avro != nil {
		return t.addRows(ctx, s, adders)
	}
	for i, r := range t.runs {
		if err := r.addSource(ctx, adders[i].w, adders[i].collect, s); err != nil {
			return err
		}
	}
	return nil
}
