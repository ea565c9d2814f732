package merge

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// maxDecimalDigits is the widest decimal of Iceberg.
const maxDecimalDigits = 38

// appendDecimal writes v/10^scale with all of its scale.
func appendDecimal(dst []byte, v int64, scale int) []byte {
	neg := v < 0
	lo := uint64(v)
	if neg {
		lo = -lo
	}
	return appendDecimal128(dst, neg, 0, lo, scale)
}

// appendDecimalBytes writes a big-endian two's complement number, of any width
// that holds no more than 128 significant bits.
func appendDecimalBytes(dst, b []byte, scale int) ([]byte, error) {
	if len(b) == 0 {
		return dst, fmt.Errorf("decimal of no bytes: %w", ErrCorrupt)
	}
	neg := b[0]&0x80 != 0
	fill := byte(0)
	if neg {
		fill = 0xff
	}
	for len(b) > 16 {
		if b[0] != fill || (b[1]^fill)&0x80 != 0 {
			return dst, fmt.Errorf("decimal of more than 128 bits: %w", ErrCorrupt)
		}
		b = b[1:]
	}
	var hi, lo uint64
	if neg {
		hi, lo = ^uint64(0), ^uint64(0)
	}
	for _, c := range b {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(c)
	}
	if neg {
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		hi = ^hi + carry
	}
	return appendDecimal128(dst, neg, hi, lo, scale), nil
}

// appendDecimal128 writes the magnitude hi:lo, scaled. Digits are made from the
// right into a buffer that holds 39 digits, a point and a sign.
func appendDecimal128(dst []byte, neg bool, hi, lo uint64, scale int) []byte {
	if hi == 0 {
		return appendDecimal64(dst, neg, lo, scale)
	}
	var buf [64]byte
	at := len(buf)
	const chunk = 1e19 // the largest power of ten in 64 bits
	n := 0             // digits written
	emit := func(v uint64, least int) {
		for i := 0; v > 0 || i < least; i++ {
			if n == scale && scale > 0 {
				at--
				buf[at] = '.'
			}
			at--
			buf[at] = byte('0' + v%10)
			v /= 10
			n++
		}
	}
	for hi > 0 {
		var rem uint64
		q := hi / chunk
		lo, rem = bits.Div64(hi%chunk, lo, chunk)
		hi = q
		emit(rem, 19)
	}
	emit(lo, 0)
	if n <= scale {
		emit(0, scale+1-n)
	} else if n == 0 {
		emit(0, 1)
	}
	if neg {
		at--
		buf[at] = '-'
	}
	return append(dst, buf[at:]...)
}

// appendDecimal64 is appendDecimal128 of 64 bits.
func appendDecimal64(dst []byte, neg bool, v uint64, scale int) []byte {
	if neg {
		dst = append(dst, '-')
	}
	if scale == 0 {
		return appendUint(dst, v)
	}
	if scale < 8 && v < 1e16 {
		return appendDecimalDigits(dst, v, scale)
	}
	const widest = 20 // digits of 64 bits
	if scale >= widest {
		dst = append(dst, '0', '.')
		for ; scale > widest; scale-- {
			dst = append(dst, '0')
		}
		return appendPadded(dst, v, widest)
	}
	unit := uint64(10)
	for range scale - 1 {
		unit *= 10
	}
	dst = append(appendUint(dst, v/unit), '.')
	return appendPadded(dst, v%unit, scale)
}

// appendDecimalDigits is appendDecimal64 of v < 10^16 with a scale of 1 to 7: the
// digits are cut, nothing is divided by the scale.
func appendDecimalDigits(dst []byte, v uint64, scale int) []byte {
	dst = room(dst, longestNumber)
	at := len(dst)
	b := dst[at : at+longestNumber]
	x := eightDigits(uint32(v % 1e8))
	n, skip := 0, 0
	if v < 1e8 { // leading zeros, but for the last digit before the point
		skip = bits.TrailingZeros64(x|1<<(56-8*scale)) >> 3
	} else {
		n = putDigits(b, uint32(v/1e8))
	}
	x |= zeroDigits
	binary.LittleEndian.PutUint64(b[n:], x>>(8*skip))
	n += 8 - scale - skip
	b[n] = '.'
	binary.LittleEndian.PutUint64(b[n+1:], x>>(64-8*scale))
	return dst[:at+n+1+scale]
}
