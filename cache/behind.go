package cache

import (
	"sync"
	"time"
)

// quiet is how long nothing must have been put before what waits is written, as
// long as there is room: whoever makes values is not to share the processor with
// their being kept.
const quiet = time.Second

// behind writes values of a Disk after those who put them have gone on. Values
// that wait are found by Get. Its lock is held for map operations only.
type behind struct {
	disk *Disk
	max  int64 // bytes that may wait

	mu      sync.Mutex
	more    *sync.Cond // something waits, or closing
	waiting map[string][]byte
	order   []string
	bytes   int64
	last    time.Time // of the last put
	closing bool
	done    chan struct{}
}

func newBehind(d *Disk, limit int64) *behind {
	b := &behind{disk: d, max: limit, waiting: make(map[string][]byte), done: make(chan struct{})}
	b.more = sync.NewCond(&b.mu)
	go b.run()
	return b
}

// put lets a value wait; false if there is no room, or nobody who would write it.
func (b *behind) put(key string, value []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(len(key) + len(value))
	if _, ok := b.waiting[key]; ok || b.closing || b.bytes+n > b.max {
		return ok
	}
	b.waiting[key] = value
	b.order = append(b.order, key)
	b.bytes += n
	b.last = time.Now()
	b.more.Signal()
	return true
}

func (b *behind) get(key string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.waiting[key]
	return v, ok
}

// run writes what waits until close is called and nothing does.
func (b *behind) run() {
	defer close(b.done)
	for {
		key, value, ok := b.next()
		if !ok {
			return
		}
		b.disk.write(key, value)
		b.mu.Lock()
		delete(b.waiting, key)
		b.bytes -= int64(len(key) + len(value))
		b.mu.Unlock()
	}
}

// next waits for a value whose time has come; false at the end. It stays among
// those that wait until it is written.
func (b *behind) next() (key string, value []byte, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.order) == 0 {
			if b.closing {
				return "", nil, false
			}
			b.more.Wait()
		}
		left := quiet - time.Since(b.last)
		if b.closing || left <= 0 || b.bytes > b.max/4*3 {
			break
		}
		b.mu.Unlock()
		time.Sleep(left)
		b.mu.Lock()
	}
	key, b.order = b.order[0], b.order[1:]
	return key, b.waiting[key], true
}

// close writes what waits.
func (b *behind) close() {
	b.mu.Lock()
	b.closing = true
	b.more.Signal()
	b.mu.Unlock()
	<-b.done
}
