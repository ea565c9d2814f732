package warehouse

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// lister reads all that is in a namespace at once.
type lister interface {
	list(ctx context.Context) ([]entry, error)
}

// entry is a namespace (its lister) or a table (its finder).
type entry struct {
	name      string
	namespace lister
	table     finder
}

// contents is what is in a Namespace. Children keep their identity as long as
// they are there.
type contents interface {
	namespaces(ctx context.Context) (map[string]*Namespace, error) // never changed afterwards
	tables(ctx context.Context) iter.Seq2[string, error]
	table(ctx context.Context, name string) (*Table, error)
}

// Namespace is a folder of tables and namespaces.
type Namespace struct {
	contents contents
	verbatim bool
}

// newNamespace returns a namespace of folders.
func newNamespace(e *env, l lister) *Namespace {
	return &Namespace{contents: &listedMembers{env: e, lister: l, gate: newGate()}, verbatim: true}
}

// Verbatim reports whether names are those of folders, to be shown as they are;
// else they are names of a catalog, to be escaped.
func (n *Namespace) Verbatim() bool { return n.verbatim }

// Namespaces lists the namespaces in n in the order of names.
func (n *Namespace) Namespaces(ctx context.Context) (iter.Seq2[string, *Namespace], error) {
	children, err := n.contents.namespaces(ctx)
	return func(yield func(string, *Namespace) bool) {
		for _, name := range slices.Sorted(maps.Keys(children)) {
			if !yield(name, children[name]) {
				return
			}
		}
	}, err
}

// Tables lists the names of the tables in n, each once and as soon as it is
// known: in the order of names if n is a folder, else in the catalog's. A
// failure is the last element.
func (n *Namespace) Tables(ctx context.Context) iter.Seq2[string, error] {
	return n.contents.tables(ctx)
}

// Table returns the table of a name, or ErrGone. A catalog is asked for that
// table alone.
func (n *Namespace) Table(ctx context.Context, name string) (*Table, error) {
	return n.contents.table(ctx, name)
}

// listedMembers are read all at once: those of a folder.
type listedMembers struct {
	env    *env
	lister lister

	gate     gate // guards all below
	at       time.Time
	children map[string]*Namespace
	found    map[string]*Table
}

var _ contents = (*listedMembers)(nil)

func (m *listedMembers) namespaces(ctx context.Context) (map[string]*Namespace, error) {
	children, _, err := m.read(ctx)
	return children, err
}

func (m *listedMembers) tables(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		_, tables, err := m.read(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (m *listedMembers) table(ctx context.Context, name string) (*Table, error) {
	_, tables, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	if t := tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrGone, name)
}

// read returns the current children. The maps are never changed afterwards.
func (m *listedMembers) read(ctx context.Context) (map[string]*Namespace, map[string]*Table, error) {
	if err := m.gate.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer m.gate.leave()
	if m.env.fresh(m.at) {
		return m.children, m.found, nil
	}
	entries, err := m.lister.list(ctx)
	if err != nil {
		return nil, nil, gone(err)
	}
	namespaces, tables := map[string]*Namespace{}, map[string]*Table{}
	for _, entry := range entries {
		if entry.table != nil {
			if tables[entry.name] = m.found[entry.name]; tables[entry.name] == nil {
				tables[entry.name] = newTable(m.env, entry.table)
			}
			continue
		}
		child := m.children[entry.name]
		if child == nil {
			child = newNamespace(m.env, entry.namespace)
		}
		namespaces[entry.name] = child
	}
	m.children, m.found, m.at = namespaces, tables, time.Now()
	return namespaces, tables, nil
}
