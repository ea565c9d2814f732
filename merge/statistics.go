package merge

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/snapshot"
)

// maxBound is the longest string bound that a footer gets, in bytes.
const maxBound = 64

// statistics are those of a view's columns: exact in every row group of a
// column, or absent in every one. Readers answer MIN, MAX, COUNT and IS NULL
// from them and ignore the flags that could say "about"
// (docs/virtual-parquet.md).
type statistics struct {
	engine  *Engine
	policy  Statistics
	view    *pqfile.Schema
	groups  []group
	columns []columnStatistics
}

// columnStatistics are nil in groups that have to be computed; a column without
// statistics has no groups.
type columnStatistics struct {
	groups  []*pqfile.Statistics
	pending []int // groups to compute
}

// planStatistics takes what source footers prove and decides, from them alone,
// which columns are worth computing.
func (e *Engine) planStatistics(view *pqfile.Schema, groups []group) *statistics {
	s := &statistics{engine: e, policy: e.policy(groups), view: view, groups: groups, columns: make([]columnStatistics, len(view.Leaves))}
	for j, leaf := range view.Leaves {
		if ordered(leaf) && len(groups) > 0 {
			s.planColumn(j, leaf)
		}
	}
	return s
}

func (s *statistics) planColumn(j int, leaf *pqfile.Node) {
	col := columnStatistics{groups: make([]*pqfile.Statistics, len(s.groups))}
	ranges := make([]*pqfile.Statistics, len(s.groups)) // bounds before deletes
	complete := true
	for i := range s.groups {
		bounds, exact := groupStatistics(&s.groups[i], leaf)
		if runs := s.groups[i].chunks[j].runs; len(runs) == 1 && runs[0].isFound {
			if bounds, exact = runs[0].found, true; bounds == nil {
				return
			}
		}
		ranges[i] = bounds
		if bounds == nil {
			complete = false
		}
		if bounds != nil && exact {
			col.groups[i] = bounds
		} else if kind := s.groups[i].chunks[j].kind; kind == rewrittenChunk || s.policy == StatisticsAll && kind != synthesizedChunk {
			col.pending = append(col.pending, i)
		} else {
			return // a raw chunk without exact statistics is not decoded for them
		}
	}
	if len(col.pending) > 0 {
		switch s.policy {
		case StatisticsNone:
			return
		case StatisticsExact:
			if !complete || !prunes(leaf, ranges) {
				return
			}
		}
		for _, i := range col.pending {
			s.engine.wantStatistics(&s.groups[i], j, leaf)
		}
	}
	s.columns[j] = col
}

// wantStatistics prepares a chunk that is served as stored for being decoded for
// its statistics.
func (e *Engine) wantStatistics(g *group, j int, leaf *pqfile.Node) {
	c := &g.chunks[j]
	if c.kind != rewrittenChunk {
		form := pageForm{leaf: leaf, rows: pageRows, bytes: pageBytes}
		c.runs = []*rewrite{{engine: e, sources: g.sources, form: form, discard: true, statistics: true}}
	}
}

// ordered reports whether a leaf can have statistics: a flat one of a type with
// an order that readers agree on.
func ordered(leaf *pqfile.Node) bool {
	if leaf.MaxRep > 0 || leaf.Type == pqfile.Int96 || leaf.Parent != nil && leaf.Parent.Kind == pqfile.KindVariant {
		return false
	}
	switch leaf.Logical.Kind {
	case pqfile.LogicalNone, pqfile.LogicalString, pqfile.LogicalDecimal, pqfile.LogicalDate, pqfile.LogicalTime,
		pqfile.LogicalTimestamp, pqfile.LogicalUUID:
		return leaf.TypeLength <= maxBound
	case pqfile.LogicalInteger:
		return leaf.Logical.Signed
	}
	return false
}

