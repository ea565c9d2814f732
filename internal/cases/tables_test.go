package cases

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// Readers answer MIN, MAX and COUNT from footers: after a delete their
// statistics are exact or gone.
func TestStatisticsAfterDelete(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	rows := numbered(1, 10)
	for i := range rows {
		if i != 4 {
			rows[i]["s"] = "x"
		}
	}
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 9) })
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 4) })
	o := open(t, tab)
	for i, want := range []struct{ rows, most, nulls int64 }{{10, 10, 1}, {9, 9, 1}, {8, 9, 0}} {
		views, _ := o.views(o.scan(tab.Snapshots()[i].ID, nil))
		r := openView(t, views.Parquet)
		if r.NumRows() != want.rows || r.NumRowGroups() != 1 {
			t.Errorf("snapshot %d: %d rows in %d row groups", i, r.NumRows(), r.NumRowGroups())
		}
		id, err := r.MetaData().RowGroup(0).ColumnChunk(0)
		if err != nil {
			t.Fatal(err)
		}
		if stats, err := id.Statistics(); err == nil && stats != nil {
			s := stats.(*metadata.Int64Statistics)
			if !s.HasMinMax() || s.Min() != 1 || s.Max() != want.most || s.NullCount() != 0 {
				t.Errorf("snapshot %d: id has %d to %d and %d NULLs", i, s.Min(), s.Max(), s.NullCount())
			}
		}
		text, err := r.MetaData().RowGroup(0).ColumnChunk(1)
		if err != nil {
			t.Fatal(err)
		}
		if stats, err := text.Statistics(); err == nil && stats != nil && (!stats.HasNullCount() || stats.NullCount() != want.nulls) {
			t.Errorf("snapshot %d: s has %d NULLs, want %d", i, stats.NullCount(), want.nulls)
		}
	}
	open(t, tab).rows("id,s", "1,x", "2,x", "3,x", "4,x", "6,x", "7,x", "8,x", "9,x")
}

// Identity-partition columns that files do not store have the partition's
// value; a stored column wins.
func TestPartitionColumnsNotStored(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "region", Type: iceberg.PrimitiveTypes.String},
	)
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema, Partition: []iceberg.PartitionField{
		{SourceIDs: []int{2}, Name: "region", Transform: iceberg.IdentityTransform{}},
	}})
	bare := fixture.FileOptions{Omit: []int{2}}
	var east *fixture.File
	commit(tab, func(tx *fixture.Tx) {
		east = tx.AppendFile(bare, fixture.Row{"id": 1, "region": "East"}, fixture.Row{"id": 2, "region": "East"})
		tx.AppendFile(bare, fixture.Row{"id": 3, "region": "West"})
		tx.AppendFile(bare, fixture.Row{"id": 4})
		tx.AppendFile(fixture.FileOptions{Partition: map[int]any{1000: "Lie"}}, fixture.Row{"id": 5, "region": "South"})
	})
	open(t, tab).rows("id,region", "1,East", "2,East", "3,West", "4,", "5,South")
	tab.Evolve(func(e *fixture.Evolution) { e.Rename("region", "area") })
	tab.Repartition()
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(east, 0) })
	open(t, tab).rows("id,area", "2,East", "3,West", "4,", "5,South")
	commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{2}, fixture.Row{"area": "West"}) })
	open(t, tab).rows("id,area", "2,East", "4,", "5,South")
}

