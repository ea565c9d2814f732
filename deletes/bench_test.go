package deletes

import (
	"fmt"
	"math/rand/v2"
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
	for _, density := range []float64{0.001, 0.01, 0.0625, 0.25, 0.5} {
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

// containsPerRow is the time that one Contains per row takes for the whole file.
func containsPerRow(m *roaring.Bitmap) time.Duration {
	best := time.Hour
	for range 3 {
		start := time.Now()
		live := 0
		for p := range uint32(benchRows) {
			if !m.Contains(p) {
				live++
			}
		}
		if d := time.Since(start); live > 0 && d < best {
			best = d
		}
	}
	return best
}

// eachWindow calls f for the windows of a size, or once for the whole file.
func eachWindow(window int64, f func(start, end int64)) {
	if window == 0 {
		window = benchRows
	}
	for start := int64(0); start < benchRows; start += window {
		f(start, min(start+window, benchRows))
	}
}

// BenchmarkWindows reports, for each question and window size, how many times
// faster than Contains per row it answers for all rows of the file ("x").
func BenchmarkWindows(b *testing.B) {
	names, sets := benchSets()
	for i, m := range sets {
		var p Positions
		if err := p.freeze(0, m.Clone()); err != nil {
			b.Fatal(err)
		}
		perRow := containsPerRow(m)
		var ranges []Range
		var words []uint64
		questions := []struct {
			name string
			ask  func(start, end int64)
		}{
			{"count", func(start, end int64) { p.CountRange(start, end) }},
			{"ranges", func(start, end int64) { ranges = p.LiveRanges(ranges[:0], start, end) }},
			{"words", func(start, end int64) { words = p.LiveWords(words, start, end) }},
		}
		for _, q := range questions {
			for _, window := range []int64{0, 1000, 5000, 20_000} {
				b.Run(fmt.Sprintf("%s/%s/%d", names[i], q.name, window), func(b *testing.B) {
					for range b.N {
						eachWindow(window, q.ask)
					}
					b.ReportMetric(float64(perRow)*float64(b.N)/float64(b.Elapsed()), "x")
				})
			}
		}
	}
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
