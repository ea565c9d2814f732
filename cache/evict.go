package cache

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"
)

// diskBlock is what a small file takes at least: sizes are charged rounded up
// to it, so that many small entries count what they occupy.
const diskBlock = 4 << 10

// charged is what a file of n bytes counts.
func charged(n int64) int64 { return (n + diskBlock - 1) / diskBlock * diskBlock }

// stored is an entry as a scan finds it.
type stored struct {
	name  string
	bytes int64
	used  time.Time
}

// makeRoom is called before n bytes become visible. It scans rarely: after a
// scan this process may fill what is free, up to a tenth of the whole, before it
// looks again. One process alone stays within the bound; each further one may
// overshoot it by that tenth.
func (d *Disk) makeRoom(n int64) {
	d.evicting.Lock()
	defer d.evicting.Unlock()
	if d.budget -= n; d.budget >= 0 {
		d.usage.bytes.Add(n)
		return
	}
	entries, total := d.scan()
	if total+n > d.max {
		total = d.evict(entries, total, d.max-d.max/10-n)
	}
	d.usage.bytes.Store(total + n)
	d.budget = min(max(d.max-total-n, 0), d.max/10)
}

// evict removes entries, those of the oldest access first, until they take no
// more than keep bytes; it returns what they take.
func (d *Disk) evict(entries []stored, total, keep int64) int64 {
	slices.SortFunc(entries, func(a, b stored) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name))
	})
	root := d.root.Load()
	for _, e := range entries {
		if total <= keep {
			break
		}
		if err := root.Remove(e.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.warn("cannot evict from the cache", err)
			continue
		}
		total -= e.bytes
	}
	return total
}

// scan lists the entries of all processes and their size, and removes temporary
// files that nobody writes any more. Files that vanish meanwhile are skipped.
func (d *Disk) scan() (entries []stored, total int64) {
	fsys := d.root.Load().FS()
	shards, err := fs.ReadDir(fsys, ".")
	if err != nil {
		d.warn("cannot scan the cache", err)
		return nil, 0
	}
	for _, shard := range shards {
		if !isShard(shard.Name()) && shard.Name() != tempDir {
			continue
		}
		files, err := fs.ReadDir(fsys, shard.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.warn("cannot scan the cache", err)
		}
		for _, f := range files {
			fi, err := f.Info()
			if err != nil || !fi.Mode().IsRegular() {
				continue
			}
			name := path.Join(shard.Name(), f.Name())
			switch {
			case shard.Name() != tempDir:
				entries = append(entries, stored{name, charged(fi.Size()), fi.ModTime()})
				total += charged(fi.Size())
			case time.Since(fi.ModTime()) > tempAge:
				_ = d.root.Load().Remove(name)
			}
		}
	}
	return entries, total
}
