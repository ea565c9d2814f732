package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"sync"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// errnoRule is a line of the table from errors to errno.
type errnoRule struct {
	is    error
	errno syscall.Errno
}

// errnoRules is the table; the first line that applies wins. A missing object
// comes before fs.ErrNotExist, which its chain may hold as well: ENOENT means
// that a name is not in the tree, never that a file behind it is gone.
func errnoRules() []errnoRule {
	return []errnoRule{
		{warehouse.ErrUnavailable, syscall.ETIMEDOUT},
		{warehouse.ErrDenied, syscall.EACCES},
		{context.Canceled, syscall.EINTR},
		{context.DeadlineExceeded, syscall.ETIMEDOUT},
		{tree.ErrExpired, syscall.ESTALE},
		{source.ErrChanged, syscall.ESTALE},
		{source.ErrUnsupported, syscall.EOPNOTSUPP},
		{pqfile.ErrUnsupported, syscall.EOPNOTSUPP},
		{pqfile.ErrNoFieldIDs, syscall.EOPNOTSUPP},
		{avrofile.ErrUnsupported, syscall.EOPNOTSUPP},
		{deletes.ErrUnsupported, syscall.EOPNOTSUPP},
		{merge.ErrUnsupported, syscall.EOPNOTSUPP},
		{warehouse.ErrUnsupported, syscall.EOPNOTSUPP},
		{source.ErrNotFound, syscall.EIO},
		{source.ErrTruncated, syscall.EIO},
		{source.ErrOutside, syscall.EIO},
		{source.ErrRead, syscall.EIO},
		{pqfile.ErrCorrupt, syscall.EIO},
		{avrofile.ErrCorrupt, syscall.EIO},
		{deletes.ErrCorrupt, syscall.EIO},
		{merge.ErrCorrupt, syscall.EIO},
		{warehouse.ErrCorrupt, syscall.EIO},
		{iofs.ErrNotExist, syscall.ENOENT},
	}
}

// Errno maps an error of the tree to what a caller sees; EIO if no rule applies.
func Errno(err error) syscall.Errno {
	for _, r := range errnoRules() {
		if errors.Is(err, r.is) {
			return r.errno
		}
	}
	return syscall.EIO
}

// logAgain is how long the same failure of one file stays quiet.
const logAgain = time.Minute

// maxFailures bounds the memory of logged failures.
const maxFailures = 4096

// failures remembers what was logged of which file.
type failures struct {
	mu   sync.Mutex
	seen map[failure]time.Time
}

type failure struct {
	path  string
	errno syscall.Errno
}

// again reports whether a failure may be logged now.
func (f *failures) again(what failure, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, ok := f.seen[what]; ok && now.Sub(last) < logAgain {
		return false
	}
	if f.seen == nil || len(f.seen) >= maxFailures {
		f.seen = make(map[failure]time.Time)
	}
	f.seen[what] = now
	return true
}

// fail turns an error into an errno, and logs the whole chain once. name is an
// entry of at that has no node, or empty.
func (f *FS) fail(ctx context.Context, op string, at *gofs.Inode, name string, err error) syscall.Errno {
	if ctx.Err() != nil {
		return syscall.EINTR
	}
	errno := Errno(err)
	if errno == syscall.ENOENT || errno == syscall.EINTR {
		return errno
	}
	f.failed(ctx, op, pathOf(at, name), errno, err)
	return errno
}