// prunes reports whether a point of the column's values lies within the bounds
// of at most half the groups.
func prunes(leaf *pqfile.Node, ranges []*pqfile.Statistics) bool {
	type end struct {
		at    []byte
		start bool
	}
	var ends []end
	for _, r := range ranges {
		if r.MinValue != nil {
			ends = append(ends, end{r.MinValue, true}, end{r.MaxValue, false})
		}
	}
	slices.SortFunc(ends, func(a, b end) int {
		if c := compareBounds(leaf, a.at, b.at); c != 0 {
			return c
		}
		if a.start == b.start {
			return 0
		}
		if a.start {
			return -1
		}
		return 1
	})
	depth, deepest := 0, 0
	for _, e := range ends {
		if e.start {
			depth++
			deepest = max(deepest, depth)
		} else {
			depth--
		}
	}
	return 2*deepest <= len(ranges)
}

// reserve returns statistics of the greatest length, and whether any are still
// to be computed.
func (s *statistics) reserve() (longest [][]*pqfile.Statistics, pending bool) {
	longest = make([][]*pqfile.Statistics, len(s.columns))
	for j := range s.columns {
		col := &s.columns[j]
		longest[j] = col.groups
		if len(col.pending) == 0 {
			continue
		}
		pending = true
		longest[j] = slices.Clone(col.groups)
		leaf := s.view.Leaves[j]
		n := valueWidth(leaf)
		switch leaf.Type {
		case pqfile.Boolean:
			n = 1
		case pqfile.ByteArray:
			n = maxBound
		}
		for _, i := range col.pending {
			longest[j][i] = exactStatistics(s.groups[i].rows, make([]byte, n), make([]byte, n))
		}
	}
	return longest, pending
}

// finish computes what is pending. A column of which one group has none has
// none at all.
func (s *statistics) finish(ctx context.Context) ([][]*pqfile.Statistics, error) {
	out := make([][]*pqfile.Statistics, len(s.columns))
	for j := range s.columns {
		out[j] = slices.Clone(s.columns[j].groups)
	}
	var mu sync.Mutex
	w, ctx := errgroup.WithContext(ctx)
	w.SetLimit(s.engine.workers())
	for j := range s.columns {
		for _, i := range s.columns[j].pending {
			w.Go(func() error {
				var got *pqfile.Statistics
				err := pqfile.Protect(func() (err error) {
					got, err = exactOf(ctx, s.groups[i].chunks[j].runs)
					return err
				})
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if got == nil {
					out[j] = nil
				} else if out[j] != nil {
					out[j][i] = got
				}
				return nil
			})
		}
	}
	return out, w.Wait()
}

// exactStatistics builds a struct that claims exact values; min nil = all NULL.
func exactStatistics(nulls int64, lower, upper []byte) *pqfile.Statistics {
	s := &pqfile.Statistics{NullCount: &nulls}
	if lower != nil {
		yes := true
		s.MinValue, s.MaxValue, s.MinExact, s.MaxExact = lower, upper, &yes, &yes
	}
	return s
}

// groupStatistics merges what the footers of a group's sources prove about a
// leaf: bounds of its values before deletes, and whether they are exact for the
// visible rows. nil = not known.
func groupStatistics(g *group, leaf *pqfile.Node) (bounds *pqfile.Statistics, exact bool) {
	exact = true
	for i := range g.sources {
		src := &g.sources[i]
		b := sourceStatistics(src, leaf)
		if b == nil {
			return nil, false
		}
		if col := &src.in.columns[leaf.Leaf]; src.live < src.rows && (col.Source != nil || col.Fill != nil) {
			exact = false
		}
		if bounds == nil {
			bounds = b
			continue
		}
		bounds = mergeStatistics(leaf, bounds, b)
	}
	return bounds, exact
}

// mergeStatistics are those of two runs of rows together.
func mergeStatistics(leaf *pqfile.Node, a, b *pqfile.Statistics) *pqfile.Statistics {
	lower, upper := a.MinValue, a.MaxValue
	if b.MinValue != nil && (lower == nil || compareBounds(leaf, b.MinValue, lower) < 0) {
		lower = b.MinValue
	}
	if b.MaxValue != nil && (upper == nil || compareBounds(leaf, b.MaxValue, upper) > 0) {
		upper = b.MaxValue
	}
	return exactStatistics(*a.NullCount+*b.NullCount, lower, upper)
}

