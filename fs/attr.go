package fs

import (
	"context"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/icefs/icefs/internal/tree"
)

// node is what all nodes have: the file system, and its answers to whatever
// would change something.
type node struct {
	gofs.Inode
	readOnly
	fs *FS
}

// mode of a kind of entry, file type included.
func (f *FS) mode(k tree.Kind) uint32 {
	switch k {
	case tree.KindDir:
		return syscall.S_IFDIR | f.opt.DirMode
	case tree.KindLink:
		return syscall.S_IFLNK | 0o777
	}
	return syscall.S_IFREG | f.opt.FileMode
}

// attr fills in what stat shows.
func (f *FS) attr(out *fuse.Attr, a tree.Attr, size int64) {
	out.Ino = a.Ino
	out.Mode = f.mode(a.Kind)
	out.Size = uint64(size)
	out.Blocks = (out.Size + 511) / 512
	out.Blksize = maxIO // cat and cp take it as the size of their reads
	out.Nlink = 1       // for folders: the number of subfolders is not told
	out.Owner = fuse.Owner{Uid: f.uid, Gid: f.gid}
	out.SetTimes(&a.MTime, &a.MTime, &a.MTime)
}

// ttl is how long the kernel may keep an entry.
func (f *FS) ttl(a tree.Attr) time.Duration {
	if a.Immutable {
		return immutableTTL
	}
	return max(f.opt.Refresh, 0)
}

// sizeOf asks the tree for what stat shows as an entry's size.
func sizeOf(ctx context.Context, n tree.Node) (int64, error) {
	switch n := n.(type) {
	case tree.File:
		return n.Size(ctx)
	case tree.Link:
		target, err := n.Target(ctx)
		return int64(len(target)), err
	}
	return 0, nil
}

// getattr answers a stat of an open or looked-up node.
func (n *node) getattr(ctx context.Context, what tree.Node, out *fuse.AttrOut) (errno syscall.Errno) {
	defer n.fs.watch("stat", &n.Inode, "")(&errno)
	a, err := what.Attr(ctx)
	if err != nil {
		return n.fs.fail(ctx, "stat", &n.Inode, "", err)
	}
	size, err := sizeOf(ctx, what)
	if err != nil {
		return n.fs.fail(ctx, "stat", &n.Inode, "", err)
	}
	n.fs.attr(&out.Attr, a, size)
	if !a.Dynamic {
		out.SetTimeout(n.fs.ttl(a))
	}
	return 0
}
