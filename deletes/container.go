package deletes

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// kind of a container, as the portable roaring format stores it.
type kind uint8

const (
	arrayKind kind = iota // ascending 16-bit values
	denseKind             // 1,024 words of 64 bits
	runKind               // (start, length-1) pairs of 16 bits, ascending, with gaps
)

const (
	containerRows = 1 << 16
	denseBytes    = containerRows / 8
	// arrayMax is the cardinality up to which the format stores an array.
	arrayMax = 4096
)

// container indexes the deleted positions key<<16 to key<<16+65535. Its payload
// lies in a portable bitmap's bytes, little-endian and unaligned.
type container struct {
	key    int64  // position >> 16
	before int64  // deleted positions in the containers before it
	data   []byte // payload
	card   int32  // deleted positions in it, at least 1
	kind   kind
}

func (c *container) base() int64 { return c.key << 16 }

// window clips [start, end) to the container, as offsets from its base.
func (c *container) window(start, end int64) (lo, hi int) {
	return int(max(start-c.base(), 0)), int(min(end-c.base(), containerRows))
}

// value is an array's i-th value.
func (c *container) value(i int) int { return int(binary.LittleEndian.Uint16(c.data[2*i:])) }

// word is a dense container's i-th word.
func (c *container) word(i int) uint64 { return binary.LittleEndian.Uint64(c.data[8*i:]) }

// run is a run container's i-th run, [from, to).
func (c *container) run(i int) (from, to int) {
	v := binary.LittleEndian.Uint32(c.data[4*i:])
	from = int(v & 0xFFFF)
	return from, from + int(v>>16) + 1
}

// search returns the index of the first value of an array that is >= v.
func (c *container) search(v int) int {
	return sort.Search(int(c.card), func(i int) bool { return c.value(i) >= v })
}

// searchRun returns the index of the first run that ends after v.
func (c *container) searchRun(v int) int {
	return sort.Search(len(c.data)/4, func(i int) bool { _, to := c.run(i); return to > v })
}

// mask has the bits [lo, hi) of a word set; 0 <= lo < 64, lo < hi.
func mask(lo, hi int) uint64 {
	m := ^uint64(0) << uint(lo)
	if hi < 64 {
		m &= 1<<uint(hi) - 1
	}
	return m
}

// countIn counts the deleted positions at offsets [lo, hi).
func (c *container) countIn(lo, hi int) int {
	if lo >= hi {
		return 0
	}
	if lo == 0 && hi == containerRows {
		return int(c.card)
	}
	n := 0
	switch c.kind {
	case arrayKind:
		n = c.search(hi) - c.search(lo)
	case denseKind:
		w, last := lo/64, (hi-1)/64
		if w == last {
			return bits.OnesCount64(c.word(w) & mask(lo%64, hi-w*64))
		}
		n = bits.OnesCount64(c.word(w)&mask(lo%64, 64)) + bits.OnesCount64(c.word(last)&mask(0, hi-last*64))
		for w++; w < last; w++ {
			n += bits.OnesCount64(c.word(w))
		}
	case runKind:
		for i, runs := c.searchRun(lo), len(c.data)/4; i < runs; i++ {
			from, to := c.run(i)
			if from >= hi {
				break
			}
			n += min(to, hi) - max(from, lo)
		}
	}
	return n
}

// appendLive appends the live ranges that end at a deleted position at offsets
// [lo, hi). live is where the current live range begins (or the position after
// the last deleted one); the new one is returned.
func (c *container) appendLive(dst []Range, live int64, lo, hi int) ([]Range, int64) {
	switch c.kind {
	case arrayKind:
		return c.appendLiveArray(dst, live, lo, hi)
	case denseKind:
		return c.appendLiveDense(dst, live, lo, hi)
	}
	base := c.base()
	for i, runs := c.searchRun(lo), len(c.data)/4; i < runs; i++ {
		from, to := c.run(i)
		if from >= hi {
			break
		}
		if p := base + int64(max(from, lo)); p > live {
			dst = append(dst, Range{live, p})
		}
		live = base + int64(to) // past hi only if hi ends the whole window
	}
	return dst, live
}

func (c *container) appendLiveArray(dst []Range, live int64, lo, hi int) ([]Range, int64) {
	base := c.base()
	data := c.data[2*c.search(lo):]
	for len(data) >= 2 {
		v := int(binary.LittleEndian.Uint16(data))
		if v >= hi {
			break
		}
		if p := base + int64(v); p > live {
			dst = append(dst, Range{live, p})
		}
		live = base + int64(v) + 1
		data = data[2:]
	}
	return dst, live
}

func (c *container) appendLiveDense(dst []Range, live int64, lo, hi int) ([]Range, int64) {
	for i := lo / 64; i*64 < hi; i++ {
		w := c.word(i)
		at := i * 64
		if at < lo {
			w &= mask(lo-at, 64)
		}
		if at+64 > hi {
			w &= mask(0, hi-at)
		}
		p := c.base() + int64(at)
		for w != 0 {
			t := bits.TrailingZeros64(w)
			if from := p + int64(t); from > live {
				dst = append(dst, Range{live, from})
			}
			live = p + int64(t+bits.TrailingZeros64(^(w>>uint(t))))
			w &= w + w&-w // the carry runs through the lowest run of ones
		}
	}
	return dst, live
}

// clearWords clears the bits of the deleted positions at offsets [lo, hi) in
// words, whose bit 0 is position start.
func (c *container) clearWords(words []uint64, start int64, lo, hi int) {
	shift := int(c.base() - start) // bit of offset 0; negative if the window begins inside
	switch c.kind {
	case arrayKind:
		data := c.data[2*c.search(lo):]
		for len(data) >= 2 {
			v := int(binary.LittleEndian.Uint16(data))
			if v >= hi {
				break
			}
			words[(v+shift)>>6] &^= 1 << uint((v+shift)&63)
			data = data[2:]
		}
	case denseKind:
		for i := lo / 64; i*64 < hi; i++ {
			at := i * 64
			clearWord(words, c.word(i)&mask(max(lo-at, 0), min(hi-at, 64)), at+shift)
		}
	case runKind:
		for i, runs := c.searchRun(lo), len(c.data)/4; i < runs; i++ {
			from, to := c.run(i)
			if from >= hi {
				break
			}
			clearSpan(words, max(from, lo)+shift, min(to, hi)+shift)
		}
	}
}

// clearWord clears the bits of w in words, where w's bit 0 is bit at of words
// (at may be as low as -63: such bits of w are clear).
func clearWord(words []uint64, w uint64, at int) {
	if w == 0 {
		return
	}
	i, s := at>>6, uint(at&63)
	if i >= 0 {
		words[i] &^= w << s
	}
	if high := w >> (64 - s); high != 0 { // a shift by 64 gives 0
		words[i+1] &^= high
	}
}

// clearSpan clears the bits [from, to), from < to.
func clearSpan(words []uint64, from, to int) {
	i, last := from/64, (to-1)/64
	if i == last {
		words[i] &^= mask(from%64, to-i*64)
		return
	}
	words[i] &^= mask(from%64, 64)
	clear(words[i+1 : last])
	words[last] &^= mask(0, to-last*64)
}
