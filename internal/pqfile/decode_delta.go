package pqfile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// maxDeltaBlock bounds a delta block; writers use 128 to some thousand values.
const maxDeltaBlock = 1 << 20

// deltaReader decodes DELTA_BINARY_PACKED:
//
//	header  block size, miniblocks a block, values, first value (zigzag)
//	block   least delta (zigzag), a width (1 byte) per miniblock, miniblocks
//
// All numbers are varints; a miniblock holds deltas less the least one, packed
// by its width. Arithmetic wraps around.
type deltaReader struct {
	src    []byte
	mini   int    // values of a miniblock
	total  int    // values
	left   int    // values not read yet
	last   int64  // the value before
	least  int64  // of the block
	per    int    // miniblocks of a block
	widths []byte // of the block's miniblocks that are left
	first  bool   // the first value is still to come
}

func newDeltaReader(src []byte) (*deltaReader, error) {
	var head [3]uint64
	for i := range head {
		v, k := binary.Uvarint(src)
		if k <= 0 {
			return nil, fmt.Errorf("%w: delta header is cut", ErrCorrupt)
		}
		head[i], src = v, src[k:]
	}
	first, k := binary.Varint(src)
	block, per, total := head[0], head[1], head[2]
	if k <= 0 || block == 0 || block > maxDeltaBlock || per == 0 || per > block ||
		block%per != 0 || block/per%8 != 0 || total > math.MaxInt32 {
		return nil, fmt.Errorf("%w: delta header: %d values in blocks of %d, %d miniblocks", ErrCorrupt, total, block, per)
	}
	return &deltaReader{src: src[k:], mini: int(block / per), per: int(per), total: int(total), left: int(total), last: first, first: true}, nil
}

// next decodes up to a miniblock of values into dst, which has room for one.
func (r *deltaReader) next(dst []int64) ([]int64, error) {
	if r.first && r.left > 0 {
		r.first = false
		r.left--
		dst = dst[:1]
		dst[0] = r.last
		return dst, nil
	}
	if len(r.widths) == 0 {
		least, k := binary.Varint(r.src)
		if k <= 0 || len(r.src)-k < r.per {
			return nil, fmt.Errorf("%w: delta block is cut", ErrCorrupt)
		}
		r.least, r.widths, r.src = least, r.src[k:k+r.per], r.src[k+r.per:]
	}
	width := uint(r.widths[0])
	r.widths = r.widths[1:]
	dst = dst[:min(r.mini, r.left)]
	size := uint(r.mini) / 8 * width
	if width > 64 || (uint(len(dst))*width+7)/8 > uint(len(r.src)) {
		return nil, fmt.Errorf("%w: delta miniblock is cut", ErrCorrupt)
	}
	if width == 0 {
		clear(dst)
	} else {
		unpack64(dst, r.src, width)
	}
	last := r.last
	for i, delta := range dst {
		last += delta + r.least
		dst[i] = last
	}
	r.last = last
	r.src = r.src[min(size, uint(len(r.src))):]
	r.left -= len(dst)
	return dst, nil
}

// startDelta starts to decode a page, or a part of it, of n values.
func (b *buffers) startDelta(src []byte, n int) (*deltaReader, error) {
	r, err := newDeltaReader(src)
	if err != nil {
		return nil, err
	}
	if r.total != n {
		return nil, fmt.Errorf("%w: %d delta-coded values, not %d", ErrCorrupt, r.total, n)
	}
	b.deltas = grow(b.deltas, r.mini)
	return r, nil
}

func (d *PageDecoder) deltaIntegers(node *Node, src []byte, n int) (Values, error) {
	r, err := d.startDelta(src, n)
	if err != nil {
		return Values{}, err
	}
	width := fixedWidth(node)
	d.fixed = grow(d.fixed, n*width)
	for out := d.fixed; r.left > 0; {
		list, err := r.next(d.deltas)
		if err != nil {
			return Values{}, err
		}
		if width == 4 {
			for i, v := range list {
				binary.LittleEndian.PutUint32(out[4*i:], uint32(v))
			}
		} else {
			for i, v := range list {
				binary.LittleEndian.PutUint64(out[8*i:], uint64(v))
			}
		}
		out = out[width*len(list):]
	}
	return Values{Type: node.Type, Width: width, N: n, Fixed: d.fixed}, nil
}

