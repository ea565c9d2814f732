package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/fs"
)

const mountHelp = sourceHelp + `
MOUNTPOINT is an empty folder. icefs stays in the foreground until SIGINT or
SIGTERM, and unmounts; a second signal detaches at once. With --daemon it returns
once the tree can be read.
`

// mountOptions are the flags of mount alone.
type mountOptions struct {
	daemon     bool
	allowOther bool
	uid, gid   owner
	fileMode   modeFlag
	dirMode    modeFlag
	extra      []string // -o
	flags      []string // of -o, for the kernel
}

// Times of an unmount by signal: readers get this long to close their files,
// then the tree is detached under them, and the process ends.
const (
	unmountPatience = 3 * time.Second
	unmountRetry    = 100 * time.Millisecond
	detachPatience  = time.Second
)

func (m *mountOptions) add(set *pflag.FlagSet) {
	set.BoolVar(&m.daemon, "daemon", false, "return once the tree can be read, and serve it in the background")
	set.BoolVar(&m.allowOther, "allow-other", false, "let other users read the tree")
	set.Var(&m.uid, "uid", "owner of everything shown (default the mounting user)")
	set.Var(&m.gid, "gid", "group of everything shown (default the mounting user's)")
	m.fileMode, m.dirMode = fs.DefaultFileMode, fs.DefaultDirMode
	set.Var(&m.fileMode, "file-mode", "permissions of files")
	set.Var(&m.dirMode, "dir-mode", "permissions of folders")
	set.StringArrayVarP(&m.extra, "options", "o", nil, "mount options as in fstab, comma-separated `OPTS`: noexec, allow_other, and NAME=VALUE for any flag")
}

func mountCommand() (*pflag.FlagSet, runner) {
	set := newFlags("mount")
	var opt options
	var m mountOptions
	m.add(set)
	opt.add(set)
	opt.watching.add(set)
	return set, func(ctx context.Context, args []string, out console) error {
		if err := wantArgs(args, 2, 2, "SOURCE and MOUNTPOINT"); err != nil {
			return err
		}
		if err := m.apply(set); err != nil {
			return err
		}
		if m.daemon && os.Getenv(daemonEnv) == "" {
			return startDaemon(out)
		}
		coarseTimers()
		return mount(ctx, args[0], args[1], opt, m, out)
	}
}

// mount serves SOURCE on a folder until it is unmounted.
func mount(ctx context.Context, src, where string, opt options, m mountOptions, out console) error {
	signals, stop := stopSignals()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	dir, err := prepareMountpoint(where)
	if err != nil {
		return err
	}
	if err := checkOverlap(dir, src, opt); err != nil {
		return err
	}
	opt.workers = serveCalls()
	s, err := openInterruptibly(ctx, cancel, signals, src, opt, out)
	if err != nil {
		return err
	}
	defer s.closeSoon(signals)
	if err := s.checkRoot(ctx); err != nil {
		return err
	}
	s.warnAboutAccess(m)
	watch, err := s.serveMetrics()
	if err != nil {
		return err
	}
	defer watch.Close()
	mounted, err := fs.Mount(dir, s.fsOptions(m))
	if err != nil {
		return explainMount(dir, m.allowOther, err)
	}
	if err := daemonReady(s.logFile); err != nil {
		s.log.Warn("the starting process did not hear that the mount is ready", "cause", err)
	}
	s.notify(notifyReady, "serving on "+dir)
	s.log.Info("mounted", "mountpoint", dir)
	return s.serve(mounted, dir, signals)
}

// notify tells the service manager; that it cannot is no reason to stop.
func (s *session) notify(state, status string) {
	if err := notify(state, status); err != nil {
		s.log.Warn("the service manager did not hear of it", "state", state, "cause", err)
	}
}

// stopSignals are what ends mount and serve. A terminal that goes away is one of
// them: a mount without its server would stay behind. Writing to a pipe that
// nobody reads (a log) is an error like any other.
func stopSignals() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	return signals, func() { signal.Stop(signals) }
}

