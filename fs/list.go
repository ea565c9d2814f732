package fs

import (
	"context"
	"sync"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/icefs/icefs/internal/tree"
)

var _ gofs.NodeOpendirHandler = (*dirNode)(nil)

// OpendirHandle begins to list the folder, and returns when the first entry is
// known; the handle then stays on that listing.
func (n *dirNode) OpendirHandle(ctx context.Context, _ uint32) (_ gofs.FileHandle, _ uint32, errno syscall.Errno) {
	defer n.fs.watch("list", &n.Inode, "")(&errno)
	h := &dirHandle{node: n, self: n.StableAttr().Ino, news: make(chan struct{})}
	h.parent = h.self
	if _, p := n.Parent(); p != nil {
		h.parent = p.StableAttr().Ino
	}
	dir := n.get()
	s, slow := dir.(tree.Streamer)
	if !slow {
		list, err := dir.Entries(ctx)
		if err != nil {
			return nil, 0, n.fs.fail(ctx, "list", &n.Inode, "", err)
		}
		h.list, h.done = list, true
		return h, 0, 0
	}
	// The listing outlives the call that begins it, not the handle.
	listing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	go h.fill(listing, s)
	if _, _, err := h.wait(ctx, 0); err != nil {
		cancel()
		return nil, 0, n.fs.fail(ctx, "list", &n.Inode, "", err)
	}
	return h, 0, 0
}

// dirHandle is an open folder. An entry's offset is its place in the listing,
// counted from 1, with "." and ".." in front. A folder whose entries come slowly
// is given as far as it is known: the kernel asks for the rest.
type dirHandle struct {
	node         *dirNode
	self, parent uint64
	cancel       func() // ends fill; nil = all is known

	next  int // entries given so far; go-fuse serializes calls on a handle
	given int // of them, since the kernel was last told that there are no more for now

	mu   sync.Mutex // guards below
	list []tree.Entry
	done bool
	err  error         // if done
	news chan struct{} // closed, and replaced, when there is more
}

var (
	_ gofs.FileReaddirenter = (*dirHandle)(nil)
	_ gofs.FileSeekdirer    = (*dirHandle)(nil)
	_ gofs.FileReleasedirer = (*dirHandle)(nil)
)

// fill reads the listing to its end.
func (h *dirHandle) fill(ctx context.Context, s tree.Streamer) {
	for e, err := range s.Stream(ctx) {
		h.mu.Lock()
		if err != nil {
			h.err = err
			h.mu.Unlock()
			break
		}
		h.list = append(h.list, e)
		h.tell()
		h.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
	h.tell()
}

// tell wakes who waits. The caller holds mu.
func (h *dirHandle) tell() {
	close(h.news)
	h.news = make(chan struct{})
}

// at returns the entry at a place of the listing, if it is known by now.
func (h *dirHandle) at(i int) (e tree.Entry, known, done bool, err error, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < len(h.list) {
		return h.list[i], true, false, nil, nil
	}
	return tree.Entry{}, false, h.done, h.err, h.news
}

// wait returns the entry at a place; ok is false at the end of the listing.
func (h *dirHandle) wait(ctx context.Context, i int) (e tree.Entry, ok bool, err error) {
	for {
		e, known, done, err, news := h.at(i)
		if known || done {
			return e, known, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return e, false, ctx.Err()
		}
	}
}

// Readdirent gives the next entry. Where the next is not known yet, but others
// were given in this call of the kernel, it gives none: what there is is
// delivered, and the kernel asks again.
func (h *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	e := fuse.DirEntry{Off: uint64(h.next + 1)}
	switch i := h.next - 2; {
	case h.next == 0:
		e.Name, e.Ino, e.Mode = ".", h.self, syscall.S_IFDIR
	case h.next == 1:
		e.Name, e.Ino, e.Mode = "..", h.parent, syscall.S_IFDIR
	default:
		if _, known, done, _, _ := h.at(i); !known && !done && h.given > 0 {
			h.given = 0
			return nil, 0
		}
		entry, ok, err := h.wait(ctx, i)
		if err != nil {
			return nil, h.node.fs.fail(ctx, "list", &h.node.Inode, "", err)
		}
		if !ok {
			return nil, 0
		}
		e.Name, e.Ino, e.Mode = entry.Name, entry.Ino, h.node.fs.mode(entry.Kind)&syscall.S_IFMT
	}
	h.next++
	h.given++
	return &e, 0
}

// Seekdir continues after the entry of an offset.
func (h *dirHandle) Seekdir(_ context.Context, off uint64) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	if off > uint64(len(h.list)+2) {
		return syscall.EINVAL
	}
	h.next, h.given = int(off), 0
	return 0
}

// Releasedir ends the listing.
func (h *dirHandle) Releasedir(context.Context, uint32) {
	if h.cancel != nil {
		h.cancel()
	}
}
