package main

import (
	"context"
	"iter"
	"os"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// catalog is a warehouse.Catalog as tree.Catalog: the same methods with the
// interfaces of package tree, and a time limit on each read of a table's file.
type catalog struct {
	*warehouse.Catalog
	timeout time.Duration
}

func (c catalog) Root(ctx context.Context) (tree.Namespace, tree.Table, error) {
	ns, tbl, err := c.Catalog.Root(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case tbl != nil:
		return nil, table{tbl, c.timeout}, nil
	}
	return namespace{ns, c.timeout}, nil, nil
}

type namespace struct {
	*warehouse.Namespace
	timeout time.Duration
}

func (n namespace) Namespaces(ctx context.Context) (iter.Seq2[string, tree.Namespace], error) {
	seq, err := n.Namespace.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, tree.Namespace) bool) {
		for name, ns := range seq {
			if !yield(name, namespace{ns, n.timeout}) {
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
	return table{t, n.timeout}, nil
}

type table struct {
	*warehouse.Table
	timeout time.Duration
}

func (t table) Load(ctx context.Context) (tree.Loaded, error) {
	l, err := t.Table.Load(ctx)
	if err != nil {
		return nil, err
	}
	return loaded{l, t.timeout}, nil
}

type loaded struct {
	*warehouse.Loaded
	timeout time.Duration
}

func (l loaded) Store() merge.Store {
	if l.timeout <= 0 {
		return l.Loaded.Store()
	}
	return limitedStore{l.Loaded.Store(), l.timeout}
}

// limitedStore bounds how long opening an object and each read of it may take.
type limitedStore struct {
	source.Store
	timeout time.Duration
}

func (s limitedStore) Open(ctx context.Context, location string) (source.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	o, err := s.Store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	limited := limitedObject{o, s.timeout}
	switch o := o.(type) {
	case source.Filer:
		return limitedFiler{limited, o}, nil
	case source.Remote:
		return o, nil // which limits itself
	}
	return limited, nil
}

type limitedObject struct {
	source.Object
	timeout time.Duration
}

func (o limitedObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return o.Object.ReadAt(ctx, p, off)
}

// limitedFiler is a limitedObject of a local file.
type limitedFiler struct {
	limitedObject
	filer source.Filer
}

var _ source.Filer = limitedFiler{}

func (f limitedFiler) OpenFile() (*os.File, error) { return f.filer.OpenFile() }

func (f limitedFiler) Borrow() (*os.File, func(), error) { return f.filer.Borrow() }
