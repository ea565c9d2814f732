package merge

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/icefs/icefs/deletes"
)

// rowLengths holds the bytes of text of every stored row of a row group, dead
// or alive, as varints: one or two bytes a row, about half that when kept.
type rowLengths struct{ varints []byte }

// lengthsKey is the key of the lengths of a unit's rows.
func (in *textInput) lengthsKey(u *textUnit) string {
	return "text|lengths|" + textKey(in.dataKey, fmt.Sprint(u.group))
}

// textLengths returns the lengths of a unit's rows: cached, kept on disk, or
// made by formatting them all.
func (e *Engine) textLengths(ctx context.Context, in *textInput, u *textUnit, workers int) (*rowLengths, error) {
	key := in.lengthsKey(u)
	v, err := e.cached(ctx, key, func(ctx context.Context) (any, int64, error) {
		if l := decodeLengths(e.kept(key), u.rows); l != nil {
			return l, int64(len(l.varints)), nil
		}
		all := *in
		all.deleted = nil
		l := &rowLengths{}
		err := all.eachLengths(ctx, u.group, workers, func(lengths []int, _ int64) {
			for _, n := range lengths {
				l.varints = binary.AppendUvarint(l.varints, uint64(n))
			}
		})
		if err != nil {
			return nil, 0, err
		}
		e.count(func(c *Counters) { c.GroupsMeasured.Add(1) })
		e.keep(key, l.encode())
		return l, int64(len(l.varints)), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*rowLengths), nil
}

// measure adds up the live rows' lengths.
func (l *rowLengths) measure(deleted *deletes.Positions, first, rows int64) (*textMeasure, error) {
	m := &textMeasure{}
	var lengths [4096]int
	var live []deletes.Range
	rest := l.varints
	for row := int64(0); row < rows; {
		n := min(rows-row, int64(len(lengths)))
		for i := range n {
			v, size := binary.Uvarint(rest)
			if size <= 0 {
				return nil, fmt.Errorf("internal error: lengths of %d rows end early", rows)
			}
			lengths[i], rest = int(v), rest[size:]
		}
		live = deleted.LiveRanges(live[:0], first+row, first+row+n)
		for _, r := range live {
			m.add(lengths[r.Start-first-row:r.End-first-row], r.Start-first)
		}
		row += n
	}
	return m, nil
}

// encode returns l for the persistent store.
func (l *rowLengths) encode() []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil
	}
	defer w.Close()
	return w.EncodeAll(l.varints, nil)
}

// decodeLengths reads what encode wrote for so many rows, or returns nil if it
// cannot be that.
func decodeLengths(b []byte, rows int64) *rowLengths {
	if len(b) == 0 {
		return nil
	}
	limit := max(1<<20, uint64(rows)*binary.MaxVarintLen64)
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(limit))
	if err != nil {
		return nil
	}
	defer r.Close()
	l := &rowLengths{}
	if l.varints, err = r.DecodeAll(b, nil); err != nil {
		return nil
	}
	ends := int64(0)
	for _, c := range l.varints {
		if c < 0x80 {
			ends++
		}
	}
	if ends != rows || len(l.varints) == 0 || l.varints[len(l.varints)-1] >= 0x80 {
		return nil
	}
	return l
}
