package tree_test

import (
	"context"
	"errors"
	iofs "io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/snapshot"
)

// TestHistory: five snapshots, a day apart, the last one just now; main is on 5,
// a tag on 1.
func TestHistory(t *testing.T) {
	for _, c := range []struct {
		history string
		listed  string // snapshots/ and by-time, by id
		exist   string // by path
	}{
		{"all", "1 2 3 4 5", "1 2 3 4 5"},
		{"2", "1 4 5", "1 4 5"},
		{"100", "1 2 3 4 5", "1 2 3 4 5"},
		{"60h", "1 3 4 5", "1 3 4 5"},
		{"1d", "1 5", "1 5"},
		{"2w", "1 2 3 4 5", "1 2 3 4 5"},
		{"refs", "1 5", "1 5"},
		{"hidden", "", "1 2 3 4 5"},
	} {
		t.Run(c.history, func(t *testing.T) { checkHistory(t, c.history, strings.Fields(c.listed), strings.Fields(c.exist)) })
	}
}

func checkHistory(t *testing.T, history string, listed, exist []string) {
	h, err := tree.ParseHistory(history)
	if err != nil {
		t.Fatal(err)
	}
	meta := treetest.Metadata("11111111-2222-3333-4444-555555555555", 5)
	now := time.Now().Truncate(time.Millisecond).UTC()
	for i := range meta.Snapshots {
		meta.Snapshots[i].Time = now.Add(time.Duration(i-4) * 25 * time.Hour)
		meta.Log[i].Time = meta.Snapshots[i].Time
	}
	meta.Refs = append(meta.Refs, snapshot.Ref{Name: "first", SnapshotID: 1, Tag: true})
	ctx := context.Background()
	tr, err := tree.New(ctx, tree.Options{
		Catalog: treetest.Catalog{Tab: treetest.NewTable(meta)},
		Views:   &treetest.Views{},
		History: h,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := listNames(t, tr, "snapshots"); !slices.Equal(got, listed) {
		t.Errorf("snapshots lists %v, want %v", got, listed)
	}
	if got := listNames(t, tr, "by-time"); len(got) != len(listed) {
		t.Errorf("by-time lists %v, want %d", got, len(listed))
	}
	for i := range meta.Snapshots {
		s := &meta.Snapshots[i]
		id := string(rune('0' + s.ID))
		stamp := s.Time.Format("2006-01-02T15-04-05.000Z")
		for _, path := range []string{"snapshots/" + id, "snapshots/" + id + "@schema-1", "by-time/" + stamp, "at/" + stamp} {
			_, err := tr.Resolve(ctx, path+"/data.csv")
			if want := slices.Contains(exist, id); want != (err == nil) || !want && !errors.Is(err, iofs.ErrNotExist) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	for _, path := range []string{"current/data.csv", "tags/first/data.csv", "branches/main/data.csv"} {
		if _, err := tr.Resolve(ctx, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func listNames(t *testing.T, tr *tree.Tree, path string) []string {
	t.Helper()
	n, err := tr.Resolve(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := n.(tree.Dir).Entries(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

func TestParseHistoryRefuses(t *testing.T) {
	for _, s := range []string{"", "0", "-1", "none", "-3h", "0s", "d", "1.5d", "99999999999999d", "5 d"} {
		if h, err := tree.ParseHistory(s); err == nil {
			t.Errorf("%q is %+v", s, h)
		}
	}
}
