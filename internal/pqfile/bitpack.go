package pqfile

import (
	"encoding/binary"

	"github.com/parquet-go/bitpack"
)

// Bit-packed values, lowest bits first: value i is in the bits from i*width on.
// Eight values fill width bytes, so that groups of eight start at a byte.
//
// A src below holds at least the values' bytes. Bytes past its length, up to its
// capacity, may be read, not used: the vector instructions load more than they
// need.

// unpack32 decodes len(dst) values of 1 to 32 bits.
func unpack32(dst []uint32, src []byte, width uint) {
	groups := vectorGroups(len(dst), src, width, bitpack.PaddingInt32)
	if groups > 0 {
		bitpack.Unpack(dst[:8*groups], src[:cap(src)], width)
	}
	unpackTail(dst[8*groups:], src[uint(groups)*width:], width)
}

// vectorGroups is the number of groups of eight, of n values, behind which src
// has the padding that vector loads need.
func vectorGroups(n int, src []byte, width uint, padding int) int {
	return min(n/8, max(cap(src)-padding, 0)/int(width))
}

// unpackTail decodes what the loops with wide loads left, value by value.
func unpackTail[T uint8 | uint32 | int64](dst []T, src []byte, width uint) {
	var pad [16]byte
	for i := range dst {
		bit := uint(i) * width
		from := src[bit/8:]
		if len(from) < len(pad) {
			clear(pad[:])
			copy(pad[:], from)
			from = pad[:]
		}
		v := binary.LittleEndian.Uint64(from) >> (bit % 8)
		if over := bit%8 + width; over > 64 {
			v |= uint64(from[8]) << (64 - bit%8)
		}
		dst[i] = T(v & (1<<width - 1))
	}
}

// unpack8 decodes len(dst) values of 1 to 8 bits.
func unpack8(dst []uint8, src []byte, width uint) {
	if width == 1 {
		unpackBits(dst, src)
		return
	}
	mask := uint64(1)<<width - 1
	for ; len(dst) >= 8 && len(src) >= 8; src = src[width:] {
		v := binary.LittleEndian.Uint64(src)
		d := (*[8]uint8)(dst)
		d[0] = uint8(v & mask)
		d[1] = uint8(v >> (width & 63) & mask)
		d[2] = uint8(v >> (2 * width & 63) & mask)
		d[3] = uint8(v >> (3 * width & 63) & mask)
		d[4] = uint8(v >> (4 * width & 63) & mask)
		d[5] = uint8(v >> (5 * width & 63) & mask)
		d[6] = uint8(v >> (6 * width & 63) & mask)
		d[7] = uint8(v >> (7 * width & 63) & mask)
		dst = dst[8:]
	}
	unpackTail(dst, src, width)
}

// unpackBits decodes single bits to bytes. Multiplied, the seven low bits stand
// at every eighth place, without carries between them; the eighth is put there.
func unpackBits(dst []uint8, src []byte) {
	const lows = 0x0101010101010101
	for len(dst) >= 8 {
		b := uint64(src[0])
		v := (b&0x7f)*0x02040810204081&lows | b>>7<<56
		binary.LittleEndian.PutUint64(dst, v)
		src, dst = src[1:], dst[8:]
	}
	for i := range dst {
		dst[i] = src[0] >> i & 1
	}
}

// unpack64 decodes len(dst) values of 1 to 64 bits.
func unpack64(dst []int64, src []byte, width uint) {
	groups := 0
	if width <= 32 { // wider ones have no vector instructions there
		groups = vectorGroups(len(dst), src, width, bitpack.PaddingInt64)
	}
	if groups > 0 {
		bitpack.Unpack(dst[:8*groups], src[:cap(src)], width)
	}
	dst, src = dst[8*groups:], src[uint(groups)*width:]
	if width <= 56 {
		mask := uint64(1)<<width - 1
		for ; len(dst) >= 8 && uint(len(src)) >= width+8; src = src[width:] {
			d := (*[8]int64)(dst)
			for i := range d {
				bit := uint(i) * width
				d[i] = int64(binary.LittleEndian.Uint64(src[bit/8:]) >> (bit % 8) & mask)
			}
			dst = dst[8:]
		}
	}
	unpackTail(dst, src, width)
}
