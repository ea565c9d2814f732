package tree

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// namespaceDir is a folder of namespaces and tables.
type namespaceDir struct {
	tree     *Tree
	src      Namespace
	path     string // in the mount; "" is the root
	reserved []string

	mu   sync.Mutex
	last *spaces // of the last call; reused while the names are the same
}

var _ Streamer = (*namespaceDir)(nil)

// spaces are the namespaces in a namespace and the names they are shown under.
type spaces struct {
	names []string       // as the catalog gives them, in its order
	index map[string]int // shown name -> place
	shown []Entry
	taken map[string]bool // the shown names and the reserved ones
}

func (d *namespaceDir) Attr(context.Context) (Attr, error) {
	return Attr{
		Kind:       KindDir,
		Ino:        dirID("namespace", d.path).Inode(),
		Generation: generation(dirID("namespace", d.path), d.path),
		MTime:      Fixed(),
	}, nil
}

func (d *namespaceDir) Entries(ctx context.Context) ([]Entry, error) {
	var list []Entry
	for e, err := range d.Stream(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// Stream lists the namespaces first, then the tables as the catalog names them.
// A table whose name is taken is shown at the end, with "~table".
func (d *namespaceDir) Stream(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s, _, err := d.spaces(ctx)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, e := range s.shown {
			if !yield(e, nil) {
				return
			}
		}
		for t, err := range d.tables(ctx, s) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(Entry{t.name, KindDir, dirID("table", join(d.path, t.name)).Inode()}, nil) {
				return
			}
		}
	}
}

// shownTable is a table's name in the catalog and the one it is shown under.
type shownTable struct{ original, name string }

// tables names the tables beside the namespaces s.
func (d *namespaceDir) tables(ctx context.Context, s *spaces) iter.Seq2[shownTable, error] {
	return func(yield func(shownTable, error) bool) {
		n := &namer{taken: maps.Clone(s.taken)}
		var clash []string
		for name, err := range d.src.Tables(ctx) {
			if err != nil {
				yield(shownTable{}, err)
				return
			}
			if !n.free(d.escape(name), name) {
				clash = append(clash, name)
				continue
			}
			if !yield(shownTable{name, n.assign(d.escape(name), name, "")}, nil) {
				return
			}
		}
		for _, name := range clash {
			if !yield(shownTable{name, n.assign(d.escape(name), name, "~table")}, nil) {
				return
			}
		}
	}
}

func (d *namespaceDir) escape(name string) string {
	if d.src.Verbatim() {
		return name
	}
	return escapeName(name)
}

func (d *namespaceDir) Lookup(ctx context.Context, name string) (Node, error) {
	s, namespaces, err := d.spaces(ctx)
	if err != nil {
		return nil, err
	}
	path := join(d.path, name)
	if at, ok := s.index[name]; ok {
		return &namespaceDir{tree: d.tree, src: namespaces[at], path: path}, nil
	}
	t, err := d.table(ctx, s, name)
	if err != nil {
		return nil, err
	}
	return &tableDir{tree: d.tree, src: t, path: path}, nil
}

// table finds the table of a shown name. All but the few that carry a mark are
// asked of the catalog by name; for those its tables are listed.
func (d *namespaceDir) table(ctx context.Context, s *spaces, name string) (Table, error) {
	original, plain := name, true
	if !d.src.Verbatim() {
		original, plain = unescapeName(name)
	}
	if plain && !s.taken[name] {
		t, err := d.src.Table(ctx, original)
		if err == nil || !errors.Is(err, iofs.ErrNotExist) {
			return t, err
		}
	}
	if !strings.Contains(name, "~") && name != emptyName {
		return nil, errNoEntry
	}
	for t, err := range d.tables(ctx, s) {
		if err != nil {
			return nil, err
		}
		if t.name == name {
			return d.src.Table(ctx, t.original)
		}
	}
	return nil, errNoEntry
}

// spaces asks the catalog for the namespaces, and names them.
func (d *namespaceDir) spaces(ctx context.Context) (*spaces, []Namespace, error) {
	seq, err := d.src.Namespaces(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("namespaces: %w", err)
	}
	s := &spaces{index: map[string]int{}}
	var namespaces []Namespace
	for name, ns := range seq {
		s.names = append(s.names, name)
		namespaces = append(namespaces, ns)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil && slices.Equal(d.last.names, s.names) {
		return d.last, namespaces, nil
	}
	n := newNamer(d.reserved...)
	for i, original := range s.names {
		name := n.assign(d.escape(original), original, "~namespace")
		s.index[name] = i
		s.shown = append(s.shown, Entry{name, KindDir, dirID("namespace", join(d.path, name)).Inode()})
	}
	s.taken = n.taken
	d.last = s
	return s, namespaces, nil
}

// join appends a name to a path in the mount.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}
