package tree

import (
	"context"
	"errors"
	"fmt"

	"github.com/icefs/icefs/merge"
)

// Facts are what a folder or a file below snapshots/<id> can tell about itself.
type Facts interface {
	Node
	// Snapshot returns the ids of the snapshot and of the schema it is shown
	// under; -1 for the snapshot of a table that has none. Metadata alone is read.
	Snapshot(ctx context.Context) (id int64, schema int, err error)
	// Rows returns how many rows it shows, and how many rows of its data files it
	// does not. Manifests, footers and deletes are read. ErrNoFact: it shows none.
	Rows(ctx context.Context) (visible, deleted int64, err error)
	// Layout tells how its bytes come about: "raw" (a data file as it is), "text",
	// or the number of column chunks of each kind. ErrNoFact: it has none.
	Layout(ctx context.Context) (string, error)
}

// ErrNoFact: an entry has nothing of what was asked.
var ErrNoFact = errors.New("this entry has no such property")

// Volume is a Dir that knows how much data its table holds.
type Volume interface {
	Dir
	// Volume returns the length of the live data files, as recorded, and their
	// number: of the current snapshot for a table, else of the snapshot.
	Volume(ctx context.Context) (bytes, files int64, err error)
}

var (
	_ Facts  = (*snapshotDir)(nil)
	_ Facts  = (*partsDir)(nil)
	_ Facts  = (*viewFile)(nil)
	_ Facts  = (*partFile)(nil)
	_ Volume = (*rootDir)(nil)
	_ Volume = (*tableDir)(nil)
	_ Volume = (*snapshotDir)(nil)
)

// Snapshot implements Facts.
func (d *snapshotDir) Snapshot(ctx context.Context) (int64, int, error) {
	schema, err := d.schemaID(ctx)
	if err != nil {
		return 0, 0, d.fail(ctx, err)
	}
	if d.empty {
		return -1, schema, nil
	}
	return d.snapshot, schema, nil
}

// Rows implements Facts.
func (d *snapshotDir) Rows(ctx context.Context) (int64, int64, error) {
	return d.rows(ctx, d.plan, d.whole)
}

// Layout implements Facts.
func (d *snapshotDir) Layout(context.Context) (string, error) { return "", ErrNoFact }

// whole is the Parquet view of all rows, whether or not it is shown.
func (d *snapshotDir) whole(p *planned) merge.View {
	return p.view(nameParquet, func() merge.View { return d.dir.tree.view(formParquet, p.scan) })
}

// planner returns the plan of an entry's snapshot.
type planner func(ctx context.Context) (*planned, error)

// summary asks a Parquet view for what it is made of.
func (d *snapshotDir) summary(ctx context.Context, plan planner, view func(*planned) merge.View) (merge.Summary, error) {
	p, err := plan(ctx)
	if err != nil {
		return merge.Summary{}, d.fail(ctx, err)
	}
	s, ok := view(p).(merge.Summarizer)
	if !ok {
		return merge.Summary{}, ErrNoFact
	}
	sum, err := s.Summary(ctx)
	return sum, d.fail(ctx, err)
}

func (d *snapshotDir) rows(ctx context.Context, plan planner, view func(*planned) merge.View) (int64, int64, error) {
	s, err := d.summary(ctx, plan, view)
	return s.Rows, s.Deleted, err
}

func (d *snapshotDir) layout(ctx context.Context, f form, plan planner, view func(*planned) merge.View) (string, error) {
	if f != formParquet {
		return "text", nil
	}
	s, err := d.summary(ctx, plan, view)
	if err != nil {
		return "", err
	}
	if s.Whole {
		return "raw", nil
	}
	return fmt.Sprintf("chunks raw=%d synthesized=%d rewritten=%d", s.Raw, s.Synthesized, s.Rewritten), nil
}

// Snapshot implements Facts.
func (f *viewFile) Snapshot(ctx context.Context) (int64, int, error) { return f.dir.Snapshot(ctx) }

// Rows implements Facts.
func (f *viewFile) Rows(ctx context.Context) (int64, int64, error) {
	return f.dir.rows(ctx, f.plan, f.dir.whole)
}

// Layout implements Facts.
func (f *viewFile) Layout(ctx context.Context) (string, error) {
	return f.dir.layout(ctx, f.form, f.plan, f.dir.whole)
}

// Snapshot implements Facts.
func (d *partsDir) Snapshot(ctx context.Context) (int64, int, error) { return d.dir.Snapshot(ctx) }

// Rows implements Facts.
func (d *partsDir) Rows(ctx context.Context) (int64, int64, error) { return d.dir.Rows(ctx) }

// Layout implements Facts.
func (d *partsDir) Layout(context.Context) (string, error) { return "", ErrNoFact }

// Snapshot implements Facts.
func (f *partFile) Snapshot(ctx context.Context) (int64, int, error) {
	return f.parts.dir.Snapshot(ctx)
}

// part is the Parquet view of the data file, also if it is shown as text.
func (f *partFile) part(p *planned) merge.View {
	return p.view(nameParts+"/"+decimal(int64(f.at)), func() merge.View {
		return f.parts.dir.dir.tree.opt.Views.Part(p.scan, f.at)
	})
}

// Rows implements Facts.
func (f *partFile) Rows(ctx context.Context) (int64, int64, error) {
	return f.parts.dir.rows(ctx, f.plan, f.part)
}

// Layout implements Facts.
func (f *partFile) Layout(ctx context.Context) (string, error) {
	return f.parts.dir.layout(ctx, f.parts.form, f.plan, f.part)
}

// Volume implements Volume.
func (d *snapshotDir) Volume(ctx context.Context) (bytes, files int64, err error) {
	p, err := d.plan(ctx)
	if err != nil {
		return 0, 0, d.fail(ctx, err)
	}
	for i := range p.scan.Plan.Files {
		bytes += max(p.scan.Plan.Files[i].Size, 0)
	}
	return bytes, int64(len(p.scan.Plan.Files)), nil
}

// Volume implements Volume: that of the current snapshot.
func (d *tableDir) Volume(ctx context.Context) (bytes, files int64, err error) {
	t, err := d.load(ctx)
	if err != nil {
		return 0, 0, err
	}
	snap := t.snapshots[t.meta.Current]
	if snap == nil {
		return 0, 0, nil
	}
	return t.snapshotDir(snap).Volume(ctx)
}

// Volume implements Volume, if the root is a table.
func (d *rootDir) Volume(ctx context.Context) (bytes, files int64, err error) {
	if v, ok := d.Dir.(Volume); ok {
		return v.Volume(ctx)
	}
	return 0, 0, ErrNoFact
}
