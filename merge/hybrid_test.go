package merge

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// decodeHybrid is a plain decoder of the hybrid encoding for n values.
func decodeHybrid(t *testing.T, b []byte, width, n int) []uint32 {
	t.Helper()
	var out []uint32
	for len(out) < n {
		h, k := binary.Uvarint(b)
		if k <= 0 {
			t.Fatalf("no header after %d of %d values", len(out), n)
		}
		b = b[k:]
		if h&1 == 0 {
			v, size := uint32(0), (width+7)/8
			for i := range size {
				v |= uint32(b[i]) << (8 * i)
			}
			b = b[size:]
			for range h >> 1 {
				out = append(out, v)
			}
			continue
		}
		for i := range int(h>>1) * 8 {
			v := uint32(0)
			for bit := range width {
				at := i*width + bit
				v |= uint32(b[at/8]>>(at%8)&1) << bit
			}
			out = append(out, v)
		}
		b = b[int(h>>1)*width:]
	}
	if len(b) != 0 {
		t.Fatalf("%d bytes after the last value", len(b))
	}
	return out[:n]
}

func TestHybridRoundTripWithinBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, width := range []int{1, 2, 3, 7, 8, 9, 12, 16, 17, 20, 31, 32} {
		for _, n := range []int{1, 2, 7, 8, 9, 63, 127, 128, 129, 1000, 5000} {
			for _, runs := range []int{1, 3, 200, 10_000} {
				v := make([]uint32, 0, n)
				for len(v) < n {
					x := uint32(rnd.Uint64() & (1<<width - 1))
					for range 1 + rnd.IntN(runs) {
						if len(v) < n {
							v = append(v, x)
						}
					}
				}
				b := appendHybrid(nil, v, width)
				if int64(len(b)) > hybridBound(int64(n), width) {
					t.Fatalf("width %d, %d values: %d bytes, bound %d", width, n, len(b), hybridBound(int64(n), width))
				}
				if got := decodeHybrid(t, b, width, n); !slices.Equal(got, v) {
					t.Fatalf("width %d, %d values: wrong values", width, n)
				}
			}
		}
	}
}

// The worst case of a bound: repeated runs of the shortest length between
// packed ones.
func TestHybridBoundAtTheEdge(t *testing.T) {
	for width := 1; width <= 32; width++ {
		var v []uint32
		for i := range 50 {
			for range hybridRun {
				v = append(v, uint32(i&1))
			}
			for j := range 8 {
				v = append(v, uint32(j&1))
			}
		}
		if n := len(appendHybrid(nil, v, width)); int64(n) > hybridBound(int64(len(v)), width) {
			t.Errorf("width %d: %d bytes, bound %d", width, n, hybridBound(int64(len(v)), width))
		}
	}
}

func TestHybridOneRun(t *testing.T) {
	got := appendHybrid(nil, []uint8{1, 1, 1}, 1)
	if want := []byte{3 << 1, 1}; !slices.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
	if got := appendHybrid([]byte{9}, []uint32{}, 5); !slices.Equal(got, []byte{9}) {
		t.Errorf("no values: got % x", got)
	}
}
