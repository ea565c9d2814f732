package merge

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

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

// appendDouble writes the shortest digits that read back to the same value of
// bits bits: plain for 0 and 1e-6 <= |f| < 1e21, else with an exponent without
// a leading zero (1e-7). NaN, Infinity and -Infinity are words; the caller
// quotes them in JSON.
func appendDouble(dst []byte, f float64, bits int) []byte {
	abs := math.Abs(f)
	exact := float64(1 << 53) // below it every integer has a float of its own
	if bits == 32 {
		exact = 1 << 24
	}
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case abs > math.MaxFloat64:
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, "Infinity"...)
	case abs < exact && f == math.Trunc(f) && (f != 0 || !math.Signbit(f)):
		return strconv.AppendInt(dst, int64(f), 10)
	case bits == 64 && abs < 1e8 && abs >= 1e-6:
		// A decimal of at most 15 digits that divides out to f is the only one
		// that short, hence the shortest text of f.
		if r := math.RoundToEven(f * 1e6); r/1e6 == f {
			return appendMillionths(dst, int64(r))
		}
	}
	form := byte('f')
	if abs != 0 && (bits == 64 && (abs < 1e-6 || abs >= 1e21) || bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21)) {
		form = 'e'
	}
	dst = strconv.AppendFloat(dst, f, form, -1, bits)
	if n := len(dst); form == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// appendMillionths writes v/1e6 without trailing zeros.
func appendMillionths(dst []byte, v int64) []byte {
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	dst = strconv.AppendInt(dst, v/1e6, 10)
	return appendFraction(dst, v%1e6, 1e6)
}

// appendFraction writes .fff, only as long as needed, of a second cut into
// units ticks; nothing if frac is 0.
func appendFraction(dst []byte, frac, units int64) []byte {
	if frac == 0 {
		return dst
	}
	digits := 6
	switch units {
	case 1e3:
		digits = 3
	case 1e9:
		digits = 9
	}
	for frac%10 == 0 {
		frac /= 10
		digits--
	}
	var buf [10]byte
	buf[0] = '.'
	for i := digits; i > 0; i-- {
		buf[i] = byte('0' + frac%10)
		frac /= 10
	}
	return append(dst, buf[:digits+1]...)
}

// appendDate writes the day that is days after 1970-01-01, in the proleptic
// Gregorian calendar: at least four digits of year, a minus sign before year 0,
// no plus sign after 9999.
func appendDate(dst []byte, days int64) []byte {
	// Days are counted in 400-year eras of 146,097 days that begin on 1 March,
	// so that the leap day is the last of its year.
	z := days + 719468 // days from 0000-03-01
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day := doy - (153*mp+2)/5 + 1
	month := mp + 3
	year := yoe + era*400
	if month > 12 {
		month -= 12
		year++
	}
	if year < 0 {
		dst = append(dst, '-')
		year = -year
	}
	if year > 9999 {
		dst = strconv.AppendInt(dst, year, 10)
	} else {
		dst = appendTwo(appendTwo(dst, year/100), year%100)
	}
	dst = appendTwo(append(dst, '-'), month)
	return appendTwo(append(dst, '-'), day)
}

// appendTwo writes 0 <= v < 100 with two digits.
func appendTwo(dst []byte, v int64) []byte {
	return append(dst, byte('0'+v/10), byte('0'+v%10))
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
	sec := v / units
	if h := sec / 3600; h < 100 {
		dst = appendTwo(dst, h)
	} else {
		dst = strconv.AppendInt(dst, h, 10)
	}
	dst = appendTwo(append(dst, ':'), sec/60%60)
	dst = appendTwo(append(dst, ':'), sec%60)
	return appendFraction(dst, v%units, units)
}

// appendTimestamp writes v ticks after 1970-01-01 00:00:00.
func appendTimestamp(dst []byte, v, units int64, utc bool) []byte {
	day := floorDiv(v, 86400*units)
	dst = appendDate(dst, day)
	dst = appendClock(append(dst, ' '), v-day*86400*units, units)
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
