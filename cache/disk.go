package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrForeign is wrapped by OpenDisk for a directory that it must not use:
// owned by another user, no directory, or holding files of something else.
var ErrForeign = errors.New("not usable as a cache directory")

// DiskOptions of OpenDisk.
type DiskOptions struct {
	MaxBytes int64 // 0 = DefaultDiskBytes
	Log      *slog.Logger
	// BehindBytes of values may wait in memory to be written by Put's own
	// goroutine once nothing more comes; 0 = Put writes. Close writes what waits.
	BehindBytes int64
}

// DefaultDiskBytes is the disk cache's size when none is set.
const DefaultDiskBytes = 10 << 30

const (
	// touchAfter is how stale an entry's access time (its mtime) may get before
	// a read renews it: eviction needs no finer order, and a read no more writes.
	touchAfter = time.Minute
	// tempAge is the age at which a temporary file must be a dead process's.
	tempAge = time.Hour
	// tempDir holds files being written; the other directories are shards, named
	// by the first byte of the entry's hash.
	tempDir = "tmp"
	// tagFile marks the directory for backup programs (bford.info/cachedir).
	tagFile = "CACHEDIR.TAG"
	tagText = "Signature: 8a477f597d28d172789f06886806bc55\n# Written by icefs. It holds table data and is safe to delete.\n"
)

// Disk is a persistent store of small and large values in one directory (0700,
// refused if another user owns it): checksummed, written atomically, shared by
// processes, bounded, safe to delete at any time. A nil *Disk keeps nothing.
//
// An entry is one file, <dir>/<hh>/<62 hex digits>, named by a SHA-256 of its
// key; format.go describes its bytes. Files are written under <dir>/tmp and
// renamed, without fsync: what a crash tears, the checksums find. The size is
// bounded by evicting the entries of the oldest access, when this process has
// written enough to need it; every process counts what all of them wrote.
type Disk struct {
	dir string
	max int64
	log *slog.Logger

	root atomic.Pointer[os.Root] // replaced when the directory was deleted under us
	mu   sync.Mutex              // reopening

	evicting sync.Mutex // one eviction at a time; guards budget
	budget   int64      // bytes that may be written before the next scan

	warned  sync.Map  // errors logged already, by what they are
	behind  *behind   // nil: Put writes
	readers readers   // of ReadAt
	scratch sync.Pool // of *[blockLen]byte
	usage   usage
}

// OpenDisk opens or creates the store.
func OpenDisk(dir string, opt DiskOptions) (*Disk, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cache directory %s: %w", dir, err)
	}
	d := &Disk{dir: abs, max: opt.MaxBytes, log: opt.Log}
	if d.max <= 0 {
		d.max = DefaultDiskBytes
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	root, err := openRoot(abs)
	if err != nil {
		return nil, err
	}
	d.root.Store(root)
	if err := d.readers.init(); err != nil {
		return nil, err
	}
	if opt.BehindBytes > 0 {
		d.behind = newBehind(d, opt.BehindBytes)
	}
	return d, nil
}

// Close writes what waits and gives the directory back. Entries and Writers that
// are open stay usable; no Put or ReadAt may follow.
func (d *Disk) Close() error {
	if d == nil {
		return nil
	}
	if d.behind != nil {
		d.behind.close()
	}
	d.readers.close()
	return d.root.Load().Close()
}

// openRoot creates dir if needed and checks that it is ours. Everything after
// happens below the returned handle, whatever the path comes to mean.
func openRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	if fi, err := os.Lstat(dir); err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	} else if !ownedByUs(fi) {
		return nil, fmt.Errorf("cache directory %s belongs to another user: %w", dir, ErrForeign)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cache directory %s: %w (%w)", dir, ErrForeign, err)
	}
	if err := claim(root); err != nil {
		root.Close()
		return nil, fmt.Errorf("cache directory %s: %w", dir, err)
	}
	return root, nil
}

// claim checks the opened directory and makes it private. A directory that
// others may enter is closed to them only if nothing but entries is in it.
func claim(root *os.Root) error {
	fi, err := root.Stat(".")
	if err != nil {
		return err
	}
	if !ownedByUs(fi) {
		return fmt.Errorf("belongs to another user: %w", ErrForeign)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isOurs(e.Name()) {
			return fmt.Errorf("holds %q, which is no cache entry: %w", e.Name(), ErrForeign)
		}
	}
	if fi.Mode().Perm() != 0o700 {
		if err := root.Chmod(".", 0o700); err != nil {
			return err
		}
	}
	// Best effort: the store may be read-only.
	if f, err := root.OpenFile(tagFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_, _ = io.WriteString(f, tagText)
		_ = f.Close()
	}
	return nil
}

