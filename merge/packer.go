package merge

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/icefs/icefs/deletes"
)

// packer puts a hybrid stream (hybrid.go) together from pieces of other such
// streams. Packed values are moved as bits, up to 56 at a time, and not looked at
// one by one. Its output keeps hybridBound. The zero value packs nothing; see
// reset.
//
//	run   | n values, width bits each | acc: the bits of the last, open byte |
type packer struct {
	width uint
	n     int    // values so far
	done  []byte // finished runs
	run   []byte // the packed run in the making, with room behind it
	bit   int    // its bits
	acc   uint64
	// A repeated value is held back until another one comes: pieces of a run that
	// deleted rows have cut are one run again.
	value  uint32
	repeat int
}

// packedRoom is how much further than the bits of a run a store may reach.
const packedRoom = 16

// reset starts a stream of a width of 1 to 32 and keeps the memory.
func (p *packer) reset(width int) {
	*p = packer{width: uint(width), done: p.done[:0], run: p.run}
}

// grow makes room for so many more bits.
func (p *packer) grow(bits int) {
	if need := (p.bit+bits)/8 + packedRoom; need > len(p.run) {
		run := make([]byte, max(need, 2*len(p.run), 1<<10))
		copy(run, p.run[:(p.bit+7)/8])
		p.run = run
	}
}

// add appends ranges of values of the same width from src, whose first one is
// number first.
func (p *packer) add(src []byte, first int64, ranges []deletes.Range) {
	if p.repeat > 0 {
		p.flush()
	}
	p.grow(8 * len(src))
	run, to, up, acc := p.run, p.bit>>3, uint(p.bit&7), p.acc
	for _, r := range ranges {
		at, bits := int(r.Start-first)*int(p.width), int(r.End-r.Start)*int(p.width)
		p.n += int(r.End - r.Start)
		from, down := at>>3, uint(at&7)
		if bits >= wholeBytes && down == 0 && up == 0 {
			n := copy(run[to:], src[from:from+bits>>3])
			from, to, bits = from+n, to+n, bits&7
		}
		for ; bits >= moved && from <= len(src)-8; bits -= moved {
			acc |= binary.LittleEndian.Uint64(src[from:]) >> down << 8 >> 8 << up
			binary.LittleEndian.PutUint64(run[to:], acc)
			acc >>= moved
			from, to = from+moved/8, to+moved/8
		}
		for bits > 0 {
			k := min(bits, moved)
			acc |= load64(src, from) >> down & (1<<uint(k) - 1) << up
			binary.LittleEndian.PutUint64(run[to:], acc)
			up += uint(k)
			acc >>= up &^ 7
			from, to, up = from+moved/8, to+int(up>>3), up&7
			bits -= k
		}
	}
	p.bit, p.acc = to<<3|int(up), acc
}

const (
	// moved is how many bits go over at a time: what is left of 8 bytes when the
	// first has 7 bits used.
	moved = 56
	// wholeBytes is how many bits are worth a copy of bytes.
	wholeBytes = 1 << 10
)

// load64 reads 8 bytes at i, zeros behind the end.
func load64(src []byte, i int) uint64 {
	if i <= len(src)-8 {
		return binary.LittleEndian.Uint64(src[i:])
	}
	return loadTail(src, i)
}

func loadTail(src []byte, i int) uint64 {
	var v uint64
	for j, b := range src[i:] {
		v |= uint64(b) << (8 * j)
	}
	return v
}

// put appends one value n times to the packed run.
func (p *packer) put(value uint32, n int) {
	p.grow(n * int(p.width))
	for range n {
		p.putOne(value)
	}
}

// putOne appends one value, for which there is room.
func (p *packer) putOne(value uint32) {
	up := uint(p.bit & 7)
	acc := p.acc | uint64(value)<<up
	binary.LittleEndian.PutUint64(p.run[p.bit>>3:], acc)
	p.bit += int(p.width)
	p.acc = acc >> ((up + p.width) &^ 7)
}

// addRepeated appends one value n times.
func (p *packer) addRepeated(value uint32, n int) {
	if p.repeat > 0 && p.value != value {
		p.flush()
	}
	p.n += n
	p.value, p.repeat = value, p.repeat+n
}

// flush writes what is held back: as a run of its own if that is not longer,
// after the packed run has been filled up to a whole group of eight.
func (p *packer) flush() {
	n := p.repeat
	p.repeat = 0
	fill := -(p.bit / int(p.width)) & 7
	if n < fill+hybridRun {
		p.put(p.value, n)
		return
	}
	p.put(p.value, fill)
	p.endPacked()
	p.addRun(n - fill)
}

