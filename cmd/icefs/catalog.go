package main

import (
	"context"
	"iter"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// catalog is a warehouse.Catalog as tree.Catalog: the same methods with the
// interfaces of package tree, and a time limit on each read of a table's file,
// which is counted.
type catalog struct {
	*warehouse.Catalog
	reads *sourceReads
}

func (c catalog) Root(ctx context.Context) (tree.Namespace, tree.Table, error) {
	ns, tbl, err := c.Catalog.Root(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case tbl != nil:
		return nil, table{tbl, c.reads}, nil
	}
	return namespace{ns, c.reads}, nil, nil
}

type namespace struct {
	*warehouse.Namespace
	reads *sourceReads
}

func (n namespace) Namespaces(ctx context.Context) (iter.Seq2[string, tree.Namespace], error) {
	seq, err := n.Namespace.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, tree.Namespace) bool) {
		for name, ns := range seq {
			if !yield(name, namespace{ns, n.reads}) {
				return
			}
		}
	}, nil
}

func (n namespace) Table(ctx context.Context, name string) (tree.Table, error) {
	t, err := n.Namespace.Table(ctx, name)
	if err != nil {
		return nil, err
	}
	return table{t, n.reads}, nil
}

type table struct {
	*warehouse.Table
	reads *sourceReads
}

func (t table) Load(ctx context.Context) (tree.Loaded, error) {
	l, err := t.Table.Load(ctx)
	if err != nil {
		return nil, err
	}
	return loaded{l, t.reads}, nil
}

type loaded struct {
	*warehouse.Loaded
	reads *sourceReads
}

func (l loaded) Store() merge.Store { return watchedStore{l.Loaded.Store(), l.reads} }
