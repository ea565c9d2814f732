package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// answers is what the writing engine says of a table.
type answers struct {
	Table     string `json:"table"`
	Source    string `json:"source"`
	MountPath string `json:"mount_path"`
	Refs      map[string]struct {
		SnapshotID int64  `json:"snapshot-id"`
		Type       string `json:"type"`
	} `json:"refs"`
	Current   *int64 `json:"current_snapshot_id"`
	MustError string `json:"must_error"`
	Snapshots []struct {
		ID     int64            `json:"snapshot_id"`
		Schema *int             `json:"schema_id"`
		Count  int64            `json:"count"`
		Live   map[string]int64 `json:"live_rows_per_file"`
	} `json:"snapshots"`
}

func readAnswers(t *testing.T) (all []answers) {
	t.Helper()
	files, err := filepath.Glob(testdata + "/expected/*/index.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d tables, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var a answers
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, a)
	}
	return all
}

// TestRealTables plans every snapshot of tables that engines wrote and that were
// moved since, and compares them with the engines' own answers.
func TestRealTables(t *testing.T) {
	ctx := context.Background()
	sources := map[string]map[string]*Table{}
	opt := Options{AllowPaths: []string{testdata + "/elsewhere"}}
	for _, a := range readAnswers(t) {
		tables := sources[a.Source]
		if tables == nil {
			tables = tablesOf(t, open(t, testdata+"/"+a.Source, opt))
			sources[a.Source] = tables
		}
		table := tables[a.MountPath]
		if table == nil {
			t.Errorf("%s: not found among %v", a.Table, sortedKeys(tables))
			continue
		}
		l, err := table.Load(ctx)
		if a.MustError != "" {
			if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), a.MustError) {
				t.Errorf("%s: %v, want %s", a.Table, err, a.MustError)
			}
			raw, err := table.RawMetadata(ctx)
			if err != nil || !json.Valid(raw) {
				t.Errorf("%s: metadata that fails to load cannot be read: %v", a.Table, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", a.Table, err)
			continue
		}
		checkTable(t, a, l.Table())
		for i := range a.Snapshots {
			checkSnapshot(t, a, l, i)
		}
	}
}

func checkTable(t *testing.T, a answers, table *snapshot.Table) {
	if len(table.Snapshots) != len(a.Snapshots) {
		t.Errorf("%s: %d snapshots, want %d", a.Table, len(table.Snapshots), len(a.Snapshots))
	}
	current := int64(-1)
	if a.Current != nil {
		current = *a.Current
	}
	if table.Current != current {
		t.Errorf("%s: current %d, want %d", a.Table, table.Current, current)
	}
	if len(a.Refs) > 0 && len(table.Refs) != len(a.Refs) {
		t.Errorf("%s: refs %v, want %v", a.Table, table.Refs, a.Refs)
	}
	for _, ref := range table.Refs {
		if want, ok := a.Refs[ref.Name]; ok && (want.SnapshotID != ref.SnapshotID || want.Type == "tag" != ref.Tag) {
			t.Errorf("%s: ref %v, want %v", a.Table, ref, want)
		}
	}
	if !slices.IsSortedFunc(table.Log, func(a, b snapshot.LogEntry) int { return a.Time.Compare(b.Time) }) {
		t.Errorf("%s: log out of order", a.Table)
	}
}

func checkSnapshot(t *testing.T, a answers, l *Loaded, i int) {
	ctx := context.Background()
	want := a.Snapshots[i]
	plan, err := l.Plan(ctx, want.ID)
	if err != nil {
		t.Errorf("%s: %v", a.Table, err)
		return
	}
	live, exact := map[string]int64{}, true
	for i := range plan.Files {
		f := &plan.Files[i]
		if f.Err != nil {
			t.Errorf("%s: %d: %v", a.Table, want.ID, f.Err)
		}
		live[f.Path] += f.Records
		if f.DV != nil {
			live[f.Path] -= f.DV.Records
		}
		exact = exact && len(f.Positions) == 0 && len(f.Equality) == 0
		checkObjects(t, a.Table, l, f)
	}
	var rows int64
	for path, n := range live {
		rows += n
		if want.Live != nil && exact && n != want.Live[path] {
			t.Errorf("%s: %d: %s has %d rows, want %d", a.Table, want.ID, path, n, want.Live[path])
		}
		if n < want.Live[path] {
			t.Errorf("%s: %d: %s has %d rows, want at least %d", a.Table, want.ID, path, n, want.Live[path])
		}
	}
	for path := range want.Live {
		if _, ok := live[path]; !ok {
			t.Errorf("%s: %d: no file %s", a.Table, want.ID, path)
		}
	}
	if rows < want.Count || exact && rows != want.Count {
		t.Errorf("%s: %d: %d rows, want %d", a.Table, want.ID, rows, want.Count)
	}
	checkSchema(t, a.Table, l, want.ID, want.Schema)
}