// A table that was moved shows the same rows, with all kinds of deletes;
// or, without one of its delete files, none.
func TestMovedTables(t *testing.T) {
	build := func(t *testing.T, version int, location string) *fixture.Table {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: version, Location: location})
		var a, b *fixture.File
		commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 4)...), tx.Append(numbered(5, 8)...) })
		commit(tab, func(tx *fixture.Tx) {
			if version == 3 {
				tx.DeleteVector(a, 1)
				tx.DeleteVector(b, 0)
			} else {
				tx.DeletePositionsFile(fixture.PositionOptions{}, fixture.Position{File: a, Pos: 1}, fixture.Position{File: b, Pos: 0})
			}
			tx.DeleteEqual([]int{1}, fixture.Row{"id": 8})
		})
		if err := tab.Err(); err != nil {
			t.Fatal(err)
		}
		return tab
	}
	for _, version := range []int{2, 3} {
		for _, location := range []string{"", "/data/lake/db/t", "file:/data/lake/db/t", "file:///data/lake/db/t", "s3://bucket/lake/db/t"} {
			tab := build(t, version, location)
			openDir(t, moveTable(t, tab.Dir())).rows("id,s", "1,", "3,", "4,", "6,", "7,")
		}
		tab := build(t, version, "")
		dir := moveTable(t, tab.Dir())
		pattern := map[int]string{2: "deletes-*", 3: "*-deletes.puffin"}[version]
		lost, err := filepath.Glob(filepath.Join(dir, "data", pattern))
		if err != nil || len(lost) != 1 {
			t.Fatalf("delete files: %v, %v", lost, err)
		}
		if err := os.Remove(lost[0]); err != nil {
			t.Fatal(err)
		}
		openDir(t, dir).refuses(filepath.Base(lost[0]), 0, 1)
	}
}

// Files without field ids are read by the name mapping, and not at all
// without one.
func TestFilesWithoutFieldIDs(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 4, Name: "x", Type: iceberg.PrimitiveTypes.Int32},
		}}},
		iceberg.NestedField{ID: 5, Name: "l", Type: &iceberg.ListType{ElementID: 6, Element: iceberg.PrimitiveTypes.Int32}},
	)
	row := func(id int) fixture.Row {
		return fixture.Row{"id": id, "s": "a", "st": fixture.Row{"x": id}, "l": []any{id, nil}}
	}
	build := func(t *testing.T, parquet fixture.ParquetOptions) (*fixture.Table, *fixture.File) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema})
		tab.SetNameMapping(nil)
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.AppendFile(fixture.FileOptions{Parquet: &parquet}, row(1), row(2)) })
		return tab, f
	}
	const first, second = `1,a,"{""x"":1}","[1,null]"`, `2,a,"{""x"":2}","[2,null]"`
	for name, parquet := range map[string]fixture.ParquetOptions{"no ids": {NoFieldIDs: true}, "some ids": {IDsOnly: []int{1, 3, 6}}} {
		t.Run(name, func(t *testing.T) {
			tab, f := build(t, parquet)
			open(t, tab).rows("id,s,st,l", first, second)
			commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0) })
			open(t, tab).rows("id,s,st,l", second)
		})
	}
	t.Run("renamed", func(t *testing.T) {
		tab, _ := build(t, fixture.ParquetOptions{NoFieldIDs: true})
		mapping := schema.NameMapping()
		mapping[1].Names = append(mapping[1].Names, "text")
		tab.Evolve(func(e *fixture.Evolution) { e.Rename("s", "text") })
		tab.SetNameMapping(mapping)
		commit(tab, func(tx *fixture.Tx) {
			tx.AppendFile(fixture.FileOptions{Parquet: &fixture.ParquetOptions{NoFieldIDs: true}}, fixture.Row{"id": 3, "text": "b"})
		})
		open(t, tab).rows("id,text,st,l", first, second, "3,b,,")
	})
	t.Run("no mapping", func(t *testing.T) {
		tab, _ := build(t, fixture.ParquetOptions{NoFieldIDs: true})
		commit(tab, func(tx *fixture.Tx) { tx.Append(row(3)) })
		tab.SetProperty("schema.name-mapping.default", "")
		open(t, tab).refuses("field ids", 0)
	})
}

