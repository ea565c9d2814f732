package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/fs"
	"github.com/icefs/icefs/internal/fixture"
)

// restarts is how often TestKilledServer kills.
var restarts = flag.Int("restarts", 20, "times that TestKilledServer kills a server")

// server is icefs mount as a process, on a mountpoint that outlives it.
type server struct {
	cmd   *exec.Cmd
	ended chan error
	log   *strings.Builder
	dir   string
}

// icefsBinary is a path under which the test binary is icefs: see TestMain.
func icefsBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "icefs")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// startServer mounts src on dir, and returns when its root can be listed.
func startServer(t *testing.T, src, dir string, flags ...string) *server {
	t.Helper()
	s := &server{ended: make(chan error, 1), log: new(strings.Builder), dir: dir}
	s.cmd = exec.Command(icefsBinary(t), append([]string{"mount", src, dir}, flags...)...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		if _, on, _ := fs.MountedOn(dir); on {
			fs.Unmount(dir, true)
		}
	})
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if serverOf(dir) == s.cmd.Process.Pid {
			return s
		}
		select {
		case err := <-s.ended:
			t.Fatalf("icefs ended: %v\n%s", err, s.log.String())
		default:
		}
		if time.Since(start) > patience {
			t.Fatalf("not mounted\n%s", s.log.String())
		}
	}
}

// wait returns how long it took the process to end, and how it ended.
func (s *server) wait(t *testing.T, within time.Duration) (time.Duration, error) {
	t.Helper()
	start := time.Now()
	select {
	case err := <-s.ended:
		return time.Since(start), err
	case <-time.After(within):
		t.Fatalf("the server is still there after %v\n%s", within, s.log.String())
	}
	return 0, nil
}

// readers read files again and again until one cannot be read, and compare what
// they get.
type readers struct {
	wg    sync.WaitGroup
	reads atomic.Int64
}

func startReaders(t *testing.T, n int, want map[string][sha256.Size]byte, stop <-chan struct{}) *readers {
	r := new(readers)
	var names []string
	for name := range want {
		names = append(names, name)
	}
	for i := range n {
		r.wg.Go(func() {
			for j := i; ; j++ {
				select {
				case <-stop:
					return
				default:
				}
				name := names[j%len(names)]
				b, err := os.ReadFile(name)
				if err != nil {
					return // the server is gone
				}
				if sha256.Sum256(b) != want[name] {
					t.Errorf("%s: other bytes", name)
				}
				r.reads.Add(1)
			}
		})
	}
	return r
}

// wait fails the test if a reader hangs.
func (r *readers) wait(t *testing.T, dir string) {
	t.Helper()
	done := make(chan struct{})
	go func() { r.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		fs.Unmount(dir, true) // lets them go
		t.Fatal("a reader hangs")
	}
}

// expected reads files whole.
func expected(t *testing.T, names ...string) map[string][sha256.Size]byte {
	t.Helper()
	sums := make(map[string][sha256.Size]byte)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil || len(b) == 0 {
			t.Fatalf("%s: %d bytes, %v", name, len(b), err)
		}
		sums[name] = sha256.Sum256(b)
	}
	return sums
}

func loadedFiles(dir string) []string {
	return []string{
		dir + "/db/v2_eq/current/data.csv", dir + "/db/v2_eq/current/data.parquet", dir + "/db/v2_eq/current/data.jsonl",
		dir + "/db/branches_tags/branches/dev/data.parquet", dir + "/db/eq_evo/current/data.csv",
	}
}

// TestKilledServer: the server is killed under 32 readers and started again on
// the same mountpoint, many times: nobody hangs, nothing stale is left, no byte
// is wrong, and the cache folder stays good.
func TestKilledServer(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	src, err := filepath.Abs("../../testdata/warehouse")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, src, dir, "--cache-dir", cache)
	want := expected(t, loadedFiles(dir)...)
	time.Sleep(3 * time.Second) // what was measured is written behind, a second later
	for i := range *restarts {
		r := startReaders(t, 32, want, nil)
		for r.reads.Load() < 64 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(i*7) * time.Millisecond)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.wait(t, 5*time.Second)
		r.wait(t, dir)
		s = startServer(t, src, dir, "--cache-dir", cache)
	}
	if got := expected(t, loadedFiles(dir)...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("files changed")
	}
	if n := counters(t, dir)["groups_measured_total"]; n != 0 {
		t.Errorf("%d row groups were measured again: the cache folder was lost", n)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := s.wait(t, 10*time.Second); err != nil {
		t.Errorf("the last server: %v", err)
	}
	if log := s.log.String(); strings.Contains(log, "WARN") || strings.Contains(log, "ERROR") {
		t.Errorf("the last server says:\n%s", log)
	}
	if _, on, err := fs.MountedOn(dir); on || err != nil {
		t.Errorf("still mounted: %t, %v", on, err)
	}
}

