package deletes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Sentinels; errors name the delete file once.
var (
	ErrCorrupt     = errors.New("corrupt delete file")
	ErrUnsupported = errors.New("unsupported delete file")
)

// Cache is what the resolver keeps bitmaps and key sets in (package cache).
// load returns the value and its bytes; concurrent loads of one key are one.
type Cache interface {
	Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error)
}

// Persist keeps small results across mounts (package cache). May be nil.
type Persist interface {
	Get(key string) ([]byte, bool)
	Put(key string, value []byte)
}

// Options of a Resolver.
type Options struct {
	Cache   Cache         // nil = nothing is kept
	Persist Persist       // may be nil
	Log     *slog.Logger  // nil = discard
	Stats   *pqfile.Stats // may be nil
	Pools   *pqfile.Pools // nil = its own
	// Counters may be nil.
	Counters *Counters
	// KeyBytes bounds the memory for keys of equality deletes that one pass over a
	// data file takes, about: more keys take more passes. 0 = DefaultKeyBytes.
	KeyBytes int64
	// MemoryBytes is the budget of the process: what a page or a footer may take is
	// a part of it. 0 = 1 GiB.
	MemoryBytes int64
	// Workers bounds the row groups that are matched at a time; 0 = GOMAXPROCS.
	Workers int
}

// Resolver resolves the deletes of data files to Positions, through caches that
// all tables and snapshots share. Safe for concurrent use.
type Resolver struct {
	opt     Options
	hash    hasher
	schemas schemaMemo
	slots   chan struct{} // one for each row group that is matched at the moment
}

// NewResolver returns a Resolver.
func NewResolver(opt Options) *Resolver {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Counters == nil {
		opt.Counters = &Counters{}
	}
	if opt.Pools == nil {
		opt.Pools = &pqfile.Pools{}
	}
	if opt.KeyBytes <= 0 {
		opt.KeyBytes = DefaultKeyBytes
	}
	if opt.MemoryBytes <= 0 {
		opt.MemoryBytes = 1 << 30
	}
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	return &Resolver{opt: opt, hash: newHasher(), slots: make(chan struct{}, opt.Workers)}
}

// parallelFiles is how many delete files of one data file are read at a time:
// enough to hide an object store's latency.
const parallelFiles = 8

// Resolve returns the deleted positions of f, nil if there are none. Any doubt
// is an error: never rows without their deletes. store opens the table's files.
func (r *Resolver) Resolve(ctx context.Context, t *snapshot.Table, store source.Store, f *snapshot.File) (*Positions, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	set := Key(f)
	if set == "" {
		return nil, nil
	}
	for d := range deleteFiles(f) {
		if d.EncryptedKey {
			return nil, fmt.Errorf("%s: encrypted: %w", d.Path, ErrUnsupported)
		}
	}
	if f.DV != nil && len(f.Equality) == 0 {
		return r.dv(ctx, store, f.DV)
	}
	data, err := store.Open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	// A name mapping or a schema that changes what a key means changes the key
	// schemas, which partial results are kept by: the union is kept by them too.
	key := "deletes/union|" + data.Version() + "|" + set
	if len(f.Equality) > 0 {
		id, err := r.equalityIdentity(t, f)
		if err != nil {
			return nil, err
		}
		key += "|" + id
	}
	return r.cached(ctx, key, func(ctx context.Context) (*Positions, error) {
		parts, err := r.parts(ctx, t, store, f)
		if err != nil {
			return nil, err
		}
		return union(parts)
	})
}

// parts returns the positions of each delete file of f.
func (r *Resolver) parts(ctx context.Context, t *snapshot.Table, store source.Store, f *snapshot.File) ([]*Positions, error) {
	parts := make([]*Positions, len(f.Positions)+1)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelFiles)
	if f.DV != nil {
		// It replaces position deletes; pairing has left them out.
		group.Go(protected(func() (err error) {
			parts[len(f.Positions)], err = r.dv(gctx, store, f.DV)
			return err
		}))
	} else {
		for i, d := range f.Positions {
			group.Go(protected(func() (err error) {
				parts[i], err = r.positionDeletes(gctx, store, d, f.DataFile)
				return err
			}))
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(f.Equality) == 0 {
		return parts, nil
	}
	byKey, err := r.equality(ctx, t, store, f)
	return append(parts, byKey...), err
}

// protected is a function whose panics are errors (pqfile.Protect).
func protected(f func() error) func() error {
	return func() error { return pqfile.Protect(f) }
}

// Key identifies the delete set of f: equal keys mean equal Positions for the
// same data file. Part of view identities. It is empty if nothing is deleted.
func Key(f *snapshot.File) string {
	var lines []string
	for d := range deleteFiles(f) {
		lines = append(lines, fmt.Sprintf("%q %d %d %d %v", d.Path, d.Content, d.ContentOffset, d.ContentSize, d.EqualityIDs))
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// deleteFiles yields every delete file that applies to f.
func deleteFiles(f *snapshot.File) iter.Seq[*snapshot.DataFile] {
	return func(yield func(*snapshot.DataFile) bool) {
		if f.DV != nil && !yield(f.DV) {
			return
		}
		for _, files := range [][]*snapshot.DataFile{f.Positions, f.Equality} {
			for _, d := range files {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// get returns a value through the cache.
func get[T any](ctx context.Context, r *Resolver, key string, load func(context.Context) (T, int64, error)) (T, error) {
	if r.opt.Cache == nil {
		v, _, err := load(ctx)
		return v, err
	}
	v, err := r.opt.Cache.Get(ctx, key, func(ctx context.Context) (any, int64, error) { return load(ctx) })
	if err != nil {
		var zero T
		return zero, err
	}
	return v.(T), nil
}

// cached is get for Positions.
func (r *Resolver) cached(ctx context.Context, key string, load func(context.Context) (*Positions, error)) (*Positions, error) {
	return get(ctx, r, key, func(ctx context.Context) (*Positions, int64, error) {
		p, err := load(ctx)
		return p, p.Bytes(), err
	})
}
