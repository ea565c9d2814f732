package merge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
)

// sourceRows makes row groups of so many rows, 0 visible where negative.
func sourceRows(rows ...int64) []groupSource {
	out := make([]groupSource, len(rows))
	for i, n := range rows {
		out[i] = groupSource{rowGroup: i, rows: max(n, -n), live: max(n, 0)}
	}
	return out
}

func groupsText(groups [][]groupSource) string {
	var parts []string
	for _, g := range groups {
		var in []string
		for _, s := range g {
			in = append(in, fmt.Sprint(s.rowGroup))
		}
		parts = append(parts, strings.Join(in, " "))
	}
	return strings.Join(parts, " | ")
}

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []int64
		want string
	}{
		{"none", nil, ""},
		{"large groups stay", []int64{100, 200, 100}, "0 | 1 | 2"},
		{"tiny ones join", []int64{5, 5, 5}, "0 1 2"},
		{"a single tiny one stays alone", []int64{100, 5, 100}, "0 | 1 | 2"},
		{"cut at the target", []int64{9, 9, 9, 9, 9}, "0 1 2 3 | 4"},
		{"exactly the target", []int64{8, 8, 8, 8, 8, 8}, "0 1 2 3 4 | 5"},
		{"a large one ends a run", []int64{5, 5, 100, 5, 5}, "0 1 | 2 | 3 4"},
		{"dead groups vanish", []int64{-5, -100, -5}, ""},
		{"dead groups count for cuts", []int64{9, -9, 9, -9, 9}, "0 2 | 4"},
		{"a large dead one ends a run", []int64{5, -100, 5}, "0 | 2"},
	} {
		if got := groupsText(divide(sourceRows(c.rows...), 10, 40)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCoalesceKeepsLimits(t *testing.T) {
	view := &pqfile.Schema{Root: &pqfile.Node{}, Leaves: []*pqfile.Node{{Path: []string{"a"}}}}
	rows := slices.Repeat([]int64{20_000}, 25_000)
	groups := coalesce(sourceRows(rows...), view, false)
	if n := len(groups); n > maxGroups || n < maxGroups/4 {
		t.Errorf("%d groups, want at most %d and not far fewer", n, maxGroups)
	}
	total := 0
	for _, g := range groups {
		total += len(g)
	}
	if total != len(rows) {
		t.Errorf("%d sources left of %d", total, len(rows))
	}
	if n := len(coalesce(sourceRows(rows...), view, true)); n != len(rows) {
		t.Errorf("kept apart: %d groups, want %d", n, len(rows))
	}
	wide := &pqfile.Schema{Root: &pqfile.Node{}, Leaves: slices.Repeat(view.Leaves, 1000)}
	if n := int64(len(coalesce(sourceRows(rows...), wide, false))); n*footerEstimate(wide) > maxFooterBytes {
		t.Errorf("wide view: %d groups make a footer of about %d bytes", n, n*footerEstimate(wide))
	}
}
