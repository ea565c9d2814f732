package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/activity"
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
	f.opt.Activity.Failed(ctx, activity.Failure{Time: time.Now().UTC(), Path: pathOf(at, name), Call: op,
		Errno: errno.Error(), Cause: err.Error()})
	return errno
}
