package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/viewtest"
)

// Every snapshot of the tables of format version 3 has the row lineage that
// Spark saw, in every view.
func TestLineageOfRealTables(t *testing.T) {
	compared := 0
	for _, x := range expectedTables(t) {
		found, err := filepath.Glob("../testdata/expected/" + x.Name + "/*.lineage.jsonl.gz")
		if err != nil || len(found) == 0 {
			continue
		}
		l := x.load(t)
		options := Options{MetadataColumns: []string{iceberg.RowIDColumnName, iceberg.LastUpdatedSequenceNumberColumnName}}
		spread := options
		spread.NoCoalesce, spread.Statistics = true, StatisticsAll
		for i := range l.Table().Snapshots {
			s := &l.Table().Snapshots[i]
			want := x.rows(t, fmt.Sprintf("%d.lineage.jsonl.gz", s.ID))
			scan := scanOf(t, l, s)
			what := fmt.Sprintf("%s, snapshot %d", x.Name, s.ID)
			e := testEngine(t, options)
			checkRows(t, what, e.Parquet(scan), want)
			checkRows(t, what+", row groups apart", testEngine(t, spread).Parquet(scan), want)
			var parts []string
			for i := range scan.Plan.Files {
				parts = append(parts, arrowRows(t, viewtest.Bytes(t, e.Part(scan, i)))...)
			}
			slices.Sort(parts)
			if !slices.Equal(parts, want) {
				t.Errorf("%s: parts have %d rows, want %d: %s", what, len(parts), len(want), firstDifference(parts, want))
			}
			for name, v := range map[string]View{"csv": e.CSV(scan), "jsonl": e.JSONL(scan)} {
				got := textRows(t, e.withMetadata(scan).Schema, viewtest.Bytes(t, v), name == "csv")
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s: %d rows, want %d: %s", what, name, len(got), len(want), firstDifference(got, want))
				}
			}
			compared++
		}
	}
	if compared < 30 {
		t.Errorf("only %d snapshots were compared", compared)
	}
}

// Rows keep their file's path, their position in it and their id when rows
// before them are deleted.
func TestMetadataColumns(t *testing.T) {
	scans, _ := bigTable(t)
	for _, opt := range []Options{{}, {NoCoalesce: true, Statistics: StatisticsAll}} {
		opt.MetadataColumns = AllMetadataColumns()
		for i, scan := range scans {
			v := testEngine(t, opt).Parquet(scan)
			if i > 0 {
				viewtest.Check(t, v)
			}
			data := viewtest.Bytes(t, v)
			checkParquet(t, data)
			rows := arrowRows(t, data)
			for _, row := range rows {
				var r struct {
					ID       int64  `json:"id"`
					File     string `json:"_file"`
					Pos      *int64 `json:"_pos"`
					RowID    *int64 `json:"_row_id"`
					Sequence *int64 `json:"_last_updated_sequence_number"`
					Spec     *int   `json:"_spec_id"`
				}
				if err := json.Unmarshal([]byte(row), &r); err != nil {
					t.Fatal(err)
				}
				file, first := scan.Plan.Files[0].Path, int64(0)
				if r.ID >= 14_000 {
					file, first = scan.Plan.Files[1].Path, 14_000
				}
				if r.File != file || *r.Pos != r.ID-first || *r.RowID != r.ID || *r.Sequence != 1 || *r.Spec != 0 {
					t.Fatalf("row %s", row)
				}
			}
			csv := testEngine(t, opt).CSV(scan)
			if got := textRows(t, csv.(*textView).scan.Schema, viewtest.Bytes(t, csv), true); !slices.Equal(got, rows) {
				t.Errorf("CSV has other rows: %s", firstDifference(got, rows))
			}
		}
	}
}

