package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/internal/warehouse"
)

// formsSchema has one column of every kind that chunks are rewritten by.
func formsSchema() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "i", Type: p.Int32},
		iceberg.NestedField{ID: 3, Name: "d", Type: p.Float64},
		iceberg.NestedField{ID: 4, Name: "few", Type: p.String},
		iceberg.NestedField{ID: 5, Name: "many", Type: p.String},
		iceberg.NestedField{ID: 6, Name: "b", Type: p.Bool},
		iceberg.NestedField{ID: 7, Name: "day", Type: p.Date},
		iceberg.NestedField{ID: 8, Name: "wide", Type: iceberg.DecimalTypeOf(30, 4)},
		iceberg.NestedField{ID: 9, Name: "none", Type: p.String},
		iceberg.NestedField{ID: 10, Name: "l", Type: &iceberg.ListType{ElementID: 11, Element: p.Int32}},
		iceberg.NestedField{ID: 12, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 13, Name: "x", Type: p.Int64}, {ID: 14, Name: "y", Type: p.String},
		}}},
		iceberg.NestedField{ID: 15, Name: "same", Type: p.String},
		iceberg.NestedField{ID: 16, Name: "full", Type: p.Int64},
	)
}

// formsRows makes rows first to first+n; fields are NULL in turn.
func formsRows(first, n int) []fixture.Row {
	rows := make([]fixture.Row, n)
	for k := range rows {
		i := first + k
		row := fixture.Row{
			"id": int64(i), "i": int32(i % 97), "d": float64(i) / 7, "few": fmt.Sprintf("few %d", i%13),
			"many": fmt.Sprintf("many %d %x", i, i*i), "b": i%3 == 0, "day": iceberg.Date(i / 10),
			"l": fixture.List{int32(i), nil, int32(i % 5)}[:i%4], "same": "same", "full": int64(i % 1000),
		}
		if i%11 == 0 {
			row["l"] = nil
		}
		for j, name := range []string{"i", "d", "few", "many", "b", "day"} {
			if (i+j)%7 == 0 {
				row[name] = nil
			}
		}
		if i%5 > 0 {
			row["st"] = fixture.Row{"x": int64(i), "y": fmt.Sprint("y", i%3)}
		}
		rows[k] = row
	}
	return rows
}

// positions of a file of n rows in row groups of size that a pattern deletes.
func positions(pattern string, n, size int) []int64 {
	var out []int64
	for i := range n {
		dead := false
		switch pattern {
		case "first and last of groups":
			dead = i%size == 0 || i%size == size-1
		case "every second":
			dead = i%2 == 1
		case "all but one of a group":
			dead = i/size == 1 && i%size != size/2
		case "a whole group and a run":
			dead = i/size == 0 || i/size == 2 && i%size >= 60 && i%size < 110
		}
		if dead {
			out = append(out, int64(i))
		}
	}
	return out
}

// openFixture opens a table that a test has written.
func openFixture(t testing.TB, tab *fixture.Table) *warehouse.Loaded {
	t.Helper()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	c, err := warehouse.Open(t.Context(), tab.Dir(), warehouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := c.Root(t.Context())
	if err != nil || table == nil {
		t.Fatalf("%v", err)
	}
	l, err := table.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// currentScan returns what the views of the current snapshot show.
func currentScan(t testing.TB, tab *fixture.Table) Scan {
	t.Helper()
	l := openFixture(t, tab)
	plan, err := l.Plan(t.Context(), l.Table().Current)
	if err != nil {
		t.Fatal(err)
	}
	return Scan{Table: l.Table(), Schema: tab.Schema(), Plan: plan, Store: l.Store()}
}

// without leaves out the elements at positions.
func without(rows []string, gone []int64) []string {
	var out []string
	for i, r := range rows {
		if _, dead := slices.BinarySearch(gone, int64(i)); !dead {
			out = append(out, r)
		}
	}
	return out
}

// Chunks of every codec, page version and encoding lose exactly the deleted
// rows, in order.
func TestRewrittenForms(t *testing.T) {
	const rows, groupRows = 360, 120
	forms := map[string]fixture.ParquetOptions{
		"plain":          {NoDictionary: true},
		"small pages":    {PageSize: 500},
		"fallback":       {DictionaryLimit: 300, PageSize: 400},
		"tight":          {Tighten: true},
		"page index":     {PageIndex: true, PageSize: 500},
		"no statistics":  {NoStatistics: true},
		"decimal bytes":  {DecimalBytes: true},
		"delta":          {Encodings: map[string]fixture.Encoding{"id": fixture.DeltaBinary, "many": fixture.DeltaByteArray, "few": fixture.DeltaLength, "d": fixture.ByteStreamSplit}},
		"unknown writer": {CreatedBy: "somebody else 0.1"},
	}
	for _, codec := range []fixture.Codec{fixture.Zstd, fixture.Snappy, fixture.Gzip, fixture.Brotli, fixture.LZ4Raw, fixture.Uncompressed} {
		forms["codec "+string(codec)] = fixture.ParquetOptions{Codec: codec}
	}
	for name, form := range forms {
		for _, v2 := range []bool{false, true} {
			if v2 && strings.HasPrefix(name, "codec") {
				continue
			}
			form.PageV2, form.RowGroup = v2, groupRows
			t.Run(fmt.Sprintf("%s v2 %v", name, v2), func(t *testing.T) {
				tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: formsSchema(), Parquet: form})
				tx := tab.Begin()
				file := tx.Append(formsRows(0, rows)...)
				tx.Commit()
				stored, err := os.ReadFile(file.Local)
				if err != nil {
					t.Fatal(err)
				}
				all := arrowRowsInOrder(t, stored)
				for _, pattern := range []string{"none", "first and last of groups", "every second", "all but one of a group", "a whole group and a run"} {
					if pattern != "every second" && pattern != "a whole group and a run" && name != "plain" && name != "fallback" {
						continue
					}
					gone := positions(pattern, rows, groupRows)
					if len(gone) > 0 {
						tx := tab.Begin()
						tx.DeleteVector(file, gone...)
						tx.Commit()
					}
					scan := currentScan(t, tab)
					hows := []string{"coalesced", "kept apart", "in runs", "page by page", "in a store"}
					if strings.HasPrefix(name, "codec") {
						hows = hows[1:2]
					}
					for _, how := range hows {
						checkForm(t, pattern+", "+how, scan, how, without(all, gone))
					}
					if len(gone) > 0 {
						tx := tab.Begin()
						tx.Remove(file)
						file = tx.Append(formsRows(0, rows)...)
						tx.Commit()
					}
				}
			})
		}
	}
}

