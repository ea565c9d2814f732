// Package treetest is a catalog in memory, with views of fixed bytes, for tests
// of the tree and of what serves it.
package treetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// Namespace is a folder of the fake catalog.
type Namespace struct {
	Folders bool // names are those of folders
	Spaces  []Named[*Namespace]
	Tabs    []Named[*Table]
	Err     error
	// If Paused is set, listing waits for it before the table at place PauseAt.
	Paused  chan struct{}
	PauseAt int
}

// Named is a member of a namespace.
type Named[T any] struct {
	Name string
	Of   T
}

// Verbatim implements tree.Namespace.
func (n *Namespace) Verbatim() bool { return n.Folders }

// Namespaces implements tree.Namespace.
func (n *Namespace) Namespaces(context.Context) (iter.Seq2[string, tree.Namespace], error) {
	return func(yield func(string, tree.Namespace) bool) {
		for _, s := range n.Spaces {
			if !yield(s.Name, s.Of) {
				return
			}
		}
	}, n.Err
}

// Tables implements tree.Namespace.
func (n *Namespace) Tables(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for i, t := range n.Tabs {
			if n.Paused != nil && i == n.PauseAt {
				<-n.Paused
			}
			if !yield(t.Name, nil) {
				return
			}
		}
		if n.Err != nil {
			yield("", n.Err)
		}
	}
}

// Table implements tree.Namespace.
func (n *Namespace) Table(_ context.Context, name string) (tree.Table, error) {
	for _, t := range n.Tabs {
		if t.Name == name {
			return t.Of, nil
		}
	}
	return nil, iofs.ErrNotExist
}

// Catalog is one namespace, or one table.
type Catalog struct {
	Space *Namespace
	Tab   *Table
}

// Root implements tree.Catalog.
func (c Catalog) Root(context.Context) (tree.Namespace, tree.Table, error) {
	if c.Tab != nil {
		return nil, c.Tab, nil
	}
	return c.Space, nil, nil
}

// Table is a table whose version can be replaced.
type Table struct {
	mu     sync.Mutex
	loaded *Loaded
	err    error
	Raw    []byte
	Loads  atomic.Int64
}

// NewTable returns a table at a version.
func NewTable(t *snapshot.Table) *Table { return &Table{loaded: &Loaded{Meta: t}} }

// Commit replaces the table's version.
func (t *Table) Commit(l *Loaded) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded, t.err = l, nil
}

// Fail makes loading fail.
func (t *Table) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// Current is the version that Load gives.
func (t *Table) Current() *Loaded {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loaded
}

// Load implements tree.Table.
func (t *Table) Load(ctx context.Context) (tree.Loaded, error) {
	t.Loads.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	return t.loaded, nil
}

// RawMetadata implements tree.Table.
func (t *Table) RawMetadata(context.Context) ([]byte, error) {
	if t.Raw == nil {
		return nil, iofs.ErrNotExist
	}
	return t.Raw, nil
}

// Loaded is a table at one version.
type Loaded struct {
	Meta    *snapshot.Table
	PlanErr error
	Files   []snapshot.File // of every snapshot
	// PlanBytes is what each plan says that it takes.
	PlanBytes int64
	Plans     atomic.Int64
}

// Table implements tree.Loaded.
func (l *Loaded) Table() *snapshot.Table { return l.Meta }

// Store implements tree.Loaded; no view of this package opens anything.
func (l *Loaded) Store() merge.Store { return nil }

// SchemaOf implements tree.Loaded.
func (l *Loaded) SchemaOf(_ context.Context, s *snapshot.Snapshot) (int, error) {
	return s.SchemaID, l.PlanErr
}

// Plan implements tree.Loaded.
func (l *Loaded) Plan(_ context.Context, id int64) (*snapshot.Plan, error) {
	l.Plans.Add(1)
	if l.PlanErr != nil {
		return nil, l.PlanErr
	}
	return &snapshot.Plan{SnapshotID: id, Files: l.Files, Bytes: l.PlanBytes}, nil
}