// Ids that a file stores count, where it stores any; the rest is counted.
func TestStoredLineage(t *testing.T) {
	for _, required := range []bool{false, true} {
		t.Run(fmt.Sprintf("required=%t", required), func(t *testing.T) {
			table := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0,
				iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})})
			tx := table.Begin()
			tx.Append(fixture.Row{"id": 7})
			path := filepath.Join(table.Dir(), "data", "stored.parquet")
			const rows = 3000
			writeStored(t, path, rows, required)
			f := tx.Adopt(path, rows, nil)
			tx.Commit()
			tx = table.Begin()
			tx.DeleteVector(f, 0, 1, 1999)
			tx.Commit()
			if err := table.Err(); err != nil {
				t.Fatal(err)
			}
			l := loadFolder(t, table.Dir())
			for i := range l.Table().Snapshots {
				scan := scanOf(t, l, &l.Table().Snapshots[i])
				want := []string{canonical(map[string]any{"id": 7, "_row_id": 0, "_last_updated_sequence_number": 1})}
				for pos := range rows {
					if i == 1 && (pos < 2 || pos == 1999) {
						continue
					}
					id, sequence := 1+pos, 1
					if required || pos%3 == 0 {
						id, sequence = 10_000-pos, pos%5
					}
					want = append(want, canonical(map[string]any{"id": pos, "_row_id": id, "_last_updated_sequence_number": sequence}))
				}
				slices.Sort(want)
				for _, opt := range []Options{{}, {NoCoalesce: true, Statistics: StatisticsAll}, {NoSplice: true}} {
					opt.MetadataColumns = []string{"_row_id", "_last_updated_sequence_number"}
					checkRows(t, fmt.Sprint(opt), testEngine(t, opt).Parquet(scan), want)
				}
			}
		})
	}
}

// writeStored writes ids with lineage columns: stored for every third row, or
// for all of them if the columns are required.
func writeStored(t *testing.T, path string, rows int, required bool) {
	t.Helper()
	field := func(name string, id int, nullable bool) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: nullable,
			Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(id)})}
	}
	schema := arrow.NewSchema([]arrow.Field{field("id", 1, true), field("_row_id", iceberg.RowIDFieldID, !required),
		field("_last_updated_sequence_number", iceberg.LastUpdatedSequenceNumberFieldID, !required)}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for pos := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(pos))
		for c, v := range []int{10_000 - pos, pos % 5} {
			if required || pos%3 == 0 {
				b.Field(c + 1).(*array.Int64Builder).Append(int64(v))
			} else {
				b.Field(c + 1).AppendNull()
			}
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// Few rows a page; the ids' dictionary overflows, the numbers' does not.
	props := parquet.NewWriterProperties(parquet.WithDictionaryPageSizeLimit(1000), parquet.WithDataPageSize(512), parquet.WithBatchSize(64))
	w, err := pqarrow.NewFileWriter(schema, f, props, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(b.NewRecordBatch()), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// A table's own column of such a name is not hidden, nor taken for another.
func TestMetadataColumnsOfTheTable(t *testing.T) {
	table := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "_file", Type: iceberg.PrimitiveTypes.String})})
	tx := table.Begin()
	tx.Append(fixture.Row{"_file": "mine"})
	tx.Commit()
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	l := loadFolder(t, table.Dir())
	scan := scanOf(t, l, &l.Table().Snapshots[0])
	e := testEngine(t, Options{MetadataColumns: AllMetadataColumns()})
	for _, v := range []View{e.Parquet(scan), e.Part(scan, 0), e.CSV(scan), e.JSONL(scan)} {
		if _, err := v.Size(t.Context()); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), `"_file"`) {
			t.Errorf("%T: %v", v, err)
		}
	}
	e = testEngine(t, Options{MetadataColumns: []string{"_pos"}})
	if got := string(viewtest.Bytes(t, e.CSV(scan))); got != "_file,_pos\nmine,0\n" {
		t.Errorf("CSV is %q", got)
	}
	if got := string(viewtest.Bytes(t, testEngine(t, Options{}).CSV(scan))); got != "_file\nmine\n" {
		t.Errorf("CSV is %q", got)
	}
}

func TestParseMetadataColumns(t *testing.T) {
	for list, want := range map[string]string{
		"all": "_file _pos _row_id _last_updated_sequence_number _spec_id", "none": "", "_pos": "_pos",
		"_spec_id, _file,_file": "_file _spec_id",
	} {
		if got, err := ParseMetadataColumns(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q %v", list, got, err)
		}
	}
	for _, bad := range []string{"", "_pos,", "pos", "_POS", "_deleted", "all,_pos"} {
		if got, err := ParseMetadataColumns(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
