// Package tree is the folder tree of a warehouse without FUSE: names, entries,
// attributes and views. Packages fs (FUSE) and cmd/icefs (ls, cat, inspect) are
// adapters over it.
//
//	<namespace>/…/<table>/
//	    current             -> snapshots/<id>[@schema-<n>]
//	    snapshots/<id>/     data.parquet data.csv data.jsonl parts/ …
//	    branches/ tags/ by-time/ at/    -> ../snapshots/…
//	    metadata.json
//	.icefs/                 what Options.Control says
//
// Invariants:
//
//   - A listing computes no size and reads no data file: those of a namespace
//     and of snapshots/ need names alone, those of a snapshot's folder and of
//     parts/ need manifests. A namespace is listed as its catalog names tables
//     (Streamer), and looking up one of them lists none.
//   - What is below snapshots/<id> never changes for one Attr.Ino: a node stays at
//     the metadata version it was looked up in as long as that is kept, and then
//     takes the current one, in which it has to be what it was (ErrExpired if it
//     is not). Everything else asks the catalog again at each call, which answers
//     from memory within its refresh interval.
//   - What is kept of tables is bounded by Options.MetadataBytes; see keeper.
//   - An inode number is a hash of what determines the bytes; see identity.go.
//   - A file that cannot be served is still listed; its Size and Open fail.
//
// A Tree and its nodes are safe for concurrent use.
package tree

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"iter"
	"strings"
	"time"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// ErrExpired marks a failure of a file whose snapshot is no longer in its
// table's metadata; it is joined with the failure itself.
var ErrExpired = errors.New("snapshot is no longer in the table's metadata")

// Catalog lists namespaces and tables. Implemented by internal/warehouse.
// Errors that mean "gone" wrap fs.ErrNotExist.
type Catalog interface {
	// Root returns the entries at the root: a namespace, or (one table mounted)
	// the table itself.
	Root(ctx context.Context) (Namespace, Table, error)
}

// Namespace is a folder of tables and namespaces, re-read as it is asked.
type Namespace interface {
	// Verbatim reports whether names are those of folders, shown as they are;
	// else they are a catalog's, and escaped.
	Verbatim() bool
	// Namespaces lists the namespaces in it.
	Namespaces(ctx context.Context) (iter.Seq2[string, Namespace], error)
	// Tables lists the names of the tables in it, each as soon as it is known. A
	// failure is the last element.
	Tables(ctx context.Context) iter.Seq2[string, error]
	// Table returns the table of a name; it lists the others only if it has to.
	Table(ctx context.Context, name string) (Table, error)
}

// Table is a table of the catalog; Load re-reads its metadata when it is older
// than the refresh interval and returns the same Loaded while nothing changed.
type Table interface {
	Load(ctx context.Context) (Loaded, error)
	// RawMetadata is the metadata JSON if it can be read even though Load fails.
	RawMetadata(ctx context.Context) ([]byte, error)
}

// Loaded is a table at one metadata version. It is comparable (a pointer), and
// equal Loadeds are the same version.
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

// ControlFile is a file of .icefs, made anew each time it is opened.
type ControlFile struct {
	Name    string
	Content func(ctx context.Context) ([]byte, error)
}

// Options of New.
type Options struct {
	Catalog Catalog
	Views   Views
	// Show selects the data files of a snapshot; the zero value is DefaultShown.
	Show Shown
	// History selects the snapshots shown.
	History History
	// ParquetOptions, CSVOptions and JSONLOptions spell out what changes the
	// bytes of views beside the table; they become part of inode numbers.
	ParquetOptions, CSVOptions, JSONLOptions string
	// Control lists the files of .icefs; none hides the folder.
	Control []ControlFile
	// MetadataBytes bounds what is kept of tables: their metadata, and the files and
	// deletes of their snapshots. Losing it costs reading it again. 0 =
	// DefaultMetadataBytes.
	MetadataBytes int64
}

// Tree is the folder tree of one catalog.
type Tree struct {
	opt    Options
	root   Dir
	keeper *keeper
}

// New returns the tree of opt.Catalog.
func New(ctx context.Context, opt Options) (*Tree, error) {
	if opt.Show == (Shown{}) {
		opt.Show = DefaultShown()
	}
	t := &Tree{opt: opt, keeper: newKeeper(opt.MetadataBytes)}
	ns, tbl, err := opt.Catalog.Root(ctx)
	if err != nil {
		return nil, err
	}
	var top Dir
	if tbl != nil {
		top = &tableDir{tree: t, src: tbl, path: ""}
	} else {
		top = &namespaceDir{tree: t, src: ns, path: "", reserved: t.controlNames()}
	}
	t.root = &rootDir{Dir: top, tree: t}
	return t, nil
}

// MetadataBytes is about what is kept of tables now, and how much may be. What calls
// under way and open files hold beyond it is not counted.
func (t *Tree) MetadataBytes() (kept, limit int64) { return t.keeper.bytes(), t.keeper.limit }

// Root returns the top folder.
func (t *Tree) Root() Dir { return t.root }

// Resolve follows a slash-separated path from the root, links included, and
// returns the node at its end. The empty path is the root.
func (t *Tree) Resolve(ctx context.Context, path string) (Node, error) {
	n, _, err := resolve(ctx, t.root, path, true)
	return n, err
}

// ResolveLink is Resolve without following a link at the path's end.
func (t *Tree) ResolveLink(ctx context.Context, path string) (Node, error) {
	n, _, err := resolve(ctx, t.root, path, false)
	return n, err
}

// Find is Resolve of a path given by its names, and tells the path without links
// that leads to the node.
func (t *Tree) Find(ctx context.Context, names []string) (Node, []string, error) {
	return resolve(ctx, t.root, strings.Join(names, "/"), true)
}

// maxLinks bounds the links followed for one path, as file systems do.
const maxLinks = 40

func resolve(ctx context.Context, root Dir, path string, last bool) (Node, []string, error) {
	stack := []Dir{root} // the folders passed; at[i] is the name of stack[i+1]
	var at []string
	rest := strings.Split(path, "/")
	var node Node = root
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			at = at[:len(stack)-1]
			node = stack[len(stack)-1]
			continue
		}
		dir, ok := node.(Dir)
		if !ok {
			return nil, nil, fmt.Errorf("%s: %w", path, ErrNotDir)
		}
		child, err := dir.Lookup(ctx, name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		switch c := child.(type) {
		case Dir:
			stack = append(stack, c)
		case Link:
			if len(rest) == 0 && !last {
				return c, append(at, name), nil
			}
			if links++; links > maxLinks {
				return nil, nil, fmt.Errorf("%s: too many links", path)
			}
			target, err := c.Target(ctx)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			rest = append(strings.Split(target, "/"), rest...)
			continue
		}
		node = child
		at = append(at, name)
	}
	return node, at, nil
}

// ErrNotDir: a path leads through what is no folder.
var ErrNotDir = errors.New("not a directory")

var (
	// errNoEntry is what Lookup returns for a name that is not there.
	errNoEntry = iofs.ErrNotExist
)

// Fixed is the modification time of what has none of its own: the root,
// namespaces and .icefs. Not zero, which some caches take for "unknown", and
// within what every archive format can hold.
func Fixed() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }
