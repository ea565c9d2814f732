package fs

import (
	"context"
	"sync"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/icefs/icefs/internal/tree"
)

// dirNode is a folder.
type dirNode struct {
	node

	mu  sync.Mutex
	dir tree.Dir // replaced when the folder is looked up again
}

var (
	_ gofs.NodeLookuper  = (*dirNode)(nil)
	_ gofs.NodeGetattrer = (*dirNode)(nil)
)

func (n *dirNode) get() tree.Dir {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dir
}

func (n *dirNode) set(d tree.Dir) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dir = d
}

// Getattr implements stat.
func (n *dirNode) Getattr(ctx context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.getattr(ctx, n.get(), out)
}

// lookupPatience is how long a lookup waits for a file's size. All who look up
// the same name wait for one lookup in the kernel, deaf to signals; for an
// attribute each waits for itself.
const lookupPatience = 50 * time.Millisecond

// Lookup finds an entry and its attributes. If the size takes long to find, the
// entry is returned without: the kernel then asks again (Getattr) before it
// tells or uses a size.
func (n *dirNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (_ *gofs.Inode, errno syscall.Errno) {
	defer n.fs.watch("lookup", &n.Inode, name)(&errno)
	found, err := n.get().Lookup(ctx, name)
	if err != nil {
		return nil, n.fs.fail(ctx, "lookup", &n.Inode, name, err)
	}
	a, err := found.Attr(ctx)
	if err != nil {
		return nil, n.fs.fail(ctx, "lookup", &n.Inode, name, err)
	}
	patient, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	size, err := sizeOf(patient, found)
	late := err != nil && ctx.Err() == nil && patient.Err() != nil
	if err != nil && !late {
		return nil, n.fs.fail(ctx, "lookup", &n.Inode, name, err)
	}
	n.fs.attr(&out.Attr, a, size)
	ttl := n.fs.ttl(a)
	out.SetEntryTimeout(ttl)
	if !a.Dynamic && !late {
		out.SetAttrTimeout(ttl)
	}
	stable := gofs.StableAttr{Mode: n.fs.mode(a.Kind) & syscall.S_IFMT, Ino: a.Ino, Gen: a.Generation}
	if old := n.GetChild(name); old != nil && old.StableAttr() == stable {
		if d, ok := old.Operations().(*dirNode); ok && !a.Immutable {
			d.set(found.(tree.Dir))
		}
		return old, 0
	}
	return n.NewInode(ctx, n.fs.nodeOf(found), stable), 0
}

// nodeOf wraps an entry of the tree.
func (f *FS) nodeOf(found tree.Node) gofs.InodeEmbedder {
	switch t := found.(type) {
	case tree.Dir:
		return &dirNode{node: node{fs: f}, dir: t}
	case tree.Link:
		return &linkNode{node: node{fs: f}, link: t}
	}
	return &fileNode{node: node{fs: f}, file: found.(tree.File)}
}
