package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// faultKind is a way in which a source lets its reader down.
type faultKind int

const (
	failingRead  faultKind = iota // read(2) fails with EIO
	shortRead                     // read(2) ends halfway, as if the file did
	slowRead                      // read(2) takes a while
	flippedRead                   // read(2) gives a bit that was not written
	failingOpen                   // open(2) fails with EIO
	vanishedOpen                  // open(2) fails with ENOENT, of a file that stat still finds
	vanishedFile                  // the file is not there, but listed
	failingStat                   // stat(2) fails with EIO
	failingList                   // the folder cannot be listed: EIO
)

func (k faultKind) String() string {
	return [...]string{"EIO at read", "short read", "slow read", "bit flip", "EIO at open", "ENOENT at open", "ENOENT", "EIO at stat", "EIO at opendir"}[k]
}

// call is one thing that is asked of the source: a read of file, with its range,
// or another call on it, without.
type call struct {
	file string // below the source's root
	what callKind
	off  int64
	n    int
}

type callKind int

const (
	readCall callKind = iota
	openCall
	statCall
	listCall
)

// fault is a call that goes wrong, whenever it is made.
type fault struct {
	kind  faultKind
	at    call
	flip  int64 // the byte of the file that is damaged, with flippedRead
	bit   uint
	fired atomic.Int64
}

// slowness is how long a slow read takes: long beside any other.
const slowness = 15 * time.Millisecond

// faultSource shows a folder again, from this process, and does one thing wrong.
// Only other processes may read it. Nothing of it is kept by the kernel, so that
// every call of icefs gets here.
type faultSource struct {
	dir        string // shown
	mountpoint string

	fault atomic.Pointer[fault] // nil: none

	calls recorder[call]
}

// newFaultSource shows dir for as long as a test takes, and at most for limit: if
// this process were to end while it waits for one that waits for it, neither
// would.
func newFaultSource(t *testing.T, dir string, limit time.Duration) *faultSource {
	t.Helper()
	s := &faultSource{dir: dir, mountpoint: t.TempDir()}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	data := &gofs.LoopbackRoot{Path: dir, Dev: uint64(st.Dev)}
	root := &faultNode{LoopbackNode: gofs.LoopbackNode{RootData: data}, source: s}
	data.RootNode = root
	_, err := gofs.Mount(s.mountpoint, root, &gofs.Options{MountOptions: fuse.MountOptions{Name: "faults", DirectMount: true, DisableReadDirPlus: true}})
	if err != nil {
		t.Fatal(err)
	}
	abort := time.AfterFunc(limit, func() {
		t.Errorf("not done within %v", limit)
		syscall.Unmount(s.mountpoint, syscall.MNT_FORCE|syscall.MNT_DETACH)
	})
	t.Cleanup(func() {
		s.fault.Store(nil)
		abort.Stop()
		// icefs may have a folder of it open until it collects garbage.
		if err := syscall.Unmount(s.mountpoint, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return s
}

// meets notes a call, and returns the fault if it concerns it.
func (s *faultSource) meets(c call, kinds ...faultKind) *fault {
	s.calls.note(c)
	f := s.fault.Load()
	if f == nil || f.at.file != c.file {
		return nil
	}
	for _, k := range kinds {
		if f.kind == k {
			return f
		}
	}
	return nil
}

type faultNode struct {
	gofs.LoopbackNode
	source *faultSource
}

// WrapChild makes what the folder holds go wrong, too.
func (n *faultNode) WrapChild(context.Context, gofs.InodeEmbedder) gofs.InodeEmbedder {
	return &faultNode{LoopbackNode: gofs.LoopbackNode{RootData: n.RootData}, source: n.source}
}

func (n *faultNode) file() string { return n.Path(n.RootData.RootNode.EmbeddedInode()) }

// Lookup implements gofs.NodeLookuper.
func (n *faultNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	c := call{file: filepath.Join(n.file(), name), what: statCall}
	if f := n.source.meets(c, vanishedFile, failingStat); f != nil {
		f.fired.Add(1)
		if f.kind == vanishedFile {
			return nil, syscall.ENOENT
		}
		return nil, syscall.EIO
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

// OpendirHandle implements gofs.NodeOpendirHandler.
func (n *faultNode) OpendirHandle(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if f := n.source.meets(call{file: n.file(), what: listCall}, failingList); f != nil {
		f.fired.Add(1)
		return nil, 0, syscall.EIO
	}
	return n.LoopbackNode.OpendirHandle(ctx, flags)
}

// Open opens a file that the kernel keeps nothing of.
func (n *faultNode) Open(context.Context, uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	file := n.file()
	if f := n.source.meets(call{file: file, what: openCall}, failingOpen, vanishedOpen); f != nil {
		f.fired.Add(1)
		if f.kind == vanishedOpen {
			return nil, 0, syscall.ENOENT
		}
		return nil, 0, syscall.EIO
	}
	f, err := os.Open(filepath.Join(n.source.dir, file))
	if err != nil {
		return nil, 0, gofs.ToErrno(err)
	}
	return &faultFile{f, file, n.source}, fuse.FOPEN_DIRECT_IO, 0
}

type faultFile struct {
	*os.File
	name   string
	source *faultSource
}

var (
	_ gofs.FileReader   = (*faultFile)(nil)
	_ gofs.FileReleaser = (*faultFile)(nil)
)

// Read implements gofs.FileReader.
func (f *faultFile) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := syscall.Pread(int(f.Fd()), dest, off)
	if err != nil {
		return nil, gofs.ToErrno(err)
	}
	c := call{file: f.name, off: off, n: len(dest)}
	if fault := f.source.meets(c, failingRead, shortRead, slowRead, flippedRead); fault != nil {
		var errno syscall.Errno
		if n, errno = fault.harm(ctx, c, dest[:n]); errno != 0 {
			return nil, errno
		}
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// harm does what the fault does to a read of its file, which gave p.
func (f *fault) harm(ctx context.Context, c call, p []byte) (n int, errno syscall.Errno) {
	half := f.at.off + int64(f.at.n/2)
	rest := f.kind == shortRead && c.off == half && c.off+int64(c.n) == f.at.off+int64(f.at.n)
	if c != f.at && !rest {
		return len(p), 0
	}
	f.fired.Add(1)
	switch f.kind {
	case failingRead:
		return 0, syscall.EIO
	case shortRead:
		return max(0, min(len(p), int(half-c.off))), 0
	case slowRead:
		select {
		case <-time.After(slowness):
		case <-ctx.Done():
			return 0, syscall.EINTR
		}
	case flippedRead:
		if at := f.flip - c.off; at >= 0 && at < int64(len(p)) {
			p[at] ^= 1 << f.bit
		}
	}
	return len(p), 0
}

// Release implements gofs.FileReleaser.
func (f *faultFile) Release(context.Context) syscall.Errno { return gofs.ToErrno(f.Close()) }
