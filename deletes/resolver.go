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
	Cache   Cache
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

// Key identifies the delete set of f: equal keys mean equal Positions for the
// same data file. Part of view identities.
func Key(f *snapshot.File) string { panic("skeleton") }
