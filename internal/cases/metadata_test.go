package cases

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/fixture"
)

// Without a catalog the newest metadata file is found by its number, or from the
// hint on forward, whatever its form of name.
func TestNewestMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		opt  fixture.Options
		hint string // "" = the writer's, "-" = none
		// rename gives a metadata file another name; compressed files are those whose
		// name it changes to one of gzip.
		rename func(name string) string
	}{
		"v9 and v10":               {fixture.Options{}, "-", nil},
		"00009 and 00010":          {fixture.Options{UUIDNames: true}, "-", nil},
		"stale hint":               {fixture.Options{}, "2", nil},
		"hint of a file not there": {fixture.Options{}, "77", nil},
		"gz.metadata.json":         {fixture.Options{Gzip: true}, "-", nil},
		"metadata.json.gz": {fixture.Options{}, "2", func(name string) string {
			return strings.Replace(name, ".metadata.json", ".metadata.json.gz", 1)
		}},
		"uuids in gzip": {fixture.Options{UUIDNames: true, Gzip: true}, "-", nil},
		"v and a uuid": {fixture.Options{}, "-", func(name string) string {
			return strings.Replace(fmt.Sprintf("v%015s", name[1:]), ".metadata", "-0b5c4a52-6a5b-4e0c-8d1b-1d6cf2f6a5f0.metadata", 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Schema = idAndText()
			tab := fixture.New(t.TempDir(), c.opt)
			want := []string{"id,s"}
			for i := range 10 {
				commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": i}) })
				want = append(want, fmt.Sprintf("%d,", i))
			}
			if err := tab.Err(); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(tab.Dir(), "metadata")
			hint := filepath.Join(dir, "version-hint.text")
			switch c.hint {
			case "":
			case "-":
				os.Remove(hint)
			default:
				if err := os.WriteFile(hint, []byte(c.hint), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.rename != nil {
				renameMetadata(t, dir, c.rename)
			}
			open(t, tab).rows(want...)
		})
	}
}

// renameMetadata renames a table's metadata files, and compresses those that
// are called .gz.
func renameMetadata(t *testing.T, dir string, rename func(string) string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.metadata.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("metadata files: %v, %v", paths, err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		to := rename(filepath.Base(path))
		if strings.HasSuffix(to, ".gz") {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			w.Write(b)
			w.Close()
			b = z.Bytes()
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A table that was dropped, with its files left, and created again in the same
// folder starts with a low number; it is the newer one.
func TestCreatedAgain(t *testing.T) {
	dir := t.TempDir()
	opt := fixture.Options{Schema: idAndText(), UUIDNames: true}
	old := fixture.New(dir, opt)
	for range 5 {
		commit(old, func(tx *fixture.Tx) { tx.Append(numbered(1, 2)...) })
	}
	if err := old.Err(); err != nil {
		t.Fatal(err)
	}
	opt.Seed, opt.Start = 1, fixture.DefaultStart().Add(30*24*time.Hour)
	again := fixture.New(dir, opt)
	commit(again, func(tx *fixture.Tx) { tx.Append(numbered(7, 7)...) })
	open(t, again).rows("id,s", "7,")
}

// What a manifest list says of a manifest's length is not believed.
func TestWrongManifestLengths(t *testing.T) {
	for name, wrong := range map[string]func(int64) int64{
		"zero":    func(int64) int64 { return 0 },
		"doubled": func(n int64) int64 { return 2 * n },
		"short":   func(n int64) int64 { return n / 2 },
	} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
			var f *fixture.File
			commit(tab, func(tx *fixture.Tx) { f = tx.Append(numbered(1, 3)...) })
			commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 1) })
			rewrite(t, tab, "snap-*.avro", func(b []byte) []byte {
				return rewriteAvro(t, b, func(entry map[string]any) { entry["manifest_length"] = wrong(entry["manifest_length"].(int64)) })
			})
			open(t, tab).rows("id,s", "1,", "3,")
		})
	}
}

// setFormat changes the file format that manifests state of a file.
func setFormat(t *testing.T, tab *fixture.Table, f *fixture.File, format string) {
	t.Helper()
	rewrite(t, tab, "*-m*.avro", func(b []byte) []byte {
		return rewriteAvro(t, b, func(entry map[string]any) {
			if data := entry["data_file"].(map[string]any); data["file_path"] == f.Path {
				data["file_format"] = format
			}
		})
	})
}

// A data file that cannot be read makes the views that need it fail, and only
// those, with the reason; so does a format that is not known.
func TestUnreadableFormats(t *testing.T) {
	for _, format := range []string{"ORC", "VORTEX"} {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
		var a, b *fixture.File
		commit(tab, func(tx *fixture.Tx) { a = tx.Append(numbered(1, 2)...) })
		commit(tab, func(tx *fixture.Tx) { b = tx.Append(numbered(3, 4)...) })
		if err := tab.Err(); err != nil {
			t.Fatal(err)
		}
		setFormat(t, tab, b, format)
		o := openDir(t, tab.Dir())
		o.shows(o.scan(tab.Snapshots()[0].ID, nil), "id,s\n1,\n2,\n")
		s := o.scan(0, nil)
		index := 0
		for i, f := range s.Plan.Files {
			if f.Path != a.Path {
				index = i
			}
		}
		o.refuses(format, index)
	}
}

// Position deletes in Avro, for rows in Parquet.
func TestAvroPositionDeletes(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	var f, d *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(numbered(1, 5)...); tx.Append(numbered(6, 7)...) })
	commit(tab, func(tx *fixture.Tx) { d = tx.DeletePositions(f, 1, 3) })
	schema := `{"type":"record","name":"d","fields":[{"name":"file_path","type":"string","field-id":2147483546},{"name":"pos","type":"long","field-id":2147483545}]}`
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, pos := range d.Entries {
		if err := w.Encode(map[string]any{"file_path": pos.Path, "pos": pos.Pos}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Local, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	setFormat(t, tab, d, "AVRO")
	open(t, tab).rows("id,s", "1,", "3,", "5,", "6,", "7,")
}

// Columns of every type of version 3 stand beside the others; unknown is NULL.
func TestTypesOfVersion3(t *testing.T) {
	p := iceberg.PrimitiveTypes
	geometry, err := iceberg.GeometryTypeOf("OGC:CRS84")
	if err != nil {
		t.Fatal(err)
	}
	const point = "\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x40" // (1, 2)
	fields := []iceberg.NestedField{
		{ID: 1, Name: "id", Type: p.Int64},
		{ID: 2, Name: "ns", Type: p.TimestampNs},
		{ID: 3, Name: "tzns", Type: p.TimestampTzNs},
		{ID: 4, Name: "u", Type: iceberg.UnknownType{}},
		{ID: 5, Name: "g", Type: geometry},
		{ID: 6, Name: "v", Type: iceberg.VariantType{}},
	}
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0, fields...), FormatVersion: 3})
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) {
		f = tx.AppendFile(fixture.FileOptions{Omit: []int{4, 6}},
			fixture.Row{"id": 1, "ns": "1969-12-31 23:59:59.999999999", "tzns": "2026-11-30 02:53:19.123456789"}, fixture.Row{"id": 2, "g": point})
	})
	const second = "2,,,,0101000000000000000000f03f0000000000000040,"
	open(t, tab).rows("id,ns,tzns,u,g,v", "1,1969-12-31 23:59:59.999999999,2026-11-30 02:53:19.123456789Z,,,", second)
	commit(tab, func(tx *fixture.Tx) { tx.DeleteVector(f, 0) })
	open(t, tab).rows("id,ns,tzns,u,g,v", second)
}