// Row groups without rows are read, and never shown.
func TestEmptyRowGroups(t *testing.T) {
	for _, form := range []fixture.ParquetOptions{{EmptyGroup: true, PageIndex: true}, {EmptyGroup: true, RowGroup: 2, PageV2: true}} {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: form})
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Append(numbered(1, 4)...) })
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0, 1) })
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 2, 3) })
		o := open(t, tab)
		for i, want := range []string{"id,s\n1,\n2,\n3,\n4,\n", "id,s\n3,\n4,\n", "id,s\n"} {
			s := o.scan(tab.Snapshots()[i].ID, nil)
			o.shows(s, want)
			views, _ := o.views(s)
			for _, v := range append(views.Parts, views.Parquet) {
				r := openView(t, v)
				for g := range r.NumRowGroups() {
					if r.MetaData().RowGroup(g).NumRows() == 0 && i > 0 { // a part without deletes is its source
						t.Errorf("snapshot %d: row group %d is empty", i, g)
					}
				}
			}
		}
		empty, err := readEmpty(o, o.scan(0, nil))
		if err != nil || empty != 0 {
			t.Errorf("an empty snapshot has %d row groups, %v", empty, err)
		}
	}
}

// readEmpty counts the row groups of data.parquet.
func readEmpty(o *opened, s merge.Scan) (int, error) {
	views, _ := o.views(s)
	r := openView(o.T, views.Parquet)
	return r.NumRowGroups(), r.Close()
}

// Columns are the same by id, never by name.
func TestRenamedAndReplacedColumns(t *testing.T) {
	nested := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 3, Name: "s", Type: iceberg.PrimitiveTypes.String}, {ID: 4, Name: "keep", Type: iceberg.PrimitiveTypes.Int32},
		}}},
	)
	text := fixture.Column{Name: "s", Type: iceberg.PrimitiveTypes.String}
	t.Run("renamed", func(t *testing.T) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
		old := commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 1, "s": "before"}) })
		tab.Evolve(func(e *fixture.Evolution) { e.Rename("s", "t") })
		commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 2, "t": "after"}) })
		o := open(t, tab)
		o.rows("id,t", "1,before", "2,after")
		o.shows(o.scan(old.ID, nil), "id,s\n1,before\n")
	})
	t.Run("replaced", func(t *testing.T) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
		old := commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 1, "s": "old"}) })
		tab.Evolve(func(e *fixture.Evolution) { e.Drop("s"); e.Add("", text) })
		commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 2, "s": "new"}) })
		o := open(t, tab)
		o.rows("id,s", "1,", "2,new")
		o.shows(o.scan(old.ID, nil), "id,s\n1,old\n")
		o.shows(o.scan(old.ID, tab.Schema()), "id,s\n1,\n")
	})
	t.Run("in a struct", func(t *testing.T) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: nested})
		old := commit(tab, func(tx *fixture.Tx) {
			tx.Append(fixture.Row{"id": 1, "st": fixture.Row{"s": "old", "keep": 5}}, fixture.Row{"id": 2})
		})
		tab.Evolve(func(e *fixture.Evolution) { e.Drop("st.s"); e.Add("st", text); e.Rename("st.keep", "kept") })
		commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 3, "st": fixture.Row{"s": "new"}}) })
		o := open(t, tab)
		o.rows("id,st", `1,"{""kept"":5,""s"":null}"`, "2,", `3,"{""kept"":null,""s"":""new""}"`)
		o.shows(o.scan(old.ID, nil), "id,st\n"+`1,"{""s"":""old"",""keep"":5}"`+"\n2,\n")
	})
	t.Run("nothing left in a struct", func(t *testing.T) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: nested})
		commit(tab, func(tx *fixture.Tx) {
			tx.Append(fixture.Row{"id": 1, "st": fixture.Row{"s": "old", "keep": 5}}, fixture.Row{"id": 2})
		})
		tab.Evolve(func(e *fixture.Evolution) { e.Add("st", text); e.Drop("st.keep"); e.Rename("st.s", "was") })
		tab.Evolve(func(e *fixture.Evolution) { e.Drop("st.was") })
		o := open(t, tab)
		o.shows(o.scan(0, tab.Schema()), "id,st\n"+`1,"{""s"":null}"`+"\n2,\n")
	})
}

