package cases

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// Several vectors in one Puffin file are told apart by their offsets.
func TestVectorsOfOneFile(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: 3})
	var a, b *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 5)...), tx.Append(numbered(11, 15)...) })
	commit(tab, func(tx *fixture.Tx) {
		tx.DeleteVector(a, 0)
		tx.DeleteVector(b, 1, 2)
	})
	open(t, tab).rows("id,s", "2,", "3,", "4,", "5,", "11,", "14,", "15,")
}

// A damaged or misbound vector is an error, never undeleted rows.
func TestDamagedVectors(t *testing.T) {
	for name, c := range map[string]struct {
		opt   fixture.VectorOptions
		why   string
		parts []int
	}{
		"checksum":           {fixture.VectorOptions{FlipCRC: true}, "deletes.puffin", []int{0}},
		"cardinality":        {fixture.VectorOptions{Cardinality: 1}, "deletes.puffin", []int{0}},
		"fewer":              {fixture.VectorOptions{Cardinality: -1}, "deletes.puffin", []int{0}},
		"no referenced file": {fixture.VectorOptions{NoReferenced: true}, "vector", []int{0, 1}},
		"cut short":          {fixture.VectorOptions{Blob: []byte{0, 0, 0, 1}}, "deletes.puffin", []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: 3})
			var a *fixture.File
			commit(tab, func(tx *fixture.Tx) { a = tx.Append(numbered(1, 5)...); tx.Append(numbered(11, 15)...) })
			commit(tab, func(tx *fixture.Tx) { tx.DeleteVectorFile(c.opt, a, 1, 2) })
			open(t, tab).refuses(c.why, c.parts...)
		})
	}
}

// Two vectors for one file cannot be told apart.
func TestTwoVectors(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: 3})
	var a *fixture.File
	commit(tab, func(tx *fixture.Tx) { a = tx.Append(numbered(1, 5)...); tx.Append(numbered(11, 15)...) })
	commit(tab, func(tx *fixture.Tx) { tx.DeleteVector(a, 1) })
	commit(tab, func(tx *fixture.Tx) { tx.DeleteVectorFile(fixture.VectorOptions{KeepOld: true}, a, 2) })
	open(t, tab).refuses("vectors", 0)
}

// A manifest that names another file's vector of the same length is only
// seen by comparing it with the Puffin footer.
func TestSwappedVectors(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: 3})
	var a, b *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 5)...), tx.Append(numbered(11, 15)...) })
	commit(tab, func(tx *fixture.Tx) {
		tx.DeleteVectorFile(fixture.VectorOptions{Swap: true}, a, 0)
		tx.DeleteVector(b, 1)
	})
	o := open(t, tab)
	s := o.scan(0, nil)
	views, _ := o.views(s)
	report := o.report(s, views)
	if len(report.Problems) != 1 || report.Vectors != 1 || report.Problems[0].Name != s.Plan.Files[0].DV.Path {
		t.Errorf("report: %+v", *report)
	}
}

// A vector replaces its file's position deletes; other files keep theirs.
func TestVectorBesidePositionDeletes(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	var a, b *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 5)...), tx.Append(numbered(11, 15)...) })
	commit(tab, func(tx *fixture.Tx) {
		tx.DeletePositionsFile(fixture.PositionOptions{}, fixture.Position{File: a, Pos: 1}, fixture.Position{File: b, Pos: 0})
	})
	tab.Upgrade(3)
	commit(tab, func(tx *fixture.Tx) { tx.DeleteVector(a, 1, 2) })
	open(t, tab).rows("id,s", "1,", "4,", "5,", "12,", "13,", "14,", "15,")
}

// Of one commit, position deletes apply to its rows, equality deletes do
// not.
func TestDeletesOfOneCommit(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	commit(tab, func(tx *fixture.Tx) {
		f := tx.Append(numbered(1, 4)...)
		tx.DeletePositions(f, 1)
		tx.DeleteEqual([]int{1}, fixture.Row{"id": 3})
	})
	open(t, tab).rows("id,s", "1,", "3,", "4,")
}

