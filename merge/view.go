// Package merge makes the files that icefs shows: a snapshot's visible rows as
// one Parquet file, as CSV, as JSON Lines, and one Parquet part per data file.
//
// A Parquet view is a layout: a footer of its own over segments, each raw (the
// source's bytes), synthesized (columns the file lacks) or rewritten (chunks
// with deleted rows, or in another physical form). Sizes are known before bytes
// are made: see docs/virtual-parquet.md. Text views have exact sizes after one
// measuring pass that is kept.
package merge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Sentinels; errors name the file or column once.
var (
	ErrUnsupported = errors.New("unsupported in this view")
	ErrCorrupt     = errors.New("inconsistent data")
)

// View is one file of a snapshot directory: immutable bytes of a fixed size.
type View interface {
	// Size returns the exact size in bytes. Its first call may cost work.
	Size(ctx context.Context) (int64, error)
	// ReadAt fills p from off; n < len(p) only with an error, io.EOF past the end.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

// Opener is a View whose handles keep state of their own (decoded row groups,
// read-ahead), so that a reader never decodes twice what it is in.
type Opener interface {
	View
	Open() Handle
}

// Handle is one reader of a view. ReadAt may be called concurrently.
type Handle interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Close() error
}

// Piecer is a Handle that may have bytes in memory, which a kernel can then be
// given without a copy.
type Piecer interface {
	Handle
	// Pieces returns n bytes from off, fewer only with an error or at the end; nil
	// if they are not in memory, so that ReadAt has to be asked. They are never
	// changed.
	Pieces(ctx context.Context, n int, off int64) ([][]byte, error)
}

// Streamer is a View that can be written out without measuring it first.
type Streamer interface {
	View
	WriteTo(ctx context.Context, w io.Writer) error
}

// Explainer is a View that can print how it is laid out, for `icefs inspect`
// and goldens.
type Explainer interface {
	View
	Explain(ctx context.Context, w io.Writer) error
}

// Scan is what a view shows: a plan of one table under one schema.
type Scan struct {
	Table  *snapshot.Table
	Schema *iceberg.Schema
	Plan   *snapshot.Plan
	Store  source.Store // opens the table's files

	// metadata says that Schema has metadata columns; invalid is why it cannot.
	metadata bool
	invalid  error
}

// InStore reports whether data file i lies in an object store, by its location:
// Parquet views of such files are laid out otherwise.
func (s *Scan) InStore(i int) bool { return source.InStore(s.Store, s.Plan.Files[i].Path) }

// CSVOptions are part of a view's identity.
type CSVOptions struct {
	Null      string // text of NULL; "" = empty unquoted field
	Delimiter byte   // 0 = ','
	NoHeader  bool
	BOM       bool
}

// Statistics policy of Parquet footers.
type Statistics int

const (
	StatisticsExact Statistics = iota
	StatisticsNone
	StatisticsAll
	// StatisticsAuto is exact, but none where a data file is in an object store.
	StatisticsAuto
)

// Options of an Engine.
type Options struct {
	Cache      deletes.Cache   // same shape: Get with single flight
	Persist    deletes.Persist // may be nil
	Deletes    *deletes.Resolver
	Log        *slog.Logger
	CSV        CSVOptions
	Statistics Statistics
	// MetadataColumns follow the table's columns in every view; see
	// ParseMetadataColumns. They change bytes.
	MetadataColumns []string
	Stats           *pqfile.Stats
	Counters        *Counters // may be nil
	// MemoryBytes is the budget of everything, Cache included, which the caller
	// gives CacheShare of it; 0 = DefaultMemoryBytes.
	MemoryBytes int64
	// Workers bounds parallel decoding; 0 = GOMAXPROCS.
	Workers int
	// NoSplice rewrites every chunk, NoCoalesce keeps every row group, and NoPages
	// makes chunks as a whole: for comparing the paths.
	NoSplice, NoCoalesce, NoPages bool
}

// Engine builds views. Safe for concurrent use.
type Engine struct {
	opt    Options
	texts  textState
	memory *budget
	// writers keeps *pageWriters, whose buffers are as long as chunks.
	writers sync.Pool
	limits  limits
}

// limits are those by which chunks are divided, and from which on a layout is
// kept: constants but for tests.
type limits struct{ runBytes, pieceBytes, keptRows, leastKept int64 }

// NewEngine returns an Engine.
func NewEngine(opt Options) *Engine {
	return &Engine{
		opt: opt, memory: newBudget(opt.MemoryBytes),
		limits: limits{runBytes: runBytes, pieceBytes: pieceBytes, keptRows: keptRows, leastKept: leastKept},
	}
}

// LayoutFormat is the number of the byte layout of views; it changes whenever
// the bytes of any existing view would. It is part of every view's identity.
const LayoutFormat = 3

// Store opens a table's files; the name under which internal/tree passes it on.
type Store = source.Store
