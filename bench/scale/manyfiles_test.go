package scale

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// counters are what a mount tells of its work.
func counters(t testing.TB, mountpoint string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(mountpoint, ".icefs", "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Counters map[string]int64 `json:"counters"`
	}
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	return status.Counters
}

// TestListingLoadsWhatIsAskedFor: snapshots are listed without their manifests,
// and their folders (whose inodes are identities of what they hold) and parts
// without any data file.
func TestListingLoadsWhatIsAskedFor(t *testing.T) {
	const files, manifests = 2_000, 10
	metadata := planTable(t, files, manifests)
	dir, _, stop := mount(t, buildProgram(t), metadata)
	defer stop()
	folder := filepath.Join(dir, "snapshots", strconv.FormatInt(SnapshotID(1), 10))
	list(t, dir)
	list(t, filepath.Join(dir, "snapshots"))
	c := counters(t, dir)
	if c["manifests_read_total"] != 0 || c["footers_read_total"] != 0 {
		t.Errorf("snapshots listed: %d manifests and %d footers read", c["manifests_read_total"], c["footers_read_total"])
	}
	list(t, folder)
	parts, err := os.ReadDir(filepath.Join(folder, "parts"))
	if err != nil || len(parts) != files {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	c = counters(t, dir)
	if c["manifests_read_total"] != manifests || c["footers_read_total"] != 0 {
		t.Errorf("parts listed: %d manifests of %d and %d footers read", c["manifests_read_total"], manifests, c["footers_read_total"])
	}
}

// BenchmarkManyFiles mounts a table of 100,000 data files: the time of ls of the
// snapshot's folder and of its parts, and the server's peak memory.
func BenchmarkManyFiles(b *testing.B) {
	metadata := planTable(b, 100_000, 100)
	program := buildProgram(b)
	for range b.N {
		start := time.Now()
		dir, server, stop := mount(b, program, metadata)
		folder := filepath.Join(dir, "snapshots", strconv.FormatInt(SnapshotID(1), 10))
		list(b, folder)
		b.ReportMetric(time.Since(start).Seconds()*1000, "mount+ls-ms")
		start = time.Now()
		parts, err := os.ReadDir(filepath.Join(folder, "parts"))
		if err != nil || len(parts) != 100_000 {
			b.Fatalf("%d parts, %v", len(parts), err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1000, "parts-ms")
		b.ReportMetric(peakMemory(b, server), "peak-MiB")
		stop()
	}
	b.ReportMetric(0, "ns/op")
}
