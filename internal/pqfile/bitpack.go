package pqfile

import "encoding/binary"

// Bit-packed values, lowest bits first: value i is in the bits from i*width on.
// Eight values fill width bytes, so that groups of eight start at a byte.

// unpack32 decodes len(dst) values of 1 to 32 bits. src holds at least their
// bytes.
func unpack32(dst []uint32, src []byte, width uint) {
	mask := uint64(1)<<width - 1
	switch {
	case width <= 8:
		for ; len(dst) >= 8 && len(src) >= 8; src = src[width:] {
			v := binary.LittleEndian.Uint64(src)
			d := (*[8]uint32)(dst)
			for i := range d {
				d[i] = uint32(v & mask)
				v >>= width & 63
			}
			dst = dst[8:]
		}
	case width <= 16:
		half, shift := width/2, width%2*4 // the fifth value: at bit 4*width
		for ; len(dst) >= 8 && uint(len(src)) >= half+8; src = src[width:] {
			v, w := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[half:])>>(shift&63)
			d := (*[8]uint32)(dst)
			for i := range 4 {
				d[i], d[i+4] = uint32(v&mask), uint32(w&mask)
				v >>= width & 63
				w >>= width & 63
			}
			dst = dst[8:]
		}
	default:
		for ; len(dst) >= 8 && uint(len(src)) >= width+8; src = src[width:] {
			d := (*[8]uint32)(dst)
			for i := range d {
				bit := uint(i) * width
				d[i] = uint32(binary.LittleEndian.Uint64(src[bit/8:]) >> (bit % 8) & mask)
			}
			dst = dst[8:]
		}
	}
	unpackTail(dst, src, width)
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

// unpack8 decodes len(dst) values of 1 to 8 bits. src holds at least their
// bytes.
func unpack8(dst []uint8, src []byte, width uint) {
	if width == 1 {
		unpackBits(dst, src)
		return
	}
	mask := uint64(1)<<width - 1
	for ; len(dst) >= 8 && len(src) >= 8; src = src[width:] {
		v := binary.LittleEndian.Uint64(src)
		d := (*[8]uint8)(dst)
		for i := range d {
			d[i] = uint8(v & mask)
			v >>= width & 63
		}
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

// unpack64 decodes len(dst) values of 1 to 64 bits. src holds at least their
// bytes.
func unpack64(dst []int64, src []byte, width uint) {
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
