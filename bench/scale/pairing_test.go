package scale

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/snapshot"
)

// pairingCase is data files and equality deletes over one int column, in groups
// whose bounds are disjoint: file i and delete i belong to group i*groups/n.
type pairingCase struct{ files, deletes, groups int }

// attached is the deletes that every data file has to get.
func (c pairingCase) attached() int { return c.deletes / c.groups }

func (c pairingCase) entries() snapshot.Entries {
	e := snapshot.Entries{
		SnapshotID: 1, FormatVersion: 2,
		Specs: map[int]iceberg.PartitionSpec{1: iceberg.NewPartitionSpecID(1, iceberg.PartitionField{
			SourceIDs: []int{1}, FieldID: 1000, Name: "partition", Transform: iceberg.IdentityTransform{}})},
		Schema: iceberg.NewSchema(1, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32, Required: true}),
	}
	partition := map[int]any{1000: int32(0)}
	make := func(content snapshot.Content, name string, n, i int) *snapshot.DataFile {
		group := i * c.groups / n
		return &snapshot.DataFile{
			Path: fmt.Sprintf("%s-%d.parquet", name, i), Content: content, Format: snapshot.Parquet, SpecID: 1,
			Partition: partition, Records: 1, Metrics: metricsOf(int32(group*100), int32(group*100+99)),
		}
	}
	for i := range c.files {
		e.Data = append(e.Data, make(snapshot.Data, "data", c.files, i))
	}
	for i := range c.deletes {
		d := make(snapshot.EqualityDeletes, "delete", c.deletes, i)
		d.Sequence, d.EqualityIDs = int64(i+1), []int{1}
		e.Deletes = append(e.Deletes, d)
	}
	return e
}

func metricsOf(lower, upper int32) []snapshot.ColumnMetrics {
	return []snapshot.ColumnMetrics{{ID: 1, Values: 1, Lower: bound(lower), Upper: bound(upper)}}
}

