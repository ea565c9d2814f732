package deletes

import (
	"context"
	"errors"
	"log/slog"

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
	Cache   Cache // nil = nothing is kept
	Persist Persist
	Log     *slog.Logger
	Stats   *pqfile.Stats // may be nil
}

// Resolver resolves the deletes of data files to Positions, through caches that
// all tables and snapshots share. Safe for concurrent use.
type Resolver struct{ opt Options }

// NewResolver returns a Resolver.
func NewResolver(opt Options) *Resolver { return &Resolver{opt: opt} }

// Resolve returns the deleted positions of f, nil if there are none. Any doubt
// is an error: never rows without their deletes. store opens the table's files.
func (r *Resolver) Resolve(ctx context.Context, t *snapshot.Table, store source.Store, f *snapshot.File) (*Positions, error) {
	panic("skeleton")
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
