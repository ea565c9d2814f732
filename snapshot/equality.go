package snapshot

import (
	"slices"
	"sort"
)

// equalityGroup is the equality deletes of one partition (or all global ones)
// with one set of key columns, ordered by (sequence, path). It finds those that
// may match a data file through an index of each key column, and takes for each
// data file the one that leaves the fewest. Not safe for concurrent use.
type equalityGroup struct {
	ids     []int // sorted
	columns []column
	deletes []*DataFile
	stats   []columnStats // of each delete, by column

	indexes []columnIndex // of each column; made when first searched
	data    []columnStats // of the data file at hand
	found   []int         // places in deletes, for the data file at hand
	lists   map[uint64][]*DataFile
}

// addToGroup adds d to the group of its key columns.
func addToGroup(groups []*equalityGroup, d *DataFile, cols columns) []*equalityGroup {
	ids := d.EqualityIDs
	if !slices.IsSorted(ids) {
		ids = slices.Sorted(slices.Values(ids))
	}
	i := slices.IndexFunc(groups, func(g *equalityGroup) bool { return slices.Equal(g.ids, ids) })
	if i < 0 {
		g := &equalityGroup{ids: ids, data: make([]columnStats, len(ids)), lists: map[uint64][]*DataFile{}}
		for _, id := range ids {
			g.columns = append(g.columns, cols.get(id))
		}
		groups = append(groups, g)
		i = len(groups) - 1
	}
	g := groups[i]
	g.deletes = append(g.deletes, d)
	for _, column := range g.columns {
		g.stats = append(g.stats, column.stats(d))
	}
	return groups
}

// statsOf returns the stats of the i-th delete, by column.
func (g *equalityGroup) statsOf(i int) []columnStats {
	n := len(g.columns)
	return g.stats[i*n : (i+1)*n]
}

// matching returns the deletes newer than f that are not proven to match none
// of its rows. The list is shared and cannot be appended to in place.
func (g *equalityGroup) matching(f *DataFile) []*DataFile {
	newer := since(g.deletes, f.Sequence+1)
	if len(newer) == 0 {
		return nil
	}
	provable := false
	for c, column := range g.columns {
		g.data[c] = column.dataStats(f)
		provable = provable || g.data[c].useful()
	}
	if !provable {
		return newer
	}
	if g.indexes == nil {
		g.build()
	}
	if !g.mayExclude() {
		return newer
	}
	g.search(len(g.deletes) - len(newer))
	if len(g.found) == len(newer) {
		return newer
	}
	return g.list()
}

// search sets found to the places, from first on and in order, of the deletes
// that are not proven to be disjoint from the data file at hand.
func (g *equalityGroup) search(first int) {
	g.found = g.found[:0]
	best, candidates := -1, len(g.deletes)-first
	for c := range g.indexes {
		if n := g.indexes[c].count(&g.data[c]); n < candidates {
			best, candidates = c, n
		}
	}
	// Candidates of an index come out of order: where most deletes are, it is
	// cheaper to look at all.
	if best < 0 || candidates > (len(g.deletes)-first)/8 {
		for i := first; i < len(g.deletes); i++ {
			if !disjoint(g.data, g.statsOf(i)) {
				g.found = append(g.found, i)
			}
		}
		return
	}
	g.found = g.indexes[best].candidates(g.found, &g.data[best])
	slices.Sort(g.found)
	g.found = slices.Compact(g.found)
	g.found = slices.DeleteFunc(g.found, func(i int) bool { return i < first || disjoint(g.data, g.statsOf(i)) })
}

func (g *equalityGroup) build() {
	g.indexes = make([]columnIndex, len(g.columns))
	for c := range g.indexes {
		x := &g.indexes[c]
		for i := range g.deletes {
			x.add(i, &g.statsOf(i)[c])
		}
		x.done()
	}
}

// mayExclude reports whether any delete may be disjoint from the data file at
// hand.
func (g *equalityGroup) mayExclude() bool {
	for c := range g.indexes {
		if g.indexes[c].mayExclude(&g.data[c]) {
			return true
		}
	}
	return false
}

// list returns the deletes at the places found: for equal places, the same
// list, since files of one range of keys share their deletes.
func (g *equalityGroup) list() []*DataFile {
	hash := uint64(14695981039346656037) // FNV-1a, a place at a time
	for _, i := range g.found {
		hash = (hash ^ uint64(i)) * 1099511628211
	}
	known, ok := g.lists[hash]
	if ok && g.isFound(known) {
		return known
	}
	list := make([]*DataFile, len(g.found))
	for k, i := range g.found {
		list[k] = g.deletes[i]
	}
	g.lists[hash] = list
	return list
}

func (g *equalityGroup) isFound(list []*DataFile) bool {
	if len(list) != len(g.found) {
		return false
	}
	for k, i := range g.found {
		if list[k] != g.deletes[i] {
			return false
		}
	}
	return true
}

// columnIndex finds, by one column, the deletes that a data file's bounds do not
// prove to be disjoint from it.
type columnIndex struct {
	intervals
	uppers    []string // of the intervals, sorted
	unbounded []int    // deletes that are no interval
	nullable  []int    // deletes that are one, and may hold NULL
	noNull    bool     // a delete has no NULL in the column
	allNull   bool     // a delete has nothing but NULL
}

func (x *columnIndex) add(i int, s *columnStats) {
	x.noNull = x.noNull || s.noNull
	x.allNull = x.allNull || s.allNull
	if !s.bounded {
		x.unbounded = append(x.unbounded, i)
		return
	}
	x.spans = append(x.spans, interval{lower: s.lower, upper: s.upper, id: i})
	x.uppers = append(x.uppers, s.upper)
	if !s.noNull {
		x.nullable = append(x.nullable, i)
	}
}

func (x *columnIndex) done() {
	x.intervals = newIntervals(x.spans)
	slices.Sort(x.uppers)
}

func (x *columnIndex) mayExclude(d *columnStats) bool {
	n := len(x.spans)
	return d.allNull && x.noNull || d.noNull && x.allNull ||
		d.bounded && n > 0 && (x.uppers[0] < d.lower || x.spans[n-1].lower > d.upper)
}

// count returns how many candidates there are, or more.
func (x *columnIndex) count(d *columnStats) int {
	n := len(x.spans) + len(x.unbounded)
	if !d.bounded {
		return n
	}
	below := sort.SearchStrings(x.uppers, d.lower)
	above := len(x.spans) - sort.Search(len(x.spans), func(i int) bool { return x.spans[i].lower > d.upper })
	n -= below + above
	if !d.noNull {
		n += len(x.nullable)
	}
	return n
}

// candidates appends the deletes, in no order and some twice.
func (x *columnIndex) candidates(dst []int, d *columnStats) []int {
	dst = x.overlapping(dst, d.lower, d.upper)
	dst = append(dst, x.unbounded...)
	if !d.noNull {
		dst = append(dst, x.nullable...)
	}
	return dst
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