// addRun writes the value held back as a run of n.
func (p *packer) addRun(n int) {
	p.done = binary.AppendUvarint(p.done, uint64(n)<<1)
	for b := uint(0); b < p.width; b += 8 {
		p.done = append(p.done, byte(p.value>>b))
	}
}

// endPacked finishes the packed run, its last group filled with zeros.
func (p *packer) endPacked() {
	if p.bit == 0 {
		return
	}
	groups := (p.bit/int(p.width) + 7) / 8
	size := groups * int(p.width)
	p.grow(8*size - p.bit)
	clear(p.run[(p.bit+7)/8 : size])
	p.done = binary.AppendUvarint(p.done, uint64(groups)<<1|1)
	p.done = append(p.done, p.run[:size]...)
	p.bit, p.acc = 0, 0
}

// finish appends the stream to dst.
func (p *packer) finish(dst []byte) []byte {
	if p.repeat > 0 && p.repeat == p.n { // nothing else
		p.addRun(p.repeat)
		p.repeat = 0
		return append(dst, p.done...)
	}
	if p.repeat > 0 {
		p.flush()
	}
	p.endPacked()
	return append(dst, p.done...)
}

// hybridRuns reads a hybrid stream run by run.
type hybridRuns struct {
	src   []byte // what follows the run at hand
	width uint
	// The run at hand has values number first to end-1: packed, or value repeated
	// if packed is nil.
	first, end int64
	packed     []byte
	value      uint32
}

// next goes on to the next run.
func (h *hybridRuns) next() error {
	head, k := binary.Uvarint(h.src)
	n := head >> 1
	if k <= 0 || n == 0 || n > 1<<32 {
		return fmt.Errorf("%w: runs of a page end too early", ErrCorrupt)
	}
	src := h.src[k:]
	h.first = h.end
	if head&1 == 0 {
		size := int(h.width+7) / 8
		if size > len(src) {
			return fmt.Errorf("%w: a page's run is cut", ErrCorrupt)
		}
		h.value = 0
		for i := size - 1; i >= 0; i-- {
			h.value = h.value<<8 | uint32(src[i])
		}
		h.src, h.packed, h.end = src[size:], nil, h.first+int64(n)
		return nil
	}
	size, n := n*uint64(h.width), 8*n
	if size > uint64(len(src)) { // the last group may be cut
		size = uint64(len(src))
		n = 8 * size / uint64(h.width)
	}
	h.src, h.packed, h.end = src[size:], src[:size:size], h.first+int64(n)
	if n == 0 {
		return fmt.Errorf("%w: a page's packed run is cut", ErrCorrupt)
	}
	return nil
}

// copyTo appends ranges of values, which are behind those copied before, to p.
// It changes ranges.
func (h *hybridRuns) copyTo(p *packer, ranges []deletes.Range) error {
	for len(ranges) > 0 {
		r := &ranges[0]
		for r.Start >= h.end {
			if err := h.next(); err != nil {
				return err
			}
		}
		if h.packed != nil && h.width == p.width {
			whole := len(ranges)
			if ranges[whole-1].End > h.end {
				whole = sort.Search(whole, func(i int) bool { return ranges[i].End > h.end })
			}
			p.add(h.packed, h.first, ranges[:whole])
			if ranges = ranges[whole:]; len(ranges) > 0 && ranges[0].Start < h.end {
				p.add(h.packed, h.first, []deletes.Range{{Start: ranges[0].Start, End: h.end}})
				ranges[0].Start = h.end
			}
			continue
		}
		end := min(r.End, h.end)
		if err := h.copySlowly(p, r.Start, end); err != nil {
			return err
		}
		if r.Start = end; end == r.End {
			ranges = ranges[1:]
		}
	}
	return nil
}

// copySlowly appends values from start to end-1 of a repeated run, or of one of
// another width.
func (h *hybridRuns) copySlowly(p *packer, start, end int64) error {
	n := int(end - start)
	if h.packed == nil {
		if h.value>>p.width != 0 {
			return errWide(p.width)
		}
		p.addRepeated(h.value, n)
		return nil
	}
	if p.repeat > 0 {
		p.flush()
	}
	p.n += n
	p.grow(n * int(p.width))
	at := int(start-h.first) * int(h.width)
	for range n {
		v := load64(h.packed, at>>3) >> uint(at&7) & (1<<h.width - 1)
		if v>>p.width != 0 {
			return errWide(p.width)
		}
		p.putOne(uint32(v))
		at += int(h.width)
	}
	return nil
}

func errWide(width uint) error {
	return fmt.Errorf("%w: an index has more than %d bits, the dictionary has not", ErrCorrupt, width)
}
