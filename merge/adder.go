package merge

import (
	"encoding/binary"
	"fmt"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
)

// adder appends the visible rows of one source's vectors to a pageWriter: runs
// of entries and values are copied, rows are never looked at one by one (but
// where a repeated column's rows begin).
type adder struct {
	w *pageWriter
	// dict is the source's dictionary, whose first value has index base in the
	// chunk's.
	dict *pqfile.Values
	base uint32
	// constant is set once a constant's single dictionary entry is added.
	constant bool
	collect  *collector // nil if statistics are not wanted
	starts   []int32    // repeated: where the vector's rows begin, and its end
}

// stepRows bounds the rows added between two looks at a page's bytes, where
// values vary in length.
const stepRows = 256

// add appends the live ranges of v, whose first row is at position first.
func (a *adder) add(v *pqfile.Vector, live []deletes.Range, first int64) error {
	if err := a.prepare(v); err != nil {
		return err
	}
	w := a.w
	if w.discard {
		a.gatherAll(v, live, first)
		return nil
	}
	step := w.form.rows
	if w.form.leaf.Type == pqfile.ByteArray && !w.coded() {
		step = stepRows
	}
	c := cursor{v: v, maxDef: uint8(w.form.leaf.MaxDef), starts: a.starts}
	for _, r := range live {
		for s, e := int(r.Start-first), int(r.End-first); s < e; {
			n := min(e-s, w.form.rows-w.rows, step)
			entry, endEntry, value, endValue := c.run(s, s+n)
			a.levels(v, entry, endEntry)
			a.values(v, value, endValue)
			if a.collect != nil {
				a.gather(v, endEntry-entry, value, endValue)
			}
			w.rows += n
			s += n
			if w.full() {
				if err := w.endPage(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// gatherAll passes the live ranges of v on to the statistics, and nowhere else.
func (a *adder) gatherAll(v *pqfile.Vector, live []deletes.Range, first int64) {
	c := cursor{v: v, maxDef: uint8(a.w.form.leaf.MaxDef), starts: a.starts}
	for _, r := range live {
		entry, endEntry, value, endValue := c.run(int(r.Start-first), int(r.End-first))
		a.gather(v, endEntry-entry, value, endValue)
	}
}

// maxEntries ends a page of a repeated column after so many entries.
const maxEntries = 4 * pageRows

// cursor walks a vector's rows forward.
type cursor struct {
	v            *pqfile.Vector
	maxDef       uint8
	starts       []int32
	entry, value int // reached so far
}

// run returns the entries and the values of rows [s, e), s not before the last
// run's end.
func (c *cursor) run(s, e int) (entry, endEntry, value, endValue int) {
	if c.starts != nil {
		s, e = int(c.starts[s]), int(c.starts[e])
	}
	if c.v.Def == nil {
		return s, e, s, e
	}
	c.value += countLevel(c.v.Def[c.entry:s], c.maxDef)
	value = c.value
	c.value += countLevel(c.v.Def[s:e], c.maxDef)
	c.entry = e
	return s, e, value, c.value
}

// prepare checks the vector's form and takes its dictionary into the chunk's.
func (a *adder) prepare(v *pqfile.Vector) error {
	w := a.w
	a.starts = a.starts[:0]
	if w.form.leaf.MaxRep > 0 {
		for i, rep := range v.Rep {
			if rep == 0 {
				a.starts = append(a.starts, int32(i))
			}
		}
		if len(a.starts) != v.Rows {
			return fmt.Errorf("%w: %d rows begin where there should be %d", ErrCorrupt, len(a.starts), v.Rows)
		}
		a.starts = append(a.starts, int32(len(v.Rep)))
	} else {
		a.starts = nil
	}
	if !w.form.dict || w.discard || v.Values.N == 0 {
		return nil
	}
	d := v.Values.Dict
	if v.Repeat {
		d = &v.Values
		if a.constant {
			return nil
		}
		a.constant = true
	} else if d == nil && w.form.fallback {
		return w.fall()
	} else if d != nil && w.fallen {
		return fmt.Errorf("%w: dictionary-coded page after plain ones", ErrCorrupt)
	} else if d == nil {
		return fmt.Errorf("%w: plain values in a chunk of dictionary pages", ErrCorrupt)
	} else if d == a.dict {
		return nil
	} else if a.dict != nil {
		return fmt.Errorf("%w: two dictionaries in one chunk", ErrCorrupt)
	}
	base, err := w.addDictionary(d)
	a.dict, a.base = d, base
	return err
}

// levels appends the levels of entries [s, e).
func (a *adder) levels(v *pqfile.Vector, s, e int) {
	var rep, def []uint8
	if v.Rep != nil {
		rep = v.Rep[s:e]
	}
	if v.Def != nil {
		def = v.Def[s:e]
	}
	a.w.addLevels(rep, def, e-s)
}

// values appends values [s, e) in the page's encoding.
func (a *adder) values(v *pqfile.Vector, s, e int) {
	w, vals := a.w, &v.Values
	switch {
	case v.Repeat && w.coded():
		for ; s < e; s++ {
			w.index = append(w.index, a.base)
		}
	case v.Repeat:
		for ; s < e; s++ {
			a.plain(vals, 0, 1)
		}
	case w.coded() && a.base == 0:
		w.index = append(w.index, vals.Index[s:e]...)
	case w.coded():
		for _, i := range vals.Index[s:e] {
			w.index = append(w.index, i+a.base)
		}
	case vals.Dict != nil:
		a.lookUp(vals.Dict, vals.Index[s:e])
	default:
		a.plain(vals, s, e)
	}
}

// gather passes values [s, e) on to the statistics.
func (a *adder) gather(v *pqfile.Vector, entries, s, e int) {
	a.collect.addEntries(entries, e-s)
	switch vals := &v.Values; {
	case s == e:
	case v.Repeat:
		a.collect.addValues(vals, 0, 1)
	case vals.Dict != nil:
		a.collect.addIndexes(vals.Dict, vals.Index[s:e])
	default:
		a.collect.addValues(vals, s, e)
	}
}

// plain appends values that are not dictionary-coded.
func (a *adder) plain(v *pqfile.Values, s, e int) {
	if a.w.form.leaf.Type == pqfile.Boolean {
		a.w.bools = append(a.w.bools, v.Bools[s:e]...)
		return
	}
	if s < e {
		a.w.plain = appendPlain(a.w.plain, a.w.form.leaf.Type, v, s, e)
	}
}

// lookUp appends dictionary values.
func (a *adder) lookUp(d *pqfile.Values, index []uint32) {
	w := a.w
	typ := w.form.leaf.Type
	switch {
	case typ == pqfile.Boolean:
		for _, i := range index {
			w.bools = append(w.bools, d.Bools[i])
		}
	case typ == pqfile.ByteArray:
		for _, i := range index {
			w.plain = appendPlain(w.plain, typ, d, int(i), int(i)+1)
		}
	case d.Width == 8:
		for _, i := range index {
			w.plain = binary.LittleEndian.AppendUint64(w.plain, binary.LittleEndian.Uint64(d.Fixed[8*i:]))
		}
	case d.Width == 4:
		for _, i := range index {
			w.plain = binary.LittleEndian.AppendUint32(w.plain, binary.LittleEndian.Uint32(d.Fixed[4*i:]))
		}
	default:
		for _, i := range index {
			w.plain = append(w.plain, d.Fixed[int(i)*d.Width:(int(i)+1)*d.Width]...)
		}
	}
}
