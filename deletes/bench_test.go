package deletes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// benchRows is the file that the benchmarks answer for.
const benchRows = 8 << 20

// benchSets are deleted positions by shape and density: random ones make array
// containers up to 6.25 % and dense ones above, clustered ones run containers.
func benchSets() (names []string, sets []*roaring.Bitmap) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, density := range []float64{0.001, 0.01, 0.061, 0.0625, 0.07, 0.25, 0.5} {
		random, clustered := roaring.New(), roaring.New()
		batch := make([]uint32, 0, int(benchRows*density*1.1))
		for p := range uint32(benchRows) {
			if r.Float64() < density {
				batch = append(batch, p)
			}
		}
		random.AddMany(batch)
		const run = 1000
		for p := uint64(0); p < benchRows; p += run {
			if r.Float64() < density {
				clustered.AddRange(p, min(p+run, benchRows))
			}
		}
		clustered.RunOptimize()
		for i, m := range []*roaring.Bitmap{random, clustered} {
			names = append(names, fmt.Sprintf("%s/%.2f%%", []string{"random", "clustered"}[i], density*100))
			sets = append(sets, m)
		}
	}
	return names, sets
}

// fastest is the shortest of several times that f takes.
func fastest(f func()) time.Duration {
	best := time.Hour
	for range 5 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// eachWindow calls f for the windows of a size.
func eachWindow(window int64, f func(start, end int64)) {
	for start := int64(0); start < benchRows; start += window {
		f(start, min(start+window, benchRows))
	}
}

// wholeWindow is the window in which a whole file is asked for: a row group's
// worth, so that the answer stays in a CPU's cache.
const wholeWindow = 64 << 10

// eachOfWindows calls f with a name and a size of every window that is measured.
func eachOfWindows(f func(name string, window int64)) {
	f("whole", wholeWindow)
	f("1k", 1000)
	f("5k", 5000)
	f("20k", 20_000)
}

func frozen(b *testing.B, m *roaring.Bitmap) *Positions {
	b.Helper()
	p := &Positions{}
	if err := p.freeze(0, m.Clone()); err != nil {
		b.Fatal(err)
	}
	return p
}

// findLive is the time to find all live ranges of the file, a window at a time.
func findLive(p *Positions, window int64) time.Duration {
	var ranges []Range
	return fastest(func() {
		eachWindow(window, func(start, end int64) { ranges = p.LiveRanges(ranges[:0], start, end) })
	})
}

// BenchmarkLiveRanges reports how many times faster than one Contains per row
// the live ranges of 8 Mi rows are found, by window ("x-whole", "x-1k", …), and
// an int64 column is compacted with them ("x-compact").
func BenchmarkLiveRanges(b *testing.B) {
	names, sets := benchSets()
	column, compacted := make([]int64, benchRows), make([]int64, 0, benchRows)
	for i, m := range sets {
		b.Run(names[i], func(b *testing.B) {
			p := frozen(b, m)
			live := 0
			perRow := fastest(func() {
				for row := range uint32(benchRows) {
					if !m.Contains(row) {
						live++
					}
				}
			})
			eachOfWindows(func(name string, window int64) {
				b.ReportMetric(float64(perRow)/float64(findLive(p, window)), "x-"+name)
			})
			rowByRow := fastest(func() {
				compacted = compacted[:0]
				for row, v := range column {
					if !m.Contains(uint32(row)) {
						compacted = append(compacted, v)
					}
				}
			})
			var ranges []Range
			byRange := fastest(func() {
				compacted = compacted[:0]
				eachWindow(wholeWindow, func(start, end int64) {
					ranges = p.LiveRanges(ranges[:0], start, end)
					for _, r := range ranges {
						compacted = append(compacted, column[r.Start:r.End]...)
					}
				})
			})
			b.ReportMetric(float64(rowByRow)/float64(byRange), "x-compact")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkContainerThreshold reports the time at 6.1 % of the rows deleted at
// random, in array containers, as a multiple of that at 7 %, in bitmaps.
func BenchmarkContainerThreshold(b *testing.B) {
	names, sets := benchSets()
	at := func(name string) *Positions { return frozen(b, sets[slices.Index(names, "random/"+name)]) }
	below, above := at("6.10%"), at("7.00%")
	eachOfWindows(func(name string, window int64) {
		b.ReportMetric(float64(findLive(below, window))/float64(findLive(above, window)), "of-7%-"+name)
	})
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDecodeDV decodes a vector of 8 Mi rows, half of them deleted.
func BenchmarkDecodeDV(b *testing.B) {
	names, sets := benchSets()
	for i, m := range sets {
		var p Positions
		if err := p.freeze(0, m.Clone()); err != nil {
			b.Fatal(err)
		}
		blob := blobOf(appendPortable(nil, &p))
		b.Run(names[i], func(b *testing.B) {
			b.SetBytes(int64(len(blob)))
			for range b.N {
				if _, err := decodeDV(blob, p.Count()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
