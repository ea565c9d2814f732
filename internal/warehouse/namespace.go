package warehouse

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"
)

// lister reads what is in a namespace.
type lister interface {
	list(ctx context.Context) ([]entry, error)
}

// entry is a namespace (its lister) or a table (its finder).
type entry struct {
	name      string
	namespace lister
	table     finder
}

// Namespace is a folder of tables and namespaces. Its children keep their
// identity from one listing to the next.
type Namespace struct {
	env      *env
	lister   lister
	verbatim bool

	gate       gate // guards all below
	at         time.Time
	namespaces map[string]*Namespace
	tables     map[string]*Table
}

func newNamespace(e *env, l lister, verbatim bool) *Namespace {
	return &Namespace{env: e, lister: l, verbatim: verbatim, gate: newGate()}
}

// Verbatim reports whether names are those of folders, to be shown as they are;
// else they are names of a catalog, to be escaped.
func (n *Namespace) Verbatim() bool { return n.verbatim }

// Namespaces lists the namespaces in n in the order of names.
func (n *Namespace) Namespaces(ctx context.Context) (iter.Seq2[string, *Namespace], error) {
	namespaces, _, err := n.read(ctx)
	return sorted(namespaces), err
}

// Tables lists the tables in n in the order of names.
func (n *Namespace) Tables(ctx context.Context) (iter.Seq2[string, *Table], error) {
	_, tables, err := n.read(ctx)
	return sorted(tables), err
}

func sorted[T any](m map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// read returns the current children. The maps are never changed afterwards.
func (n *Namespace) read(ctx context.Context) (map[string]*Namespace, map[string]*Table, error) {
	if err := n.gate.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer n.gate.leave()
	if n.env.fresh(n.at) {
		return n.namespaces, n.tables, nil
	}
	entries, err := n.lister.list(ctx)
	if err != nil {
		return nil, nil, gone(err)
	}
	namespaces, tables := map[string]*Namespace{}, map[string]*Table{}
	for _, entry := range entries {
		if entry.table != nil {
			if tables[entry.name] = n.tables[entry.name]; tables[entry.name] == nil {
				tables[entry.name] = newTable(n.env, entry.table)
			}
			continue
		}
		child := n.namespaces[entry.name]
		if child == nil {
			child = newNamespace(n.env, entry.namespace, n.verbatim)
		}
		namespaces[entry.name] = child
	}
	n.namespaces, n.tables, n.at = namespaces, tables, time.Now()
	return namespaces, tables, nil
}
