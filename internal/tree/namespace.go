package tree

import (
	"context"
	"slices"
	"sync"
)

// namespaceDir is a folder of namespaces and tables.
type namespaceDir struct {
	tree     *Tree
	src      Namespace
	path     string // in the mount; "" is the root
	reserved []string

	mu   sync.Mutex
	last *members // of the last listing; reused while its names are the same
}

var _ Dir = (*namespaceDir)(nil)

// members are the entries of a namespace and the names they are shown under.
type members struct {
	namespaces []string // as the catalog names them, in its order
	tables     []string
	shown      []Entry
	index      map[string]member
}

// member is an entry of the catalog's listing: a namespace or a table, by place.
type member struct {
	table bool
	at    int
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
	m, _, _, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	return m.shown, nil
}

func (d *namespaceDir) Lookup(ctx context.Context, name string) (Node, error) {
	m, namespaces, tables, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	at, ok := m.index[name]
	if !ok {
		return nil, errNoEntry
	}
	path := join(d.path, name)
	if at.table {
		return &tableDir{tree: d.tree, src: tables[at.at], path: path}, nil
	}
	return &namespaceDir{tree: d.tree, src: namespaces[at.at], path: path}, nil
}

// list asks the catalog, and names what it lists.
func (d *namespaceDir) list(ctx context.Context) (*members, []Namespace, []Table, error) {
	nsSeq, err := d.src.Namespaces(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	var m members
	var namespaces []Namespace
	for name, ns := range nsSeq {
		m.namespaces = append(m.namespaces, name)
		namespaces = append(namespaces, ns)
	}
	tblSeq, err := d.src.Tables(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	var tables []Table
	for name, t := range tblSeq {
		m.tables = append(m.tables, name)
		tables = append(tables, t)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.last; l != nil && slices.Equal(l.namespaces, m.namespaces) && slices.Equal(l.tables, m.tables) {
		return l, namespaces, tables, nil
	}
	d.name(&m)
	d.last = &m
	return &m, namespaces, tables, nil
}

// name gives every entry the name it is shown under: namespaces first, then the
// tables whose name is free, then the others with "~table".
func (d *namespaceDir) name(m *members) {
	escape := escapeName
	if d.src.Verbatim() {
		escape = func(s string) string { return s }
	}
	n := newNamer(d.reserved...)
	m.index = make(map[string]member, len(m.namespaces)+len(m.tables))
	show := func(name string, at member) {
		kind := "namespace"
		if at.table {
			kind = "table"
		}
		m.index[name] = at
		m.shown = append(m.shown, Entry{Name: name, Kind: KindDir, Ino: dirID(kind, join(d.path, name)).Inode()})
	}
	for i, name := range m.namespaces {
		show(n.assign(escape(name), name, "~namespace"), member{false, i})
	}
	var clash []int
	for i, name := range m.tables {
		if !n.free(escape(name), name) {
			clash = append(clash, i)
			continue
		}
		show(n.assign(escape(name), name, "~table"), member{true, i})
	}
	for _, i := range clash {
		name := m.tables[i]
		show(n.assign(escape(name), name, "~table"), member{true, i})
	}
}

// join appends a name to a path in the mount.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}
