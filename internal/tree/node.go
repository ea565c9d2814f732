package tree

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/icefs/icefs/merge"
)

// Kind of a tree entry.
type Kind int

// Kinds of entries.
const (
	KindDir Kind = iota
	KindFile
	KindLink
)

// Attr of an entry, without its size.
type Attr struct {
	Kind       Kind
	Ino        uint64 // never 0 or ^0; 1 is the root alone
	Generation uint64
	MTime      time.Time
	// Immutable entries may be cached for hours; others for the refresh interval.
	Immutable bool
	// Dynamic files (.icefs) have their content fixed at open and no stable size.
	Dynamic bool
}

// Entry of a listing. Its Ino is that of the node's Attr.
type Entry struct {
	Name string
	Kind Kind
	Ino  uint64
}

// Node is anything in the tree: a Dir, a File or a Link.
type Node interface {
	// Attr needs no size: at most metadata and manifests are read.
	Attr(ctx context.Context) (Attr, error)
}

// Dir is a folder.
type Dir interface {
	Node
	// Lookup returns the entry of that name, also one that is not listed. If
	// there is none, the error wraps fs.ErrNotExist.
	Lookup(ctx context.Context, name string) (Node, error)
	// Entries lists the folder, without "." and "..".
	Entries(ctx context.Context) ([]Entry, error)
}

// Streamer is a Dir whose entries may come slowly, one after the other.
type Streamer interface {
	Dir
	// Stream lists the folder like Entries, each entry as soon as it is known. A
	// failure is the last element.
	Stream(ctx context.Context) iter.Seq2[Entry, error]
}

// File is a regular file.
type File interface {
	Node
	// Size is exact. Its first call may cost work; 0 for a dynamic file.
	Size(ctx context.Context) (int64, error)
	// Open returns a reader, which stays on the bytes it was opened on.
	Open(ctx context.Context) (merge.Handle, error)
}

// ViewFile is a File that is a view of rows.
type ViewFile interface {
	File
	// View returns the view, for streaming and explaining it.
	View(ctx context.Context) (merge.View, error)
}

// Link is a symbolic link.
type Link interface {
	Node
	// Target is relative to the link's folder.
	Target(ctx context.Context) (string, error)
}

// bytesHandle reads bytes in memory.
type bytesHandle struct{ r *bytes.Reader }

func newBytesHandle(b []byte) merge.Handle { return bytesHandle{bytes.NewReader(b)} }

func (h bytesHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return h.r.ReadAt(p, off)
}

func (h bytesHandle) Close() error { return nil }

// viewHandle reads a view that keeps no state per reader.
type viewHandle struct{ merge.View }

func (viewHandle) Close() error { return nil }

// openView opens a view with a handle of its own where it has such.
func openView(v merge.View) merge.Handle {
	if o, ok := v.(merge.Opener); ok {
		return o.Open()
	}
	return viewHandle{v}
}

// SnapshotFolder is a Dir that shows a snapshot's rows under one schema.
type SnapshotFolder interface {
	Dir
	// Scan is what the folder's views show.
	Scan(ctx context.Context) (merge.Scan, error)
}