// Metadata of old and foreign writers.
func TestForeignMetadata(t *testing.T) {
	build := func(t *testing.T, opt fixture.Options) *fixture.Table {
		opt.Schema = idAndText()
		tab := fixture.New(t.TempDir(), opt)
		commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(1, 2)...) })
		return tab
	}
	t.Run("list without format-version", func(t *testing.T) {
		tab := build(t, fixture.Options{})
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{1}, fixture.Row{"id": 1}) })
		rewrite(t, tab, "snap-*.avro", func(b []byte) []byte {
			return bytes.Replace(b, []byte("format-version"), []byte("other-version_"), 1)
		})
		open(t, tab).rows("id,s", "2,")
	})
	t.Run("inline manifests", func(t *testing.T) {
		tab := build(t, fixture.Options{FormatVersion: 1, InlineManifests: true})
		commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(3, 3)...) })
		if lists, _ := filepath.Glob(filepath.Join(tab.Dir(), "metadata", "snap-*")); len(lists) > 0 {
			t.Errorf("there are manifest lists: %v", lists)
		}
		open(t, tab).rows("id,s", "1,", "2,", "3,")
	})
	t.Run("v1 manifest in a v2 list", func(t *testing.T) {
		tab := build(t, fixture.Options{FormatVersion: 1})
		tab.Upgrade(2)
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{1}, fixture.Row{"id": 1}) })
		open(t, tab).rows("id,s", "2,")
	})
	t.Run("existing entries keep their sequence number", func(t *testing.T) {
		tab := build(t, fixture.Options{})
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{1}, fixture.Row{"id": 1}) })
		commit(tab, func(tx *fixture.Tx) { tx.RewriteManifests() })
		open(t, tab).rows("id,s", "2,")
	})
	t.Run("compacted file with an old sequence number", func(t *testing.T) {
		tab := build(t, fixture.Options{})
		f := tab.Head("").Files()[0]
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{1}, fixture.Row{"id": 1}) })
		commit(tab, func(tx *fixture.Tx) {
			tx.Remove(f)
			tx.AppendFile(fixture.FileOptions{Sequence: 1}, numbered(1, 2)...)
		})
		open(t, tab).rows("id,s", "2,")
	})
	t.Run("deleted entry without a sequence number", func(t *testing.T) {
		tab := build(t, fixture.Options{})
		f := tab.Head("").Files()[0]
		commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(3, 3)...); tx.Remove(f) })
		rewrite(t, tab, "*-m0.avro", func(b []byte) []byte {
			return rewriteAvro(t, b, func(entry map[string]any) {
				if entry["status"] == int32(2) {
					entry["sequence_number"], entry["file_sequence_number"] = nil, nil
				}
			})
		})
		open(t, tab).rows("id,s", "3,")
	})
}

// Snapshots that do not say which schema they were written with, or what
// they did.
func TestSnapshotsWithoutSchemaID(t *testing.T) {
	for name, edit := range map[string]func(map[string]any){
		"absent":       func(s map[string]any) { delete(s, "schema-id") },
		"null":         func(s map[string]any) { s["schema-id"] = nil },
		"no operation": func(s map[string]any) { delete(s["summary"].(map[string]string), "operation") },
		"no summary":   func(s map[string]any) { delete(s, "summary") },
	} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
			old := commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 1, "s": "a"}) })
			tab.Evolve(func(e *fixture.Evolution) { e.Rename("s", "t") })
			commit(tab, func(tx *fixture.Tx) { tx.Append(fixture.Row{"id": 2, "t": "b"}) })
			tab.Evolve(func(e *fixture.Evolution) { e.Rename("t", "u") })
			tab.EditMetadata(func(m map[string]any) {
				for _, s := range m["snapshots"].([]any) {
					edit(s.(map[string]any))
				}
			})
			o := open(t, tab)
			o.rows("id,t", "1,a", "2,b")
			o.shows(o.scan(old.ID, nil), "id,s\n1,a\n")
		})
	}
}