// sourceStatistics are one source's, nil unless exact for its stored rows.
func sourceStatistics(s *groupSource, leaf *pqfile.Node) *pqfile.Statistics {
	col := &s.in.columns[leaf.Leaf]
	switch {
	case col.Fill != nil && col.Source != nil:
		return nil
	case col.Fill != nil:
		return countedStatistics(s, col.Fill)
	case col.Source == nil:
		return missingStatistics(s, col, leaf)
	}
	m := s.meta(leaf.Leaf)
	if m == nil {
		return nil
	}
	st := m.Statistics
	if st == nil || s.in.pq.Metadata.ColumnOrders == 0 {
		return nil
	}
	nulls := int64(0)
	if st.NullCount != nil {
		nulls = *st.NullCount
	} else if col.Source.MaxDef > 0 {
		return nil
	}
	if nulls < 0 || nulls > m.NumValues {
		return nil
	}
	if nulls == m.NumValues {
		return exactStatistics(nulls, nil, nil)
	}
	if st.MinValue == nil || st.MaxValue == nil || !exactBounds(s, col, st) || mayHoldNaN(s, leaf) {
		return nil
	}
	lower, upper := viewBound(col, leaf, st.MinValue), viewBound(col, leaf, st.MaxValue)
	if lower == nil || upper == nil || compareBounds(leaf, lower, upper) > 0 {
		return nil
	}
	return exactStatistics(nulls, signedZero(leaf, lower, true), signedZero(leaf, upper, false))
}

// countedStatistics are those of a column that counts the rows.
func countedStatistics(s *groupSource, f *pqfile.Fill) *pqfile.Statistics {
	first := f.First + s.first
	le := binary.LittleEndian
	return exactStatistics(0, le.AppendUint64(nil, uint64(first)), le.AppendUint64(nil, uint64(first+s.rows-1)))
}

// missingStatistics are those of a column that the file lacks.
func missingStatistics(s *groupSource, col *pqfile.Column, leaf *pqfile.Node) *pqfile.Statistics {
	switch {
	case col.Constant.N == 0 || col.Levels == nil && int(col.DefMap[0]) < leaf.MaxDef:
		return exactStatistics(s.live, nil, nil)
	case col.Levels != nil:
		return nil // NULL where its parent is
	}
	value := constantBytes(leaf, &col.Constant)
	if len(value) > maxBound || isNaN(leaf, value) {
		return nil
	}
	return exactStatistics(0, signedZero(leaf, value, true), signedZero(leaf, value, false))
}

func constantBytes(leaf *pqfile.Node, v *pqfile.Values) []byte {
	switch leaf.Type {
	case pqfile.Boolean:
		return v.Bools[:1]
	case pqfile.ByteArray:
		return append([]byte{}, v.Data[v.Offsets[0]:v.Offsets[1]]...)
	}
	return v.Fixed[:v.Width]
}

// exactBounds reports whether stored bounds are exact: marked so, or of a fixed
// width from a writer that is trusted and does not mark them otherwise.
func exactBounds(s *groupSource, col *pqfile.Column, st *pqfile.Statistics) bool {
	if st.MinExact != nil && st.MaxExact != nil {
		return *st.MinExact && *st.MaxExact
	}
	if st.MinExact != nil && !*st.MinExact || st.MaxExact != nil && !*st.MaxExact || col.Source.Type == pqfile.ByteArray {
		return false
	}
	c, err := s.in.pq.Chunk(s.rowGroup, col.Source)
	return err == nil && c.TrustedWriter
}

// mayHoldNaN reports a floating-point column whose file is not known to be free
// of NaN: writers leave NaN out of bounds, readers do not.
func mayHoldNaN(s *groupSource, leaf *pqfile.Node) bool {
	if leaf.Type != pqfile.Float && leaf.Type != pqfile.Double {
		return false
	}
	// Of which other columns a plan has metrics does not depend on the snapshot
	// alone, and a view's bytes have to.
	isKey := func(d *snapshot.DataFile) bool { return slices.Contains(d.EqualityIDs, leaf.FieldID) }
	return !slices.ContainsFunc(s.in.file.Equality, isKey) || s.in.file.Column(leaf.FieldID).NaNs != 0
}

