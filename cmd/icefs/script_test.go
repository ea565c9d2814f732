package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/icefs/icefs/fs"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"icefs": main, helperName: main, mountsName: runMounts})
}

// TestScripts runs icefs as users do: as a process of its own. $TABLES is the
// folder of real tables; whatever a script leaves mounted is detached.
func TestScripts(t *testing.T) {
	tables, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TABLES", tables)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Defer(func() { detachBelow(t, env.WorkDir) })
			return os.Mkdir(filepath.Join(env.WorkDir, "mnt"), 0o700)
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mounted":   waitMounted,
			"unmounted": waitUnmounted,
			"same-tree": sameTree,
			"crash":     crash,
			"signal":    sendSignal,
		},
	})
}

// detachBelow unmounts what a failed script left.
func detachBelow(t *testing.T, dir string) {
	list, err := fs.MountTable()
	if err != nil {
		t.Error(err)
	}
	for _, m := range list {
		if within(m.Dir, dir) {
			if err := fs.Unmount(m.Dir, true); err != nil {
				t.Error(err)
			}
		}
	}
}

// patience is how long a script waits for a mount to come or go.
const patience = 15 * time.Second

func waitFor(ts *testscript.TestScript, dir string, want bool) {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, on, err := fs.MountedOn(dir)
		ts.Check(err)
		if on == want {
			return
		}
		if time.Since(start) > patience {
			ts.Fatalf("%s: mounted %t after %v", dir, on, patience)
		}
	}
}

// waitMounted is the command "mounted DIR".
func waitMounted(ts *testscript.TestScript, _ bool, args []string) {
	waitFor(ts, ts.MkAbs(args[0]), true)
	_, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
}

// waitUnmounted is the command "unmounted DIR".
func waitUnmounted(ts *testscript.TestScript, _ bool, args []string) {
	waitFor(ts, ts.MkAbs(args[0]), false)
}

// crash is the command "crash DIR": it kills the server of a mount, which stays
// behind without one.
func crash(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	pid := serverOf(dir)
	if pid == 0 {
		ts.Fatalf("%s does not tell who serves it", dir)
	}
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	for start := time.Now(); time.Since(start) < patience; time.Sleep(20 * time.Millisecond) {
		if dead(dir) {
			return
		}
	}
	ts.Fatalf("%s still answers", dir)
}

// sendSignal is the command "signal DIR TERM|INT|HUP", to the server of a mount.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[args[1]]
	pid := serverOf(ts.MkAbs(args[0]))
	if pid == 0 || sig == 0 {
		ts.Fatalf("signal %v to process %d", sig, pid)
	}
	ts.Check(syscall.Kill(pid, sig))
}

// sameTree is the command "same-tree A B": both folders hold the same entries
// with the same inode numbers, sizes, times and bytes, but for .icefs.
func sameTree(ts *testscript.TestScript, _ bool, args []string) {
	a, b := snapshotOf(ts, ts.MkAbs(args[0])), snapshotOf(ts, ts.MkAbs(args[1]))
	if len(a) == 0 || len(a) != len(b) {
		ts.Fatalf("%d and %d entries", len(a), len(b))
	}
	for path, e := range a {
		if b[path] != e {
			ts.Fatalf("%s: %+v and %+v", path, e, b[path])
		}
	}
}

// entry is what stat and a reader see of one.
type entry struct {
	ino     uint64
	size    int64
	mode    uint32
	mtime   syscall.Timespec
	content string
}

func snapshotOf(ts *testscript.TestScript, dir string) map[string]entry {
	found := make(map[string]entry)
	ts.Check(filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".icefs" {
			return filepath.SkipDir
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		e := entry{ino: st.Ino, size: st.Size, mode: st.Mode, mtime: st.Mtim}
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			e.content = string(b)
		case info.Mode()&os.ModeSymlink != 0:
			if e.content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		found[strings.TrimPrefix(path, dir)] = e
		return nil
	}))
	return found
}