// openInterruptibly opens the session, and gives up at a signal; a second one
// ends the process, which may be waiting for a disk.
func openInterruptibly(ctx context.Context, cancel func(), signals <-chan os.Signal, src string, opt options, out console) (*session, error) {
	opened := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-signals:
				if ctx.Err() != nil {
					os.Exit(exitFailed)
				}
				cancel()
			case <-opened:
				return
			}
		}
	}()
	defer close(opened)
	return openSession(ctx, src, opt, out, true)
}

// closePatience is how long work under way may take to end with the process.
const closePatience = 2 * time.Second

// closeSoon closes the session, unless work under way (a read of a disk that
// does not answer) keeps it; the process then ends without.
func (s *session) closeSoon(signals <-chan os.Signal) {
	closed := make(chan struct{})
	go func() {
		s.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-signals:
	case <-time.After(closePatience):
	}
}

func (s *session) fsOptions(m mountOptions) fs.Options {
	o := fs.Options{
		Tree:       s.tree,
		Refresh:    kernelRefresh(s.opt.refresh),
		UID:        m.uid.id,
		GID:        m.gid.id,
		FileMode:   uint32(m.fileMode),
		DirMode:    uint32(m.dirMode),
		AllowOther: m.allowOther,
		Flags:      m.flags,
		Stats:      &s.kernel,

		NoKernelPath: s.opt.off.has(wayKernel),
		// What is read ahead of a column would have to be fetched.
		NoReadAhead: s.remote(),
		Log:         s.log,
		Activity:    s.activity,
	}
	return o
}

// serve returns when the tree is unmounted, by a signal or from outside.
func (s *session) serve(mounted *fs.FS, dir string, signals <-chan os.Signal) error {
	gone := make(chan struct{})
	go func() {
		mounted.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		s.notify(notifyStopping, "unmounted")
		s.log.Info("unmounted", "mountpoint", dir)
		return nil
	case <-signals:
	}
	s.notify(notifyStopping, "unmounting")
	if err := unmountPatiently(dir, signals, s.log); err != nil {
		return err
	}
	select {
	case <-gone:
	case <-signals:
	case <-time.After(detachPatience):
		s.log.Warn("readers are left; their files end here", "mountpoint", dir)
	}
	s.log.Info("unmounted", "mountpoint", dir)
	return nil
}

// unmountPatiently waits for readers to close their files, then detaches the
// tree from the mountpoint. A further signal detaches at once.
func unmountPatiently(dir string, signals <-chan os.Signal, log *slog.Logger) error {
	deadline := time.After(unmountPatience)
	for {
		err := fs.Unmount(dir, false)
		if !errors.Is(err, fs.ErrBusy) {
			if err == nil {
				return nil
			}
			log.Warn("unmount failed; detaching", "mountpoint", dir, "cause", err)
			return fs.Unmount(dir, true)
		}
		select {
		case <-time.After(unmountRetry):
			continue
		case <-deadline:
		case <-signals:
		}
		log.Warn("still in use; detaching", "mountpoint", dir)
		return fs.Unmount(dir, true)
	}
}

// explainMount says what to do about a mount that failed.
func explainMount(dir string, allowOther bool, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w\nRoot may only mount with the capability CAP_SYS_ADMIN: run a container with --cap-add SYS_ADMIN --device /dev/fuse", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%w\nThe kernel offers no FUSE: load it with 'modprobe fuse', or give the container --device /dev/fuse", err)
	case os.Geteuid() != 0 && allowOther:
		return fmt.Errorf("%w\nFor --allow-other the line user_allow_other has to be in /etc/fuse.conf", err)
	case os.Geteuid() != 0:
		return fmt.Errorf("%w\nfusermount3 refused: the mountpoint has to be yours and writable", err)
	}
	return err
}

// owner is a user or group id, or unset.
type owner struct{ id *uint32 }

func (o *owner) Type() string { return "ID" }

func (o *owner) String() string {
	if o.id == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*o.id), 10)
}

func (o *owner) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return errors.New("want a number")
	}
	id := uint32(n)
	o.id = &id
	return nil
}

// modeFlag is permission bits in octal.
type modeFlag uint32

func (m *modeFlag) Type() string   { return "MODE" }
func (m *modeFlag) String() string { return fmt.Sprintf("%04o", uint32(*m)) }

func (m *modeFlag) Set(s string) error {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 || n == 0 {
		return errors.New("want permissions in octal, like 0444")
	}
	*m = modeFlag(n)
	return nil
}
