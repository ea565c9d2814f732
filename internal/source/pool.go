package source

import (
	"container/list"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Lock order: Pool.mu is the only lock of this file and is never held while a
// file is opened, read or closed.

// DefaultOpenFiles leaves room under the common soft limit of 256 descriptors.
const DefaultOpenFiles = 128

// Pool bounds the open descriptors of local objects: those not being read are
// closed, least recently used first, as soon as more than max are open.
// Descriptors in use are never closed under their reader. Safe for concurrent
// use.
type Pool struct {
	mu   sync.Mutex
	max  int
	open int                     // descriptors open, idle and in use
	idle *list.List              // of *descriptor, most recently used first
	live map[fileKey]*descriptor // the descriptors that have an open file
}

// NewPool returns a pool that keeps at most max descriptors open beyond those
// in use; 0 = DefaultOpenFiles.
func NewPool(max int) *Pool {
	if max <= 0 {
		max = DefaultOpenFiles
	}
	return &Pool{max: max, idle: list.New(), live: map[fileKey]*descriptor{}}
}

// Open returns how many descriptors are open, idle ones included.
func (p *Pool) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// CloseIdle closes every descriptor that is not being read.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	closing := p.evict(0)
	p.mu.Unlock()
	closeAll(closing)
}

// identity tells whether a path still names the bytes it named before.
type identity struct {
	dev, ino uint64
	size     int64
	mtime    int64 // nanoseconds since 1970
}

func identityOf(fi os.FileInfo) identity {
	id := identity{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino = uint64(st.Dev), st.Ino
	}
	return id
}

type fileKey struct {
	root *os.Root
	name string
	id   identity
}

// descriptor is a file of one identity, opened when it is read. Objects of the
// same file share it while it is open.
type descriptor struct {
	fileKey
	file    *os.File // nil if closed; guarded by Pool.mu
	users   int      // readers of file
	element *list.Element
	changed error // set for good once the path names other bytes
}

// descriptor returns the shared descriptor of key, or a closed one.
func (p *Pool) descriptor(key fileKey) *descriptor {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.live[key]; d != nil {
		return d
	}
	return &descriptor{fileKey: key}
}

// acquire returns d's open file, which stays open until release.
func (p *Pool) acquire(d *descriptor) (*os.File, error) {
	p.mu.Lock()
	if f, err := p.use(d); f != nil || err != nil {
		p.mu.Unlock()
		return f, err
	}
	closing := p.evict(p.max - 1)
	p.open++
	p.mu.Unlock()
	closeAll(closing)

	file, err := d.openFile()

	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.open--
		if d.changed == nil && isChanged(err) {
			d.changed = err
		}
		return nil, err
	}
	if f, err := p.use(d); f != nil || err != nil { // another reader was faster
		p.open--
		file.Close()
		return f, err
	}
	d.file, d.users = file, 1
	p.live[d.fileKey] = d
	return file, nil
}

// use returns d's file if it is open, counting one more user.
func (p *Pool) use(d *descriptor) (*os.File, error) {
	if d.changed != nil {
		return nil, d.changed
	}
	if d.file == nil {
		return nil, nil
	}
	d.users++
	if d.element != nil {
		p.idle.Remove(d.element)
		d.element = nil
	}
	return d.file, nil
}

// verify fails, for good, if d's open file has been written to since d was made.
// Its user calls it after reading.
func (p *Pool) verify(d *descriptor, file *os.File) error {
	fi, err := file.Stat()
	if err != nil {
		return classify(err)
	}
	if identityOf(fi) == d.id {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.changed == nil {
		d.changed = fmt.Errorf("%w: it was written to in place", ErrChanged)
	}
	return d.changed
}

// release ends a use of d's file.
func (p *Pool) release(d *descriptor) {
	p.mu.Lock()
	d.users--
	if d.users == 0 {
		d.element = p.idle.PushFront(d)
	}
	closing := p.evict(p.max)
	p.mu.Unlock()
	closeAll(closing)
}

// evict takes idle descriptors out of the pool until at most keep are open, and
// returns their files for the caller to close.
func (p *Pool) evict(keep int) (files []*os.File) {
	for p.open > keep && p.idle.Len() > 0 {
		d := p.idle.Remove(p.idle.Back()).(*descriptor)
		files = append(files, d.file)
		d.file, d.element = nil, nil
		if p.live[d.fileKey] == d {
			delete(p.live, d.fileKey)
		}
		p.open--
	}
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() // read-only: nothing can be lost
	}
}

// openFile opens the file anew and checks that it is the one d stands for.
// O_NONBLOCK keeps a FIFO put in the file's place from blocking the open.
func (d *descriptor) openFile() (*os.File, error) {
	f, err := d.root.OpenFile(d.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, classify(err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, classify(err)
	}
	if now := identityOf(fi); now != d.id {
		f.Close()
		return nil, fmt.Errorf("%w: size %d, was %d", ErrChanged, now.size, d.id.size)
	}
	return f, nil
}