// lengthsOf decodes n delta-coded lengths into dst and returns what follows
// them.
func (b *buffers) lengthsOf(dst []uint32, src []byte) (rest []byte, err error) {
	r, err := b.startDelta(src, len(dst))
	if err != nil {
		return nil, err
	}
	for r.left > 0 {
		list, err := r.next(b.deltas)
		if err != nil {
			return nil, err
		}
		for i, v := range list {
			if v = int64(int32(v)); v < 0 {
				return nil, fmt.Errorf("%w: length %d", ErrCorrupt, v)
			}
			dst[i] = uint32(v)
		}
		dst = dst[len(list):]
	}
	return r.src, nil
}

// endsOf decodes n lengths as DELTA_LENGTH_BYTE_ARRAY stores them, and leaves in
// b.offsets where each value starts and ends in data.
func (b *buffers) endsOf(src []byte, n int) (data []byte, err error) {
	b.offsets = grow(b.offsets, n+1)
	b.offsets[0] = 0
	data, err = b.lengthsOf(b.offsets[1:], src)
	if err != nil {
		return nil, err
	}
	end := 0
	for i, size := range b.offsets {
		end += int(size)
		if end > len(data) {
			return nil, errShort(n)
		}
		b.offsets[i] = uint32(end)
	}
	return data[:end:end], nil
}

// deltaLengths decodes DELTA_LENGTH_BYTE_ARRAY: lengths, then all bytes, which
// the result aliases.
func (d *PageDecoder) deltaLengths(src []byte, n int) (Values, error) {
	data, err := d.endsOf(src, n)
	if err != nil {
		return Values{}, err
	}
	return Values{Type: ByteArray, N: n, Data: data, Offsets: d.offsets}, nil
}

// deltaStrings decodes DELTA_BYTE_ARRAY: the lengths of the prefixes shared with
// the value before, then the suffixes as DELTA_LENGTH_BYTE_ARRAY.
func (d *PageDecoder) deltaStrings(node *Node, src []byte, n int) (Values, error) {
	d.lengths = grow(d.lengths, n)
	rest, err := d.lengthsOf(d.lengths, src)
	if err != nil {
		return Values{}, err
	}
	suffixes, err := d.endsOf(rest, n)
	if err != nil {
		return Values{}, err
	}
	if err := d.expandPrefixes(suffixes, n); err != nil {
		return Values{}, err
	}
	v := Values{Type: node.Type, N: n, Data: d.data, Offsets: d.offsets}
	if node.Type == FixedLenByteArray {
		for i := range n {
			if int(d.offsets[i+1]-d.offsets[i]) != node.TypeLength {
				return Values{}, fmt.Errorf("%w: value of %d bytes, not %d", ErrCorrupt, d.offsets[i+1]-d.offsets[i], node.TypeLength)
			}
		}
		v = Values{Type: node.Type, Width: node.TypeLength, N: n, Fixed: d.data}
	}
	return v, nil
}

// expandPrefixes puts the values together in b.data, from b.lengths (of the
// prefixes) and b.offsets (of the suffixes), which become the values'.
func (d *PageDecoder) expandPrefixes(suffixes []byte, n int) error {
	var before []byte // the value before
	if d.prefixAt == d.page && d.chunk.File.writer.carriesPrefix() {
		before = d.prefix
	}
	total := 0
	for i, shared := range d.lengths {
		total += int(shared) + int(d.offsets[i+1]-d.offsets[i])
	}
	if int64(total) > min(d.chunk.File.maxPage, math.MaxInt32) {
		return fmt.Errorf("%w: page expands to %d bytes (a larger --memory allows more)", ErrUnsupported, total)
	}
	if total > len(suffixes)*maxSnappyRatio+streamedSize {
		d.data = d.data[:0] // doubtful: let memory grow with what is found valid
	} else {
		d.data = grow(d.data, total)[:0]
	}
	start := uint32(0)
	for i, shared := range d.lengths {
		end := d.offsets[i+1]
		if int(shared) > len(before) {
			return fmt.Errorf("%w: value %d shares %d bytes with one of %d", ErrCorrupt, i, shared, len(before))
		}
		at := len(d.data)
		d.data = append(d.data, before[:shared]...)
		d.data = append(d.data, suffixes[start:end]...)
		start = end
		before = d.data[at:]
		d.offsets[i+1] = uint32(len(d.data))
	}
	if d.chunk.File.writer.carriesPrefix() {
		d.prefix = append(d.prefix[:0], before...)
		d.prefixAt = d.next
	}
	return nil
}
