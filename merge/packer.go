package merge

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/icefs/icefs/deletes"
)

// packer puts a hybrid stream (hybrid.go) together from pieces of other such
// streams. Packed values are moved as bits, and not looked at one by one. Its
// output keeps hybridBound. The zero value packs nothing; see reset.
type packer struct {
	width uint
	n     int    // values so far
	done  []byte // finished runs
	run   []byte // the packed run in the making, with room behind it
	bit   int    // its bits; what follows them is arbitrary
	// A repeated value is held back until another one comes: pieces of a run that
	// deleted rows have cut are one run again.
	value  uint32
	repeat int
}

const (
	// moved is how many bits go over at a time: whole bytes of the 57 bits that are
	// left of 8 bytes when the first has 7 bits used.
	moved = 56
	// stride is how many bytes go over at least, in four moves: most ranges of a
	// row group with a few percent deleted take one or two strides, so that the
	// processor can guess how many.
	stride     = 4 * moved / 8
	strideRead = stride + 1 // bytes that are read, and written, for a stride
	// packedRoom is how much further than the bits of a run a store may reach.
	packedRoom = strideRead + 8
	// wholeBytes is how many bits are worth a copy of bytes.
	wholeBytes = 1 << 10
)

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

// add appends ranges of values of the same width from src, which has those from
// number first on behind its first byte. A range is read from up to 7 bits before
// it, so that it comes to lie as in the output:
//
//	src | any byte | … up bits|range … |
//	run |     bits so far … up|range … |
func (p *packer) add(src []byte, first int64, ranges []deletes.Range) {
	if p.repeat > 0 {
		p.flush()
	}
	p.grow(8 * len(src))
	src = src[:cap(src)] // what is read too much is written over
	run, bit, width := p.run, p.bit, int(p.width)
	for _, r := range ranges {
		n := int(r.End - r.Start)
		p.n += n
		to, up := bit>>3, uint(bit&7)
		at, bits := 8+int(r.Start-first)*width-int(up), n*width+int(up)
		bit += n * width
		from, down := at>>3, uint(at&7)
		switch {
		case from+bits>>3+strideRead > len(src):
			p.run, p.bit = run, bit-n*width
			p.addSlowly(src, at+int(up), n*width)
			continue
		case bits >= wholeBytes && down == 0:
			open := run[to] & (1<<up - 1)
			copy(run[to:], src[from:from+(bits+7)>>3])
			run[to] = run[to]>>up<<up | open
			continue
		}
		open := uint64(run[to]) & (1<<up - 1)
		for {
			in, out := (*[strideRead]byte)(src[from:]), (*[strideRead]byte)(run[to:])
			w := binary.LittleEndian.Uint64(in[:])>>down>>up<<up | open
			binary.LittleEndian.PutUint64(out[:], w)
			binary.LittleEndian.PutUint64(out[moved/8:], binary.LittleEndian.Uint64(in[moved/8:])>>down)
			binary.LittleEndian.PutUint64(out[2*moved/8:], binary.LittleEndian.Uint64(in[2*moved/8:])>>down)
			binary.LittleEndian.PutUint64(out[3*moved/8:], binary.LittleEndian.Uint64(in[3*moved/8:])>>down)
			if bits -= 8 * stride; bits <= 0 {
				break
			}
			from, to, up, open = from+stride, to+stride, 0, 0
		}
	}
	p.bit = bit
}

// addSlowly appends bits of src from bit number at on, at its ends.
func (p *packer) addSlowly(src []byte, at, bits int) {
	for bits > 0 {
		n := min(bits, moved-7)
		p.putBits(load64(src, at>>3)>>uint(at&7)&(1<<uint(n)-1), n)
		at += n
		bits -= n
	}
}

// putBits appends up to 56 bits, for which there is room.
func (p *packer) putBits(v uint64, n int) {
	up := uint(p.bit & 7)
	at := p.run[p.bit>>3:]
	binary.LittleEndian.PutUint64(at, uint64(at[0])&(1<<up-1)|v<<up)
	p.bit += n
}

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
		p.putBits(uint64(value), int(p.width))
	}
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
	if up := uint(p.bit & 7); up > 0 {
		p.run[p.bit>>3] &= 1<<up - 1
	}
	clear(p.run[(p.bit+7)/8 : size])
	p.done = binary.AppendUvarint(p.done, uint64(groups)<<1|1)
	p.done = append(p.done, p.run[:size]...)
	p.bit = 0
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
	// The run at hand has values number first to end-1: packed behind the last byte
	// of its head, or value repeated if packed is nil.
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
	h.packed = h.src[k-1 : uint64(k)+size]
	h.src, h.end = src[size:], h.first+int64(n)
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
	at := 8 + int(start-h.first)*int(h.width)
	for range n {
		v := load64(h.packed, at>>3) >> uint(at&7) & (1<<h.width - 1)
		if v>>p.width != 0 {
			return errWide(p.width)
		}
		p.putBits(v, int(p.width))
		at += int(h.width)
	}
	return nil
}

func errWide(width uint) error {
	return fmt.Errorf("%w: an index has more than %d bits, the dictionary has not", ErrCorrupt, width)
}