// TestStopUnderLoad: at SIGTERM the server ends within ten seconds and with
// success, whatever is being read.
func TestStopUnderLoad(t *testing.T) {
	dir := t.TempDir()
	src, err := filepath.Abs("../../testdata/warehouse")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, src, dir, "--cache-dir", filepath.Join(t.TempDir(), "cache"))
	want := expected(t, loadedFiles(dir)...)
	held, err := os.Open(loadedFiles(dir)[0]) // keeps the mount busy to the end
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	r := startReaders(t, 32, want, nil)
	for r.reads.Load() < 64 {
		time.Sleep(time.Millisecond)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	took, err := s.wait(t, 15*time.Second)
	if err != nil || took > 10*time.Second {
		t.Errorf("ended after %v: %v\n%s", took, err, s.log.String())
	}
	r.wait(t, dir)
	if _, on, err := fs.MountedOn(dir); on || err != nil {
		t.Errorf("still mounted: %t, %v", on, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the mountpoint holds %v, %v", entries, err)
	}
}

// slowTable is a table of many files, and what its CSV view says.
func slowTable(t *testing.T) string {
	t.Helper()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "s", Type: iceberg.PrimitiveTypes.String})
	tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: schema})
	tx := tab.Begin()
	for i := range 60 {
		var rows []fixture.Row
		for j := range 100 {
			rows = append(rows, fixture.Row{"s": "row " + strconv.Itoa(i*1000+j)})
		}
		tx.Append(rows...)
	}
	tx.Commit()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	return tab.Dir()
}

// TestInterruptedReader: a reader that waits for a long measure dies at Ctrl-C
// within two seconds; who waits for the same measure gets it; the slow call is
// in the log, with its reason; and the server still ends in time.
func TestInterruptedReader(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("as root only: the source is a mount of this process")
		return
	}
	src, delay := slowSource(t, slowTable(t))
	dir := t.TempDir()
	s := startServer(t, src, dir, "--cache-dir", "", "--slow-log", "1s")
	file := dir + "/current/data.csv"
	delay.Store(int64(500 * time.Millisecond))
	var readers []*exec.Cmd
	for range 3 {
		c := exec.Command("cat", file)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		readers = append(readers, c)
	}
	var size bytes.Buffer
	patient := exec.Command("stat", "-c", "%s", dir+"/current/data.csv")
	patient.Stdout = &size
	if err := patient.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	for i, c := range readers {
		start := time.Now()
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		err := c.Wait()
		if took := time.Since(start); took > 2*time.Second || err == nil {
			t.Errorf("reader %d ended after %v: %v", i, took, err)
		}
	}
	delay.Store(0)
	ended := make(chan error, 1)
	go func() { ended <- patient.Wait() }()
	select {
	case err := <-ended:
		b, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || strings.TrimSpace(size.String()) != strconv.Itoa(len(b)) || bytes.Count(b, []byte("\n")) != 6001 {
			t.Errorf("stat says %q, %v; %d bytes, %v", size.String(), err, len(b), readErr)
		}
	case <-time.After(20 * time.Second):
		t.Error("who waited for the same measure hangs")
	}
	// A reader that nothing interrupts does not keep the server either.
	delay.Store(int64(3 * time.Second))
	stuck := exec.Command("cat", dir+"/current/data.jsonl")
	if err := stuck.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	took, err := s.wait(t, 15*time.Second)
	if err != nil || took > 10*time.Second {
		t.Errorf("ended after %v: %v\n%s", took, err, s.log.String())
	}
	var failed *exec.ExitError
	if err := stuck.Wait(); !errors.As(err, &failed) {
		t.Errorf("the reader of a server that is gone: %v", err)
	}
	if log := s.log.String(); !strings.Contains(log, `msg="slow stat"`) || !strings.Contains(log, "row groups measured for text") {
		t.Errorf("no slow call is in the log:\n%s", log)
	}
}
