package deletes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"
)

// BenchmarkEquality resolves delete files of random keys against a million rows
// of distinct ones: read alone ("0 files") is what the data file's key column
// costs.
func BenchmarkEquality(b *testing.B) {
	const rows = 1_000_000
	type row struct {
		V int64  `parquet:"v,id(1)"`
		S string `parquet:"s,id(2)"`
	}
	r := rand.New(rand.NewPCG(1, 1))
	data := make([]row, rows)
	for i := range data {
		data[i] = row{int64(i) * 3, fmt.Sprintf("customer-%08d", i*7%rows)}
	}
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, field(1, "v", p.Int64), field(2, "s", p.String))
	stored := parquetOf(b, 250_000, data, parquet.Compression(&parquet.Zstd))
	for _, key := range [][]int{{1}, {2}, {1, 2}} {
		for _, files := range []int{1, 10, 100} {
			l := newLab(schema)
			l.files["data"] = stored
			for range files {
				keys := make([]row, 100_000/files)
				for i := range keys {
					keys[i] = data[r.IntN(rows)]
				}
				l.addEquality(parquetOf(b, 1<<20, keys), key...)
			}
			b.Run(fmt.Sprintf("key%v/%dfiles", key, files), func(b *testing.B) {
				for range b.N {
					if _, err := NewResolver(Options{Cache: &mapCache{}}).Resolve(context.Background(), l.table, l, &l.file); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}

// BenchmarkPositionFile decodes a position-delete file of a million rows.
func BenchmarkPositionFile(b *testing.B) {
	const rows = 1_000_000
	for _, paths := range []int{1, 100} {
		var all []posRow
		for i := range paths {
			for k := range rows / paths {
				all = append(all, posRow{fmt.Sprintf("s3://bucket/warehouse/db/table/data/part-%05d.parquet", i), int64(k * 7)})
			}
		}
		l := newLab()
		l.file.Path = all[0].Path
		l.files[l.file.Path] = nil
		l.addPositions(parquetOf(b, 1<<20, all, parquet.Compression(&parquet.Zstd)))
		b.Run(fmt.Sprintf("%dpaths", paths), func(b *testing.B) {
			for range b.N {
				if _, err := NewResolver(Options{}).Resolve(context.Background(), l.table, l, &l.file); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