// Views makes a text of each scan: what it is a view of.
type Views struct {
	Sizes atomic.Int64 // calls of Size
	Fail  atomic.Pointer[error]
	Block chan struct{} // if set, Size waits for it or for its context
	Pad   int           // bytes to add to each view
}

func (v *Views) view(kind string, s merge.Scan) *View {
	text := fmt.Sprintf("%s of %d, schema %d, %d files\n", kind, s.Plan.SnapshotID, s.Schema.ID, len(s.Plan.Files))
	return &View{owner: v, text: text + strings.Repeat("x", v.Pad)}
}

// Parquet implements tree.Views.
func (v *Views) Parquet(s merge.Scan) merge.View {
	view := v.view("parquet", s)
	view.sum = merge.Summary{Rows: 90, Deleted: 10, Raw: 4, Synthesized: 2, Rewritten: 1}
	return view
}

// Part implements tree.Views.
func (v *Views) Part(s merge.Scan, i int) merge.View {
	view := v.view("part "+s.Plan.Files[i].Path, s)
	view.sum = merge.Summary{Rows: 50, Whole: true}
	return view
}

// CSV implements tree.Views.
func (v *Views) CSV(s merge.Scan) merge.View { return v.view("csv", s) }

// JSONL implements tree.Views.
func (v *Views) JSONL(s merge.Scan) merge.View { return v.view("jsonl", s) }

// View is a text.
type View struct {
	owner *Views
	text  string
	sum   merge.Summary
}

// Summary implements merge.Summarizer, of a Parquet view and of a part.
func (v *View) Summary(context.Context) (merge.Summary, error) {
	if err := v.owner.Fail.Load(); err != nil {
		return merge.Summary{}, *err
	}
	return v.sum, nil
}

// Size implements merge.View.
func (v *View) Size(ctx context.Context) (int64, error) {
	v.owner.Sizes.Add(1)
	if v.owner.Block != nil {
		select {
		case <-v.owner.Block:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if err := v.owner.Fail.Load(); err != nil {
		return 0, *err
	}
	return int64(len(v.text)), nil
}

// ReadAt implements merge.View.
func (v *View) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := v.owner.Fail.Load(); err != nil {
		return 0, *err
	}
	if off >= int64(len(v.text)) {
		return 0, io.EOF
	}
	n := copy(p, v.text[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Moment is the commit time of snapshot n of Metadata.
func Moment(n int) time.Time {
	return time.Date(2026, 11, 30, 2, 53, n, 123e6, time.UTC)
}

// Metadata returns a table of n snapshots, 1 to n, with schema 0 for all of
// them; the table's own schema is 1.
func Metadata(uuid string, n int) *snapshot.Table {
	field := iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}
	more := iceberg.NestedField{ID: 2, Name: "more", Type: iceberg.PrimitiveTypes.String}
	t := &snapshot.Table{
		UUID:          uuid,
		Location:      "file:/wh/t",
		FormatVersion: 2,
		LastUpdated:   Moment(n),
		Schemas:       []*iceberg.Schema{iceberg.NewSchema(0, field), iceberg.NewSchema(1, field, more)},
		CurrentSchema: 1,
		Current:       -1,
	}
	for i := 1; i <= n; i++ {
		id := int64(i)
		t.Snapshots = append(t.Snapshots, snapshot.Snapshot{
			ID: id, ParentID: id - 1, SequenceNumber: id, Time: Moment(i), SchemaID: 0,
			JSON: fmt.Appendf(nil, `{"snapshot-id":%d}`, id),
		})
		t.Log = append(t.Log, snapshot.LogEntry{SnapshotID: id, Time: Moment(i)})
		t.Current = id
	}
	if n > 0 {
		t.Refs = []snapshot.Ref{{Name: "main", SnapshotID: int64(n)}}
	}
	schemas, _ := json.Marshal(t.Schemas) // a schema always marshals
	t.Metadata = fmt.Appendf(nil, `{"format-version":2,"schemas":%s}`, schemas)
	return t
}
