package merge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/icefs/icefs/deletes"
)

// runsOf gives values with runs of up to so many equal ones.
func runsOf(rnd *rand.Rand, n, runs, width int) []uint32 {
	v := make([]uint32, 0, n)
	for len(v) < n {
		x := uint32(rnd.Uint64() & (1<<width - 1))
		for range 1 + rnd.IntN(runs) {
			if len(v) < n {
				v = append(v, x)
			}
		}
	}
	return v
}

func TestPackerCopiesPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	var p packer
	for _, width := range []int{1, 2, 3, 7, 8, 9, 13, 16, 17, 24, 31, 32} {
		for _, to := range []int{width, min(width+3, 32)} {
			for _, n := range []int{1, 8, 9, 130, 1000, 9000} {
				for _, runs := range []int{1, 40, 5000} {
					for _, gap := range []int{1, 20, 700} {
						v := runsOf(rnd, n, runs, width)
						src := hybridRuns{src: appendHybrid(nil, v, width), width: uint(width)}
						p.reset(to)
						var want []uint32
						var ranges []deletes.Range
						for at := 0; at < n; {
							at = min(at+rnd.IntN(gap), n)
							end := min(at+1+rnd.IntN(2*gap), n)
							if at == end {
								break
							}
							ranges = append(ranges, deletes.Range{Start: int64(at), End: int64(end)})
							want = append(want, v[at:end]...)
							if at = end; rnd.IntN(50) == 0 { // in several calls
								copyRanges(t, &src, &p, ranges)
								ranges = ranges[:0]
							}
						}
						copyRanges(t, &src, &p, ranges)
						if len(want) == 0 {
							continue
						}
						out := p.finish([]byte{1, 2})[2:]
						if got := decodeHybrid(t, out, to, len(want)); !slices.Equal(got, want) {
							t.Fatalf("width %d to %d, %d values, runs of %d, gaps of %d: other values", width, to, n, runs, gap)
						}
						if int64(len(out)) > hybridBound(int64(len(want)), to) {
							t.Fatalf("width %d, %d values: %d bytes, bound %d", to, len(want), len(out), hybridBound(int64(len(want)), to))
						}
					}
				}
			}
		}
	}
}

// Streams that are cut, or have values wider than the target, are errors.
func TestPackerHostile(t *testing.T) {
	for name, c := range map[string]struct {
		src       []byte
		width, to int
		n         int
	}{
		"empty":               {nil, 3, 3, 1},
		"no end of the head":  {[]byte{0x80, 0x80}, 3, 3, 1},
		"run of nothing":      {[]byte{0}, 3, 3, 1},
		"value is cut":        {[]byte{2 << 1, 1}, 9, 9, 2},
		"packed is cut":       {[]byte{1<<1 | 1}, 9, 9, 8},
		"packed is cut later": {[]byte{2<<1 | 1, 1, 2, 3}, 8, 8, 4},
		"value too wide":      {[]byte{2 << 1, 9}, 4, 3, 2},
		"packed too wide":     {[]byte{1<<1 | 1, 0x99, 0, 0, 0}, 4, 3, 8},
		"endless":             {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 3, 3, 100},
	} {
		t.Run(name, func(t *testing.T) {
			var p packer
			p.reset(c.to)
			for _, start := range []int64{0, 1 << 40} {
				h := hybridRuns{src: c.src, width: uint(c.width)}
				if err := h.copyTo(&p, []deletes.Range{{Start: start, End: start + int64(c.n)}}); !errors.Is(err, ErrCorrupt) {
					t.Errorf("from %d: got %v, want ErrCorrupt", start, err)
				}
			}
		})
	}
}

func BenchmarkPacker(b *testing.B) {
	const n, width = 75_000, 14
	src := appendHybrid(nil, runsOf(rand.New(rand.NewPCG(1, 1)), n, 1, width), width)
	for _, run := range []int64{3, 20, 1000} {
		b.Run(fmt.Sprintf("runs of %d", run), func(b *testing.B) {
			var p packer
			var out []byte
			var live, ranges []deletes.Range
			for at := int64(0); at+run < n; at += run + 1 {
				live = append(live, deletes.Range{Start: at, End: at + run})
			}
			for b.Loop() {
				p.reset(width)
				h := hybridRuns{src: src, width: width}
				ranges = append(ranges[:0], live...)
				if err := h.copyTo(&p, ranges); err != nil {
					b.Fatal(err)
				}
				out = p.finish(out[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}

func copyRanges(t *testing.T, h *hybridRuns, p *packer, ranges []deletes.Range) {
	t.Helper()
	if err := h.copyTo(p, ranges); err != nil {
		t.Fatal(err)
	}
}
