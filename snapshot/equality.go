package snapshot

import (
	"slices"
	"sort"
)

// indexThreshold is the number of equality deletes from which searching an
// interval index is cheaper than comparing bounds one by one.
const indexThreshold = 32

// equalityGroup is the equality deletes of one partition (or all global ones)
// with one set of key columns, ordered by (sequence, path).
type equalityGroup struct {
	ids     []int // sorted
	columns []column
	deletes []*DataFile
	stats   [][]columnStats // of each delete, by column

	search    int // column that index is over, -1 if none
	index     intervals
	unbounded []int // deletes not in index
	nullable  []int // deletes in index that may hold NULL in the column
	indexed   int   // deletes covered so far
}

// addToGroup adds d to the group of its key columns.
func addToGroup(groups []*equalityGroup, d *DataFile, cols columns) []*equalityGroup {
	ids := slices.Clone(d.EqualityIDs)
	slices.Sort(ids)
	i := slices.IndexFunc(groups, func(g *equalityGroup) bool { return slices.Equal(g.ids, ids) })
	if i < 0 {
		g := &equalityGroup{ids: ids, search: -1}
		for _, id := range ids {
			g.columns = append(g.columns, cols.get(id))
		}
		groups = append(groups, g)
		i = len(groups) - 1
	}
	g := groups[i]
	g.deletes = append(g.deletes, d)
	stats := make([]columnStats, len(g.columns))
	for c, column := range g.columns {
		stats[c] = column.stats(d)
	}
	g.stats = append(g.stats, stats)
	return groups
}

// matching returns the deletes newer than f that are not proven to match none
// of its rows.
func (g *equalityGroup) matching(f *DataFile) []*DataFile {
	newer := since(g.deletes, f.Sequence+1)
	if len(newer) == 0 {
		return nil
	}
	first := len(g.deletes) - len(newer)
	data := make([]columnStats, len(g.columns))
	provable := false
	for c, column := range g.columns {
		data[c] = column.dataStats(f)
		provable = provable || data[c].useful()
	}
	if !provable {
		return newer
	}
	var kept []int
	for _, i := range g.candidates(data, first) {
		if i >= first && !disjoint(data, g.stats[i]) {
			kept = append(kept, i)
		}
	}
	if len(kept) == len(newer) {
		return newer
	}
	found := make([]*DataFile, len(kept))
	for k, i := range kept {
		found[k] = g.deletes[i]
	}
	return found
}

// candidates returns, in order, the deletes from first on that may match by the
// search column; it may return earlier ones too.
func (g *equalityGroup) candidates(data []columnStats, first int) []int {
	if len(g.deletes)-first < indexThreshold {
		return sequenceOf(first, len(g.deletes))
	}
	g.build()
	if g.search < 0 || !data[g.search].bounded {
		return sequenceOf(first, len(g.deletes))
	}
	d := data[g.search]
	found := g.index.overlapping(nil, d.lower, d.upper)
	found = append(found, g.unbounded...)
	if !d.noNull {
		found = append(found, g.nullable...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func sequenceOf(from, to int) []int {
	list := make([]int, to-from)
	for i := range list {
		list[i] = from + i
	}
	return list
}

// build makes the interval index over the column that bounds most deletes.
func (g *equalityGroup) build() {
	if g.indexed == len(g.deletes) {
		return
	}
	g.indexed = len(g.deletes)
	best := 0
	for c := range g.columns {
		n := 0
		for i := range g.deletes {
			if g.stats[i][c].bounded {
				n++
			}
		}
		if n > best {
			best, g.search = n, c
		}
	}
	if g.search < 0 {
		return
	}
	var spans []interval
	for i := range g.deletes {
		s := g.stats[i][g.search]
		if !s.bounded {
			g.unbounded = append(g.unbounded, i)
			continue
		}
		spans = append(spans, interval{lower: s.lower, upper: s.upper, id: i})
		if !s.noNull {
			g.nullable = append(g.nullable, i)
		}
	}
	g.index = newIntervals(spans)
}

// interval is the closed range of one delete's bounds.
type interval struct {
	lower, upper string
	id           int
}

// intervals is a static interval tree: spans sorted by lower bound, the middle
// of every range being the root of a subtree, with the greatest upper bound of
// each subtree at its root.
type intervals struct {
	spans    []interval
	greatest []string
}

func newIntervals(spans []interval) intervals {
	sort.Slice(spans, func(i, j int) bool { return spans[i].lower < spans[j].lower })
	t := intervals{spans: spans, greatest: make([]string, len(spans))}
	t.measure(0, len(spans))
	return t
}

func (t *intervals) measure(from, to int) string {
	if from == to {
		return ""
	}
	mid := (from + to) / 2
	t.greatest[mid] = max(t.spans[mid].upper, t.measure(from, mid), t.measure(mid+1, to))
	return t.greatest[mid]
}

// overlapping appends the ids of the spans that share a value with
// [lower, upper], in no order.
func (t *intervals) overlapping(dst []int, lower, upper string) []int {
	return t.overlap(dst, lower, upper, 0, len(t.spans))
}

func (t *intervals) overlap(dst []int, lower, upper string, from, to int) []int {
	if from == to {
		return dst
	}
	mid := (from + to) / 2
	if t.greatest[mid] < lower {
		return dst
	}
	dst = t.overlap(dst, lower, upper, from, mid)
	if t.spans[mid].lower > upper {
		return dst
	}
	if t.spans[mid].upper >= lower {
		dst = append(dst, t.spans[mid].id)
	}
	return t.overlap(dst, lower, upper, mid+1, to)
}
