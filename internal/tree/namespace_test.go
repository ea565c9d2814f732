package tree_test

import (
	"context"
	"errors"
	iofs "io/fs"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
)

// asked counts how often the tables of a namespace are listed.
type asked struct {
	*treetest.Namespace
	lists int
}

func (a *asked) Tables(ctx context.Context) iter.Seq2[string, error] {
	a.lists++
	return a.Namespace.Tables(ctx)
}

type oneNamespace struct{ n tree.Namespace }

func (o oneNamespace) Root(context.Context) (tree.Namespace, tree.Table, error) { return o.n, nil, nil }

// TestTablesAreAskedForByName: looking up a table lists none, unless its shown
// name carries a mark; each shown name leads to its table, and no other does.
func TestTablesAreAskedForByName(t *testing.T) {
	long := strings.Repeat("x", 300)
	tables := []string{"plain", "both", "both~table", "a/b", ".hidden", long, "taken", ""}
	n := &asked{Namespace: &treetest.Namespace{Spaces: []treetest.Named[*treetest.Namespace]{{Name: "both", Of: &treetest.Namespace{}}, {Name: "taken", Of: &treetest.Namespace{}}}}}
	for _, name := range tables {
		n.Tabs = append(n.Tabs, treetest.Named[*treetest.Table]{Name: name, Of: treetest.NewTable(treetest.Metadata(uuid, 1))})
	}
	tr := newTree(t, oneNamespace{n}, &treetest.Views{})
	for _, c := range []struct {
		shown string
		lists bool
		there bool
	}{
		{"plain", false, true}, {"a%2Fb", false, true}, {"%2Ehidden", false, true}, {"both~table", false, true},
		{"both~table~table", true, true}, {"taken~table", true, true}, {"%", true, true},
		{"none", false, false}, {".git", false, false}, {"%2fx", false, false}, {"autorun.inf", false, false}, {"taken~table~table", true, false}, {"plain~", true, false},
	} {
		before := n.lists
		_, err := tr.Resolve(t.Context(), c.shown+"/metadata.json")
		if c.there && err != nil || !c.there && !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s: %v", c.shown, err)
		}
		if (n.lists > before) != c.lists {
			t.Errorf("%s: tables were listed %d times", c.shown, n.lists-before)
		}
	}
	for _, name := range names(t, tr, "") {
		if _, err := tr.Resolve(t.Context(), name); err != nil {
			t.Errorf("%q is listed, but %v", name, err)
		}
	}
	if got := len(names(t, tr, "")); got != 1+2+len(tables) { // .icefs
		t.Errorf("%d entries", got)
	}
}

// TestListingComesPieceByPiece: entries are there before the last is known, and a
// failure ends them.
func TestListingComesPieceByPiece(t *testing.T) {
	n := &treetest.Namespace{Paused: make(chan struct{}), PauseAt: 2}
	for _, name := range []string{"a", "b", "c"} {
		n.Tabs = append(n.Tabs, treetest.Named[*treetest.Table]{Name: name, Of: treetest.NewTable(treetest.Metadata(uuid, 1))})
	}
	tr := newTree(t, treetest.Catalog{Space: n}, &treetest.Views{})
	var got []string
	for e, err := range tr.Root().(tree.Streamer).Stream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Name); e.Name == "b" {
			close(n.Paused) // it would wait for ever if all were listed first
		}
	}
	if !slices.Equal(got, []string{".icefs", "a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}
