package merge

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Numbers and times are written eight digits at a time: a word holds them as
// bytes, the first digit in the lowest, and is stored at once. What is stored
// past a text's end is overwritten by what follows; room makes sure that there
// is space for it.

// zeroDigits makes ASCII of a word of digits.
const zeroDigits = 0x3030303030303030

// longestNumber is the space that a text of at most 64 bits of number needs,
// with a sign, and what is stored past it.
const longestNumber = 32

// room returns dst with space for n bytes more.
func room(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		return slices.Grow(dst, n)
	}
	return dst
}

// eightDigits returns the decimal digits of v < 10^8. Lanes of the word are cut
// in halves: of four digits each, of two, of one. 5243/2^19 is 1/100 closely
// enough below 10^4, and 103/2^10 is 1/10 below 100.
func eightDigits(v uint32) uint64 {
	x := uint64(v/1e4) | uint64(v%1e4)<<32
	q := x * 5243 >> 19 & 0x0000007f0000007f
	x = q | (x-100*q)<<16
	q = x * 103 >> 10 & 0x000f000f000f000f
	return q | (x-10*q)<<8
}

// putDigits writes v < 10^8 to b, which has eight bytes, and returns its length.
func putDigits(b []byte, v uint32) int {
	x := eightDigits(v)
	skip := bits.TrailingZeros64(x|1<<56) &^ 7 // of leading zeros; the last digit stays
	binary.LittleEndian.PutUint64(b, (x|zeroDigits)>>skip)
	return 8 - skip>>3
}

// appendUint writes v in decimal.
func appendUint(dst []byte, v uint64) []byte {
	dst = room(dst, longestNumber)
	n := len(dst)
	b := dst[n : n+longestNumber]
	if v < 1e8 {
		return dst[:n+putDigits(b, uint32(v))]
	}
	high, low := v/1e8, v%1e8
	k := 0
	if high < 1e8 {
		k = putDigits(b, uint32(high))
	} else {
		k = putDigits(b, uint32(high/1e8))
		binary.LittleEndian.PutUint64(b[k:], eightDigits(uint32(high%1e8))|zeroDigits)
		k += 8
	}
	binary.LittleEndian.PutUint64(b[k:], eightDigits(uint32(low))|zeroDigits)
	return dst[:n+k+8]
}

// appendInt writes v in decimal.
func appendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return appendUint(append(dst, '-'), -uint64(v))
	}
	return appendUint(dst, uint64(v))
}

// appendPadded writes v < 10^n with n digits; n is at most 24.
func appendPadded(dst []byte, v uint64, n int) []byte {
	dst = room(dst, 24)
	at := len(dst)
	b, dst := dst[at:at+24], dst[:at+n]
	if n > 16 {
		putPadded(b, uint32(v/1e16), n-16)
		b, v, n = b[n-16:], v%1e16, 16
	}
	if n > 8 {
		putPadded(b, uint32(v/1e8), n-8)
		b, v, n = b[n-8:], v%1e8, 8
	}
	putPadded(b, uint32(v), n)
	return dst
}

// putPadded writes v < 10^n to b with n digits, one to eight; b has eight bytes.
func putPadded(b []byte, v uint32, n int) {
	binary.LittleEndian.PutUint64(b, (eightDigits(v)|zeroDigits)>>uint(64-8*n))
}
