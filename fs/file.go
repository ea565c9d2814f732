package fs

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/icefs/icefs/internal/tree"
)

// fileNode is a regular file.
type fileNode struct {
	node
	file tree.File

	mu  sync.Mutex
	way way

	passed      *os.File // open for passthrough by passedUsers handles
	passedInfo  os.FileInfo
	passedUsers int
}

var (
	_ gofs.NodeGetattrer = (*fileNode)(nil)
	_ gofs.NodeOpener    = (*fileNode)(nil)
)

// Getattr implements stat.
func (n *fileNode) Getattr(ctx context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.getattr(ctx, n.file, out)
}

// Open opens the file for reading.
func (n *fileNode) Open(ctx context.Context, flags uint32) (_ gofs.FileHandle, _ uint32, errno syscall.Errno) {
	defer n.fs.watch("open", &n.Inode, "")(&errno)
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&(syscall.O_TRUNC|syscall.O_CREAT) != 0 {
		return nil, 0, syscall.EROFS
	}
	a, err := n.file.Attr(ctx)
	if err != nil {
		return nil, 0, n.fs.fail(ctx, "open", &n.Inode, "", err)
	}
	h, err := n.file.Open(ctx)
	if err != nil {
		return nil, 0, n.fs.fail(ctx, "open", &n.Inode, "", err)
	}
	handle := &fileHandle{node: n, reader: h}
	if a.Dynamic {
		return handle, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, 0
	}
	f, err := n.passFile(ctx, h)
	if err != nil {
		h.Close()
		return nil, 0, n.fs.fail(ctx, "open", &n.Inode, "", err)
	}
	if f != nil {
		return &passedHandle{handle, f}, fuse.FOPEN_NOFLUSH, 0
	}
	handle.stats = n.fs.opt.Stats
	b, ok := h.(borrower)
	var stored, remote bool
	if ok {
		stored, remote = b.Stored(ctx)
	}
	n.fs.readAhead.set(stored, remote)
	return handle, fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH, 0
}

// reader is an open file of the tree.
type reader interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	io.Closer
}

// fileHandle is one open file.
type fileHandle struct {
	node   *fileNode
	reader reader
	stats  *Stats // nil for files about the mount itself
}

var (
	_ gofs.FileReader   = (*fileHandle)(nil)
	_ gofs.FileReleaser = (*fileHandle)(nil)
)

// Read fills dest, or fails: only the end of the file gives less.
func (h *fileHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if r := h.spliced(ctx, len(dest), off); r != nil {
		return r, 0
	}
	call := h.node.fs.begin("read", &h.node.Inode, "")
	pieces, err := h.read(ctx, dest, off)
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	call.End(n, err != nil)
	if err != nil {
		return nil, h.node.fs.fail(ctx, "read", &h.node.Inode, "", err)
	}
	if h.stats != nil {
		h.stats.CopiedBytes.Add(int64(n))
	}
	// A vector is written as it is; go-fuse would fetch a pipe for other data.
	return fuse.ReadResultVector(pieces), 0
}

// piecer is a reader that may have the bytes in memory; see merge.Piecer, which
// fs cannot name.
type piecer interface {
	Pieces(ctx context.Context, n int, off int64) ([][]byte, error)
}

// read returns as many bytes as dest has room for, in dest or where they are;
// fewer only at the end.
func (h *fileHandle) read(ctx context.Context, dest []byte, off int64) ([][]byte, error) {
	if p, ok := h.reader.(piecer); ok {
		if pieces, err := p.Pieces(ctx, len(dest), off); pieces != nil || err != nil {
			return pieces, err
		}
	}
	n, err := h.reader.ReadAt(ctx, dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return [][]byte{dest[:n]}, nil
}

// Release closes the reader.
func (h *fileHandle) Release(ctx context.Context) syscall.Errno {
	if err := h.reader.Close(); err != nil {
		return h.node.fs.fail(ctx, "close", &h.node.Inode, "", err)
	}
	return 0
}

// linkNode is a symbolic link.
type linkNode struct {
	node
	link tree.Link
}

var (
	_ gofs.NodeGetattrer  = (*linkNode)(nil)
	_ gofs.NodeReadlinker = (*linkNode)(nil)
)

// Getattr implements lstat.
func (n *linkNode) Getattr(ctx context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.getattr(ctx, n.link, out)
}

// Readlink returns the target. The kernel does not keep it.
func (n *linkNode) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	target, err := n.link.Target(ctx)
	if err != nil {
		return nil, n.fs.fail(ctx, "readlink", &n.Inode, "", err)
	}
	return []byte(target), 0
}
