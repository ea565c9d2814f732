package fs

import (
	"context"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// readOnly refuses whatever would change something. The kernel already does so
// for a mount with ro; this holds for one that was remounted without it.
type readOnly struct{}

var (
	_ gofs.NodeSetattrer     = readOnly{}
	_ gofs.NodeSetxattrer    = readOnly{}
	_ gofs.NodeRemovexattrer = readOnly{}
	_ gofs.NodeMkdirer       = readOnly{}
	_ gofs.NodeMknoder       = readOnly{}
	_ gofs.NodeLinker        = readOnly{}
	_ gofs.NodeSymlinker     = readOnly{}
	_ gofs.NodeCreater       = readOnly{}
	_ gofs.NodeUnlinker      = readOnly{}
	_ gofs.NodeRmdirer       = readOnly{}
	_ gofs.NodeRenamer       = readOnly{}
	_ gofs.NodeWriter        = readOnly{}
	_ gofs.NodeAllocater     = readOnly{}
)

// Setattr answers chmod, chown, truncate and utimes with EROFS.
func (readOnly) Setattr(context.Context, gofs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return syscall.EROFS
}

// Setxattr answers EROFS.
func (readOnly) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return syscall.EROFS
}

// Removexattr answers EROFS.
func (readOnly) Removexattr(context.Context, string) syscall.Errno { return syscall.EROFS }

// Mkdir answers EROFS.
func (readOnly) Mkdir(context.Context, string, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

// Mknod answers EROFS.
func (readOnly) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

// Link answers EROFS.
func (readOnly) Link(context.Context, gofs.InodeEmbedder, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

// Symlink answers EROFS.
func (readOnly) Symlink(context.Context, string, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, syscall.EROFS
}

// Create answers EROFS.
func (readOnly) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EROFS
}

// Unlink answers EROFS.
func (readOnly) Unlink(context.Context, string) syscall.Errno { return syscall.EROFS }

// Rmdir answers EROFS.
func (readOnly) Rmdir(context.Context, string) syscall.Errno { return syscall.EROFS }

// Rename answers EROFS.
func (readOnly) Rename(context.Context, string, gofs.InodeEmbedder, string, uint32) syscall.Errno {
	return syscall.EROFS
}

// Write answers EROFS.
func (readOnly) Write(context.Context, gofs.FileHandle, []byte, int64) (uint32, syscall.Errno) {
	return 0, syscall.EROFS
}

// Allocate answers EROFS.
func (readOnly) Allocate(context.Context, gofs.FileHandle, uint64, uint64, uint32) syscall.Errno {
	return syscall.EROFS
}
