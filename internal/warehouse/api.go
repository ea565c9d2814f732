package warehouse

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Sentinels; errors name the table or file once.
var (
	// ErrUnsupportedSource: SOURCE is of a kind that cannot be opened.
	ErrUnsupportedSource = errors.New("unsupported source")
	// ErrUnsupported: the table uses a format that cannot be read.
	ErrUnsupported = errors.New("unsupported table")
	// ErrCorrupt: metadata or a manifest is malformed.
	ErrCorrupt = errors.New("corrupt table metadata")
	// ErrGone: a table or namespace is no longer there; wraps fs.ErrNotExist.
	ErrGone error = goneError{}
)

// DefaultRefresh is how old a listing or a table's metadata may get.
const DefaultRefresh = 10 * time.Second

// Cache keeps manifests and plans (package cache). load returns the value and
// its bytes; concurrent loads of one key are one.
type Cache interface {
	Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error)
}

// Options of Open; the zero value is usable.
type Options struct {
	AllowPaths []string      // further folders that tables may lie in
	Refresh    time.Duration // 0 = DefaultRefresh, negative = at every call
	Cache      Cache         // nil = everything read is kept
	Pool       *source.Pool  // nil = a pool of the default size
	Log        *slog.Logger  // nil = discard
	Stats      *Stats        // may be nil
}

// Catalog is an opened SOURCE.
type Catalog struct{}

// Open opens SOURCE: a path, else a URL. Paths that exist come first.
func Open(ctx context.Context, src string, opt Options) (*Catalog, error) { panic("skeleton") }

// Root returns the namespace at the root, or (one table mounted) the table.
func (c *Catalog) Root(ctx context.Context) (*Namespace, *Table, error) { panic("skeleton") }

// Close frees what the catalog holds open. Stores of its tables fail after it.
func (c *Catalog) Close() error { panic("skeleton") }

// Namespace is a folder of tables and namespaces.
type Namespace struct{}

// Verbatim reports whether names are those of folders, to be shown as they are;
// else they are names of a catalog, to be escaped.
func (n *Namespace) Verbatim() bool { panic("skeleton") }

// Namespaces lists the namespaces in n by name.
func (n *Namespace) Namespaces(ctx context.Context) (iter.Seq2[string, *Namespace], error) {
	panic("skeleton")
}

// Tables lists the tables in n by name.
func (n *Namespace) Tables(ctx context.Context) (iter.Seq2[string, *Table], error) {
	panic("skeleton")
}

// Table is a table of a catalog.
type Table struct{}

// Load returns the table at its current metadata version: the same Loaded while
// the metadata file is the same. It re-reads when older than the refresh
// interval.
func (t *Table) Load(ctx context.Context) (*Loaded, error) { panic("skeleton") }

// RawMetadata returns the current metadata JSON, decompressed, if it can be
// read even though Load fails.
func (t *Table) RawMetadata(ctx context.Context) ([]byte, error) { panic("skeleton") }

// Loaded is a table at one metadata version. Immutable.
type Loaded struct{}

// Table returns the table's values.
func (l *Loaded) Table() *snapshot.Table { panic("skeleton") }

// Store opens the table's files, wherever they have been moved to.
func (l *Loaded) Store() source.Store { panic("skeleton") }

// SchemaOf returns the id of the schema that s was written with: its own, else
// that of its newest manifest, else the table's current one.
func (l *Loaded) SchemaOf(ctx context.Context, s *snapshot.Snapshot) (int, error) { panic("skeleton") }

// Plan returns the live files of a snapshot with the deletes that apply to
// each, from manifests that all snapshots share.
func (l *Loaded) Plan(ctx context.Context, snapshotID int64) (*snapshot.Plan, error) {
	panic("skeleton")
}
