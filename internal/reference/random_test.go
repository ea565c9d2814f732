package reference_test

import (
	"context"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/fixture/random"
	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/internal/warehouse"
)

// load opens a fixture as icefs does.
func load(t *testing.T, tab *fixture.Table) *warehouse.Loaded {
	t.Helper()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	c, err := warehouse.Open(t.Context(), tab.Dir(), warehouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := c.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := table.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// rows reads a snapshot by the naive merge.
func rows(ctx context.Context, l *warehouse.Loaded, snapshot int64, schema *iceberg.Schema) ([]reference.Record, error) {
	plan, err := l.Plan(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	m := &reference.Merge{Table: l.Table(), Schema: schema, Plan: plan, Store: l.Store()}
	var out []reference.Record
	for rec, err := range m.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// reform brings a fixture's value to the reference's form.
func reform(v any) any {
	switch v := v.(type) {
	case fixture.Record:
		out := reference.Record{}
		for id, inner := range v {
			out[id] = reform(inner)
		}
		return out
	case fixture.List:
		out := reference.List{}
		for _, inner := range v {
			out = append(out, reform(inner))
		}
		return out
	case fixture.Map:
		out := reference.Map{}
		for _, p := range v {
			out = append(out, reference.Entry{Key: reform(p.Key), Value: reform(p.Value)})
		}
		return out
	}
	return v
}

// TestRandomTables compares the naive merge of random tables with what was
// written to them.
func TestRandomTables(t *testing.T) {
	for seed := range uint64(10) {
		tab := random.New(t.TempDir(), seed, random.Options{})
		l := load(t, tab)
		for i, s := range tab.Snapshots() {
			schemas := []*iceberg.Schema{s.Schema}
			if i%4 == 3 {
				schemas = append(schemas, tab.Schema())
			}
			for _, schema := range schemas {
				want := tab.Expected(s, schema)
				got, err := rows(t.Context(), l, s.ID, schema)
				if err != nil {
					t.Errorf("seed %d, snapshot %d (sequence %d): %v", seed, s.ID, s.Sequence, err)
					continue
				}
				if len(got) != len(want) {
					t.Errorf("seed %d, snapshot %d (sequence %d): %d rows, want %d", seed, s.ID, s.Sequence, len(got), len(want))
					continue
				}
				for i := range want {
					if w := reform(want[i]); !reference.Equal(got[i], w) {
						t.Errorf("seed %d, snapshot %d (sequence %d), row %d:\n%v\nwant\n%v", seed, s.ID, s.Sequence, i, got[i], w)
						break
					}
				}
			}
		}
	}
}
