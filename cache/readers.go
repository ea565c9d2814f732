package cache

import (
	"errors"
	"os"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// openEntries is how many entries stay open to be read on: a reader takes a
	// value in several reads, and a few values at a time.
	openEntries = 64
	// openIdle is how long they do once no other is opened: an open file that was
	// evicted takes room.
	openIdle = 10 * time.Second
)

// readers are the entries that ReadAt has open, by key.
type readers struct {
	open *lru.Cache[string, *Entry]
	idle *time.Timer
}

func (r *readers) init() (err error) {
	r.open, err = lru.NewWithEvict(openEntries, func(_ string, e *Entry) { _ = e.Close() })
	if err == nil {
		r.idle = time.AfterFunc(openIdle, r.open.Purge)
	}
	return err
}

func (r *readers) close() {
	r.idle.Stop()
	r.open.Purge()
}

// ReadAt fills p from place off of the value of size bytes that is stored for
// key, and checks what it gives. It reports false if there is no such value, or a
// damaged one; p may have been written to.
func (d *Disk) ReadAt(key string, size int64, p []byte, off int64) bool {
	if d == nil || off < 0 || off > size-int64(len(p)) {
		return false
	}
	if d.behind != nil {
		if v, ok := d.behind.get(key); ok {
			if int64(len(v)) != size {
				return false
			}
			copy(p, v[off:])
			return true
		}
	}
	for range 3 { // an entry may be closed before it is read
		e, ok := d.reader(key)
		if !ok || e.size != size {
			return false
		}
		_, err := e.ReadAt(p, off)
		if err == nil {
			return true
		}
		d.readers.open.Remove(key)
		if !errors.Is(err, os.ErrClosed) {
			return false
		}
	}
	return false
}

// reader returns the open entry of a key.
func (d *Disk) reader(key string) (*Entry, bool) {
	if e, ok := d.readers.open.Get(key); ok {
		return e, true
	}
	e, ok := d.Open(key)
	if !ok {
		return nil, false
	}
	d.readers.idle.Reset(openIdle)
	if other, found, _ := d.readers.open.PeekOrAdd(key, e); found {
		_ = e.Close()
		return other, true
	}
	return e, true
}
