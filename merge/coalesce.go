package merge

import "github.com/icefs/icefs/internal/pqfile"

// Row groups of fewer than tinyRows rows are coalesced, adjacent ones together,
// into groups of at most coalescedRows. Every row group costs each reader time
// and footer; rewriting one of 16 Ki rows costs a few milliseconds, once.
const (
	tinyRows      = 16 << 10
	coalescedRows = 64 << 10
	// coalescedBytes bounds a coalesced group's values: few rows can be long.
	coalescedBytes = 64 << 20
)

// Bounds of a view's footer: both limits are doubled until it keeps them.
// Readers of the arrow-rs family refuse more than 32,768 row groups, and every
// thousand costs all readers time.
const (
	maxGroups      = 10_000
	maxFooterBytes = 16 << 20
)

// groupSource is one row group of one file, in the order of the view's rows.
type groupSource struct {
	in       *input
	rowGroup int
	first    int64 // file position of its first row
	rows     int64 // physical
	live     int64 // visible
	bytes    int64 // about how long its values are, physical rows
	// liveRun reports a run of live rows in which a page may lie (keptRows); it is
	// found once for all columns.
	liveRun bool
}

// sourcesOf lists the row groups of files that have rows, fully deleted ones
// included: cuts depend on physical rows, so that a new delete moves none.
func sourcesOf(inputs []*input) []groupSource {
	var out []groupSource
	for _, in := range inputs {
		for g := range len(in.firstRow) - 1 {
			first := in.firstRow[g]
			if rows := in.firstRow[g+1] - first; rows > 0 {
				s := groupSource{in: in, rowGroup: g, first: first, rows: rows, live: in.live(g), bytes: in.bytes(g)}
				out = append(out, s)
			}
		}
	}
	return out
}

// coalesce divides row groups into the view's. Every result has visible rows,
// and lists only sources that have some.
func coalesce(sources []groupSource, view *pqfile.Schema, keep bool) [][]groupSource {
	if keep {
		return divide(sources, 0, 0)
	}
	perGroup := footerEstimate(view)
	for tiny, target := int64(tinyRows), int64(coalescedRows); ; tiny, target = 2*tiny, 2*target {
		groups := divide(sources, tiny, target)
		n := int64(len(groups))
		if n <= 1 || n <= maxGroups && n*perGroup <= maxFooterBytes || tiny > 1<<40 {
			return groups
		}
	}
}

// divide cuts greedily: adjacent groups of fewer than tiny rows join while they
// have at most target rows, and not too many bytes, together.
func divide(sources []groupSource, tiny, target int64) [][]groupSource {
	var out [][]groupSource
	var run []groupSource
	var rows, bytes int64
	flush := func() {
		if len(run) > 0 {
			out = append(out, run)
		}
		run, rows, bytes = nil, 0, 0
	}
	for _, s := range sources {
		small := s.rows < tiny && s.bytes < coalescedBytes
		if !small || rows+s.rows > target || bytes+s.bytes > coalescedBytes {
			flush()
		}
		bytes += s.bytes
		if s.live > 0 {
			run = append(run, s)
		}
		if rows += s.rows; !small {
			flush()
		}
	}
	flush()
	return out
}

// footerEstimate is roughly what one row group adds to the footer.
func footerEstimate(view *pqfile.Schema) int64 {
	const perChunk = 96 // offsets, sizes, statistics of fixed width
	n := int64(16)
	for _, leaf := range view.Leaves {
		n += perChunk
		for _, name := range leaf.Path {
			n += int64(len(name)) + 2
		}
	}
	return n
}
