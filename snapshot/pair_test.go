package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
)

// Specs of the tests: 0 identity(p), 1 identity(p) and identity(q), 2 without
// fields, 3 all void.
func testSpecs() map[int]iceberg.PartitionSpec {
	field := func(id int, t iceberg.Transform) iceberg.PartitionField {
		return iceberg.PartitionField{SourceIDs: []int{id - 900}, FieldID: id, Name: fmt.Sprint("f", id), Transform: t}
	}
	return map[int]iceberg.PartitionSpec{
		0: iceberg.NewPartitionSpecID(0, field(1000, iceberg.IdentityTransform{})),
		1: iceberg.NewPartitionSpecID(1, field(1000, iceberg.IdentityTransform{}), field(1001, iceberg.IdentityTransform{})),
		2: iceberg.NewPartitionSpecID(2),
		3: iceberg.NewPartitionSpecID(3, field(1000, iceberg.VoidTransform{})),
	}
}

func in(spec int, values ...any) func(*DataFile) {
	return func(f *DataFile) {
		f.SpecID = spec
		if len(values) > 0 {
			f.Partition = map[int]any{}
		}
		for i, v := range values {
			f.Partition[1000+i] = v
		}
	}
}

func references(path string) func(*DataFile) {
	return func(f *DataFile) { f.Referenced, f.HasReferenced = path, true }
}

func pathBounds(lower, upper string) func(*DataFile) {
	return func(f *DataFile) {
		f.Metrics = []ColumnMetrics{{ID: PathFieldID, Values: -1, Nulls: -1, NaNs: -1, Lower: []byte(lower), Upper: []byte(upper)}}
	}
}

func file(content Content, path string, seq int64, opts ...func(*DataFile)) *DataFile {
	f := &DataFile{Path: path, Content: content, Format: Parquet, Sequence: seq, SpecID: 2, ContentOffset: -1}
	for _, opt := range opts {
		opt(f)
	}
	return f
}

func vector(path string, seq int64, opts ...func(*DataFile)) *DataFile {
	f := file(PositionDeletes, path, seq, opts...)
	f.Format, f.ContentOffset, f.ContentSize = Puffin, 4, 40
	return f
}

func equality(path string, seq int64, ids []int, opts ...func(*DataFile)) *DataFile {
	f := file(EqualityDeletes, path, seq, opts...)
	f.EqualityIDs = ids
	return f
}