// Equality deletes reach the partition of their own spec, or everything
// if that has no fields.
func TestScopeOfEqualityDeletes(t *testing.T) {
	identity := iceberg.PartitionField{SourceIDs: []int{2}, Name: "s", Transform: iceberg.IdentityTransform{}}
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Partition: []iceberg.PartitionField{identity}})
	var a, none *fixture.File
	commit(tab, func(tx *fixture.Tx) {
		a = tx.Append(fixture.Row{"id": 1, "s": "a"}, fixture.Row{"id": 2, "s": "a"})
		tx.Append(fixture.Row{"id": 1, "s": "b"}, fixture.Row{"id": 2, "s": "b"})
		none = tx.Append(fixture.Row{"id": 1}, fixture.Row{"id": 2})
	})
	old := tab.Spec()
	oldID := old.ID()
	one := fixture.Row{"id": 1}
	commit(tab, func(tx *fixture.Tx) {
		tx.DeleteEqualFile(fixture.EqualityOptions{IDs: []int{1}, Partition: a.Partition}, one)
	})
	open(t, tab).rows("id,s", "2,a", "1,b", "2,b", "1,", "2,")

	unpartitioned := tab.Repartition()
	commit(tab, func(tx *fixture.Tx) {
		tx.Append(fixture.Row{"id": 1, "s": "a"}, fixture.Row{"id": 3, "s": "new"})
	})
	commit(tab, func(tx *fixture.Tx) { // the old spec, its NULL partition
		tx.DeleteEqualFile(fixture.EqualityOptions{IDs: []int{1}, Spec: &oldID, Partition: none.Partition}, one)
	})
	open(t, tab).rows("id,s", "2,a", "1,b", "2,b", "2,", "1,a", "3,new")

	commit(tab, func(tx *fixture.Tx) {
		tx.DeleteEqualFile(fixture.EqualityOptions{IDs: []int{1}, Spec: &unpartitioned}, one)
	})
	open(t, tab).rows("id,s", "2,a", "2,b", "2,", "3,new")
}

// Several sets of keys, with NULLs.
func TestKeySets(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	commit(tab, func(tx *fixture.Tx) {
		tx.Append(
			fixture.Row{"id": 1, "s": "a"}, fixture.Row{"id": 1}, fixture.Row{"s": "b"}, fixture.Row{"id": 2, "s": "c"}, fixture.Row{"id": 2},
			fixture.Row{"id": 3, "s": ""}, fixture.Row{"id": 4, "s": "d"}, fixture.Row{},
		)
	})
	before := tab.Head("")
	steps := []struct {
		ids  []int
		key  fixture.Row
		want []string
	}{
		{[]int{1}, fixture.Row{"id": 1}, []string{"id,s", ",b", "2,c", "2,", `3,""`, "4,d", ","}},
		{[]int{1}, fixture.Row{"id": nil}, []string{"id,s", "2,c", "2,", `3,""`, "4,d"}},
		{[]int{1, 2}, fixture.Row{"id": 2, "s": nil}, []string{"id,s", "2,c", `3,""`, "4,d"}},
		{[]int{2, 1}, fixture.Row{"id": 4, "s": "c"}, []string{"id,s", "2,c", `3,""`, "4,d"}},
		{[]int{2}, fixture.Row{"s": nil}, []string{"id,s", "2,c", `3,""`, "4,d"}},
		{[]int{2}, fixture.Row{"s": ""}, []string{"id,s", "2,c", "4,d"}},
	}
	for _, s := range steps {
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual(s.ids, s.key) })
		open(t, tab).rows(s.want...)
	}
	tab.SetBranch("", before)
	commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{2}, fixture.Row{"s": nil}) })
	open(t, tab).rows("id,s", "1,a", ",b", "2,c", `3,""`, "4,d")
}

// 49,995 keys in three files leave five rows of 50,000.
func TestManyKeys(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(1, 50_000)...) })
	var files [3][]fixture.Row
	for id := 1; id <= 50_000; id++ {
		if id%10_000 != 7 {
			files[id%3] = append(files[id%3], fixture.Row{"id": id})
		}
	}
	for _, keys := range files {
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{1}, keys...) })
	}
	o := open(t, tab)
	s := o.scan(0, nil)
	views, _ := o.views(s)
	views.Parts = nil
	if got, want := csv(t, views.CSV), "id,s\n7,\n10007,\n20007,\n30007,\n40007,\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := parquetRows(t, views.Parquet); got != 5 {
		t.Errorf("data.parquet has %d rows", got)
	}
}

