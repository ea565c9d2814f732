package warehouse

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

func TestCommonSuffix(t *testing.T) {
	for _, c := range []struct {
		written, found, from, to string
		common                   int
	}{
		{"file:/old/wh/db/t/metadata", "/new/x/wh/db/t/metadata", "/old", "/new/x", 4},
		{"file:///old/wh/db/t/metadata", "/new/db/t/metadata", "/old/wh", "/new", 3},
		{"/old/t/metadata", "/new/renamed/metadata", "/old/t", "/new/renamed", 1},
		{"/old/t/metadata", "/new/flat", "/old/t/metadata", "/new/flat", 0},
		{"/wh/t/metadata", "/data/wh/t/metadata", "/", "/data", 3},
		{"/data/wh/t/metadata", "/wh/t/metadata", "/data", "/", 3},
		{"s3://bucket/wh/t/metadata", "/objects/bucket/wh/t/metadata", "s3://", "/objects", 4},
		{"s3://bucket/wh/t/metadata", "/copy/wh/t/metadata", "s3://bucket", "/copy", 3},
		{"s3://bucket/t/metadata", "/copy/t2/metadata", "s3://bucket/t", "/copy/t2", 1},
		{"/a/b/metadata", "/xb/metadata", "/a/b", "/xb", 1},
		{"/t/metadata", "/t/metadata", "/", "/", 2},
	} {
		from, to, common := commonSuffix(c.written, c.found)
		if from != c.from || to != c.to || common != c.common {
			t.Errorf("%s found as %s: %s -> %s (%d), want %s -> %s (%d)", c.written, c.found, from, to, common, c.from, c.to, c.common)
		}
	}
}

// planAll plans every snapshot and opens every file.
func planAll(t *testing.T, l *Loaded) (files int) {
	t.Helper()
	for _, s := range l.Table().Snapshots {
		plan, err := l.Plan(context.Background(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		for i := range plan.Files {
			checkObjects(t, l.Table().Location, l, &plan.Files[i])
			files++
		}
	}
	return files
}

func TestMovedTables(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string
		source   string
	}{
		{"a table's folder renamed", "warehouse/hadoop/db/hadoop_v1", "other name", "other name"},
		{"a table's folder deeper", "warehouse/db/row_lineage_mor", "x/y/z/db/row_lineage_mor", "x/y/z/db/row_lineage_mor"},
		{"its metadata folder as the source", "warehouse/db/v2_eq", "v2_eq", "v2_eq/metadata"},
		{"one metadata file", "warehouse/db/one_col", "t", "t/metadata/00002-*.metadata.json"},
		{"from an object store", "object-store/icefs-bucket/wh/sales/s3_v2", "sales/copy", "sales/copy"},
		{"from a bare path", "elsewhere/wh/db/elsewhere_v2", "e", "e"},
	} {
		dir := t.TempDir()
		copyOf(t, c.from, filepath.Join(dir, c.to))
		src := filepath.Join(dir, c.source)
		if match, _ := filepath.Glob(src); len(match) == 1 {
			src = match[0]
		}
		if n := planAll(t, load(t, openTable(t, src, Options{}))); n == 0 {
			t.Errorf("%s: no files", c.name)
		}
	}
}

func TestMetadataFolderRenamed(t *testing.T) {
	dir := t.TempDir()
	copyOf(t, "warehouse/db/one_col/metadata", filepath.Join(dir, "t", "meta"))
	copyOf(t, "warehouse/db/one_col/data", filepath.Join(dir, "t", "data"))
	table := openTable(t, filepath.Join(dir, "t", "meta"), Options{AllowPaths: []string{dir}})
	planAll(t, load(t, table))
}

func TestDataElsewhere(t *testing.T) {
	ctx := context.Background()
	src := testdata + "/elsewhere/metapath"
	planAll(t, load(t, openTable(t, src, Options{AllowPaths: []string{testdata + "/elsewhere"}})))

	// Found by the end of write.data.path below another allowed folder.
	dir := t.TempDir()
	copyOf(t, "elsewhere/metapath", filepath.Join(dir, "m"))
	copyOf(t, "elsewhere/datapath", filepath.Join(dir, "far", "datapath"))
	planAll(t, load(t, openTable(t, filepath.Join(dir, "m"), Options{AllowPaths: []string{filepath.Join(dir, "far")}})))

	// Not allowed: the metadata's own word grants nothing.
	l := load(t, openTable(t, src, Options{}))
	plan, err := l.Plan(ctx, l.Table().Current)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		if _, err := l.Store().Open(ctx, f.Path); !errors.Is(err, source.ErrOutside) {
			t.Errorf("%s: %v, want ErrOutside", f.Path, err)
		}
	}
}

func TestTableThatWasNotMoved(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "t")
	raw := document(2, `"snapshots":[{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"file:`+home+`/metadata/a.avro"}]`)
	write(t, home+"/metadata/v1.metadata.json", string(raw))
	write(t, home+"/data/x", "x")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{home, link} {
		l := load(t, openTable(t, src, Options{}))
		o, err := l.Store().Open(context.Background(), "file://"+home+"/data/x")
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if o.Location() != "file://"+home+"/data/x" {
			t.Errorf("%s: %s", src, o.Location())
		}
	}
	local, err := source.NewLocal(source.NewPool(0), dir)
	if err != nil {
		t.Fatal(err)
	}
	b := baked{metadata: []string{"file:" + home + "/metadata", "file:/before/t/metadata"}, data: []string{"/nowhere"}}
	if got := relocate(context.Background(), source.NewFiles(local, nil), home+"/metadata", b); len(got) != 1 || got[0] != (source.Prefix{From: "/before", To: dir}) {
		t.Errorf("a table written again after it was moved: %v", got)
	}
	b.metadata = b.metadata[:1]
	if got := relocate(context.Background(), source.NewFiles(local, nil), home+"/metadata", b); got != nil {
		t.Errorf("a table that was not moved: %v", got)
	}
}