// Tables without a current snapshot.
func TestNoCurrentSnapshot(t *testing.T) {
	for name, edit := range map[string]func(map[string]any){
		"-1":     func(m map[string]any) { m["current-snapshot-id"] = -1 },
		"null":   func(m map[string]any) { m["current-snapshot-id"] = nil },
		"absent": func(m map[string]any) { delete(m, "current-snapshot-id") },
	} {
		for _, old := range []bool{false, true} {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
			if old { // a table that was replaced leaves its snapshots
				commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(1, 2)...) })
				tab.SetBranch("", nil)
			}
			tab.EditMetadata(edit)
			o := open(t, tab)
			table := o.Table()
			if table.Current != -1 || len(table.Snapshots) != len(tab.Snapshots()) {
				t.Errorf("%s: current is %d of %d snapshots", name, table.Current, len(table.Snapshots))
			}
			o.shows(merge.Scan{Table: table, Schema: table.Schema(table.CurrentSchema), Plan: &snapshot.Plan{}, Store: o.Store()}, "id,s\n")
			if old {
				o.shows(o.scan(tab.Snapshots()[0].ID, nil), "id,s\n1,\n2,\n")
			}
		}
	}
}

// A replaced table starts anew and keeps its old snapshots.
func TestReplacedTable(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	old := commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(1, 2)...) })
	tab.Evolve(func(e *fixture.Evolution) { e.Drop("s") })
	commit(tab, func(tx *fixture.Tx) { tx.Replace(); tx.Append(numbered(3, 3)...) })
	o := open(t, tab)
	o.rows("id", "3")
	o.shows(o.scan(old.ID, nil), "id,s\n1,\n2,\n")
}

// A file that is removed and added again is a new one: older deletes do not
// reach it.
func TestReaddedFile(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(numbered(1, 3)...) })
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0); tx.DeleteEqual([]int{1}, fixture.Row{"id": 2}) })
	open(t, tab).rows("id,s", "3,")
	commit(tab, func(tx *fixture.Tx) { tx.Remove(f) })
	open(t, tab).rows("id,s")
	commit(tab, func(tx *fixture.Tx) { tx.Readd(f) })
	open(t, tab).rows("id,s", "1,", "2,", "3,")
	commit(tab, func(tx *fixture.Tx) { tx.RemoveAll() })
	open(t, tab).rows("id,s")
}

// What the manifest says of a file's size is not believed.
func TestWrongSizes(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	commit(tab, func(tx *fixture.Tx) {
		tx.AppendFile(fixture.FileOptions{Size: 1}, numbered(1, 1)...)
		f := tx.AppendFile(fixture.FileOptions{Size: 1 << 40, NoMetrics: true}, numbered(2, 3)...)
		tx.DeletePositionsFile(fixture.PositionOptions{Unsorted: true, Referenced: true}, fixture.Position{File: f, Pos: 1})
	})
	open(t, tab).rows("id,s", "1,", "2,")
}

// rewrite changes the bytes of metadata files.
func rewrite(t *testing.T, tab *fixture.Table, pattern string, change func([]byte) []byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(tab.Dir(), "metadata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	changed := 0
	for _, path := range paths {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after := change(before)
		if !bytes.Equal(before, after) {
			changed++
		}
		if err := os.WriteFile(path, after, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if changed == 0 {
		t.Fatalf("%s: nothing changed", pattern)
	}
}

// rewriteAvro changes the records of an Avro file.
func rewriteAvro(t *testing.T, b []byte, change func(map[string]any)) []byte {
	t.Helper()
	r, err := ocf.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	meta := r.Metadata()
	keep := map[string][]byte{}
	for key, value := range meta {
		if key != "avro.schema" && key != "avro.codec" {
			keep[key] = value
		}
	}
	var schema json.RawMessage = meta["avro.schema"]
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, r.Schema(), ocf.WithSchema(string(schema)), ocf.WithMetadata(keep))
	if err != nil {
		t.Fatal(err)
	}
	for {
		var entry any
		if err := r.Decode(&entry); err != nil {
			break
		}
		change(entry.(map[string]any))
		if err := w.Encode(entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
