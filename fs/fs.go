// Package fs serves internal/tree over FUSE. It is the only importer of go-fuse
// and adds nothing to the tree but what a kernel needs:
//
//   - inode numbers, modes, owners and times; how long the kernel may keep them
//     (attr.go): hours below snapshots/<id>, the refresh interval elsewhere;
//   - page-cache policy: data is immutable for an inode number, so the kernel
//     keeps pages over opens (FOPEN_KEEP_CACHE) and mmap works; files of .icefs
//     are read directly;
//   - bytes of local files handed out without a copy of their own, by
//     passthrough or splice (passthrough.go), and the read-ahead (readahead.go);
//   - one table from errors to errno, and one log line per failure (errno.go);
//   - EROFS for every call that would change something (readonly.go).
//
// Nodes are thin: one type for each kind of entry, which asks the tree at every
// call. A node of something that changes (a table's folder, current) is asked
// again by the kernel after the refresh interval; a node below snapshots/<id>
// is bound to what its inode number says.
//
// A handler must never wait for the kernel (a stat of the own mount from the
// serving process), and no lock is held while the tree is asked.
package fs

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/internal/tree"
)

// Defaults of Options.
const (
	DefaultRefresh  = 10 * time.Second
	DefaultFileMode = 0o444
	DefaultDirMode  = 0o555
)

// Name is the file system's name in the mount table ("fuse.icefs"). The source
// is not shown there: it may hold a secret.
const Name = "icefs"

// maxIO is the largest read that the kernel may ask for, in bytes. Larger is not
// possible with the kernel's default limit of 256 pages a request.
const maxIO = 1 << 20

// maxBackground is how many read-ahead requests may be under way: enough to
// cover an object store's latency (the kernel's default is 12).
const maxBackground = 64

// immutableTTL is how long the kernel may keep what never changes. A day would
// do as well; an hour bounds how long an expired snapshot can still be entered.
const immutableTTL = time.Hour

// Options of Mount. The zero value of each field but Tree is its default.
type Options struct {
	Tree *tree.Tree
	// Refresh is how long the kernel may keep what may change; negative: not at
	// all.
	Refresh  time.Duration
	UID, GID *uint32 // owner of everything; nil = the mounting user
	// FileMode and DirMode are permission bits.
	FileMode, DirMode uint32
	AllowOther        bool
	Flags             []string // further mount flags of fusermount ("noexec")
	// NoKernelPath serves every byte by a copy: neither passthrough nor splice.
	NoKernelPath bool
	// NoReadAhead keeps the kernel from asking for more than readers do, where that
	// cannot be chosen file by file: some come from an object store.
	NoReadAhead bool
	Stats       *Stats // may be nil
	Log         *slog.Logger
	Activity    *activity.Log // told of every call; nil = one that logs failures alone
}

// FS is a mounted tree.
type FS struct {
	opt      Options
	dir      string
	uid, gid uint32
	server   *fuse.Server

	readAhead readAhead
	passed    atomic.Int64 // descriptors of parts open for passthrough
}

// Mount mounts the tree on dir and serves it until it is unmounted. It returns
// once the kernel's first request has been answered.
func Mount(dir string, opt Options) (*FS, error) {
	f := newFS(dir, opt)
	err := f.serve(&dirNode{node: node{fs: f}, dir: f.opt.Tree.Root()})
	if err != nil {
		if text := err.Error(); strings.HasSuffix(text, "\n") { // fusermount3's exit code
			err = errors.New(strings.TrimSpace(text))
		}
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	if err := f.readAhead.open(dir, opt.NoReadAhead); err != nil {
		f.opt.Log.Debug("read-ahead stays at the kernel's default", "cause", err)
	}
	return f, nil
}

// serve is gofs.Mount, but for the server being known before it serves: requests
// of others may come before the mount has been waited for.
func (f *FS) serve(root *dirNode) (err error) {
	o := f.mountOptions()
	if f.server, err = fuse.NewServer(gofs.NewNodeFS(root, o), f.dir, &o.MountOptions); err != nil {
		return err
	}
	go f.server.Serve()
	return f.server.WaitMount()
}

func newFS(dir string, opt Options) *FS {
	if opt.Refresh == 0 {
		opt.Refresh = DefaultRefresh
	}
	if opt.FileMode == 0 {
		opt.FileMode = DefaultFileMode
	}
	if opt.DirMode == 0 {
		opt.DirMode = DefaultDirMode
	}
	if opt.Stats == nil {
		opt.Stats = &Stats{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Activity == nil {
		opt.Activity = activity.New(activity.Options{Log: opt.Log, Slow: -1})
	}
	f := &FS{opt: opt, dir: dir, uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	if opt.UID != nil {
		f.uid = *opt.UID
	}
	if opt.GID != nil {
		f.gid = *opt.GID
	}
	return f
}

// mountOptions are those of the contract. Root mounts by the system call, which
// takes flags as bits; others through fusermount3, which takes them by name.
func (f *FS) mountOptions() *gofs.Options {
	o := &gofs.Options{
		NullPermissions: true,
		RootStableAttr:  &gofs.StableAttr{Ino: 1},
		MountOptions: fuse.MountOptions{
			AllowOther:         f.opt.AllowOther,
			FsName:             Name,
			Name:               Name,
			MaxWrite:           maxIO,
			MaxReadAhead:       maxIO,
			MaxBackground:      maxBackground,
			DisableSplice:      f.opt.NoKernelPath,
			DisableReadDirPlus: true, // a plain ls must not ask for sizes
			// An inode's bytes never change, so nothing has to be dropped.
			ExplicitDataCacheControl: true,
			PanicHandler:             f.panicked,
			Logger:                   log.New(logWriter{f.opt.Log}, "", 0),
			Options:                  []string{"default_permissions"},
		},
	}
	if f.opt.NoReadAhead {
		o.MaxReadAhead = 1 // below a page
	}
	if os.Geteuid() == 0 {
		o.DirectMountStrict = true
		o.DirectMountFlags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOATIME
	} else {
		o.Options = append(o.Options, "ro", "nosuid", "nodev", "noatime")
	}
	o.Options = append(o.Options, f.opt.Flags...)
	return o
}

// panicked answers a request whose handler panicked.
func (f *FS) panicked(v any) fuse.Status {
	f.opt.Log.Error("internal error: a request failed", "panic", v, "stack", string(debug.Stack()))
	return fuse.EIO
}

// Wait returns when the tree is no longer mounted and no reader is left.
func (f *FS) Wait() { f.server.Wait() }

// logWriter passes go-fuse's messages on.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Log(context.Background(), slog.LevelDebug, "fuse", "message", string(p))
	return len(p), nil
}