// checkObjects opens a file and its deletes: all were moved.
func checkObjects(t *testing.T, table string, l *Loaded, f *snapshot.File) {
	files := slices.Concat([]*snapshot.DataFile{f.DataFile}, f.Positions, f.Equality)
	if f.DV != nil {
		files = append(files, f.DV)
	}
	for _, d := range files {
		o, err := l.Store().Open(context.Background(), d.Path)
		if err != nil {
			t.Errorf("%s: %v", table, err)
			continue
		}
		if o.Size() != d.Size || o.Location() != d.Path {
			t.Errorf("%s: %s has %d bytes, want %d", table, o.Location(), o.Size(), d.Size)
		}
		if _, ok := o.(source.Filer); !ok {
			t.Errorf("%s: %s is no local file", table, o.Location())
		}
	}
}

func checkSchema(t *testing.T, table string, l *Loaded, id int64, want *int) {
	if want == nil {
		return
	}
	i := slices.IndexFunc(l.table.Snapshots, func(s snapshot.Snapshot) bool { return s.ID == id })
	s := l.table.Snapshots[i]
	if got, err := l.SchemaOf(context.Background(), &s); err != nil || got != *want {
		t.Errorf("%s: %d: schema %d, %v, want %d", table, id, got, err, *want)
	}
}

func TestHeaderTellsTheSchema(t *testing.T) {
	l := load(t, openTable(t, testdata+"/warehouse/db/branches_tags", Options{}))
	several := map[int]bool{}
	for _, s := range l.Table().Snapshots {
		want := s.SchemaID
		s.SchemaID = -1
		got, err := l.SchemaOf(context.Background(), &s)
		if err != nil {
			t.Fatal(err)
		}
		list, err := l.manifests(context.Background(), &s)
		if err != nil {
			t.Fatal(err)
		}
		if m := newestManifest(list, s.ID); m.snapshot != s.ID {
			continue // it added no manifest: its newest one may have another schema
		}
		several[got] = true
		if got != want {
			t.Errorf("snapshot %d: schema %d, want %d", s.ID, got, want)
		}
	}
	if len(several) < 2 {
		t.Errorf("one schema only: %v", several)
	}
}

func TestEachManifestIsReadOnce(t *testing.T) {
	// v2_eq has snapshots without equality deletes before those with them.
	for name, least := range map[string]int64{"hadoop/db/hadoop_v2": 5, "db/v2_eq": 4} {
		readOnce(t, name, least)
	}
}

func readOnce(t *testing.T, name string, least int64) {
	ctx := context.Background()
	stats := &Stats{}
	table := openTable(t, testdata+"/warehouse/"+name, Options{Stats: stats, Refresh: -1})
	distinct := map[string]bool{}
	for range 3 {
		l := load(t, table)
		for _, s := range l.Table().Snapshots {
			if _, err := l.Plan(ctx, s.ID); err != nil {
				t.Fatal(err)
			}
			list, err := l.manifests(ctx, &s)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				distinct[m.path] = true
			}
		}
	}
	l := load(t, table)
	if got := stats.ManifestsRead.Load(); got != int64(len(distinct)) || got < least {
		t.Errorf("%s: %d manifests read, there are %d", name, got, len(distinct))
	}
	if got := stats.ListsRead.Load(); got != int64(len(l.Table().Snapshots)) {
		t.Errorf("%d manifest lists read of %d snapshots", got, len(l.Table().Snapshots))
	}
	if got := stats.MetadataRead.Load(); got != 1 {
		t.Errorf("metadata read %d times", got)
	}
}

func TestEntriesOfOnePartitionShareIt(t *testing.T) {
	l := load(t, openTable(t, testdata+"/warehouse/hadoop/db/hadoop_v2", Options{}))
	s := l.Table().Snapshots[0]
	plan, err := l.Plan(context.Background(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		if len(f.Partition) != 1 || f.Metrics != nil {
			t.Errorf("%s: partition %v, metrics %v", f.Path, f.Partition, f.Metrics)
		}
	}
}

func TestMetricsAreKeptForKeyColumnsOnly(t *testing.T) {
	l := load(t, openTable(t, testdata+"/warehouse/db/v2_eq", Options{}))
	seen := 0
	for _, s := range l.Table().Snapshots {
		plan, err := l.Plan(context.Background(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[int]bool{}
		for _, f := range plan.Files {
			for _, d := range f.Equality {
				for _, id := range d.EqualityIDs {
					ids[id] = true
				}
				for _, m := range d.Metrics {
					if !slices.Contains(d.EqualityIDs, m.ID) {
						t.Errorf("%s keeps metrics of column %d", d.Path, m.ID)
					}
				}
			}
		}
		for _, f := range plan.Files {
			if len(f.Equality) > 0 && len(f.Metrics) == 0 {
				t.Errorf("%s has no metrics", f.Path)
			}
			for _, m := range f.Metrics {
				if m.Lower != nil && m.Upper != nil {
					seen++
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no bounds at all")
	}
}
