package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// sourceReads bounds how long opening an object and each read of it may take,
// and counts the reads.
type sourceReads struct {
	timeout time.Duration // 0 = none

	count, bytes, failed, nanos atomic.Int64
}

// limit is a context with the time limit.
func (r *sourceReads) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.timeout)
}

// watchedStore is a store whose objects are read through sourceReads.
type watchedStore struct {
	source.Store
	reads *sourceReads
}

var _ source.Placed = watchedStore{}

var _ source.Classifier = watchedStore{}

// InStore implements source.Classifier.
func (s watchedStore) InStore(location string) bool { return source.InStore(s.Store, location) }

// Place implements source.Placed.
func (s watchedStore) Place() string { return source.PlaceOf(s.Store) }

// Open implements source.Store.
func (s watchedStore) Open(ctx context.Context, location string) (source.Object, error) {
	ctx, cancel := s.reads.limit(ctx)
	defer cancel()
	o, err := s.Store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	watched := watchedObject{o, s.reads}
	switch o := o.(type) {
	case source.Filer:
		return watchedFiler{watched, o}, nil
	case source.Remote:
		return o, nil // which limits and counts itself
	}
	return watched, nil
}

type watchedObject struct {
	source.Object
	reads *sourceReads
}

// ReadAt implements source.Object.
func (o watchedObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	ctx, cancel := o.reads.limit(ctx)
	defer cancel()
	begun := time.Now()
	n, err := o.Object.ReadAt(ctx, p, off)
	o.reads.nanos.Add(int64(time.Since(begun)))
	o.reads.count.Add(1)
	o.reads.bytes.Add(int64(n))
	if err != nil && ctx.Err() != context.Canceled {
		o.reads.failed.Add(1)
	}
	return n, err
}

// watchedFiler is a watchedObject of a local file.
type watchedFiler struct {
	watchedObject
	filer source.Filer
}

var _ source.Filer = watchedFiler{}

// OpenFile implements source.Filer.
func (f watchedFiler) OpenFile() (*os.File, error) { return f.filer.OpenFile() }

// Borrow implements source.Filer.
func (f watchedFiler) Borrow() (*os.File, func() error, error) { return f.filer.Borrow() }
