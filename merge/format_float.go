package merge

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/icefs/icefs/internal/pqfile"
)

// appendDouble writes the shortest digits that read back to the same value of
// size bits: plain for 0 and 1e-6 <= |f| < 1e21, else with an exponent without a
// leading zero (1e-7). NaN, Infinity and -Infinity are words; the caller quotes
// them in JSON.
func appendDouble(dst []byte, f float64, size int) []byte {
	abs := math.Abs(f)
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case abs > math.MaxFloat64:
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, "Infinity"...)
	}
	form := byte('f')
	if abs != 0 && (size == 64 && (abs < 1e-6 || abs >= 1e21) || size == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21)) {
		form = 'e'
	}
	dst = strconv.AppendFloat(dst, f, form, -1, size)
	if n := len(dst); form == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// appendJSONDouble appends a float, with quotes if it is not a JSON number.
func appendJSONDouble(dst []byte, f float64, size int) []byte {
	if f-f == 0 {
		return appendDouble(dst, f, size)
	}
	dst = appendDouble(append(dst, '"'), f, size)
	return append(dst, '"')
}

// mostPlaces is how many decimal places a plainFloat has at most: those of the
// last bit of a mantissa of 53 bits that begins at 2^-19.
const mostPlaces = 22

// floatText writes floats of 64 or of 32 bits as appendDouble does, the usual
// ones in less time.
type floatText struct {
	size  int
	fives [mostPlaces + 1]uint64 // powers of five
}

func newFloatText(size int) *floatText {
	t := &floatText{size: size}
	p := uint64(1)
	for i := range t.fives {
		t.fives[i] = p
		p *= 5
	}
	return t
}

// value returns float i of a run.
func (t *floatText) value(v *pqfile.Values, i int) float64 {
	if t.size == 64 {
		return math.Float64frombits(le64(v.Fixed, i))
	}
	return float64(math.Float32frombits(le32(v.Fixed, i)))
}

// plainFloat is the shortest decimal that reads back to a float: whole, a point,
// and frac in so many places.
type plainFloat struct {
	neg         bool
	whole, frac uint64
	places      int // 0: no point
}

// plain takes a float apart, or returns false for one that is left to
// appendDouble: one below 2^-19, a whole number past the mantissa's, one that is
// no number, and a fraction that is a power of two.
//
// A float m*2^e stands for all numbers less than half of 2^e away. With 10^k <=
// 2^e < 10^(k+1) these are, counted in 10^k, at least one and less than ten: at
// most one of them is a multiple of ten, and if there is one it is the shortest,
// but for zeros at its end; else the integer nearest to the float is (Raffaello
// Giulietti, The Schubfach way to render doubles). In the range of exponents here
// m*2^e/10^k is m*5^-k/2^(k-e), and m*5^-k has less than 128 bits: nothing is
// rounded.
func (t *floatText) plain(f float64) (p plainFloat, ok bool) {
	m, e, first := uint64(0), 0, uint(52) // f is m*2^e, and m has bit first
	if t.size == 64 {
		b := math.Float64bits(f)
		m, e, p.neg = b&(1<<52-1)|1<<52, int(b>>52&0x7ff)-1075, b>>63 != 0
	} else {
		b := math.Float32bits(float32(f))
		m, e, p.neg = uint64(b&(1<<23-1)|1<<23), int(b>>23&0xff)-150, b>>31 != 0
		first = 23
	}
	if e < -19-int(first) || e > 0 {
		return p, f == 0
	}
	p.whole = m >> uint(-e)
	if p.whole<<uint(-e) == m {
		return p, true
	}
	if m == 1<<first {
		return p, false // there the floats below are nearer
	}
	k := e * 78913 >> 18 // e*log10(2), rounded down
	shift, five := uint(k-e), t.fives[-k]
	high, low := bits.Mul64(m, five)
	digits := high<<(64-shift) | low>>shift
	one := uint64(1) << shift
	over := low & (one - 1)
	tens, unit := digits/10, digits%10
	// The distances to the next multiples of ten. Half of 2^e is five/2 here, and
	// no distance is equal to it, for five is odd.
	below := unit<<shift + over
	switch {
	case below <= five>>1:
		digits, k = trimDigits(tens, k+1)
	case 10<<shift-below <= five>>1:
		digits, k = trimDigits(tens+1, k+1)
	case 2*over > one || 2*over == one && digits&1 != 0:
		digits++
	}
	// No whole number lies between the float and its decimal.
	p.frac, p.places = digits, -k
	if p.whole > 0 {
		p.frac -= p.whole * t.fives[-k] << uint(-k)
	}
	return p, true
}

// trimDigits takes the zeros off the end of v*10^k, which is no whole number.
func trimDigits(v uint64, k int) (uint64, int) {
	if v%1e8 == 0 {
		v, k = v/1e8, k+8
	}
	if v%1e4 == 0 {
		v, k = v/1e4, k+4
	}
	if v%100 == 0 {
		v, k = v/100, k+2
	}
	if v%10 == 0 {
		v, k = v/10, k+1
	}
	return v, k
}

// append appends a float; JSON quotes the words among them.
func (t *floatText) append(dst []byte, f float64, json bool) []byte {
	p, ok := t.plain(f)
	switch {
	case ok:
		return p.append(dst)
	case json:
		return appendJSONDouble(dst, f, t.size)
	}
	return appendDouble(dst, f, t.size)
}

// append appends the decimal.
func (p *plainFloat) append(dst []byte) []byte {
	if p.neg {
		dst = append(dst, '-')
	}
	dst = appendUint(dst, p.whole)
	if p.places > 0 {
		dst = appendPadded(append(dst, '.'), p.frac, p.places)
	}
	return dst
}

// length is the length of what append appends.
func (p *plainFloat) length(powers *[20]uint64) uint32 {
	n := digits(p.whole, powers)
	if p.places > 0 {
		n += 1 + uint32(p.places)
	}
	if p.neg {
		n++
	}
	return n
}
