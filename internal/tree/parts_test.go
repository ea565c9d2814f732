package tree_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/snapshot"
)

func dataFiles(paths ...string) []snapshot.File {
	var list []snapshot.File
	for i, p := range paths {
		list = append(list, snapshot.File{DataFile: &snapshot.DataFile{
			Path: p, Format: snapshot.Parquet, Records: 10, Sequence: int64(i + 1)}})
	}
	return list
}

func TestParts(t *testing.T) {
	f := newFixture(t, treetest.Metadata(uuid, 1), func(o *tree.Options) {
		o.Show, _ = tree.ParseShown("parts,parts.csv")
	})
	files := dataFiles("s3://b/p=1/x.parquet", "s3://b/p=2/x.parquet", "s3://b/y.parquet", "s3://b/y.parquet")
	files[2].DV = &snapshot.DataFile{Path: "d.puffin", Records: 4}
	files[2].Equality = []*snapshot.DataFile{{Path: "e.parquet"}}
	f.table.Current().Files = files
	same(t, "snapshot", names(t, f.tree, "db/t/snapshots/1"),
		[]string{"parts", "parts.csv", "schema.json", "snapshot.json", "files.csv"})
	got := names(t, f.tree, "db/t/snapshots/1/parts")
	if len(got) != 4 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 4 {
		t.Fatalf("parts: %q", got)
	}
	// sha256 of the paths
	same(t, "twins", got[:2], []string{"x-0d554538.parquet", "x-11638c08.parquet"})
	if got, want := content(t, f.tree, "db/t/snapshots/1/parts/"+got[1]), "part s3://b/p=2/x.parquet of 1, schema 0, 4 files\n"; got != want {
		t.Errorf("part: %q, want %q", got, want)
	}
	csv := strings.TrimSuffix(got[0], ".parquet") + ".csv"
	if got, want := content(t, f.tree, "db/t/snapshots/1/parts.csv/"+csv), "csv of 1, schema 0, 1 files\n"; got != want {
		t.Errorf("part as CSV: %q, want %q", got, want)
	}
	want := "path,format,records,sequence_number,spec_id,delete_files,dv_cardinality\n" +
		"s3://b/p=1/x.parquet,PARQUET,10,1,0,0,\n" +
		"s3://b/p=2/x.parquet,PARQUET,10,2,0,0,\n" +
		"s3://b/y.parquet,PARQUET,10,3,0,2,4\n" +
		"s3://b/y.parquet,PARQUET,10,4,0,0,\n"
	if got := content(t, f.tree, "db/t/snapshots/1/files.csv"); got != want {
		t.Errorf("files.csv:\n%s", got)
	}
	missing(t, f.tree, "db/t/snapshots/1/parts/x.parquet")
	missing(t, f.tree, "db/t/snapshots/1/parts/.parquet")
}
