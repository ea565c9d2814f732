package main

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// slowSource shows a folder again, from this process, with reads that take as
// long as delay says. Only other processes may read it.
func slowSource(t *testing.T, dir string) (mountpoint string, delay *atomic.Int64) {
	t.Helper()
	delay = new(atomic.Int64)
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	data := &gofs.LoopbackRoot{Path: dir, Dev: uint64(st.Dev)}
	root := &slowNode{LoopbackNode: gofs.LoopbackNode{RootData: data}, delay: delay}
	data.RootNode = root
	mountpoint = t.TempDir()
	server, err := gofs.Mount(mountpoint, root, &gofs.Options{MountOptions: fuse.MountOptions{Name: "slow", DirectMount: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		delay.Store(0)
		if err := server.Unmount(); err != nil {
			t.Error(err)
			syscall.Unmount(mountpoint, syscall.MNT_DETACH)
		}
	})
	return mountpoint, delay
}

type slowNode struct {
	gofs.LoopbackNode
	delay *atomic.Int64
}

// WrapChild makes what the folder holds slow, too.
func (n *slowNode) WrapChild(context.Context, gofs.InodeEmbedder) gofs.InodeEmbedder {
	return &slowNode{LoopbackNode: gofs.LoopbackNode{RootData: n.RootData}, delay: n.delay}
}

// Open opens a file that the kernel keeps nothing of.
func (n *slowNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	h, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &slowFile{h, n.delay}, fuse.FOPEN_DIRECT_IO, 0
}

type slowFile struct {
	gofs.FileHandle
	delay *atomic.Int64
}

func (f *slowFile) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	select {
	case <-time.After(time.Duration(f.delay.Load())):
	case <-ctx.Done():
		return nil, syscall.EINTR
	}
	return f.FileHandle.(gofs.FileReader).Read(ctx, dest, off)
}

func (f *slowFile) Release(ctx context.Context) syscall.Errno {
	return f.FileHandle.(gofs.FileReleaser).Release(ctx)
}