// isOurs reports whether a name at the top of the directory may be there.
func isOurs(name string) bool {
	switch {
	case name == tempDir, name == tagFile, name == "lost+found", name[0] == '.':
		return true
	default:
		return isShard(name)
	}
}

func isShard(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 1
}

func ownedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int64(st.Uid) == int64(os.Geteuid())
}

// hashOf is the identity of a key in the store. It changes with the form of
// entries: those of another one are not found, and evicted in time.
func hashOf(key string) [sha256.Size]byte { return sha256.Sum256([]byte(magic + key)) }

// fileOf is the entry's path under the root.
func fileOf(hash [sha256.Size]byte) string {
	name := hex.EncodeToString(hash[:])
	return name[:2] + "/" + name[2:]
}

// Get returns the value stored for key, or false. A damaged entry is removed.
// The value must not be changed: it may be one that waits to be written.
func (d *Disk) Get(key string) ([]byte, bool) {
	if d != nil && d.behind != nil {
		if v, ok := d.behind.get(key); ok {
			return v, true
		}
	}
	e, ok := d.Open(key)
	if !ok {
		return nil, false
	}
	defer e.Close()
	// Size was checked against the file's, which bounds this allocation.
	p := make([]byte, e.Size())
	if _, err := e.ReadAt(p, 0); err != nil && err != io.EOF {
		return nil, false
	}
	return p, true
}

// Has reports whether a value is stored for key. It may be gone, or turn out to
// be damaged, when it is read.
func (d *Disk) Has(key string) bool {
	if d == nil {
		return false
	}
	if d.behind != nil {
		if _, ok := d.behind.get(key); ok {
			return true
		}
	}
	_, err := d.root.Load().Stat(fileOf(hashOf(key)))
	return err == nil
}

// Put stores a value, now or soon, and until then keeps it: it must not be changed
// any more. Failures are logged, not returned.
func (d *Disk) Put(key string, value []byte) {
	if d == nil || d.behind == nil || !d.behind.put(key, value) {
		d.write(key, value)
	}
}

func (d *Disk) write(key string, value []byte) {
	w := d.Create(key)
	defer w.Close()
	_, _ = w.Write(value) // a failure sticks to w, which logged it
	w.Commit()
}

// Open opens the value stored for key for ranged reads, or returns false. A value
// that waits to be written is not found.
func (d *Disk) Open(key string) (*Entry, bool) {
	if d == nil {
		return nil, false
	}
	hash := hashOf(key)
	f, err := d.root.Load().Open(fileOf(hash))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.warn("cannot read the cache", err)
		}
		return nil, false
	}
	e := &Entry{disk: d, file: f, hash: hash}
	if err := e.readTail(); err != nil {
		_ = e.damaged(err)
		_ = f.Close()
		return nil, false
	}
	return e, true
}

// remove deletes an entry; that it is gone already is fine.
func (d *Disk) remove(hash [sha256.Size]byte) {
	_ = d.root.Load().Remove(fileOf(hash))
}

// touch renews an entry's access time.
func (d *Disk) touch(hash [sha256.Size]byte) {
	now := time.Now()
	_ = d.root.Load().Chtimes(fileOf(hash), now, now) // read-only or gone: nothing is lost
}

// reopen replaces the handle of a directory that was deleted.
func (d *Disk) reopen(stale *os.Root) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root.Load() != stale {
		return nil
	}
	root, err := openRoot(d.dir)
	if err != nil {
		return err
	}
	// The stale handle is left to the garbage collector: others may be using it.
	d.root.Store(root)
	return nil
}

// warn logs an error once for each kind of it.
func (d *Disk) warn(msg string, err error) {
	kind := msg
	var errno syscall.Errno
	if errors.As(err, &errno) {
		kind += errno.Error()
	}
	if _, dup := d.warned.LoadOrStore(kind, true); !dup {
		d.log.Warn(msg, "dir", d.dir, "err", err)
	}
}
