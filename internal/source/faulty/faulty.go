// Package faulty is a source.Store for tests whose reads fail, are cut short,
// delayed or damaged as told. A fault sweep makes read 1, 2, 3 … fail until the
// work under test needs fewer reads than that: every fault must surface as an
// error and none may change bytes.
package faulty

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// ErrInjected is the cause of every injected failure.
var ErrInjected = errors.New("injected fault")

// Options say what goes wrong. Reads are counted from 1 over all objects of the
// store, in the order they begin.
type Options struct {
	FailRead  int64                      // this read fails with source.ErrRead; 0 = none
	ShortRead int64                      // this read ends halfway with source.ErrTruncated
	FailOpen  int64                      // this Open (counted from 1 too) fails with source.ErrRead
	Delay     time.Duration              // before every read; ends early with the context
	Match     func(location string) bool // only these locations; nil = all
	// Damage changes the bytes just read at off of a location.
	Damage func(location string, off int64, p []byte)
}

// Store is a source.Store with faults. Its objects are never source.Filers: a
// descriptor would go around the faults. Safe for concurrent use.
type Store struct {
	store source.Store
	opt   Options
	reads atomic.Int64
	opens atomic.Int64
}

var _ source.Store = (*Store)(nil)

// New returns a store over s with faults.
func New(s source.Store, opt Options) *Store { return &Store{store: s, opt: opt} }

// Reads returns how many reads have begun on matching locations.
func (s *Store) Reads() int64 { return s.reads.Load() }

// Opens returns how many matching locations have been opened.
func (s *Store) Opens() int64 { return s.opens.Load() }

// Open implements source.Store.
func (s *Store) Open(ctx context.Context, location string) (source.Object, error) {
	if s.opt.Match != nil && !s.opt.Match(location) {
		return s.store.Open(ctx, location)
	}
	if s.opens.Add(1) == s.opt.FailOpen {
		return nil, fmt.Errorf("%w: %s: %w", source.ErrRead, location, ErrInjected)
	}
	o, err := s.store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	return &object{Object: o, store: s}, nil
}

type object struct {
	source.Object
	store *Store
}

// ReadAt implements source.Object.
func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	opt := &o.store.opt
	read := o.store.reads.Add(1)
	if opt.Delay > 0 {
		timer := time.NewTimer(opt.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	switch read {
	case opt.FailRead:
		return 0, fmt.Errorf("%w: %s: %w", source.ErrRead, o.Location(), ErrInjected)
	case opt.ShortRead:
		n, err := o.Object.ReadAt(ctx, p[:len(p)/2], off)
		if err == nil {
			err = fmt.Errorf("%w: %s: %w", source.ErrTruncated, o.Location(), ErrInjected)
		}
		return n, err
	}
	n, err := o.Object.ReadAt(ctx, p, off)
	if err == nil && opt.Damage != nil {
		opt.Damage(o.Location(), off, p[:n])
	}
	return n, err
}

// FlipBit returns a Damage that flips one bit of the byte at position of a
// location.
func FlipBit(location string, position int64, bit uint) func(string, int64, []byte) {
	return func(l string, off int64, p []byte) {
		if l == location && position >= off && position < off+int64(len(p)) {
			p[position-off] ^= 1 << (bit & 7)
		}
	}
}
