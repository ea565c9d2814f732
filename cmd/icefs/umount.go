package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/fs"
)

// Times of icefs umount: a file just closed may be in use for a moment, and the
// serving process ends soon after.
const (
	busyPatience = 2 * time.Second
	exitPatience = 10 * time.Second
)

func umountCommand() (*pflag.FlagSet, runner) {
	set := newFlags("umount")
	lazy := set.Bool("lazy", false, "detach the tree at once, and leave open files to their readers")
	wait := set.Duration("wait", busyPatience, "how long to wait while the tree is in use, as a `DURATION`")
	return set, func(ctx context.Context, args []string, _ console) error {
		if err := wantArgs(args, 1, 1, "MOUNTPOINT"); err != nil {
			return err
		}
		return umount(ctx, args[0], *lazy, *wait)
	}
}

// umount unmounts an icefs mount and, unless lazy, waits for its process to end.
func umount(ctx context.Context, where string, lazy bool, wait time.Duration) error {
	dir, err := filepath.Abs(where)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	m, on, err := fs.MountedOn(dir)
	switch {
	case err != nil:
		return err
	case !on:
		return fmt.Errorf("nothing is mounted on %s", where)
	case m.Type != "fuse."+fs.Name:
		return fmt.Errorf("%s is a mount of type %s, not of icefs", where, m.Type)
	}
	if lazy || dead(dir) {
		return fs.Unmount(dir, true)
	}
	pid := serverOf(dir)
	for start := time.Now(); ; {
		err := fs.Unmount(dir, false)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrBusy) {
			return err
		}
		if time.Since(start) > wait {
			return busyError(where, dir)
		}
		if err := pause(ctx, unmountRetry); err != nil {
			return err
		}
	}
	return waitForExit(ctx, pid)
}

// waitForExit waits for the process that served the tree: only then are its log
// and its cache closed.
func waitForExit(ctx context.Context, pid int) error {
	for start := time.Now(); pid > 0 && alive(pid); {
		if time.Since(start) > exitPatience {
			return fmt.Errorf("the tree is unmounted, but the process that served it (%d) has not ended within %v", pid, exitPatience)
		}
		if err := pause(ctx, unmountRetry/10); err != nil {
			return err
		}
	}
	return nil
}

// serverOf asks a mount for the process that serves it; 0 if it does not tell.
func serverOf(dir string) int {
	var s status
	b, err := os.ReadFile(filepath.Join(dir, ".icefs", "status.json"))
	if err != nil || json.Unmarshal(b, &s) != nil {
		return 0
	}
	return s.PID
}

// alive reports whether a process exists and has not ended: one that its parent
// has yet to wait for counts as ended.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// "pid (name) S …", and the name may hold anything
	_, rest, _ := strings.Cut(string(b[bytes.LastIndexByte(b, ')')+1:]), " ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
