package merge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"weak"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/snapshot"
)

// checkpointBytes is the distance of checkpoints, and so about the size of a
// block: large enough that a seek into a row group and its cached block cost
// little beside formatting, small enough for a random read.
const checkpointBytes = 1 << 20

// textMark is a checkpoint: the text of the unit's live rows from row on begins
// at offset.
type textMark struct{ offset, row int64 }

// textMeasure is the measured text of a unit. Immutable.
type textMeasure struct {
	size  int64
	live  int64
	marks []textMark // the first is {0, 0}; none if size is 0
}

// blocks is the number of blocks that the marks cut the text into.
func (m *textMeasure) blocks() int { return len(m.marks) }

// find returns the block that byte off of the unit lies in.
func (m *textMeasure) find(off int64) int {
	i, found := slices.BinarySearchFunc(m.marks, off, func(mark textMark, off int64) int {
		return int(max(-1, min(1, mark.offset-off)))
	})
	if found {
		return i
	}
	return i - 1
}

// end returns where block k ends: offset and row.
func (m *textMeasure) end(k int, rows int64) textMark {
	if k+1 < len(m.marks) {
		return m.marks[k+1]
	}
	return textMark{m.size, rows}
}

// measure lays the view out. Row groups that are known already cost one look-up
// each; the others are formatted, up to Workers at a time in all views.
func (v *textView) measure(ctx context.Context) (l *textLayout, err error) {
	set, err := v.prepare()
	if err != nil {
		return nil, err
	}
	under, end := v.begin(set)
	defer func() { end(err) }()
	units := make([][]textUnit, len(v.scan.Plan.Files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(v.engine.workers())
	for i := range units {
		g.Go(func() error {
			return pqfile.Protect(func() (err error) {
				units[i], err = v.measureFile(ctx, set, i, under)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	l = &textLayout{setup: set, units: slices.Concat(units...)}
	l.place()
	return l, nil
}

// fileUnits are the measured units of one data file. Immutable.
type fileUnits struct {
	table weak.Pointer[snapshot.Table] // whose address is a part of the key
	units []textUnit                   // of no view: file and start are not set
	rows  int64
}

// fileKey is the key of a data file's units within a loaded table: other
// snapshots that show the file alike do not open it to be measured. Whoever reads
// opens it, and finds out if it has changed.
func (v *textView) fileKey(set *textSetup, f *snapshot.File) string {
	key := textKey(set.key, f.Path, snapshot.PartitionKey(0, nil, identityConstants(v.scan.Table, f.DataFile)), f.DeleteKey(),
		fmt.Sprintf("%d %d %d", f.SpecID, f.Sequence, f.FirstRowID))
	return fmt.Sprintf("text|file|%p|%s", v.scan.Table, key)
}

// measureFile measures the row groups of data file i.
func (v *textView) measureFile(ctx context.Context, set *textSetup, i int, under *progress) ([]textUnit, error) {
	f, counted := &v.scan.Plan.Files[i], false
	if f.Err != nil {
		return v.measureUnits(ctx, set, i, under)
	}
	kept, err := v.engine.cached(ctx, v.fileKey(set, f), func(ctx context.Context) (any, int64, error) {
		counted = true
		units, err := v.measureUnits(ctx, set, i, under)
		k := &fileUnits{table: weak.Make(v.scan.Table), units: units}
		for _, u := range units {
			k.rows += u.rows
		}
		return k, int64(64 + 128*len(units)), err
	})
	if err != nil {
		return nil, err
	}
	k := kept.(*fileUnits)
	if k.table != weak.Make(v.scan.Table) { // it is gone, and its address used again
		return v.measureUnits(ctx, set, i, under)
	}
	if !counted {
		under.done.Add(k.rows)
	}
	units := slices.Clone(k.units)
	for j := range units {
		units[j].file = i
	}
	return units, nil
}

// measureUnits measures the row groups of data file i, which no view of the
// table has yet.
func (v *textView) measureUnits(ctx context.Context, set *textSetup, i int, under *progress) ([]textUnit, error) {
	in, err := v.engine.openText(ctx, v.scan, set, i)
	if err != nil {
		return nil, err
	}
	var units []textUnit
	for g, rows := range in.groups() {
		units = append(units, textUnit{group: g, rows: rows, key: in.unitKey(g)})
	}
	workers := max(1, v.engine.workers()/max(1, len(units), len(v.scan.Plan.Files)))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(v.engine.workers())
	for k := range units {
		g.Go(func() error {
			return pqfile.Protect(func() (err error) {
				units[k].measure, err = v.engine.textMeasure(ctx, in, &units[k], workers)
				under.done.Add(units[k].rows)
				return err
			})
		})
	}
	return units, g.Wait()
}

// textMeasure returns the measurement of a unit: cached, kept on disk, or made,
// with up to workers columns at a time.
func (e *Engine) textMeasure(ctx context.Context, in *textInput, u *textUnit, workers int) (*textMeasure, error) {
	key := "text|measure|" + u.key
	v, err := e.cached(ctx, key, func(ctx context.Context) (any, int64, error) {
		if m := decodeMeasure(e.kept(key), u.rows); m != nil {
			return m, m.bytes(), nil
		}
		in := *in // a load belongs to no caller: it resolves on its own context
		if err := in.resolve(ctx); err != nil {
			return nil, 0, err
		}
		m, err := in.measureUnit(ctx, u, workers)
		if err != nil {
			return nil, 0, err
		}
		e.keep(key, m.encode())
		return m, m.bytes(), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*textMeasure), nil
}

// kept returns what is kept on disk for a key, or nil.
func (e *Engine) kept(key string) []byte {
	if e.opt.Persist == nil {
		return nil
	}
	b, _ := e.opt.Persist.Get(key)
	return b
}

// keep keeps a small result on disk.
func (e *Engine) keep(key string, value []byte) {
	if e.opt.Persist != nil {
		e.opt.Persist.Put(key, value)
	}
}

// measureUnit measures a unit from the lengths of all its stored rows, which
// are kept without deletes, so that a snapshot with other deletes costs no
// decoding. Where most rows are dead, or one of them cannot be formatted, only
// the live ones are.
func (in *textInput) measureUnit(ctx context.Context, u *textUnit, workers int) (*textMeasure, error) {
	first := in.source.groups()[u.group]
	dead := in.deleted.CountRange(first, first+u.rows)
	if dead == u.rows {
		return &textMeasure{}, nil
	}
	if dead <= u.rows/2 || in.engine.kept(in.lengthsKey(u)) != nil {
		lengths, err := in.engine.textLengths(ctx, in, u, workers)
		if err == nil {
			return lengths.measure(in.deleted, first, u.rows)
		}
		if dead == 0 || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			return nil, err
		}
	}
	in.engine.count(func(c *Counters) { c.GroupsMeasured.Add(1) })
	m := &textMeasure{}
	err := in.eachLengths(ctx, u.group, workers, m.add)
	return m, err
}

// eachLengths measures the live rows of a row group and gives the lengths of
// each run of them, with the row that it begins at.
func (in *textInput) eachLengths(ctx context.Context, group, workers int, give func(lengths []int, row int64)) error {
	slots := in.engine.texts.slots(in.engine.workers())
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := in.cursor(group, workers)
	if err != nil {
		return err
	}
	defer c.close()
	c.lengths = true
	release, err := in.engine.memory.admit(ctx, c.bytes())
	if err != nil {
		return err
	}
	defer release()
	for {
		more, err := c.fill(ctx, c.rows)
		if err != nil || !more {
			return err
		}
		for _, live := range c.live {
			give(c.batch.lengths[live.Start:live.End], c.base+live.Start)
		}
	}
}

// add counts a run of live rows that begins at row.
func (m *textMeasure) add(lengths []int, row int64) {
	for i, n := range lengths {
		if len(m.marks) == 0 || m.size-m.marks[len(m.marks)-1].offset >= checkpointBytes {
			m.marks = append(m.marks, textMark{m.size, row + int64(i)})
		}
		m.size += int64(n)
	}
	m.live += int64(len(lengths))
}

// bytes estimates the heap kept.
func (m *textMeasure) bytes() int64 { return int64(64 + 16*len(m.marks)) }

// encode returns m for the persistent store: varints of size, live rows, number
// of marks, and the marks' differences.
func (m *textMeasure) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(m.size))
	b = binary.AppendUvarint(b, uint64(m.live))
	b = binary.AppendUvarint(b, uint64(len(m.marks)))
	was := textMark{}
	for _, mark := range m.marks {
		b = binary.AppendUvarint(b, uint64(mark.offset-was.offset))
		b = binary.AppendUvarint(b, uint64(mark.row-was.row))
		was = mark
	}
	return b
}

// decodeMeasure reads what encode wrote for a unit of so many rows, or returns
// nil if it cannot be that.
func decodeMeasure(b []byte, rows int64) *textMeasure {
	bad := false
	next := func() int64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<62 {
			bad = true
			return 0
		}
		b = b[n:]
		return int64(v)
	}
	m := &textMeasure{size: next(), live: next()}
	n := next()
	if bad || n > int64(len(b)) {
		return nil
	}
	mark := textMark{}
	for i := range n {
		offset, row := next(), next()
		if bad || i > 0 && (offset == 0 || row == 0) || i == 0 && offset != 0 {
			return nil
		}
		mark = textMark{mark.offset + offset, mark.row + row}
		if mark.offset < 0 || mark.offset >= m.size || mark.row < 0 || mark.row >= rows {
			return nil
		}
		m.marks = append(m.marks, mark)
	}
	if bad || len(b) > 0 || m.live > rows || (n == 0) != (m.size == 0) {
		return nil
	}
	return m
}
