package merge

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/snapshot"
)

// expectedTable is what testdata/expected/<table>/index.json says.
type expectedTable struct {
	Name      string
	Source    string `json:"source"`
	MountPath string `json:"mount_path"`
	Snapshots []struct {
		ID   int64  `json:"snapshot_id"`
		Rows string `json:"rows"`
	} `json:"snapshots"`
}

func expectedTables(t *testing.T) []expectedTable {
	t.Helper()
	found, err := filepath.Glob("../testdata/expected/*/index.json")
	if err != nil || len(found) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	var out []expectedTable
	for _, path := range found {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x := expectedTable{Name: filepath.Base(filepath.Dir(path))}
		if err := json.Unmarshal(b, &x); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, x)
	}
	return out
}

// rows returns a snapshot's rows, spelled as arrowRows does.
func (x *expectedTable) rows(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("../testdata/expected", x.Name, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for dec := json.NewDecoder(z); dec.More(); {
		dec.UseNumber()
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		out = append(out, canonical(row))
	}
	slices.Sort(out)
	return out
}

// load opens the table, or returns nil for one that cannot be loaded.
func (x *expectedTable) load(t *testing.T) *warehouse.Loaded {
	t.Helper()
	root, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	c, err := warehouse.Open(t.Context(), filepath.Join(root, x.Source, x.MountPath), warehouse.Options{AllowPaths: []string{root}})
	if err != nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
	_, table, err := c.Root(t.Context())
	if err != nil || table == nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
	l, err := table.Load(t.Context())
	if errors.Is(err, warehouse.ErrUnsupported) {
		return nil
	}
	if err != nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
	return l
}

// testEngine returns an engine with caches of its own.
func testEngine(t testing.TB, opt Options) *Engine {
	t.Helper()
	c, err := cache.New(cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	opt.Cache, opt.Deletes = c, deletes.NewResolver(deletes.Options{Cache: c})
	return NewEngine(opt)
}

// scanOf returns what the views of a snapshot show.
func scanOf(t *testing.T, l *warehouse.Loaded, s *snapshot.Snapshot) Scan {
	t.Helper()
	plan, err := l.Plan(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	id, err := l.SchemaOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return Scan{Table: l.Table(), Schema: l.Table().Schema(id), Plan: plan, Store: l.Store()}
}

// Every way to lay out every snapshot of the tables has the rows that the
// writing engine saw.
func TestParquetOfRealTables(t *testing.T) {
	for _, x := range expectedTables(t) {
		if x.Name == "variant_v3" || strings.HasPrefix(x.Source, "object-store") {
			continue // spelled otherwise; needs an object store
		}
		t.Run(x.Name, func(t *testing.T) {
			l := x.load(t)
			if l == nil {
				return
			}
			engines := map[string]*Engine{
				"default":    testEngine(t, Options{}),
				"no splice":  testEngine(t, Options{NoSplice: true, Statistics: StatisticsNone}),
				"kept apart": testEngine(t, Options{NoCoalesce: true, Statistics: StatisticsAll}),
				"rewritten":  testEngine(t, Options{NoSplice: true, NoCoalesce: true}),
				"in a store": testEngine(t, Options{}),
			}
			for i := range l.Table().Snapshots {
				s := &l.Table().Snapshots[i]
				at := slices.IndexFunc(x.Snapshots, func(e struct {
					ID   int64  `json:"snapshot_id"`
					Rows string `json:"rows"`
				}) bool {
					return e.ID == s.ID
				})
				if at < 0 {
					t.Fatalf("snapshot %d is not expected", s.ID)
				}
				want := x.rows(t, x.Snapshots[at].Rows)
				scan := scanOf(t, l, s)
				for name, e := range engines {
					scan := scan
					if name == "in a store" {
						scan.Store = &storeOf{Store: scan.Store}
					}
					if name != "default" && i < len(l.Table().Snapshots)-3 {
						continue
					}
					checkRows(t, fmt.Sprintf("snapshot %d, %s", s.ID, name), e.Parquet(scan), want)
				}
			}
		})
	}
}

// needsORC reports the error of a view that needs a file in ORC: the one thing
// about the tables that is refused.
func needsORC(err error) bool {
	return (errors.Is(err, ErrUnsupported) || errors.Is(err, deletes.ErrUnsupported)) && strings.Contains(err.Error(), ".orc")
}

func checkRows(t *testing.T, what string, v View, want []string) {
	t.Helper()
	if _, err := v.Size(t.Context()); needsORC(err) {
		return
	}
	data := viewtest.Bytes(t, v)
	checkParquet(t, data)
	got := arrowRows(t, data)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		for _, row := range want {
			if _, ok := slices.BinarySearch(got, row); !ok {
				t.Errorf("no row %s", row)
				break
			}
		}
		for _, row := range got {
			if _, ok := slices.BinarySearch(want, row); !ok {
				t.Errorf("a row %s", row)
				break
			}
		}
	}
}

// The parts of a snapshot have its rows, and are the data files themselves
// where those say the same.
func TestPartsOfRealTables(t *testing.T) {
	whole := 0
	for _, x := range expectedTables(t) {
		l := x.load(t)
		if l == nil || x.Name == "variant_v3" || strings.HasPrefix(x.Source, "object-store") || len(x.Snapshots) == 0 {
			continue
		}
		e := testEngine(t, Options{})
		s := &l.Table().Snapshots[len(l.Table().Snapshots)-1]
		scan := scanOf(t, l, s)
		var got []string
		failed := false
		for i := range scan.Plan.Files {
			v := e.Part(scan, i)
			if _, err := v.Size(t.Context()); needsORC(err) {
				failed = true
				break
			}
			b := viewtest.Bytes(t, v)
			got = append(got, arrowRows(t, b)...)
			if f, err := v.(Opener).Open().(Passthrough).OpenFile(t.Context()); err != nil {
				t.Errorf("%s: %v", x.Name, err)
			} else if f != nil {
				whole++
				stored, err := os.ReadFile(f.Name())
				f.Close()
				if err != nil || !bytes.Equal(stored, b) {
					t.Errorf("%s: part %d is not the file it passes through (%v)", x.Name, i, err)
				}
			}
		}
		if failed {
			continue
		}
		slices.Sort(got)
		for _, e := range x.Snapshots {
			if e.ID == s.ID && !slices.Equal(got, x.rows(t, e.Rows)) {
				t.Errorf("%s: parts have %d rows, other than the snapshot's", x.Name, len(got))
			}
		}
	}
	if whole == 0 {
		t.Error("no part is its data file")
	}
}

// Views behave as immutable files, with a cache, without, and with one that
// keeps nothing.
func TestParquetIsOneImmutableFile(t *testing.T) {
	for _, x := range expectedTables(t) {
		switch x.Name {
		case "types_v3", "eq_evo", "part_identity", "empty_rows", "row_lineage_mor", "avro_data", "types_java_avro":
		default:
			continue
		}
		l := x.load(t)
		snapshots := l.Table().Snapshots
		scan := scanOf(t, l, &snapshots[len(snapshots)-1])
		uncached := NewEngine(Options{Deletes: deletes.NewResolver(deletes.Options{}), Workers: 1})
		t.Run(x.Name, func(t *testing.T) {
			viewtest.Check(t, testEngine(t, Options{}).Parquet(scan),
				func() viewtest.View { return testEngine(t, Options{}).Parquet(scan) },
				func() viewtest.View { return uncached.Parquet(scan) },
				func() viewtest.View { return handleView{uncached.Parquet(scan)} })
		})
	}
}

// handleView reads a view through handles of its own.
type handleView struct{ View }

func (v handleView) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	h := v.View.(Opener).Open()
	defer h.Close()
	return h.ReadAt(ctx, p, off)
}