// Only the columns of equality_ids count.
func TestDeleteFileShapes(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String, Required: true},
		iceberg.NestedField{ID: 3, Name: "root", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 4, Name: "nested", Type: iceberg.PrimitiveTypes.Int32},
		}}},
	)
	build := func(t *testing.T) *fixture.Table {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema})
		commit(tab, func(tx *fixture.Tx) {
			tx.Append(
				fixture.Row{"id": 1, "s": "a", "root": fixture.Row{"nested": 7}}, fixture.Row{"id": 2, "s": "b", "root": fixture.Row{}},
				fixture.Row{"id": 3, "s": "c"}, fixture.Row{"id": 4, "s": "d", "root": fixture.Row{"nested": 8}},
			)
		})
		return tab
	}
	const a, b, c, d = `1,a,"{""nested"":7}"`, `2,b,"{""nested"":null}"`, `3,c,`, `4,d,"{""nested"":8}"`
	t.Run("wider", func(t *testing.T) {
		tab := build(t)
		commit(tab, func(tx *fixture.Tx) {
			tx.DeleteEqualFile(fixture.EqualityOptions{IDs: []int{1}, Stored: []int{1, 2}}, fixture.Row{"id": 2, "s": "contradicts"})
		})
		open(t, tab).rows("id,s,root", a, c, d)
	})
	t.Run("narrower", func(t *testing.T) {
		tab := build(t)
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{1}, fixture.Row{"id": 4}) })
		open(t, tab).rows("id,s,root", a, b, c)
	})
	t.Run("nested", func(t *testing.T) {
		tab := build(t)
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{4}, fixture.Row{"root": fixture.Row{"nested": 7}}) })
		open(t, tab).rows("id,s,root", b, c, d)
	})
	t.Run("nested NULL", func(t *testing.T) {
		tab := build(t)
		commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{4}, fixture.Row{"root": fixture.Row{"nested": nil}}) })
		open(t, tab).rows("id,s,root", a, d)
	})
	t.Run("renamed and dropped", func(t *testing.T) {
		tab := build(t)
		commit(tab, func(tx *fixture.Tx) {
			tx.DeleteEqual([]int{1}, fixture.Row{"id": 1})
			tx.DeleteEqual([]int{2}, fixture.Row{"s": "b"})
		})
		tab.Evolve(func(e *fixture.Evolution) { e.Rename("id", "number"); e.Drop("s") })
		o := open(t, tab)
		o.shows(o.scan(0, tab.Schema()), "number,root\n3,\n"+`4,"{""nested"":8}"`+"\n")
		o.rows("id,s,root", c, d)
	})
	t.Run("no keys", func(t *testing.T) {
		tab := build(t)
		commit(tab, func(tx *fixture.Tx) {
			tx.DeleteEqualFile(fixture.EqualityOptions{Stored: []int{1}}, fixture.Row{"id": 1})
		})
		open(t, tab).refuses("eq-deletes", 0)
	})
}

// Positions are those in the file, over row groups.
func TestPositionsOverRowGroups(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{RowGroup: 100}})
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(numbered(0, 299)...) })
	without := func(dead func(int) bool) []string {
		lines := []string{"id,s"}
		for id := range 300 {
			if !dead(id) {
				lines = append(lines, fmt.Sprintf("%d,", id))
			}
		}
		return lines
	}
	edges := map[int]bool{0: true, 99: true, 100: true, 199: true, 200: true, 299: true}
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0, 99, 100, 199, 200, 299) })
	open(t, tab).rows(without(func(id int) bool { return edges[id] })...)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, sequence(100, 200)...) })
	open(t, tab).rows(without(func(id int) bool { return edges[id] || id >= 100 && id < 200 })...)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, sequence(0, 300)...) })
	open(t, tab).rows("id,s")
}

// Delete files over two data files each.
func TestPositionsOverFiles(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	var a, b *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(0, 9)...), tx.Append(numbered(10, 19)...) })
	for _, step := range []int{2, 3} {
		var entries []fixture.Position
		for id := 0; id < 20; id += step {
			entries = append(entries, fixture.Position{File: []*fixture.File{a, b}[id/10], Pos: int64(id % 10)})
		}
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositionsFile(fixture.PositionOptions{}, entries...) })
	}
	open(t, tab).rows("id,s", "1,", "5,", "7,", "11,", "13,", "17,", "19,")
}

// Bounds of file_path that do not tell a whole path never keep a delete
// file from being read.
func TestPathBounds(t *testing.T) {
	for _, bounds := range []fixture.Bounds{fixture.BoundsFull, fixture.BoundsTruncated, fixture.BoundsInverted, fixture.BoundsNone} {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
		var a, b *fixture.File
		commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 3)...), tx.Append(numbered(4, 6)...) })
		commit(tab, func(tx *fixture.Tx) {
			opt := fixture.PositionOptions{Bounds: bounds}
			tx.DeletePositionsFile(opt, fixture.Position{File: a, Pos: 0})
			tx.DeletePositionsFile(opt, fixture.Position{File: a, Pos: 2}, fixture.Position{File: b, Pos: 1})
		})
		open(t, tab).rows("id,s", "2,", "4,", "6,")
	}
}