// viewBound gives a stored bound in the view's form, nil if it has none.
func viewBound(col *pqfile.Column, leaf *pqfile.Node, b []byte) []byte {
	want := valueWidth(leaf)
	if leaf.Type == pqfile.Boolean {
		want = 1
	}
	switch col.Convert.Kind {
	case pqfile.ConvertNone:
		if want > 0 && len(b) == want || want == 0 && len(b) <= maxBound {
			return append(make([]byte, 0, len(b)), b...)
		}
	case pqfile.ConvertInt32ToInt64:
		if len(b) == 4 && signedInt(col.Source) {
			return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(binary.LittleEndian.Uint32(b)))))
		}
	case pqfile.ConvertFloatToDouble:
		if len(b) == 4 {
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
		}
	}
	return nil
}

func signedInt(n *pqfile.Node) bool {
	return n.Type == pqfile.Int32 && (n.Logical.Kind != pqfile.LogicalInteger || n.Logical.Signed)
}

// compareBounds orders PLAIN values (byte arrays without their length) of a
// leaf's type. NaN does not occur.
func compareBounds(leaf *pqfile.Node, a, b []byte) int {
	le := binary.LittleEndian
	switch leaf.Type {
	case pqfile.Int32:
		return cmpOrdered(int32(le.Uint32(a)), int32(le.Uint32(b)))
	case pqfile.Int64:
		return cmpOrdered(int64(le.Uint64(a)), int64(le.Uint64(b)))
	case pqfile.Float:
		return cmpOrdered(math.Float32frombits(le.Uint32(a)), math.Float32frombits(le.Uint32(b)))
	case pqfile.Double:
		return cmpOrdered(math.Float64frombits(le.Uint64(a)), math.Float64frombits(le.Uint64(b)))
	}
	if leaf.Logical.Kind == pqfile.LogicalDecimal && len(a) > 0 && len(b) > 0 {
		if c := cmpOrdered(int8(a[0]), int8(b[0])); c != 0 {
			return c
		}
	}
	return bytes.Compare(a, b)
}

func cmpOrdered[T int8 | int32 | int64 | float32 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// isNaN reports a bound that has no place in an order.
func isNaN(leaf *pqfile.Node, b []byte) bool {
	switch leaf.Type {
	case pqfile.Float:
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		return f != f
	case pqfile.Double:
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		return f != f
	}
	return false
}

// signedZero writes a zero minimum as -0.0 and a zero maximum as +0.0
// (parquet.thrift, ColumnOrder), and copies any other bound.
func signedZero(leaf *pqfile.Node, b []byte, lower bool) []byte {
	b = append(make([]byte, 0, len(b)), b...)
	if leaf.Type != pqfile.Float && leaf.Type != pqfile.Double {
		return b
	}
	if compareBounds(leaf, b, make([]byte, len(b))) == 0 {
		clear(b)
		if lower {
			b[len(b)-1] = 0x80
		}
	}
	return b
}

// exactOf returns the statistics of a chunk's runs together, nil if it can have
// none.
func exactOf(ctx context.Context, runs []*rewrite) (*pqfile.Statistics, error) {
	var all *pqfile.Statistics
	for i, run := range runs {
		st, err := run.exact(ctx)
		if st == nil || err != nil {
			return nil, err
		}
		if i == 0 {
			all = st
		} else {
			all = mergeStatistics(run.form.leaf, all, st)
		}
	}
	return all, nil
}

// exact returns the statistics of a rewritten run, nil if it can have none: kept
// from before, or found now.
func (r *rewrite) exact(ctx context.Context) (*pqfile.Statistics, error) {
	key := "statistics|" + r.key()
	if p := r.engine.opt.Persist; p != nil {
		if b, ok := p.Get(key); ok {
			if st, ok := decodeStatistics(r.form.leaf, b); ok {
				return st, nil
			}
		}
	}
	m := &made{}
	var err error
	if r.measured || r.discard {
		m, err = r.get(ctx)
	}
	if err == nil && m.statistics == nil {
		// Nobody may ever ask for the chunk: its values are looked at, no more.
		look := *r
		look.discard, look.statistics, look.together = true, true, nil
		m, err = look.get(ctx)
	}
	if err != nil {
		return nil, err
	}
	st := m.statistics.result()
	if p := r.engine.opt.Persist; p != nil {
		p.Put(key, encodeStatistics(st))
	}
	return st, nil
}
