package fs

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"os"
	"sync/atomic"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/hanwen/go-fuse/v2/splice"
)

// Where a view has a local file's bytes as they are, the kernel can take them
// from that file:
//
//   - passthrough, for a view that is a file as a whole: reads and mmap never
//     come here, and the page cache is the source's own (Linux 6.9, root);
//   - splice, for long reads within a view: pages of the source's page cache are
//     moved to /dev/fuse by reference and copied once, not twice.

// Stats count how bytes were handed out. All only grow.
type Stats struct {
	PassthroughOpens atomic.Int64 // files opened whose reads the kernel serves
	SplicedBytes     atomic.Int64 // bytes spliced from local files
	CopiedBytes      atomic.Int64 // bytes copied to the kernel
}

// borrower is a reader whose bytes may be those of local files; see
// merge.Passthrough, which fs cannot name.
type borrower interface {
	OpenFile(ctx context.Context) (*os.File, error)
	Stored(ctx context.Context) (stored, remote bool)
	Borrow(ctx context.Context, off int64, n int, each func(f *os.File, at int64, n int) error) (bool, error)
}

// The kernel refuses to open a file for passthrough while it is open without,
// and the other way round, so a node keeps the way it was first opened in.
type way int

const (
	undecided way = iota
	passing
	reading
)

// passFile returns the file that the kernel is to read in place of the view; nil
// if the node is read by requests. Release gives it back.
func (n *fileNode) passFile(ctx context.Context, r reader) (*os.File, error) {
	b, ok := r.(borrower)
	if !ok || n.fs.opt.NoKernelPath {
		return nil, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.passedUsers > 0 { // one descriptor serves all who have it open
		if err := n.stillPasses(ctx, b); err != nil {
			return nil, err
		}
		n.passedUsers++
		n.fs.opt.Stats.PassthroughOpens.Add(1)
		return n.passed, nil
	}
	if n.way == undecided && n.fs.passed.Load() >= passedLimit() {
		n.way = reading
	}
	if n.way == reading {
		return nil, nil
	}
	f, err := b.OpenFile(ctx)
	if err == nil && f != nil {
		n.passedInfo, err = f.Stat()
	}
	switch {
	case n.way == passing && err != nil:
		if f != nil {
			f.Close()
		}
		return nil, err
	case n.way == undecided && (f == nil || err != nil || !n.fs.accepts(f)):
		n.way = reading // what is wrong with the file, a read will tell
		if f != nil {
			f.Close()
		}
		return nil, nil
	}
	n.way, n.passed, n.passedUsers = passing, f, 1
	n.fs.passed.Add(1)
	n.fs.opt.Stats.PassthroughOpens.Add(1)
	return f, nil
}

// stillPasses fails if the file that is open for passthrough was written to since
// it was opened. n.mu is held.
func (n *fileNode) stillPasses(ctx context.Context, b borrower) error {
	now, err := n.passed.Stat()
	if err == nil && now.Size() == n.passedInfo.Size() && now.ModTime().Equal(n.passedInfo.ModTime()) {
		return nil
	}
	f, err := b.OpenFile(ctx) // which knows what the file should be
	if f != nil {
		f.Close()
	}
	return err
}

// passedLimit is how many descriptors open parts may take: an eighth of what the
// process may have. Parts opened beyond that are read by requests.
func passedLimit() int64 {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return int64(min(r.Cur/8, 1<<20))
}

// accepts reports whether the kernel takes a file for passthrough: not without
// root or from before Linux 6.9, nor from a stacked file system (overlay).
// go-fuse would give passthrough up for the whole mount at the first refusal.
func (f *FS) accepts(file *os.File) bool {
	id, errno := f.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(file.Fd())})
	if errno != 0 {
		return false
	}
	return f.server.UnregisterBackingFd(id) == 0
}

var _ gofs.FilePassthroughFder = (*passedHandle)(nil)

// passedHandle is an open file that the kernel reads by itself.
type passedHandle struct {
	*fileHandle
	file *os.File
}

// PassthroughFd implements gofs.FilePassthroughFder.
func (h *passedHandle) PassthroughFd() (int, bool) { return int(h.file.Fd()), true }

// Release closes the file, which the kernel has opened for itself.
func (h *passedHandle) Release(ctx context.Context) syscall.Errno {
	n := h.node
	n.mu.Lock()
	if n.passedUsers--; n.passedUsers == 0 {
		n.fs.passed.Add(-1)
		n.passed.Close() // read-only: nothing can be lost
		n.passed = nil
	}
	n.mu.Unlock()
	return h.fileHandle.Release(ctx)
}

// minSplice is the shortest read that is spliced: four system calls have to cost
// less than one copy.
const minSplice = 64 << 10

// spliced fills a pipe with the bytes of a read; nil if that is not possible.
// The pipe must be full in the end, and its pages fit, with a header, into the
// pipe that go-fuse moves them to: it would answer with fewer bytes otherwise,
// which readers take for the end of the file.
func (h *fileHandle) spliced(ctx context.Context, n int, off int64) fuse.ReadResult {
	b, ok := h.reader.(borrower)
	page := os.Getpagesize()
	if !ok || h.node.fs.opt.NoKernelPath || n < minSplice || n%page != 0 || n+2*page > splice.MaxPipeSize() {
		return nil
	}
	var pipe *splice.Pair
	free := pipePages(n+page+1) - 1
	ok, err := b.Borrow(ctx, off, n, func(f *os.File, at int64, piece int) (err error) {
		if free -= (int(at%int64(page)) + piece + page - 1) / page; free < 0 {
			return errPipeFull
		}
		if pipe == nil {
			if pipe, err = pipeOf(n + 2*page); err != nil {
				return err
			}
		}
		loaded, err := pipe.LoadFromAt(f.Fd(), piece, at)
		if err == nil && loaded != piece {
			return io.ErrUnexpectedEOF
		}
		return err
	})
	switch {
	case pipe == nil:
		return nil
	case !ok || err != nil:
		splice.Done(pipe)
		return nil
	}
	h.node.fs.opt.Stats.SplicedBytes.Add(int64(n))
	return fuse.ReadResultPipe(pipe, n)
}

var errPipeFull = errors.New("more pages than the pipe holds")

// pipePages is how many pages a pipe made for n bytes holds, each of which may be
// filled in part: the kernel rounds up to a power of two.
func pipePages(n int) int {
	pages := (n + os.Getpagesize() - 1) / os.Getpagesize()
	return 1 << bits.Len(uint(pages-1))
}

// pipeOf returns an empty pipe that holds n bytes in whole pages.
func pipeOf(n int) (*splice.Pair, error) {
	pipe, err := splice.Get()
	if err != nil {
		return nil, err
	}
	if err := pipe.Grow(n); err != nil {
		splice.Done(pipe)
		return nil, err
	}
	return pipe, nil
}
