package deletes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// positionsOf builds Positions by the builder.
func positionsOf(t testing.TB, pos ...int64) *Positions {
	t.Helper()
	var b builder
	for _, p := range pos {
		b.add(p)
	}
	p, err := b.positions()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// span returns [from, to).
func span(from, to int64) []int64 {
	pos := make([]int64, 0, to-from)
	for p := from; p < to; p++ {
		pos = append(pos, p)
	}
	return pos
}

// rowByRow answers all four questions by looking at each position.
func rowByRow(deleted func(int64) bool, start, end int64) (count int64, live, dead []Range, words []uint64) {
	words = make([]uint64, max(end-start+63, 0)/64)
	extend := func(rs []Range, p int64) []Range {
		if n := len(rs); n > 0 && rs[n-1].End == p {
			rs[n-1].End++
			return rs
		}
		return append(rs, Range{p, p + 1})
	}
	for p := start; p < end; p++ {
		if deleted(p) {
			count++
			dead = extend(dead, p)
		} else {
			live = extend(live, p)
			words[(p-start)/64] |= 1 << uint((p-start)%64)
		}
	}
	return count, live, dead, words
}

// checkWindow compares every method with rowByRow.
func checkWindow(t testing.TB, p *Positions, deleted func(int64) bool, start, end int64) {
	t.Helper()
	count, live, dead, words := rowByRow(deleted, start, end)
	if got := p.CountRange(start, end); got != count {
		t.Fatalf("CountRange(%d, %d) = %d, want %d", start, end, got, count)
	}
	keep := Range{-7, -6}
	if got := p.LiveRanges([]Range{keep}, start, end); !slices.Equal(got, append([]Range{keep}, live...)) {
		t.Fatalf("LiveRanges(%d, %d) = %v, want %v", start, end, got[1:], live)
	}
	if got := p.DeletedRanges([]Range{keep}, start, end); !slices.Equal(got, append([]Range{keep}, dead...)) {
		t.Fatalf("DeletedRanges(%d, %d) = %v, want %v", start, end, got[1:], dead)
	}
	garbage := []uint64{1, 2, 3}
	if got := p.LiveWords(garbage, start, end); !slices.Equal(got, words) {
		t.Fatalf("LiveWords(%d, %d) = %x, want %x", start, end, got, words)
	}
}

func setOf(pos []int64) func(int64) bool {
	m := make(map[int64]bool, len(pos))
	for _, p := range pos {
		m[p] = true
	}
	return func(p int64) bool { return m[p] }
}

func TestPositionsKnown(t *testing.T) {
	var none *Positions
	p := positionsOf(t, 3, 4, 5, 65535, 65536, 1<<32-1, 1<<32, 1<<33+7)
	for _, c := range []struct {
		p          *Positions
		start, end int64
		count      int64
		live       string
	}{
		{none, 0, 10, 0, "[{0 10}]"},
		{none, 5, 5, 0, "[]"},
		{none, 7, 3, 0, "[]"},
		{p, 0, 10, 3, "[{0 3} {6 10}]"},
		{p, 3, 6, 3, "[]"},
		{p, 3, 7, 3, "[{6 7}]"}, // start is in, end is out
		{p, 2, 3, 0, "[{2 3}]"}, // end is out
		{p, 6, 65535, 0, "[{6 65535}]"},
		{p, 65530, 65540, 2, "[{65530 65535} {65537 65540}]"},
		{p, 65535, 65536, 1, "[]"},
		{p, 65536, 65537, 1, "[]"},
		{p, 70_000, 80_000, 0, "[{70000 80000}]"}, // a container that does not exist
		{p, 1<<32 - 2, 1<<32 + 2, 2, "[{4294967294 4294967295} {4294967297 4294967298}]"},
		{p, 0, 1 << 40, 8, "[{0 3} {6 65535} {65537 4294967295} {4294967297 8589934599} {8589934600 1099511627776}]"},
		{p, 1 << 40, 1<<40 + 3, 0, "[{1099511627776 1099511627779}]"},
		{p, -5, 4, 1, "[{-5 3}]"}, // negative positions do not exist
		{p, -5, -1, 0, "[{-5 -1}]"},
		{p, 10, 5, 0, "[]"},
		{p, 4, 4, 0, "[]"},
	} {
		if got := c.p.CountRange(c.start, c.end); got != c.count {
			t.Errorf("CountRange(%d, %d) = %d, want %d", c.start, c.end, got, c.count)
		}
		if got := fmt.Sprint(c.p.LiveRanges([]Range{}, c.start, c.end)); got != c.live {
			t.Errorf("LiveRanges(%d, %d) = %s, want %s", c.start, c.end, got, c.live)
		}
	}
	if none.Bytes() != 0 || none.Count() != 0 || p.Count() != 8 || p.Bytes() < 8*2 {
		t.Errorf("counts %d, %d, bytes %d, %d", none.Count(), p.Count(), none.Bytes(), p.Bytes())
	}
	if got := none.LiveWords(nil, 0, 70); !slices.Equal(got, []uint64{^uint64(0), 1<<6 - 1}) {
		t.Errorf("LiveWords of none = %x", got)
	}
	if got := positionsOf(t); got != nil {
		t.Errorf("no positions give %v", got)
	}
}

// shapes are sets with containers of every kind, alone and mixed.
func shapes(r *rand.Rand) map[string][]int64 {
	random := func(rows int64, density float64) (pos []int64) {
		for p := range rows {
			if r.Float64() < density {
				pos = append(pos, p)
			}
		}
		return pos
	}
	runs := func(rows int64, length int64) (pos []int64) {
		for p := r.Int64N(length); p < rows; p += length + 1 + r.Int64N(3*length) {
			pos = append(pos, span(p, min(p+length, rows))...)
		}
		return pos
	}
	edges := []int64{0, 63, 64, 65535, 65536, 65599, 65600, 131071, 131072, 200_000}
	mixed := slices.Concat(random(65536, 0.01), span(65536, 131072), nil)
	for _, p := range random(65536, 0.5) {
		mixed = append(mixed, p+131072)
	}
	for _, p := range runs(65536, 50) {
		mixed = append(mixed, p+196608)
	}
	far := []int64{1<<32 - 1, 1 << 32, 1<<33 + 12345}
	return map[string][]int64{
		"sparse":     random(300_000, 0.001),
		"threshold":  random(200_000, 0.0625),
		"dense":      random(200_000, 0.5),
		"nearly all": random(200_000, 0.99),
		"all":        span(0, 200_000),
		"runs":       runs(200_000, 100),
		"long runs":  runs(400_000, 70_000),
		"edges":      edges,
		"mixed":      mixed,
		"far":        append(slices.Clone(edges), far...),
	}
}

func TestPositionsAgainstRowByRow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, pos := range shapes(r) {
		t.Run(name, func(t *testing.T) {
			deleted := setOf(pos)
			r.Shuffle(len(pos), func(i, j int) { pos[i], pos[j] = pos[j], pos[i] })
			p := positionsOf(t, pos...)
			if p.Count() != int64(len(pos)) {
				t.Fatalf("Count = %d, want %d", p.Count(), len(pos))
			}
			for _, edge := range []int64{0, 64, 65536, 131072, 1 << 32, 1<<33 + 12345} {
				for a := edge - 3; a <= edge+3; a++ {
					for b := edge - 3; b <= edge+70; b += 7 {
						checkWindow(t, p, deleted, a, b)
					}
				}
			}
			for range 60 {
				start := r.Int64N(300_000)
				checkWindow(t, p, deleted, start, start+r.Int64N(3000))
			}
			checkWindow(t, p, deleted, 0, 410_000)
			checkWindow(t, p, deleted, 17, 300_017)
		})
	}
}

func TestUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all := shapes(r)
	names := []string{"sparse", "threshold", "dense", "runs", "long runs", "mixed", "far"}
	var sets []*Positions
	var pos []int64
	for _, name := range names {
		sets = append(sets, nil, positionsOf(t, all[name]...))
		pos = append(pos, all[name]...)
	}
	before := make([]int64, len(sets))
	for i, p := range sets {
		before[i] = p.CountRange(0, 1<<40)
	}
	p, err := union(sets)
	if err != nil {
		t.Fatal(err)
	}
	checkWindow(t, p, setOf(pos), 0, 410_000)
	checkWindow(t, p, setOf(pos), 1<<32-100, 1<<32+100)
	for i, s := range sets {
		if s.CountRange(0, 1<<40) != before[i] {
			t.Errorf("union changed operand %d", i)
		}
	}
	for _, none := range [][]*Positions{nil, {nil}, {nil, nil}} {
		if p, err := union(none); p != nil || err != nil {
			t.Errorf("union(%v) = %v, %v", none, p, err)
		}
	}
	if p, err := union([]*Positions{nil, sets[1]}); p != sets[1] || err != nil {
		t.Errorf("union of one = %v, %v", p, err)
	}
}

func TestPortableRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, pos := range shapes(r) {
		p := positionsOf(t, pos...)
		back, err := decodePortable(appendPortable(nil, p))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkWindow(t, back, setOf(pos), 0, 300_000)
		if back.Count() != p.Count() {
			t.Errorf("%s: %d positions of %d", name, back.Count(), p.Count())
		}
	}
	if p, err := decodePortable(appendPortable(nil, nil)); err != nil || p.Count() != 0 {
		t.Errorf("empty: %v, %v", p, err)
	}
}

// TestNoBannedCalls keeps out the roaring calls that give wrong answers.
func TestNoBannedCalls(t *testing.T) {
	banned := regexp.MustCompile(`\.(NextAbsentValue|PreviousAbsentValue|UnsetIterator|Unset)\(`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := banned.Find(src); m != nil {
			t.Errorf("%s calls roaring's %s", name, m)
		}
	}
}

func TestBuildersMerge(t *testing.T) {
	var all, a, b builder
	for _, pos := range []int64{5, 70_000, 3 << 32} {
		a.add(pos)
	}
	all.merge(&a)
	for _, pos := range []int64{0, 5, 66_000, 3<<32 + 1, 9 << 32} {
		b.add(pos)
	}
	all.merge(&b)
	all.merge(&b) // is empty now
	p, err := all.positions()
	want := []Range{{0, 1}, {5, 6}, {66_000, 66_001}, {70_000, 70_001}, {3 << 32, 3<<32 + 2}, {9 << 32, 9<<32 + 1}}
	if got := p.DeletedRanges(nil, 0, 10<<32); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
