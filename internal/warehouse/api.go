package warehouse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// Sentinels; errors name the table or file once.
var (
	// ErrUnsupportedSource: SOURCE is of a kind that cannot be opened.
	ErrUnsupportedSource = errors.New("unsupported source")
	// ErrUnsupported: the table uses a format that cannot be read.
	ErrUnsupported = errors.New("unsupported table")
	// ErrCorrupt: metadata or a manifest is malformed.
	ErrCorrupt = errors.New("corrupt table metadata")
	// ErrUnavailable: a catalog service does not answer, or not now.
	ErrUnavailable = errors.New("catalog does not answer")
	// ErrDenied: a catalog service does not let us in, or not to this.
	ErrDenied = errors.New("catalog denies access")
	// ErrGone: a table or namespace is no longer there; wraps fs.ErrNotExist.
	ErrGone error = goneError{}
)

type goneError struct{}

func (goneError) Error() string { return "no such table or namespace" }
func (goneError) Unwrap() error { return fs.ErrNotExist }

// DefaultRefresh is how old a listing or a table's metadata may get: long
// enough that a burst of lookups reads once, short enough for a person waiting
// for a commit.
const DefaultRefresh = 10 * time.Second

// Cache keeps manifests and their lists (package cache). load returns the value
// and its bytes, or NotKept; concurrent loads of one key are one.
type Cache interface {
	Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error)
}

// NotKept stands for the bytes of a value that only its waiters are to have.
const NotKept = -1

// Options of Open; the zero value is usable.
type Options struct {
	AllowPaths []string      // further folders that tables may lie in: paths, or URLs of an object store
	Refresh    time.Duration // 0 = DefaultRefresh, negative = at every call
	Cache      Cache         // nil = everything read is kept
	// MemoryBytes is the budget of the process; what one table's files may take is
	// a part of it. 0 = 1 GiB.
	MemoryBytes int64
	Pool        *source.Pool // nil = a pool of the default size
	// Remotes opens object stores; nil = local files alone.
	Remotes source.Remotes
	// Properties are file-IO properties that the user has set (source.Access);
	// they come before those of a catalog. They may hold secrets.
	Properties map[string]string
	// Timeout is how long a catalog service that does not answer is waited for; 0 =
	// DefaultTimeout.
	Timeout time.Duration
	Log     *slog.Logger // nil = discard
	Stats   *Stats       // may be nil
}

// Stats count what was read. All only grow.
type Stats struct {
	MetadataRead  atomic.Int64 // metadata files parsed
	ListsRead     atomic.Int64 // manifest lists parsed
	ManifestsRead atomic.Int64 // manifests parsed
}

// env is what all parts of a catalog share.
type env struct {
	opt    Options
	access // to the roots of SOURCE and the allowed paths
	cache  Cache
	stats  *Stats
	log    *slog.Logger
	limits limits

	schemas  schemas
	newest   atomic.Pointer[Loaded] // read last, held until somebody who asked for it does
	unlisted sync.Map               // folders that could not be listed, once logged
}

func newEnv(opt Options, roots ...string) (*env, error) {
	if opt.Refresh == 0 {
		opt.Refresh = DefaultRefresh
	}
	if opt.Pool == nil {
		opt.Pool = source.NewPool(0)
	}
	if opt.Cache == nil {
		opt.Cache = &memo{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Stats == nil {
		opt.Stats = &Stats{}
	}
	reach, err := opt.reach(source.Access{Properties: opt.Properties}, append(roots, opt.AllowPaths...))
	if err != nil {
		return nil, err
	}
	return &env{
		opt:    opt,
		access: *newAccess(reach),
		cache:  opt.Cache,
		stats:  opt.Stats,
		log:    opt.Log,
		limits: newLimits(opt.MemoryBytes),
	}, nil
}

// reach opens what lies below roots, paths and URLs; a has the properties for
// the URLs. Without a URL among them no object store can be reached.
func (o *Options) reach(a source.Access, roots []string) (*source.Files, error) {
	var paths []string
	for _, root := range roots {
		if source.IsURL(root) {
			a.Roots = append(a.Roots, root)
		} else {
			paths = append(paths, root)
		}
	}
	local, err := source.NewLocal(o.Pool, paths...)
	if err != nil {
		return nil, err
	}
	if len(a.Roots) == 0 {
		return source.NewFiles(local, nil), nil
	}
	if o.Remotes == nil {
		return nil, fmt.Errorf("%w: %s", source.ErrUnsupported, a.Roots[0])
	}
	remote, err := o.Remotes.Folders(a)
	if err != nil {
		return nil, err
	}
	return source.NewFiles(local, remote, a.Roots...), nil
}

// fresh reports whether what was read at a time need not be read again.
func (e *env) fresh(at time.Time) bool {
	return !at.IsZero() && time.Since(at) < e.opt.Refresh
}

// gate is a lock that a waiter can leave when its context ends. Lock order: that
// of a Namespace or a Table (never two of them), then that of a sqlCatalog.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }
