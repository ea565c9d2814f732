package deletes

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// builderBatch is how many positions a builder sorts and adds at a time.
const builderBatch = 1 << 16

// builder collects positions, in any order and with duplicates, into Positions.
// Not safe for concurrent use.
type builder struct {
	bitmaps map[uint32]*roaring.Bitmap // by the upper 32 bits
	high    uint32                     // of the positions in batch
	batch   []uint32
}

// add adds a position, which is not negative.
func (b *builder) add(pos int64) {
	if high := uint32(pos >> 32); high != b.high || len(b.batch) == builderBatch {
		b.flush()
		b.high = high
	}
	b.batch = append(b.batch, uint32(pos))
}

func (b *builder) flush() {
	if len(b.batch) == 0 {
		return
	}
	if b.bitmaps == nil {
		b.bitmaps = make(map[uint32]*roaring.Bitmap, 1)
	}
	m := b.bitmaps[b.high]
	if m == nil {
		m = roaring.New()
		b.bitmaps[b.high] = m
	}
	if !slices.IsSorted(b.batch) {
		slices.Sort(b.batch)
	}
	m.AddMany(b.batch)
	b.batch = b.batch[:0]
}

// merge adds what another builder has, and empties that.
func (b *builder) merge(other *builder) {
	b.flush()
	other.flush()
	if b.bitmaps == nil {
		b.bitmaps, other.bitmaps = other.bitmaps, nil
		return
	}
	for high, m := range other.bitmaps {
		if own := b.bitmaps[high]; own != nil {
			own.Or(m)
		} else {
			b.bitmaps[high] = m
		}
	}
	other.bitmaps = nil
}

// positions returns what was added, nil if nothing. The builder is used up.
func (b *builder) positions() (*Positions, error) {
	b.flush()
	highs := make([]uint32, 0, len(b.bitmaps))
	for high := range b.bitmaps {
		highs = append(highs, high)
	}
	slices.Sort(highs)
	var p Positions
	for _, high := range highs {
		if err := p.freeze(high, b.bitmaps[high]); err != nil {
			return nil, err
		}
	}
	return p.orNil(), nil
}

// freeze appends the portable bytes of a bitmap, whose key has to follow the
// last one's.
func (p *Positions) freeze(high uint32, m *roaring.Bitmap) error {
	m.RunOptimize()
	data, err := m.ToBytes()
	if err == nil {
		_, err = p.index(high, data)
	}
	if err != nil {
		return fmt.Errorf("internal error: freezing a bitmap: %w", err)
	}
	p.bitmaps = append(p.bitmaps, bitmap{high, data})
	return nil
}

// orNil returns nil instead of an empty set.
func (p *Positions) orNil() *Positions {
	if p.count == 0 {
		return nil
	}
	return p
}

// union returns the positions that any of sets has, nil if none.
func union(sets []*Positions) (*Positions, error) {
	sets = slices.DeleteFunc(slices.Clone(sets), func(p *Positions) bool { return p.Count() == 0 })
	switch len(sets) {
	case 0:
		return nil, nil
	case 1:
		return sets[0], nil
	}
	byHigh := make(map[uint32][]*roaring.Bitmap, 1)
	var highs []uint32
	for _, p := range sets {
		for _, b := range p.bitmaps {
			m := roaring.New()
			// The bytes were checked by index; m shares and FastOr copies them.
			if _, err := m.FromUnsafeBytes(b.data); err != nil {
				return nil, fmt.Errorf("internal error: reading a frozen bitmap: %w", err)
			}
			if byHigh[b.high] == nil {
				highs = append(highs, b.high)
			}
			byHigh[b.high] = append(byHigh[b.high], m)
		}
	}
	slices.Sort(highs)
	var p Positions
	for _, high := range highs {
		if err := p.freeze(high, roaring.FastOr(byHigh[high]...)); err != nil {
			return nil, err
		}
	}
	return p.orNil(), nil
}
