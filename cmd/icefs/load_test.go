package main

import (
	"bytes"
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is icefs if that is its name: see TestMain.
	icefs := filepath.Join(t.TempDir(), "icefs")
	if err := os.Symlink(self, icefs); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	args := append([]string{"-c", `ulimit -n "$1"; shift; exec "$@"`, "sh", descriptors,
		icefs, "mount", "--cache-dir", filepath.Join(t.TempDir(), "cache"), src, dir}, flags...)
	cmd := exec.Command("sh", args...)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("icefs: %v", err)
		}
		if t.Failed() {
			t.Logf("log of icefs:\n%s", log.String())
		}
	})
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, on, err := fs.MountedOn(dir); err != nil {
			t.Fatal(err)
		} else if on {
			return dir
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("icefs ended: %v\n%s", err, log.String())
		default:
		}
		if time.Since(start) > patience {
			t.Fatal("not mounted")
		}
	}
}

// TestManyOpenFiles: a thousand open files, and 64 readers of one, are served
// by a process with 256 descriptors.
func TestManyOpenFiles(t *testing.T) {
	dir := startMount(t, "../../testdata/warehouse", "256")
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
