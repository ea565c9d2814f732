package merge

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/icefs/icefs/internal/pqfile"
)

// scalarKind says how the values of a leaf are written as text.
type scalarKind uint8

const (
	scalarUnknown scalarKind = iota // Iceberg's unknown: every value is NULL
	scalarBool
	scalarInt32
	scalarInt64
	scalarFloat
	scalarDouble
	scalarDecimal
	scalarDate
	scalarTime
	scalarTimestamp
	scalarString
	scalarUUID
	scalarHex // binary, fixed, geometry, geography
)

// scalar is the text form of one leaf of a view schema.
type scalar struct {
	kind  scalarKind
	scale int   // decimal: digits after the point
	units int64 // time, timestamp: ticks of a second
	utc   bool  // timestamp: written with a Z
}

// scalarOf returns the text form of a leaf.
func scalarOf(n *pqfile.Node) (scalar, error) {
	switch n.Logical.Kind {
	case pqfile.LogicalUnknown:
		return scalar{kind: scalarUnknown}, nil
	case pqfile.LogicalDecimal:
		if n.Logical.Scale < 0 || n.Logical.Scale > maxDecimalDigits {
			return scalar{}, fmt.Errorf("decimal scale %d: %w", n.Logical.Scale, ErrUnsupported)
		}
		return scalar{kind: scalarDecimal, scale: int(n.Logical.Scale)}, nil
	case pqfile.LogicalDate:
		return scalar{kind: scalarDate}, nil
	case pqfile.LogicalTime:
		return scalar{kind: scalarTime, units: ticks(n.Logical.Unit)}, nil
	case pqfile.LogicalTimestamp:
		return scalar{kind: scalarTimestamp, units: ticks(n.Logical.Unit), utc: n.Logical.UTC}, nil
	case pqfile.LogicalString, pqfile.LogicalEnum, pqfile.LogicalJSON:
		return scalar{kind: scalarString}, nil
	case pqfile.LogicalUUID:
		return scalar{kind: scalarUUID}, nil
	}
	switch n.Type {
	case pqfile.Boolean:
		return scalar{kind: scalarBool}, nil
	case pqfile.Int32:
		return scalar{kind: scalarInt32}, nil
	case pqfile.Int64:
		return scalar{kind: scalarInt64}, nil
	case pqfile.Float:
		return scalar{kind: scalarFloat}, nil
	case pqfile.Double:
		return scalar{kind: scalarDouble}, nil
	case pqfile.ByteArray, pqfile.FixedLenByteArray:
		return scalar{kind: scalarHex}, nil
	}
	return scalar{}, fmt.Errorf("physical type %d: %w", n.Type, ErrUnsupported)
}

// ticks returns the ticks of a second in a unit.
func ticks(u pqfile.TimeUnit) int64 {
	switch u {
	case pqfile.Millis:
		return 1e3
	case pqfile.Nanos:
		return 1e9
	}
	return 1e6
}

// putFraction writes .fff, only as long as needed, of a second cut into units
// ticks, to b; nothing if frac is 0. It returns the length.
func putFraction(b *[16]byte, frac, units int64) int {
	if frac == 0 {
		return 0
	}
	ninth := int64(0)
	switch units {
	case 1e3:
		frac *= 1e5
	case 1e6:
		frac *= 100
	default:
		frac, ninth = frac/10, frac%10
	}
	x := eightDigits(uint32(frac))
	b[0] = '.'
	binary.LittleEndian.PutUint64(b[1:], x|zeroDigits)
	if ninth != 0 {
		b[9] = byte('0' + ninth)
		return 10
	}
	return 9 - bits.LeadingZeros64(x)/8
}

// appendFraction is putFraction to the end of dst.
func appendFraction(dst []byte, frac, units int64) []byte {
	dst = room(dst, 16)
	n := len(dst)
	return dst[:n+putFraction((*[16]byte)(dst[n:n+16]), frac, units)]
}

// putDate writes a day from firstPlainDay to lastPlainDay to b: ten bytes.
func putDate(b *[16]byte, days int64) {
	// An era later, so that none of the numbers is negative.
	year, month, day := civil(uint32(days + 719468 + 146097))
	x := eightDigits((year-400)*10000+month*100+day) | zeroDigits
	binary.LittleEndian.PutUint64(b[:], x&0xffffffff|'-'<<32|x>>32&0xffff<<40|'-'<<56)
	binary.LittleEndian.PutUint16(b[8:], uint16(x>>48))
}

// appendDate writes the day that is days after 1970-01-01, in the proleptic
// Gregorian calendar: at least four digits of year, a minus sign before year 0,
// no plus sign after 9999.
func appendDate(dst []byte, days int64) []byte {
	if days >= firstPlainDay && days <= lastPlainDay {
		dst = room(dst, 16)
		n := len(dst)
		putDate((*[16]byte)(dst[n:n+16]), days)
		return dst[:n+10]
	}
	z := days + 719468
	era := floorDiv(z, 146097)
	y, month, day := civil(uint32(z - era*146097))
	year := int64(y) + era*400
	if year < 0 {
		dst = append(dst, '-')
		year = -year
	}
	if year > 9999 {
		dst = appendInt(dst, year)
	} else {
		dst = appendPadded(dst, uint64(year), 4)
	}
	dst = appendPadded(append(dst, '-'), uint64(month), 2)
	return appendPadded(append(dst, '-'), uint64(day), 2)
}

