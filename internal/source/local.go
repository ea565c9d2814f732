package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Local is a Store of the local file system below its roots. Roots are held
// open (os.Root): neither `..` nor a symbolic link leads out of them, even if
// the tree changes meanwhile. Safe for concurrent use.
type Local struct {
	pool  *Pool
	dirs  []string // as given, made absolute
	roots []root   // deepest first
}

// root is an allowed folder under one of its spellings.
type root struct {
	dir  string // absolute and clean
	root *os.Root
}

var _ Store = (*Local)(nil)

// NewLocal returns a store of the folders roots. pool may be shared by stores.
func NewLocal(pool *Pool, roots ...string) (*Local, error) {
	return (&Local{pool: pool}).With(roots...)
}

// With returns a store of l's roots and further ones.
func (l *Local) With(roots ...string) (*Local, error) {
	next := &Local{pool: l.pool, dirs: slices.Clone(l.dirs), roots: slices.Clone(l.roots)}
	for _, dir := range roots {
		if err := next.add(dir); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(next.roots, func(a, b root) int { return len(b.dir) - len(a.dir) })
	return next, nil
}

// add opens a root; a folder reached through links is known by both its names.
func (l *Local) add(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("allowed path %s: %w", dir, err)
	}
	if slices.Contains(l.dirs, abs) {
		return nil
	}
	r, err := os.OpenRoot(abs)
	if err != nil {
		return fmt.Errorf("allowed path %s: %w", dir, classify(err))
	}
	l.dirs = append(l.dirs, abs)
	l.roots = append(l.roots, root{dir: abs, root: r})
	if resolved, err := filepath.EvalSymlinks(abs); err == nil && resolved != abs {
		l.roots = append(l.roots, root{dir: resolved, root: r})
	}
	return nil
}

// Roots returns the allowed folders as absolute paths, in the order given.
func (l *Local) Roots() []string { return slices.Clone(l.dirs) }

// LocalPath returns the path that a location names on the local file system: a
// path itself, file:/path or file:///path. Nothing is decoded. ok is false for
// any other location, relative paths among them.
func LocalPath(location string) (path string, ok bool) {
	if rest, found := strings.CutPrefix(location, "file:"); found {
		location = rest
		if authority, found := strings.CutPrefix(rest, "//"); found {
			if !strings.HasPrefix(authority, "/") {
				return "", false // file://host/path, or file:// alone
			}
			location = authority
		}
	}
	if !strings.HasPrefix(location, "/") {
		return "", false
	}
	return filepath.Clean(location), true
}

// place is where a location lies: a name below a root.
type place struct {
	root *os.Root
	name string
	path string
}

// places returns the candidates of a location, deepest root first.
func (l *Local) places(location string) ([]place, error) {
	path, ok := LocalPath(location)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, location)
	}
	var found []place
	for _, r := range l.roots {
		name, ok := below(r.dir, path)
		if ok {
			found = append(found, place{root: r.root, name: name, path: path})
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %s", ErrOutside, location)
	}
	return found, nil
}

// below returns path relative to dir, if it is dir or below it. Both are clean.
func below(dir, path string) (string, bool) {
	if path == dir {
		return ".", true
	}
	if dir == "/" {
		return path[1:], true
	}
	if strings.HasPrefix(path, dir) && path[len(dir)] == '/' {
		return path[len(dir)+1:], true
	}
	return "", false
}

// stat finds a location in the deepest root that has it.
func (l *Local) stat(location string) (place, os.FileInfo, error) {
	places, err := l.places(location)
	if err != nil {
		return place{}, nil, err
	}
	for _, p := range places {
		fi, statErr := p.root.Stat(p.name)
		if statErr == nil {
			return p, fi, nil
		}
		if err == nil {
			err = fmt.Errorf("%w: %s", classify(statErr), location)
		}
	}
	return place{}, nil, err
}