// The same position twice, in one file and in two; positions past the
// end; deletes of files that are gone; summaries that lie.
func TestHarmlessPositions(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	var a, gone *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, gone = tx.Append(numbered(1, 4)...), tx.Append(numbered(5, 8)...) })
	commit(tab, func(tx *fixture.Tx) {
		tx.DeletePositions(a, 1, 1, 4, 1<<40)
		tx.DeletePositions(a, 1)
		tx.DeletePositionsFile(fixture.PositionOptions{}, fixture.Position{File: a, Pos: 2}, fixture.Position{File: gone, Pos: 0}, fixture.Position{Path: "file:/no/such.parquet", Pos: 0})
	})
	tx := tab.Begin()
	tx.Remove(gone)
	tx.Summary = map[string]string{"total-records": "99", "total-position-deletes": "0"}
	tx.Commit()
	o := open(t, tab)
	o.rows("id,s", "1,", "4,")
	s := o.scan(0, nil)
	views, _ := o.views(s)
	if got := parquetRows(t, views.Parquet); got != 2 {
		t.Errorf("the footer says %d rows", got)
	}
}

// Positions that are NULL or negative are an error.
func TestImpossiblePositions(t *testing.T) {
	for name, entry := range map[string]fixture.Position{"NULL": {Null: true}, "negative": {Pos: -1}} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
			commit(tab, func(tx *fixture.Tx) {
				entry.File = tx.Append(numbered(1, 4)...)
				tx.DeletePositionsFile(fixture.PositionOptions{}, entry, fixture.Position{File: entry.File, Pos: 1})
			})
			open(t, tab).refuses("deletes-", 0)
		})
	}
}

// In keys NaN is NaN, whatever its bits, and -0.0 is not 0.0.
func TestFloatKeys(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "d", Type: iceberg.PrimitiveTypes.Float64},
	)
	quiet, other := math.NaN(), math.Float64frombits(0xFFF8000000000123)
	minus := math.Copysign(0, -1)
	rows := []fixture.Row{{"id": 1, "d": quiet}, {"id": 2, "d": other}, {"id": 3, "d": minus}, {"id": 4, "d": 0.0}, {"id": 5, "d": 1.5}, {"id": 6}}
	const nan, otherNaN, negative, zero, plain, null = "1,NaN", "2,NaN", "3,-0", "4,0", "5,1.5", "6,"
	for name, c := range map[string]struct {
		key  any
		want []string
	}{
		"NaN": {quiet, []string{negative, zero, plain, null}}, "other NaN": {other, []string{negative, zero, plain, null}},
		"-0": {minus, []string{nan, otherNaN, zero, plain, null}}, "0": {0.0, []string{nan, otherNaN, negative, plain, null}},
		"NULL": {nil, []string{nan, otherNaN, negative, zero, plain}},
	} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema})
			commit(tab, func(tx *fixture.Tx) { tx.Append(rows...) })
			commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{2}, fixture.Row{"d": c.key}) })
			open(t, tab).rows(append([]string{"id,d"}, c.want...)...)
		})
	}
}

// Partitions of NaN, -0.0 and 0.0 are three.
func TestFloatPartitions(t *testing.T) {
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "d", Type: iceberg.PrimitiveTypes.Float64},
	)
	values := []float64{math.NaN(), math.Copysign(0, -1), 0}
	lines := []string{"1,NaN", "1,-0", "1,0"}
	for dead := range values {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema, Partition: []iceberg.PartitionField{
			{SourceIDs: []int{2}, Name: "d", Transform: iceberg.IdentityTransform{}},
		}})
		var files []*fixture.File
		commit(tab, func(tx *fixture.Tx) {
			for _, v := range values {
				files = append(files, tx.AppendFile(fixture.FileOptions{Omit: []int{2}}, fixture.Row{"id": 1, "d": v}))
			}
		})
		open(t, tab).rows(append([]string{"id,d"}, lines...)...)
		commit(tab, func(tx *fixture.Tx) {
			partition := map[int]any{1000: values[dead]}
			if dead == 0 {
				partition[1000] = math.Float64frombits(0xFFF8000000000123)
			}
			tx.DeleteEqualFile(fixture.EqualityOptions{IDs: []int{1}, Partition: partition}, fixture.Row{"id": 1})
		})
		want := []string{"id,d"}
		for i, line := range lines {
			if i != dead {
				want = append(want, line)
			}
		}
		open(t, tab).rows(want...)
	}
}

// sequence is start to end-1.
func sequence(start, end int64) []int64 {
	var out []int64
	for i := start; i < end; i++ {
		out = append(out, i)
	}
	return out
}
