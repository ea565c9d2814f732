package merge

import (
	"math"
	"math/rand/v2"
	"testing"
)

// someFloats are floats of all kinds: of random bits, of random digits with few
// and with many places, next to such ones, near powers of two and of ten.
func someFloats(r *rand.Rand, size int) float64 {
	f := 0.0
	switch r.IntN(8) {
	case 0:
		f = math.Float64frombits(r.Uint64())
		if size == 32 {
			f = float64(math.Float32frombits(r.Uint32()))
		}
	case 1:
		f = r.Float64() * math.Pow10(r.IntN(24)-7)
	case 2:
		f = math.Ldexp(1, r.IntN(140)-75)
	case 3:
		f = math.Pow10(r.IntN(24) - 7)
	case 4:
		f = float64(r.Int64N(1 << (1 + r.IntN(62))))
	default:
		f = float64(r.Uint64()>>r.IntN(64)) / math.Pow10(r.IntN(23))
	}
	if r.IntN(2) == 0 {
		f = -f
	}
	for range r.IntN(3) {
		if size == 64 {
			f = math.Nextafter(f, math.Inf(r.IntN(2)*2-1))
		} else {
			f = float64(math.Nextafter32(float32(f), float32(math.Inf(r.IntN(2)*2-1))))
		}
	}
	if size == 32 {
		f = float64(float32(f))
	}
	return f
}

// floatsAgree compares a float's text with the standard library's shortest
// digits, and its measured length with both. It reports whether the float is
// plain.
func floatsAgree(t *testing.T, fast *floatText, f float64, powers *[20]uint64) bool {
	t.Helper()
	var a, b [64]byte
	want, got := appendDouble(a[:0], f, fast.size), fast.append(b[:0], f, false)
	if string(got) != string(want) {
		t.Fatalf("%b of %d bits: %s, want %s", f, fast.size, got, want)
	}
	p, ok := fast.plain(f)
	if ok && p.length(powers) != uint32(len(want)) {
		t.Fatalf("%s: measured %d", want, p.length(powers))
	}
	return ok
}

func TestPlainFloats(t *testing.T) {
	powers := powersOfTen()
	for _, size := range []int{32, 64} {
		r := rand.New(rand.NewPCG(uint64(size), 1))
		fast, plain := newFloatText(size), 0
		const rounds = 500_000
		for range rounds {
			if floatsAgree(t, fast, someFloats(r, size), powers) {
				plain++
			}
		}
		if plain < rounds/3 {
			t.Errorf("%d bits: %d of %d floats are plain", size, plain, rounds)
		}
		// Around each power of two: the floats next to it are unevenly far away.
		for e := -80; e < 60; e++ {
			for step := -3; step <= 3; step++ {
				f := math.Ldexp(1, e)
				for range max(step, -step) {
					if size == 64 {
						f = math.Nextafter(f, float64(step)*math.MaxFloat64)
					} else {
						f = float64(math.Nextafter32(float32(f), float32(step)*math.MaxFloat32))
					}
				}
				floatsAgree(t, fast, f, powers)
			}
		}
	}
}

// Every float of 32 bits in a few ranges of exponents, at a stride.
func TestPlainFloats32(t *testing.T) {
	fast, powers := newFloatText(32), powersOfTen()
	for bits := uint32(0x35000000); bits < 0x4c000000; bits += 1009 {
		floatsAgree(t, fast, float64(math.Float32frombits(bits)), powers)
	}
}
