package merge

import (
	"math"
	"math/bits"

	"github.com/icefs/icefs/internal/pqfile"
)

// The functions of this file say how long the texts are that format_scalar.go
// makes, without making them.

// powersOfTen returns 10^0 to 10^19, all that fit 64 bits.
func powersOfTen() *[20]uint64 {
	return &[20]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}
}

// digits is the number of decimal digits of v, 1 for 0. A number of b bits has
// floor(b*log10(2)) digits or one more; 1233/4096 is log10(2) closely enough
// for b up to 64.
func digits(v uint64, powers *[20]uint64) uint32 {
	n := uint32(bits.Len64(v|1)*1233) >> 12
	if n < 20 && v >= powers[n] {
		n++
	}
	return max(n, 1)
}

// magnitude returns |v|, and 1 for the sign of a negative number.
func magnitude(v int64) (abs uint64, sign uint32) {
	sign = uint32(uint64(v) >> 63)
	return (uint64(v) ^ -uint64(sign)) + uint64(sign), sign
}

// lenInt is the length of v in decimal.
func lenInt(v int64, powers *[20]uint64) uint32 {
	abs, sign := magnitude(v)
	return digits(abs, powers) + sign
}

// lenDecimal is the length of v with scale digits after the point.
func lenDecimal(v int64, scale int, powers *[20]uint64) uint32 {
	abs, sign := magnitude(v)
	n := digits(abs, powers)
	if scale > 0 {
		n = max(n, uint32(scale)+1) + 1
	}
	return n + sign
}

// Days from 0000-01-01 to 9999-12-31: their dates have ten characters.
const (
	firstPlainDay = -719528
	lastPlainDay  = 2932896
	plainDate     = uint32(len("2026-11-30"))
	plainClock    = uint32(len("02:53:19"))
)

// lenDate is the length of a date.
func lenDate(days int64) uint32 {
	if days >= firstPlainDay && days <= lastPlainDay {
		return plainDate
	}
	var buf [32]byte
	return uint32(len(appendDate(buf[:0], days)))
}

// lenFraction is the length of a fraction of a second with its point.
func lenFraction(frac, units int64) uint32 {
	if frac == 0 {
		return 0
	}
	n := uint32(7)
	switch units {
	case 1e3:
		n = 4
	case 1e9:
		n = 10
	}
	for frac%1000 == 0 {
		frac /= 1000
		n -= 3
	}
	if frac%100 == 0 {
		return n - 2
	}
	if frac%10 == 0 {
		return n - 1
	}
	return n
}

// secondFraction is how many ticks v is past a full second.
func secondFraction(v, units int64) int64 {
	switch units { // divisions by constants are several times as fast
	case 1e6:
		v %= 1e6
	case 1e3:
		v %= 1e3
	default:
		v %= units
	}
	if v < 0 {
		v += units
	}
	return v
}

// lenClock is the length of a time of day.
func lenClock(v, units int64) uint32 {
	if v >= 0 && v < 86400*units {
		return plainClock + lenFraction(secondFraction(v, units), units)
	}
	var buf [48]byte
	return uint32(len(appendClock(buf[:0], v, units)))
}

// plainTimestamps returns the least and the greatest timestamp of the years 0
// to 9999 that fit 64 bits, the last day left out.
func plainTimestamps(units int64) (least, greatest int64) {
	perDay := 86400 * units
	return max(firstPlainDay, math.MinInt64/perDay) * perDay, min(lastPlainDay, math.MaxInt64/perDay) * perDay
}

// lenTimestamp is the length of a timestamp without its Z. Between the plain
// timestamps it depends on the fraction of a second alone.
func lenTimestamp(v, units, least, greatest int64) uint32 {
	if v >= least && v <= greatest {
		return plainDate + 1 + plainClock + lenFraction(secondFraction(v, units), units)
	}
	var buf [64]byte
	return uint32(len(appendTimestamp(buf[:0], v, units, false)))
}

// ticksOf returns value i of an INT32 or INT64 column.
func ticksOf(v *pqfile.Values, i int) int64 {
	if v.Type == pqfile.Int32 {
		return int64(int32(le32(v.Fixed, i)))
	}
	return int64(le64(v.Fixed, i))
}
