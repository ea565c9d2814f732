package tree

import (
	"container/list"
	"sync"
)

// DefaultMetadataBytes bounds what a Tree keeps of tables when nothing else is
// said: the plans of some 300,000 data files.
const DefaultMetadataBytes = 128 << 20

// keeper holds what a Tree has derived of tables (*table) and of their snapshots
// (*planned), up to a number of bytes: past it, those used longest ago are given
// up, and derived again when they are used. The table used last stays, however much
// it takes, and so does the snapshot used last, with its table. Nodes do not hold
// either; calls under way and open files do, beyond what is counted here.
//
// A planned holds its table, and is always used together with it and before it, so
// that it is given up first. Safe for concurrent use.
type keeper struct {
	limit int64

	mu    sync.Mutex // held for map and list operations only
	at    map[any]*list.Element
	order list.List     // of *keep, used last in front
	table *list.Element // used last
	plan  *list.Element // used last
	total int64
}

// keep is an entry: of a *table by its Loaded, or of a *planned by its planKey.
type keep struct {
	key, value any
	bytes      int64
}

func newKeeper(limit int64) *keeper {
	if limit <= 0 {
		limit = DefaultMetadataBytes
	}
	return &keeper{limit: limit, at: map[any]*list.Element{}}
}

// get returns what is kept for a key, which is used now.
func (k *keeper) get(key any) (any, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.at[key]
	if e == nil {
		return nil, false
	}
	k.use(e)
	return e.Value.(*keep).value, true
}

// add keeps a value, unless there is one for its key by now, and returns the one
// that is kept. It is used now.
func (k *keeper) add(key, value any, bytes int64) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.at[key]
	if e == nil {
		e = k.order.PushFront(&keep{key: key, value: value, bytes: bytes})
		k.at[key] = e
		k.total += bytes
	}
	k.use(e)
	k.shrink()
	return e.Value.(*keep).value
}

// grow notes that a value takes more than it did, if it is the one that is kept.
func (k *keeper) grow(key, value any, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.at[key]; e != nil && e.Value.(*keep).value == value {
		e.Value.(*keep).bytes += bytes
		k.total += bytes
		k.shrink()
	}
}

// use notes that an entry is used. The caller holds mu.
func (k *keeper) use(e *list.Element) {
	k.order.MoveToFront(e)
	if _, ok := e.Value.(*keep).value.(*planned); ok {
		k.plan = e
	} else {
		k.table = e
	}
}

// shrink gives up what is too much. The caller holds mu.
func (k *keeper) shrink() {
	var last any // the table of the plan used last
	if k.plan != nil {
		last = k.plan.Value.(*keep).value.(*planned).table
	}
	for e := k.order.Back(); e != nil && k.total > k.limit; {
		old := e
		e = e.Prev()
		if old == k.table || old == k.plan || old.Value.(*keep).value == last {
			continue
		}
		entry := k.order.Remove(old).(*keep)
		delete(k.at, entry.key)
		k.total -= entry.bytes
	}
}

// bytes is what is kept, about.
func (k *keeper) bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.total
}
