package scale

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/warehouse"
)

// historyTable writes a table of snapshots with 20 live files each.
func historyTable(b testing.TB, snapshots int) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "t")
	if _, err := History(dir, snapshots, 20); err != nil {
		b.Fatal(err)
	}
	return dir
}

// buildProgram builds icefs.
func buildProgram(b testing.TB) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "icefs")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/icefs").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return program
}

// mount mounts a source and returns the mountpoint and the server's process id.
func mount(b testing.TB, program, source string) (dir string, server *os.Process, stop func()) {
	b.Helper()
	dir = b.TempDir()
	cmd := exec.Command(program, "mount", source, dir)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(filepath.Join(dir, ".icefs")); err == nil {
			break
		}
		if time.Since(start) > time.Minute {
			b.Fatalf("not mounted: %s", &log)
		}
	}
	return dir, cmd.Process, func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
}

// list runs ls.
func list(b testing.TB, dir string) {
	b.Helper()
	if out, err := exec.Command("ls", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// peakMemory is the most resident memory that a process has had, in MiB.
func peakMemory(b testing.TB, p *os.Process) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/status")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}

// mountAndList is the time from starting the program to the end of ls of the
// table and of its snapshots.
func mountAndList(b testing.TB, program, source string) time.Duration {
	start := time.Now()
	dir, _, stop := mount(b, program, source)
	list(b, dir)
	list(b, filepath.Join(dir, "snapshots"))
	d := time.Since(start)
	stop()
	return d
}

// find walks all of a mount and returns its entries, the time and the server's
// peak memory.
func find(b testing.TB, program, source string) (entries int, d time.Duration, mib float64) {
	dir, server, stop := mount(b, program, source)
	defer stop()
	start := time.Now()
	err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error {
		entries++
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return entries, time.Since(start), peakMemory(b, server)
}

// BenchmarkHistory mounts tables of 1,000 and of 10,000 snapshots: mount and ls,
// and a walk over everything, of the long one as a multiple of the short one's.
func BenchmarkHistory(b *testing.B) {
	program := buildProgram(b)
	short, long := historyTable(b, 1_000), historyTable(b, 10_000)
	for range b.N {
		few := best(5, func() { mountAndList(b, program, short) })
		many := best(5, func() { mountAndList(b, program, long) })
		b.ReportMetric(many.Seconds()/few.Seconds(), "ls-10k-of-1k(<=5)")
		b.ReportMetric(few.Seconds()*1000, "ls-1k-ms")
		b.ReportMetric(many.Seconds()*1000, "ls-10k-ms")
		shortEntries, shortTime, _ := find(b, program, short)
		longEntries, longTime, mib := find(b, program, long)
		if longEntries < 9*shortEntries {
			b.Fatalf("%d entries of 10,000 snapshots, %d of 1,000", longEntries, shortEntries)
		}
		b.ReportMetric(longTime.Seconds()/shortTime.Seconds(), "find-10k-of-1k(~10)")
		b.ReportMetric(longTime.Seconds()*1e6/float64(longEntries), "find-us/entry")
		b.ReportMetric(mib, "find-peak-MiB(<=512)")
	}
	b.ReportMetric(0, "ns/op")
}

// TestWalkingHistoryReadsEachManifestOnce plans every snapshot of a table.
func TestWalkingHistoryReadsEachManifestOnce(t *testing.T) {
	const snapshots = 1_000
	ctx := context.Background()
	stats := &warehouse.Stats{}
	c, err := warehouse.Open(ctx, historyTable(t, snapshots), warehouse.Options{Stats: stats})
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := c.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := table.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Table().Snapshots {
		p, err := l.Plan(ctx, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want := min(int(s.SequenceNumber), 20); len(p.Files) != want {
			t.Fatalf("snapshot %d: %d files, want %d", s.ID, len(p.Files), want)
		}
	}
	if lists, manifests := stats.ListsRead.Load(), stats.ManifestsRead.Load(); lists != snapshots || manifests != snapshots {
		t.Errorf("%d lists and %d manifests read for %d snapshots with a manifest each", lists, manifests, snapshots)
	}
}
