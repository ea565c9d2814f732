// Package tree is the folder tree of a warehouse without FUSE: names, entries,
// attributes and views. Packages fs (FUSE) and cmd/icefs (ls, cat, inspect) are
// adapters over it.
package tree

import (
	"context"
	"iter"
	"time"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// Catalog lists namespaces and tables. Implemented by internal/warehouse.
// Errors that mean "gone" wrap fs.ErrNotExist.
type Catalog interface {
	// Root returns the entries at the root: a namespace, or (one table mounted)
	// the table itself.
	Root(ctx context.Context) (Namespace, Table, error)
}

// Namespace is a folder of tables and namespaces, re-read as it is asked.
type Namespace interface {
	Namespaces(ctx context.Context) (iter.Seq2[string, Namespace], error)
	Tables(ctx context.Context) (iter.Seq2[string, Table], error)
}

// Table is a table of the catalog; Load re-reads its metadata when it is older
// than the refresh interval and returns the same Loaded while nothing changed.
type Table interface {
	Load(ctx context.Context) (Loaded, error)
	// RawMetadata is the metadata JSON if it can be read even though Load fails.
	RawMetadata(ctx context.Context) ([]byte, error)
}

// Loaded is a table at one metadata version.
type Loaded interface {
	Table() *snapshot.Table
	Store() merge.Store
	// SchemaOf is the schema id a snapshot was written with.
	SchemaOf(ctx context.Context, s *snapshot.Snapshot) (int, error)
	// Plan reads manifests (cached, shared by all snapshots).
	Plan(ctx context.Context, snapshotID int64) (*snapshot.Plan, error)
}

// Views makes views. Implemented by merge.Engine.
type Views interface {
	Parquet(s merge.Scan) merge.View
	Part(s merge.Scan, i int) merge.View
	CSV(s merge.Scan) merge.View
	JSONL(s merge.Scan) merge.View
}

// EntryKind of a tree entry.
type EntryKind int

const (
	KindDir EntryKind = iota
	KindFile
	KindLink
)

// Attr of an entry. Size of a file is asked from its view.
type Attr struct {
	Kind       EntryKind
	Ino        uint64 // never 0, 1 or ^0 (the root is 1)
	Generation uint64
	MTime      time.Time
	// Immutable entries may be cached for hours; others for the refresh interval.
	Immutable bool
	// Dynamic files (.icefs) have their content fixed at open and no stable size.
	Dynamic bool
}
