package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/icefs/icefs/fs"
)

// startMount mounts a source in a process that may hold few descriptors, and
// returns the mountpoint.
func startMount(t *testing.T, src, descriptors string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	var log strings.Builder
	args := append([]string{"-c", `ulimit -n "$1"; shift; exec "$@"`, "sh", descriptors,
		icefsBinary(t), "mount", "--cache-dir", filepath.Join(t.TempDir(), "cache"), src, dir}, flags...)
	cmd := exec.Command("sh", args...)
	cmd.Stderr = &log
	t.Cleanup(func() { // after the server has ended
		if t.Failed() {
			t.Logf("log of icefs:\n%s", log.String())
		}
	})
	serveMount(t, cmd, dir, log.String)
	return dir
}

// serveMount starts a server, and returns once its folder is mounted; it is stopped
// when the test ends, which fails if that is not how it ends. log tells what it has
// said.
func serveMount(t *testing.T, cmd *exec.Cmd, dir string, log func() string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("icefs: %v\n%s", err, log())
		}
	})
	awaitMount(t, dir, ended, log)
}

// awaitMount returns once a folder is mounted. ended is told of the process's
// end, log what it has said.
func awaitMount(t *testing.T, dir string, ended chan error, log func() string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, on, err := fs.MountedOn(dir); err != nil {
			t.Fatal(err)
		} else if on {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("icefs ended: %v\n%s", err, log())
		default:
		}
		if time.Since(start) > patience {
			t.Fatal("not mounted")
		}
	}
}

// TestManyOpenFiles: a thousand open files, and 64 readers of one, are served
// by a process with 256 descriptors, which stays within its memory.
func TestManyOpenFiles(t *testing.T) {
	const budget = 256 << 20
	dir := startMount(t, "../../testdata/warehouse", "256", "--memory", "256MiB")
	names, err := filepath.Glob(dir + "/*/*/snapshots/*/parts/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(dir + "/hadoop/db/*/snapshots/*/parts/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(append(names, more...), func(name string) bool {
		return strings.Contains(name, "/pos_odd/") // some of its deletes are in ORC
	})
	if len(names) < 200 {
		t.Fatalf("only %d parts", len(names))
	}
	head := make(map[string][]byte)
	for i := range 1000 {
		name := names[i%len(names)]
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		buf := make([]byte, 4096)
		n, err := f.ReadAt(buf, 0)
		if err != nil && err != io.EOF {
			t.Fatalf("%s: %v", name, err)
		}
		if first, again := head[name]; again && !bytes.Equal(first, buf[:n]) {
			t.Errorf("%s reads differently", name)
		}
		head[name] = buf[:n]
	}
	readTogether(t, dir+"/db/v2_eq/current/data.csv", 64)
	if peak := peakMemory(t, serverOf(dir)); peak > budget {
		t.Errorf("%d MiB were resident at the most, of %d", peak>>20, budget>>20)
	}
	if n := descriptors(t, serverOf(dir)); n > 200 {
		t.Errorf("%d descriptors are open, with nothing being read", n)
	}
}

// peakMemory is the most that a process has had resident, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(text, &kib); err != nil || !ok {
		t.Fatalf("%v in %s", err, b)
	}
	return kib << 10
}

// descriptors is how many a process has open.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// readTogether reads a file by several readers at once.
func readTogether(t *testing.T, name string, readers int) {
	t.Helper()
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
			}
		})
	}
	wg.Wait()
}