// describe prints the plan: "path: dv=… pos=… eq=… err".
func describe(p *Plan) (lines []string) {
	names := func(list []*DataFile) (s []string) {
		for _, d := range list {
			s = append(s, d.Path)
		}
		return s
	}
	for _, f := range p.Files {
		line := f.Path + ":"
		if f.DV != nil {
			line += " dv=" + f.DV.Path
		}
		if len(f.Positions) > 0 {
			line += fmt.Sprint(" pos=", names(f.Positions))
		}
		if len(f.Equality) > 0 {
			line += fmt.Sprint(" eq=", names(f.Equality))
		}
		if f.Err != nil {
			line += " error"
			if !errors.Is(f.Err, ErrAmbiguousDeletes) {
				line += " of another kind"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestPair(t *testing.T) {
	key := []int{1}
	for _, c := range []struct {
		name          string
		data, deletes []*DataFile
		want          []string
	}{
		{
			"order: sequence, then path",
			[]*DataFile{file(Data, "b", 1), file(Data, "c", 0), file(Data, "a", 2), file(Data, "a2", 1)}, nil,
			[]string{"c:", "a2:", "b:", "a:"},
		},
		{
			"sequence: a position delete applies to its own commit, an equality delete does not",
			[]*DataFile{file(Data, "old", 1), file(Data, "same", 2), file(Data, "new", 3)},
			[]*DataFile{file(PositionDeletes, "p", 2), equality("e", 2, key)},
			[]string{"old: pos=[p] eq=[e]", "same: pos=[p]", "new:"},
		},
		{
			"partition: spec and values must agree, null with null",
			[]*DataFile{
				file(Data, "a", 1, in(0, "x")), file(Data, "b", 1, in(0, "y")), file(Data, "c", 1, in(0, nil)),
				file(Data, "d", 1, in(1, "x", nil)), file(Data, "e", 1),
			},
			[]*DataFile{
				file(PositionDeletes, "px", 1, in(0, "x")), equality("ex", 2, key, in(0, "x")),
				equality("en", 2, key, in(0, nil)), file(PositionDeletes, "pd", 1, in(1, "x", nil)),
				equality("ed", 2, key, in(1, "x", "x")),
			},
			[]string{"a: pos=[px] eq=[ex]", "b:", "c: eq=[en]", "d: pos=[pd]", "e:"},
		},
		{
			"global: equality deletes of a spec without fields or with void ones; position deletes never",
			[]*DataFile{file(Data, "a", 1, in(0, "x")), file(Data, "b", 1)},
			[]*DataFile{equality("e", 2, key), equality("v", 3, key, in(3, nil)), file(PositionDeletes, "p", 2)},
			[]string{"a: eq=[e v]", "b: pos=[p] eq=[e v]"},
		},
		{
			"referenced: one file, in any partition and local spelling, dangling ones nowhere",
			[]*DataFile{file(Data, "file:/d/a", 1, in(0, "x")), file(Data, "/d/b", 1), file(Data, "s3://d/c", 1)},
			[]*DataFile{
				file(PositionDeletes, "p1", 1, references("/d/a")), file(PositionDeletes, "p2", 1, references("file:///d/b")),
				file(PositionDeletes, "p3", 1, references("file:///d/gone")), file(PositionDeletes, "p4", 1, references("s3a://d/c")),
			},
			[]string{"/d/b: pos=[p2]", "file:/d/a: pos=[p1]", "s3://d/c:"},
		},
		{
			"bounds: equal and a live path is that file; the beginning of one is the partition; neither is nowhere",
			[]*DataFile{file(Data, "/d/a", 1), file(Data, "/d/ab", 1), file(Data, "/d/c", 1)},
			[]*DataFile{
				file(PositionDeletes, "exact", 1, pathBounds("file:/d/c", "file:/d/c")),
				file(PositionDeletes, "prefix of two", 1, pathBounds("/d/a", "/d/a")),
				file(PositionDeletes, "cut", 1, pathBounds("/d/", "/d/")),
				file(PositionDeletes, "dangling", 1, pathBounds("/d/x", "/d/x")),
				file(PositionDeletes, "range", 1, pathBounds("/d/a", "/d/ab")),
				file(PositionDeletes, "inverted", 1, pathBounds("/d/c", "/d/a")),
				file(PositionDeletes, "empty", 1, pathBounds("", "")),
			},
			[]string{
				"/d/a: pos=[cut empty inverted prefix of two range]",
				"/d/ab: pos=[cut empty inverted prefix of two range]",
				"/d/c: pos=[cut empty exact inverted prefix of two range]",
			},
		},
		{
			"null referenced_data_file: the partition",
			[]*DataFile{file(Data, "a", 1)},
			[]*DataFile{file(PositionDeletes, "p", 1, func(f *DataFile) { f.HasReferenced = true })},
			[]string{"a: pos=[p]"},
		},
		{
			"vector: replaces position deletes of its file only, keeps equality deletes",
			[]*DataFile{file(Data, "a", 1), file(Data, "b", 1)},
			[]*DataFile{file(PositionDeletes, "p", 1), vector("v", 2, references("a")), equality("e", 2, key)},
			[]string{"a: dv=v eq=[e]", "b: pos=[p] eq=[e]"},
		},
		{
			"vector: older than the file (removed and added again) does not apply",
			[]*DataFile{file(Data, "a", 3)},
			[]*DataFile{vector("v", 2, references("a")), file(PositionDeletes, "p", 2, references("a"))},
			[]string{"a:"},
		},
		{
			"vectors: two for one file",
			[]*DataFile{file(Data, "a", 1), file(Data, "b", 1)},
			[]*DataFile{vector("v", 2, references("a")), vector("w", 3, references("file:a")), vector("w", 3, references("a"))},
			[]string{"a: dv=v error", "b:"},
		},
		{
			"vector: of another partition",
			[]*DataFile{file(Data, "a", 1, in(0, "x")), file(Data, "b", 1, in(0, "x"))},
			[]*DataFile{vector("v", 2, references("a"), in(0, "y")), vector("w", 2, references("b"))},
			[]string{"a: dv=v error", "b: dv=w error"},
		},
		{
			"vector: without a file covers any in its partition",
			[]*DataFile{file(Data, "a", 1, in(0, "x")), file(Data, "b", 3, in(0, "x")), file(Data, "c", 1, in(0, "y"))},
			[]*DataFile{vector("v", 2, in(0, "x"))},
			[]string{"a: error", "c:", "b:"},
		},
		{
			"equality: without ids or of an unknown spec",
			[]*DataFile{file(Data, "a", 1), file(Data, "b", 2), file(Data, "c", 3)},
			[]*DataFile{equality("e", 2, nil), equality("u", 3, key, in(9, "x"))},
			[]string{"a: error", "b: error", "c:"},
		},
		{
			"equality: several sets of ids, in the order of sequence and path",
			[]*DataFile{file(Data, "a", 1)},
			[]*DataFile{equality("z", 2, key), equality("y", 2, []int{1, 2}), equality("x", 3, []int{2, 1}), equality("w", 3, key)},
			[]string{"a: eq=[y z w x]"},
		},
	} {
		plan := Pair(Entries{SnapshotID: 7, FormatVersion: 2, Data: c.data, Deletes: c.deletes, Specs: testSpecs()})
		if got := describe(plan); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		if plan.SnapshotID != 7 {
			t.Errorf("snapshot id %d", plan.SnapshotID)
		}
	}
}

func TestPairOrdersV1ByPath(t *testing.T) {
	plan := Pair(Entries{FormatVersion: 1, Data: []*DataFile{file(Data, "b", 1), file(Data, "c", 0), file(Data, "a", 2)}})
	if got := describe(plan); !slices.Equal(got, []string{"a:", "b:", "c:"}) {
		t.Error(got)
	}
}

func TestPairedListsCannotBeAppendedInto(t *testing.T) {
	deletes := []*DataFile{file(PositionDeletes, "p1", 1), file(PositionDeletes, "p2", 2), equality("e1", 5, []int{1}), equality("e2", 6, []int{1})}
	plan := Pair(Entries{FormatVersion: 2, Data: []*DataFile{file(Data, "a", 1), file(Data, "b", 1)}, Deletes: deletes, Specs: testSpecs()})
	_ = append(plan.Files[0].Positions[:2], file(PositionDeletes, "x", 9))
	_ = append(plan.Files[0].Equality[:2], file(EqualityDeletes, "x", 9))
	want := []string{"a: pos=[p1 p2] eq=[e1 e2]", "b: pos=[p1 p2] eq=[e1 e2]"}
	if got := describe(plan); !slices.Equal(got, want) {
		t.Error(got)
	}
}
