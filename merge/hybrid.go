package merge

import "encoding/binary"

// The RLE/bit-packed hybrid of levels and dictionary indexes: runs, each a
// varint header (count<<1 for one repeated value in ceil(width/8) bytes,
// groups<<1|1 for groups of eight values packed lowest bit first).

// hybridRun is how many equal values make a repeated run of their own. At 128
// such a run, with the header of the packed run it splits off, is never longer
// than the same values packed (14 bytes against 16 per bit of width), so that
// hybridBound holds for any values.
const hybridRun = 128

// hybridBound is an upper bound of appendHybrid's length for n values.
func hybridBound(n int64, width int) int64 { return 5 + (n+7)/8*int64(width) }

// appendHybrid appends values of a bit width of 1 to 32 to dst.
func appendHybrid[T uint8 | uint32](dst []byte, v []T, width int) []byte {
	start := 0 // of the packed run in the making
	for i := 0; i < len(v); {
		n := equalRun(v[i:])
		switch {
		case n >= hybridRun || i == 0 && n == len(v):
			dst = appendPacked(dst, v[start:i], width)
			dst = binary.AppendUvarint(dst, uint64(n)<<1)
			for b := 0; b < width; b += 8 {
				dst = append(dst, byte(uint32(v[i])>>b))
			}
			i += n
			start = i
		case n >= 16:
			i += n &^ 7
		default:
			i += 8
		}
	}
	return appendPacked(dst, v[start:], width)
}

// equalRun counts how many values at the start of v are equal.
func equalRun[T uint8 | uint32](v []T) int {
	n := 1
	for n < len(v) && v[n] == v[0] {
		n++
	}
	return n
}

// appendPacked appends v as one packed run, its last group filled with zeros.
func appendPacked[T uint8 | uint32](dst []byte, v []T, width int) []byte {
	if len(v) == 0 {
		return dst
	}
	groups := (len(v) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	var acc uint64
	held := 0
	for _, x := range v {
		acc |= uint64(x) << held
		if held += width; held >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(acc))
			acc >>= 32
			held -= 32
		}
	}
	held += (groups*8 - len(v)) * width // zeros
	for ; held > 0; held -= 8 {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}