func bound(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

// pair is what pairing costs: the best time and the bytes allocated.
func (c pairingCase) pair(b *testing.B) (time.Duration, int64) {
	b.Helper()
	e := c.entries()
	for _, f := range snapshot.Pair(e).Files {
		if len(f.Equality) != c.attached() {
			b.Fatalf("%s: %d deletes, want %d", f.Path, len(f.Equality), c.attached())
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	snapshot.Pair(e)
	runtime.ReadMemStats(&after)
	return best(5, func() { snapshot.Pair(e) }), int64(after.TotalAlloc - before.TotalAlloc)
}

const peerModule = "github.com/apache/iceberg-go"

// peerPairing runs iceberg-go's own benchmark of 10,000 data files with 10,000
// equality deletes in 100 disjoint groups, and returns its time and bytes.
func peerPairing(b *testing.B) (time.Duration, int64) {
	b.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", peerModule).Output()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-vet=off", "./table", "-run", "^$", "-bench", "^BenchmarkEqualityDeleteIndexMetrics$/^metrics$", "-benchmem")
	cmd.Dir = strings.TrimSpace(string(dir))
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	m := regexp.MustCompile(`(\d+) ns/op.*?(\d+) B/op`).FindSubmatch(out)
	if m == nil {
		b.Fatalf("no result in %s", out)
	}
	ns, _ := strconv.ParseInt(string(m[1]), 10, 64)
	bytes, _ := strconv.ParseInt(string(m[2]), 10, 64)
	return time.Duration(ns), bytes
}

// BenchmarkPairing compares pairing with iceberg-go's own benchmark of the same
// case: how many times faster, and the share of its bytes.
func BenchmarkPairing(b *testing.B) {
	for range b.N {
		own, bytes := pairingCase{10_000, 10_000, 100}.pair(b)
		peer, peerBytes := peerPairing(b)
		b.ReportMetric(peer.Seconds()/own.Seconds(), "x-iceberg-go(>=10)")
		b.ReportMetric(float64(bytes)/float64(peerBytes), "of-its-bytes(<=0.2)")
		b.ReportMetric(own.Seconds()*1000, "own-ms")
		overlapping, _ := pairingCase{10_000, 10_000, 1}.pair(b)
		b.ReportMetric(overlapping.Seconds()*1000, "overlapping-ms")
		many, _ := pairingCase{100_000, 1_000, 100}.pair(b)
		b.ReportMetric(many.Seconds()*1000, "100kx1k-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// pairedTable writes a case to manifests on disk and returns its metadata file.
func (c pairingCase) table(t testing.TB) string {
	t.Helper()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32, Required: true})
	spec := iceberg.NewPartitionSpecID(0, iceberg.PartitionField{
		SourceIDs: []int{1}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}})
	w, err := NewTable(t.TempDir(), schema, spec)
	if err != nil {
		t.Fatal(err)
	}
	var list []iceberg.ManifestFile
	add := func(n int, content iceberg.ManifestContent, files []iceberg.DataFile) {
		m, err := w.Manifest(n, content, files)
		if err == nil {
			list, err = w.Commit(append(list, m))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var data []iceberg.DataFile
	for i := range c.files {
		data = append(data, c.file(t, w, iceberg.EntryContentData, c.files, i))
	}
	add(1, iceberg.ManifestContentData, data)
	const commits = 10 // of deletes, each with a sequence number of its own
	for n := range commits {
		var deletes []iceberg.DataFile
		for i := c.deletes * n / commits; i < c.deletes*(n+1)/commits; i++ {
			deletes = append(deletes, c.file(t, w, iceberg.EntryContentEqDeletes, c.deletes, i))
		}
		add(n+2, iceberg.ManifestContentDeletes, deletes)
	}
	metadata, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return metadata
}

func (c pairingCase) file(t testing.TB, w *Table, content iceberg.ManifestEntryContent, n, i int) iceberg.DataFile {
	t.Helper()
	path := fmt.Sprintf("file://%s/data/%d-%d.parquet", w.Dir, content, i)
	b, err := iceberg.NewDataFileBuilder(w.Spec, content, path, iceberg.ParquetFile, map[int]any{1000: int32(0)}, nil, nil, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	lower := int32(i * c.groups / n * 100)
	one, none := map[int]int64{1: 1}, map[int]int64{1: 0}
	b.ValueCounts(one).NullValueCounts(none).NaNValueCounts(none).
		LowerBoundValues(map[int][]byte{1: bound(lower)}).UpperBoundValues(map[int][]byte{1: bound(lower + 99)})
	if content == iceberg.EntryContentEqDeletes {
		b.EqualityFieldIDs([]int{1})
	}
	return b.Build()
}

// TestPairsOfManifestsAsPlanFiles pairs manifests on disk as iceberg-go does.
func TestPairsOfManifestsAsPlanFiles(t *testing.T) {
	for _, c := range []pairingCase{{500, 500, 50}, {300, 200, 1}, {60, 600, 20}} {
		metadata := c.table(t)
		want := map[string][]string{}
		for _, task := range peerPlan(t, metadata) {
			var deletes []string
			for _, d := range task.EqualityDeleteFiles {
				deletes = append(deletes, d.FilePath())
			}
			slices.Sort(deletes)
			want[task.File.FilePath()] = deletes
		}
		plan := plan(t, metadata, nil)
		if len(plan.Files) != len(want) || len(want) != c.files {
			t.Fatalf("%d files, PlanFiles has %d of %d", len(plan.Files), len(want), c.files)
		}
		for _, f := range plan.Files {
			var deletes []string
			for _, d := range f.Equality {
				deletes = append(deletes, d.Path)
			}
			slices.Sort(deletes)
			if !slices.Equal(deletes, want[f.Path]) || len(deletes) != c.attached() {
				t.Fatalf("%v: %s: %d deletes, PlanFiles has %d", c, f.Path, len(deletes), len(want[f.Path]))
			}
		}
	}
}

// BenchmarkPlanningWithDeletes plans manifests of 10,000 data files and as many
// equality deletes from disk, as a share of PlanFiles' time.
func BenchmarkPlanningWithDeletes(b *testing.B) {
	metadata := pairingCase{10_000, 10_000, 100}.table(b)
	for range b.N {
		own := best(3, func() { plan(b, metadata, nil) })
		peer := best(1, func() { peerPlan(b, metadata) })
		bytes := kept(func() any { return plan(b, metadata, nil) })
		b.ReportMetric(own.Seconds()/peer.Seconds(), "of-PlanFiles(<=0.5)")
		b.ReportMetric(float64(bytes)/20_000, "bytes/file(<=1024)")
	}
	b.ReportMetric(0, "ns/op")
}
