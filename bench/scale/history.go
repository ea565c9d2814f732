package scale

import (
	"fmt"

	"github.com/apache/iceberg-go"
)

// History writes a table of many snapshots to a folder and returns its metadata
// file. Every snapshot adds one data file in a manifest of its own and, once
// there are live of them, drops the oldest, so that it lists live manifests that
// its neighbours list too.
func History(dir string, snapshots, live int) (string, error) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
	)
	t, err := NewTable(dir, schema, *iceberg.UnpartitionedSpec)
	if err != nil {
		return "", err
	}
	var list []iceberg.ManifestFile
	for n := 1; n <= snapshots; n++ {
		path := fmt.Sprintf("file://%s/data/00000-%d-6c1f9f3e-0000-4000-8000-%012d-00001.parquet", dir, n, n)
		b, err := iceberg.NewDataFileBuilder(t.Spec, iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, 1000, 1_000_000)
		if err != nil {
			return "", err
		}
		m, err := t.Manifest(n, iceberg.ManifestContentData, []iceberg.DataFile{b.Build()})
		if err != nil {
			return "", err
		}
		if list = append(list, m); len(list) > live {
			list = list[1:]
		}
		if list, err = t.Commit(list); err != nil {
			return "", err
		}
	}
	return t.Finish()
}
