package merge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestEightDigits(t *testing.T) {
	for v := uint32(0); v < 1e8; v += 1 + v>>14 { // each of the first 16,384, then fewer
		var b [8]byte
		n := putDigits(b[:], v)
		if want := strconv.Itoa(int(v)); string(b[:n]) != want {
			t.Fatalf("%s, want %s", b[:n], want)
		}
		if got, want := string(appendPadded(nil, uint64(v), 8)), fmt.Sprintf("%08d", v); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

func TestIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	check := func(v int64) {
		t.Helper()
		// The capacity may be just used up, or all there.
		for _, dst := range [][]byte{[]byte("x"), append(make([]byte, 0, 64), 'x')} {
			if got, want := string(appendInt(dst, v)), "x"+strconv.FormatInt(v, 10); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
			if got, want := string(appendUint(dst, uint64(v))), "x"+strconv.FormatUint(uint64(v), 10); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	for p := int64(1); p > 0 && p <= 1e18; p *= 10 {
		for d := int64(-2); d <= 2; d++ {
			check(p + d)
			check(-p + d)
		}
	}
	check(math.MinInt64)
	check(math.MaxInt64)
	for range 200_000 {
		check(randomInt(r))
	}
}

func TestPadded(t *testing.T) {
	for n := 1; n <= 24; n++ {
		for _, v := range []uint64{0, 7, 123456789, math.MaxUint64} {
			want := fmt.Sprintf("%0*d", n, v)
			if len(want) > n {
				continue
			}
			if got := string(appendPadded([]byte("0."), v, n)); got != "0."+want {
				t.Errorf("%s, want 0.%s", got, want)
			}
		}
	}
}

// decimalText is the plain way to write v with scale digits after the point.
func decimalText(v int64, scale int) string {
	s := strconv.FormatUint(uint64(max(v, -v)), 10)
	if v == math.MinInt64 {
		s = "9223372036854775808"
	}
	for len(s) <= scale {
		s = "0" + s
	}
	if scale > 0 {
		s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	}
	if v < 0 {
		s = "-" + s
	}
	return s
}

func TestDecimals64(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for scale := range maxDecimalDigits + 1 {
		for range 2000 {
			v := randomInt(r)
			if got, want := string(appendDecimal(nil, v, scale)), decimalText(v, scale); got != want {
				t.Fatalf("%d, scale %d: %s, want %s", v, scale, got, want)
			}
		}
	}
}