// Open implements Store. It fixes the object's size and version; its descriptor
// is opened by the first read.
func (l *Local) Open(ctx context.Context, location string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, fi, err := l.stat(location)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s: not a regular file", ErrRead, location)
	}
	id := identityOf(fi)
	return &localObject{
		pool:       l.pool,
		descriptor: l.pool.descriptor(fileKey{root: p.root, name: p.name, id: id}),
		location:   location,
		version:    fmt.Sprintf("file:%s|%d|%d|%x.%x", p.path, id.size, id.mtime, id.dev, id.ino),
	}, nil
}

// IsDir reports whether a location is a folder below a root.
func (l *Local) IsDir(location string) bool {
	_, fi, err := l.stat(location)
	return err == nil && fi.IsDir()
}

// Exists reports whether a location is a regular file below a root.
func (l *Local) Exists(location string) bool {
	_, fi, err := l.stat(location)
	return err == nil && fi.Mode().IsRegular()
}

// readDirBatch bounds how much of a folder is listed ahead of its use.
const readDirBatch = 256

// ReadDir calls each with the entries of the folder at a location, in no order,
// until it returns false.
func (l *Local) ReadDir(ctx context.Context, location string, each func(os.DirEntry) bool) error {
	p, _, err := l.stat(location)
	if err != nil {
		return err
	}
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("%w: %s", classify(err), location)
	}
	defer f.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := f.ReadDir(readDirBatch)
		for _, entry := range entries {
			if !each(entry) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s", classify(err), location)
		}
	}
}

// localObject is a regular file at one identity.
type localObject struct {
	pool       *Pool
	descriptor *descriptor
	location   string
	version    string
}

var _ Filer = (*localObject)(nil)

func (o *localObject) Size() int64      { return o.descriptor.id.size }
func (o *localObject) Version() string  { return o.version }
func (o *localObject) Location() string { return o.location }

// readStep is how much is read between two looks at the context: a disk reads
// it in a few milliseconds, a hung network mount in one system call.
const readStep = 4 << 20

// ReadAt implements Object with pread. What was read counts only if the file is
// still the one that was opened: its time is set before the first byte changes.
func (o *localObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := checkRange(o, int64(len(p)), off); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	file, err := o.pool.acquire(o.descriptor)
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, o.location)
	}
	defer o.pool.release(o.descriptor)
	n := 0
	for n < len(p) {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		m, err := file.ReadAt(p[n:min(len(p), n+readStep)], off+int64(n))
		n += m
		if err == io.EOF && n < len(p) {
			return n, fmt.Errorf("%w: %s: ends at %d of %d bytes", ErrTruncated, o.location, off+int64(n), o.Size())
		}
		if err != nil && err != io.EOF {
			return n, fmt.Errorf("%w: %s", classify(err), o.location)
		}
	}
	if err := o.pool.verify(o.descriptor, file); err != nil {
		return 0, fmt.Errorf("%w: %s", err, o.location)
	}
	return n, nil
}

// checkRange fails with ErrTruncated if a range is not within o.
func checkRange(o Object, length, off int64) error {
	if off < 0 || off > o.Size() || length > o.Size()-off {
		return fmt.Errorf("%w: %s: no bytes %d+%d in %d", ErrTruncated, o.Location(), off, length, o.Size())
	}
	return nil
}

// OpenFile implements Filer.
func (o *localObject) OpenFile() (*os.File, error) {
	f, err := o.descriptor.openFile()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, o.location)
	}
	return f, nil
}

// Borrow implements Filer.
func (o *localObject) Borrow() (*os.File, func() error, error) {
	file, err := o.pool.acquire(o.descriptor)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s", err, o.location)
	}
	return file, func() error {
		defer o.pool.release(o.descriptor)
		if err := o.pool.verify(o.descriptor, file); err != nil {
			return fmt.Errorf("%w: %s", err, o.location)
		}
		return nil
	}, nil
}

// classify turns a system error into one that wraps a sentinel. Paths are left
// out: the caller names the location.
func classify(err error) error {
	var sentinel error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotFound
	case isEscape(err):
		return ErrOutside
	default:
		sentinel = ErrRead
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// isEscape tells os.Root's refusal to leave the root, for which package os has
// no sentinel.
func isEscape(err error) bool {
	return err != nil && strings.Contains(err.Error(), "path escapes from parent")
}

func isChanged(err error) bool { return errors.Is(err, ErrChanged) }
