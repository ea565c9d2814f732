package tree

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/icefs/icefs/snapshot"
)

// History selects the snapshots that a table shows. Those that current, a branch
// or a tag leads to are always there; another one that is not selected is in no
// listing, and its path, `at` included, does not exist. The zero value shows all.
type History struct {
	newest  int           // this many; 0 = no limit
	age     time.Duration // not older; 0 = no limit
	refs    bool          // only those of current, branches and tags
	listNot bool          // all of them exist, and none is listed
}

// ParseHistory reads "all"; a number (the newest that many); an age such as 36h,
// 30d or 2w; "refs"; or "hidden", for which every snapshot exists and snapshots/
// and by-time list none.
func ParseHistory(s string) (History, error) {
	switch s {
	case "all":
		return History{}, nil
	case "refs":
		return History{refs: true}, nil
	case "hidden":
		return History{listNot: true}, nil
	}
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return History{newest: n}, nil
	}
	if age, ok := parseAge(s); ok {
		return History{age: age}, nil
	}
	return History{}, fmt.Errorf("want all, a number, an age like 36h, 30d or 2w, refs or hidden")
}

// parseAge reads a duration of package time, or whole days or weeks.
func parseAge(s string) (time.Duration, bool) {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		suffix string
		length time.Duration
	}{{"d", day}, {"w", 7 * day}} {
		if digits, ok := strings.CutSuffix(s, unit.suffix); ok {
			n, err := strconv.ParseInt(digits, 10, 64)
			return time.Duration(n) * unit.length, err == nil && n > 0 && n <= math.MaxInt64/int64(unit.length)
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d > 0
}

// kept are the snapshots that exist whatever their age: those of references,
// and the newest if that many are asked for; nil if all exist.
func (h History) kept(meta *snapshot.Table) map[int64]bool {
	if !h.refs && h.newest == 0 && h.age == 0 {
		return nil
	}
	kept := map[int64]bool{meta.Current: true}
	for _, r := range meta.Refs {
		kept[r.SnapshotID] = true
	}
	if h.newest > 0 {
		byAge := make([]*snapshot.Snapshot, len(meta.Snapshots))
		for i := range meta.Snapshots {
			byAge[i] = &meta.Snapshots[i]
		}
		slices.SortStableFunc(byAge, func(a, b *snapshot.Snapshot) int {
			return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.SequenceNumber, a.SequenceNumber))
		})
		for _, s := range byAge[:min(h.newest, len(byAge))] {
			kept[s.ID] = true
		}
	}
	return kept
}

// exists reports whether a snapshot of the metadata is one that the table shows.
func (t *table) exists(id int64) bool {
	if t.kept == nil || t.kept[id] {
		return true
	}
	age := t.dir.tree.opt.History.age
	s := t.snapshots[id]
	return age > 0 && s != nil && time.Since(s.Time) <= age
}

// listed leaves in a listing what --history lists.
func listed[T any](t *table, all []T, id func(T) int64) []T {
	switch {
	case t.dir.tree.opt.History.listNot:
		return nil
	case t.kept == nil:
		return all
	}
	var some []T
	for _, e := range all {
		if t.exists(id(e)) {
			some = append(some, e)
		}
	}
	return some
}
