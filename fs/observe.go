package fs

import (
	"context"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/icefs/icefs/internal/activity"
)

// begin tells the activity log that a call begins. name is an entry of at that
// has no node yet, or empty.
func (f *FS) begin(call string, at *gofs.Inode, name string) *activity.Call {
	return f.opt.Activity.Begin(call, func() string { return pathOf(at, name) })
}

// watch is begin for a call whose end is its function's: deferred as
//
//	defer f.watch("stat", inode, "")(&errno)
func (f *FS) watch(call string, at *gofs.Inode, name string) func(*syscall.Errno) {
	c := f.begin(call, at, name)
	return func(errno *syscall.Errno) { c.End(0, *errno != 0 && *errno != syscall.ENOENT) }
}

// pathOf is a path in the tree.
func pathOf(at *gofs.Inode, name string) string {
	path := at.Path(nil)
	if name == "" {
		return path
	}
	if path == "" {
		return name
	}
	return path + "/" + name
}

// failed logs a failure, unless the same of one file was logged just now.
func (f *FS) failed(ctx context.Context, op, path string, errno syscall.Errno, err error) {
	now := time.Now()
	if f.failures.again(failure{path, errno}, now) {
		f.opt.Activity.Failed(ctx, activity.Failure{Time: now.UTC(), Path: path, Call: op, Errno: errno.Error(), Cause: err.Error()})
	}
}