// civil returns the date that is z days after 0000-03-01; z is less than 2^30.
// Years are counted from March, so that the leap day is the last of its year.
// 146,097 days are 400 years; 2,939,745/2^32 is one of 1,461 closely enough below
// 146,097; 2,141 days of a year are 2^16 of a month (Cassio Neri and Lorenz
// Schneider, Euclidean affine functions and their application to calendar
// algorithms).
func civil(z uint32) (year, month, day uint32) {
	n := 4*z + 3
	century := n / 146097
	p := 2939745 * uint64(n%146097|3)
	ofYear := uint32(p) / 2939745 / 4
	n = 2141*ofYear + 197913
	year, month, day = 100*century+uint32(p>>32), n>>16, n&0xffff/2141+1
	if ofYear >= 306 {
		year, month = year+1, month-12
	}
	return year, month, day
}

// seconds cuts v ticks into seconds, rounded down, and what is left of a second.
func seconds(v, units int64) (sec, frac int64) {
	switch units { // divisions by constants are several times as fast
	case 1e6:
		sec, frac = v/1e6, v%1e6
	case 1e3:
		sec, frac = v/1e3, v%1e3
	default:
		sec, frac = v/units, v%units
	}
	if frac < 0 {
		sec, frac = sec-1, frac+units
	}
	return sec, frac
}

// putDayTime writes sec seconds after midnight, less than a day of them, to b.
func putDayTime(b *[8]byte, sec uint32) {
	x := eightDigits(sec/3600*10000+sec/60%60*100+sec%60) | zeroDigits
	binary.LittleEndian.PutUint64(b[:], x>>16&0xffff|':'<<16|x>>32&0xffff<<24|':'<<40|x>>48<<48)
}

// appendDayTime is putDayTime to the end of dst.
func appendDayTime(dst []byte, sec uint32) []byte {
	dst = room(dst, 8)
	n := len(dst)
	putDayTime((*[8]byte)(dst[n:n+8]), sec)
	return dst[:n+8]
}

// appendClock writes a time of day, v ticks after midnight. Times outside a day
// do not occur in valid data; they keep their value (-00:00:01, 25:00:00).
func appendClock(dst []byte, v, units int64) []byte {
	if v < 0 {
		dst = append(dst, '-')
		if v = -v; v < 0 {
			v = math.MaxInt64
		}
	}
	sec, frac := seconds(v, units)
	if sec < 86400 {
		return appendFraction(appendDayTime(dst, uint32(sec)), frac, units)
	}
	hours := sec / 3600
	if hours < 100 {
		dst = appendPadded(dst, uint64(hours), 2)
	} else {
		dst = appendInt(dst, hours)
	}
	dst = appendPadded(append(dst, ':'), uint64(sec/60%60), 2)
	dst = appendPadded(append(dst, ':'), uint64(sec%60), 2)
	return appendFraction(dst, frac, units)
}

// appendTimestamp writes v ticks after 1970-01-01 00:00:00.
func appendTimestamp(dst []byte, v, units int64, utc bool) []byte {
	sec, frac := seconds(v, units)
	day := floorDiv(sec, 86400)
	if day >= firstPlainDay && day <= lastPlainDay {
		dst = room(dst, 40)
		at := len(dst)
		b := (*[40]byte)(dst[at : at+40])
		putDate((*[16]byte)(b[:]), day)
		b[10] = ' '
		putDayTime((*[8]byte)(b[11:]), uint32(sec-day*86400))
		n := 19 + putFraction((*[16]byte)(b[19:]), frac, units)
		if utc {
			b[n] = 'Z'
			n++
		}
		return dst[:at+n]
	}
	dst = appendDate(dst, day)
	dst = appendDayTime(append(dst, ' '), uint32(sec-day*86400))
	dst = appendFraction(dst, frac, units)
	if utc {
		dst = append(dst, 'Z')
	}
	return dst
}

// floorDiv divides rounding down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// appendHex writes lower-case hex.
func appendHex(dst, b []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range b {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// appendUUID writes 16 bytes in the 8-4-4-4-12 form.
func appendUUID(dst, b []byte) []byte {
	dst = appendHex(dst, b[0:4])
	dst = appendHex(append(dst, '-'), b[4:6])
	dst = appendHex(append(dst, '-'), b[6:8])
	dst = appendHex(append(dst, '-'), b[8:10])
	return appendHex(append(dst, '-'), b[10:16])
}

// le32 and le64 read value i of a run of PLAIN values.
func le32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
func le64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
