package scale

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/snapshot"
)

// planColumns is the number of columns of the planned table: longs, with every
// third a double.
const planColumns = 16

func planSchema() *iceberg.Schema {
	fields := make([]iceberg.NestedField, planColumns)
	for i := range fields {
		fields[i] = iceberg.NestedField{ID: i + 1, Name: fmt.Sprint("c", i), Type: iceberg.PrimitiveTypes.Int64}
		if i%3 == 2 {
			fields[i].Type = iceberg.PrimitiveTypes.Float64
		}
	}
	return iceberg.NewSchema(0, fields...)
}

func daySpec() iceberg.PartitionSpec {
	return iceberg.NewPartitionSpecID(0, iceberg.PartitionField{
		SourceIDs: []int{1}, FieldID: 1000, Name: "c0_bucket", Transform: iceberg.BucketTransform{NumBuckets: 64}})
}

// dataFile is the i-th data file with the metrics that writers keep.
func dataFile(b testing.TB, dir string, spec iceberg.PartitionSpec, i int) iceberg.DataFile {
	b.Helper()
	partition := map[int]any{1000: int32(i % 64)}
	path := fmt.Sprintf("file://%s/data/c0_bucket=%d/00000-%d-4d0cb8b0-5f5c-4a5e-9d3b-%012d-00001.parquet", dir, i%64, i, i)
	f, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, path, iceberg.ParquetFile, partition, nil, nil, 1000, 1_000_000)
	if err != nil {
		b.Fatal(err)
	}
	sizes, values, nulls, nans := map[int]int64{}, map[int]int64{}, map[int]int64{}, map[int]int64{}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	for id := 1; id <= planColumns; id++ {
		sizes[id], values[id], nulls[id] = 60_000, 1000, 0
		low, high := uint64(i*1000), uint64(i*1000+999)
		if id%3 == 0 {
			nans[id], low, high = 0, math.Float64bits(float64(low)), math.Float64bits(float64(high))
		}
		lower[id], upper[id] = binary.LittleEndian.AppendUint64(nil, low), binary.LittleEndian.AppendUint64(nil, high)
	}
	return f.ColumnSizes(sizes).ValueCounts(values).NullValueCounts(nulls).NaNValueCounts(nans).
		LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets([]int64{4}).SortOrderID(0).Build()
}

// planTable writes a snapshot of data files in manifests of equal size.
func planTable(b testing.TB, files, manifests int) string {
	b.Helper()
	t, err := NewTable(b.TempDir(), planSchema(), daySpec())
	if err != nil {
		b.Fatal(err)
	}
	var list []iceberg.ManifestFile
	for m := range manifests {
		var batch []iceberg.DataFile
		for i := files * m / manifests; i < files*(m+1)/manifests; i++ {
			batch = append(batch, dataFile(b, t.Dir, t.Spec, i))
		}
		m, err := t.Manifest(1, iceberg.ManifestContentData, batch)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, m)
	}
	if _, err := t.Commit(list); err != nil {
		b.Fatal(err)
	}
	metadata, err := t.Finish()
	if err != nil {
		b.Fatal(err)
	}
	return metadata
}

// plan plans the current snapshot of a metadata file that nothing is known of.
func plan(b testing.TB, metadata string, stats *warehouse.Stats) *snapshot.Plan {
	b.Helper()
	ctx := context.Background()
	c, err := warehouse.Open(ctx, metadata, warehouse.Options{Stats: stats})
	if err != nil {
		b.Fatal(err)
	}
	_, t, err := c.Root(ctx)
	if err != nil {
		b.Fatal(err)
	}
	l, err := t.Load(ctx)
	if err != nil {
		b.Fatal(err)
	}
	p, err := l.Plan(ctx, l.Table().Current)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// peerPlan plans with iceberg-go.
func peerPlan(b testing.TB, metadata string) []table.FileScanTask {
	b.Helper()
	ctx := context.Background()
	t, err := table.NewFromLocation(ctx, nil, metadata, iceio.LoadFSFunc(nil, metadata), nil)
	if err != nil {
		b.Fatal(err)
	}
	tasks, err := t.Scan().PlanFiles(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return tasks
}

// best is the shortest of n times that f takes.
func best(n int, f func()) time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for range n {
		runtime.GC()
		start := time.Now()
		f()
		shortest = min(shortest, time.Since(start))
	}
	return shortest
}

// kept is the heap that stays in use after f, as long as its result does.
func kept(f func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(result)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// BenchmarkPlanning plans 100,000 data files in 100 manifests: the time as a
// share of iceberg-go's PlanFiles, and the bytes kept for a file.
func BenchmarkPlanning(b *testing.B) {
	const files, manifests = 100_000, 100
	metadata := planTable(b, files, manifests)
	for range b.N {
		var ours, theirs int
		own := best(5, func() { ours = len(plan(b, metadata, nil).Files) })
		peer := best(5, func() { theirs = len(peerPlan(b, metadata)) })
		if ours != files || theirs != files {
			b.Fatalf("%d and %d files of %d", ours, theirs, files)
		}
		bytes := kept(func() any { return plan(b, metadata, nil) })
		b.ReportMetric(own.Seconds()/peer.Seconds(), "of-PlanFiles")
		b.ReportMetric(float64(bytes)/files, "bytes/file")
		b.ReportMetric(own.Seconds()*1000, "own-ms")
		b.ReportMetric(peer.Seconds()*1000, "peer-ms")
	}
	b.ReportMetric(0, "ns/op")
}