// TestSizeStatisticsOfDeltaByteArrays rewrites a file of Arrow C++, whose size
// statistics count 7,590 bytes of strings in each row group, which have more.
func TestSizeStatisticsOfDeltaByteArrays(t *testing.T) {
	stored, err := os.ReadFile("../testdata/size-statistics/delta-byte-array.parquet")
	if err != nil {
		t.Fatal(err)
	}
	p := iceberg.PrimitiveTypes
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "s", Type: p.String},
	)})
	path := filepath.Join(tab.Dir(), "data", "a.parquet")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, stored, 0o644)); err != nil {
		t.Fatal(err)
	}
	tx := tab.Begin()
	file := tx.Adopt(path, 400, nil)
	tx.Commit()
	tx = tab.Begin()
	tx.DeleteVector(file, 3, 399)
	tx.Commit()
	scan, want := currentScan(t, tab), without(arrowRowsInOrder(t, stored), []int64{3, 399})
	for _, how := range []string{"coalesced", "kept apart", "in runs", "page by page", "in a store"} {
		checkForm(t, how, scan, how, want)
	}
}

// checkForm compares a view with rows in order, through two readers.
func checkForm(t *testing.T, what string, scan Scan, how string, want []string) *Counters {
	t.Helper()
	opt := Options{NoCoalesce: how != "coalesced", NoPages: how == "whole", Statistics: StatisticsAll, Counters: &Counters{}}
	opt.Cache, opt.Deletes = &mapCache{}, deletes.NewResolver(deletes.Options{})
	e := NewEngine(opt)
	switch how {
	case "in a store":
		scan.Store = &storeOf{Store: scan.Store}
	case "in runs":
		e.limits.runBytes = 700
	case "page by page", "whole":
		e.limits.keptRows, e.limits.pieceBytes = 1, 1
	}
	data := viewtest.Bytes(t, e.Parquet(scan))
	checkParquet(t, data)
	if got := arrowRowsInOrder(t, data); !slices.Equal(got, want) {
		t.Fatalf("%s: %d rows, want %d; or others", what, len(got), len(want))
	}
	// parquet-go reads stale memory for LZ4_RAW pages, source or not, and takes a
	// column's codec from its first row group: brotli pages are not rewritten as
	// such.
	if !strings.Contains(t.Name(), "lz4") && !strings.Contains(t.Name(), "brotli") {
		if got := parquetGoRows(t, data); !slices.Equal(got, want) {
			t.Errorf("%s: parquet-go reads %d rows, want %d; or others%s", what, len(got), len(want), firstOther(got, want))
		}
	}
	if how == "in runs" || how == "page by page" || how == "whole" {
		return opt.Counters // in other runs than without the test's limit
	}
	opt.Workers, opt.Cache = 1, nil
	if again := viewtest.Bytes(t, handleView{NewEngine(opt).Parquet(scan)}); !bytes.Equal(again, data) {
		t.Errorf("%s: another engine gives other bytes", what)
	}
	return opt.Counters
}

// mapCache keeps everything.
type mapCache struct {
	mu     sync.Mutex
	values map[string]any
}

func (c *mapCache) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	c.mu.Lock()
	v, ok := c.values[key]
	c.mu.Unlock()
	if ok {
		return v, nil
	}
	v, _, err := load(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = make(map[string]any)
	}
	c.values[key] = v
	return v, nil
}

// firstOther names the first row that differs.
func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf(": row %d is %s, want %s", i, got[i], want[i])
		}
	}
	return ""
}

// parquetGoRows are the rows that parquet-go reads, spelled as arrowRows does.
func parquetGoRows(t testing.TB, data []byte) []string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("parquet-go: %v", err)
	}
	var out []string
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 64)
		for {
			k, err := rows.ReadRows(buf)
			for _, row := range buf[:k] {
				values := slices.Clone(row)
				out = append(out, canonical(parquetGoStruct(f.Root(), &values, 0)))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("parquet-go: %v", err)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
