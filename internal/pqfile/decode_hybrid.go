package pqfile

import (
	"encoding/binary"
	"fmt"
)

// The RLE/bit-packed hybrid is a sequence of runs. A run starts with a varint:
//
//	count<<1      one value, in ceil(width/8) bytes, count times
//	groups<<1|1   groups of 8 values, width bits each, lowest bits first
//
// The last group may reach past the values that are wanted, and its bytes past
// the end of the buffer.

// nextRun decodes a run's header. For a repeated value packed is nil; else it
// holds the packed values, n of them, cut to what is wanted.
func nextRun(src []byte, width uint, wanted int) (rest, packed []byte, value uint32, n int, err error) {
	h, k := binary.Uvarint(src)
	if k <= 0 {
		return nil, nil, 0, 0, fmt.Errorf("%w: runs end %d values too early", ErrCorrupt, wanted)
	}
	src = src[k:]
	n = int(min(h>>1, uint64(wanted)))
	if h&1 == 0 {
		size := int(width+7) / 8
		if size > len(src) {
			return nil, nil, 0, 0, fmt.Errorf("%w: run is cut", ErrCorrupt)
		}
		for i := size - 1; i >= 0; i-- {
			value = value<<8 | uint32(src[i])
		}
		return src[size:], nil, value, n, nil
	}
	whole := uint64(len(src))
	if groups := h >> 1; groups <= uint64(wanted) { // else cut below anyway
		whole = min(whole, groups*uint64(width))
		n = int(min(8*groups, uint64(wanted)))
	} else {
		n = wanted
	}
	if (uint64(n)*uint64(width)+7)/8 > whole {
		return nil, nil, 0, 0, fmt.Errorf("%w: packed run is cut", ErrCorrupt)
	}
	return src[whole:], src[:whole], 0, n, nil
}

// decodeHybrid32 fills dst with values of width bits (1 to 32), all of which
// must be below limit.
func decodeHybrid32(dst []uint32, src []byte, width uint, limit uint32) error {
	for len(dst) > 0 {
		rest, packed, value, n, err := nextRun(src, width, len(dst))
		if err != nil {
			return err
		}
		run := dst[:n]
		if packed == nil {
			for i := range run {
				run[i] = value
			}
			run = run[:min(n, 1)] // one stands for all
		} else {
			unpack32(run, packed, width)
		}
		if reaches(run, limit) {
			return fmt.Errorf("%w: index past a dictionary of %d", ErrCorrupt, limit)
		}
		src, dst = rest, dst[n:]
	}
	return nil
}

// reaches reports whether a value is limit or more: then limit-1 less it is
// negative.
func reaches(list []uint32, limit uint32) bool {
	if limit == 0 {
		return len(list) > 0
	}
	top := uint64(limit) - 1
	var below uint64 // differences, or-ed
	for ; len(list) >= 8; list = list[8:] {
		v := (*[8]uint32)(list)
		below |= (top - uint64(v[0])) | (top - uint64(v[1])) | (top - uint64(v[2])) | (top - uint64(v[3])) |
			(top - uint64(v[4])) | (top - uint64(v[5])) | (top - uint64(v[6])) | (top - uint64(v[7]))
	}
	for _, v := range list {
		below |= top - uint64(v)
	}
	return below>>63 != 0
}

// decodeHybrid8 fills dst with values of width bits (1 to 8).
func decodeHybrid8(dst []uint8, src []byte, width uint) error {
	for len(dst) > 0 {
		rest, packed, value, n, err := nextRun(src, width, len(dst))
		if err != nil {
			return err
		}
		run := dst[:n]
		switch {
		case packed != nil:
			unpack8(run, packed, width)
		case value >= 1<<width:
			return fmt.Errorf("%w: %d in %d bits", ErrCorrupt, value, width)
		default:
			repeat8(run, uint8(value))
		}
		src, dst = rest, dst[n:]
	}
	return nil
}

// repeat8 fills dst with a value: each copy is twice as long as the one before.
func repeat8(dst []uint8, value uint8) {
	if len(dst) == 0 {
		return
	}
	dst[0] = value
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// indexes decodes dictionary indexes: their width in a byte, then the hybrid.
func (d *PageDecoder) indexes(src []byte, n int) (Values, error) {
	if d.dict == nil {
		return Values{}, fmt.Errorf("%w: dictionary-coded page without a dictionary", ErrCorrupt)
	}
	if len(src) == 0 {
		return Values{}, errShort(n)
	}
	width := uint(src[0])
	if width > 32 {
		return Values{}, fmt.Errorf("%w: indexes of %d bits", ErrCorrupt, width)
	}
	d.index = grow(d.index, n)
	if width > 0 {
		if err := decodeHybrid32(d.index, src[1:], width, uint32(d.dict.N)); err != nil {
			return Values{}, err
		}
	} else {
		if d.dict.N == 0 {
			return Values{}, fmt.Errorf("%w: index into an empty dictionary", ErrCorrupt)
		}
		clear(d.index) // runs of no bits say nothing: some writers leave them out
	}
	return Values{Type: d.dict.Type, Width: d.dict.Width, N: n, Dict: d.dict, Index: d.index}, nil
}

// rleBooleans decodes a length (4 bytes) and a hybrid of one bit.
func (d *PageDecoder) rleBooleans(src []byte, n int) (Values, error) {
	if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
		return Values{}, errShort(n)
	}
	src = src[4 : 4+binary.LittleEndian.Uint32(src)]
	d.bools = grow(d.bools, n)
	if err := decodeHybrid8(d.bools, src, 1); err != nil {
		return Values{}, err
	}
	return Values{Type: Boolean, N: n, Bools: d.bools}, nil
}
