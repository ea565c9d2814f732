package tree

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// schemaMark stands between a snapshot's id and a schema's in a folder's name.
const schemaMark = "@schema-"

// snapshotsDir lists the snapshots of a table by id.
type snapshotsDir struct{ dir *tableDir }

var _ Dir = (*snapshotsDir)(nil)

func (d *snapshotsDir) Attr(ctx context.Context) (Attr, error) {
	return d.dir.folderAttr(ctx, nameSnapshots)
}

func (d *snapshotsDir) Entries(ctx context.Context) ([]Entry, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	ids := t.snapshotIDs()
	list := make([]Entry, len(ids))
	for i, id := range ids {
		name := decimal(id)
		list[i] = Entry{name, KindDir, t.id("snapshot", name).Inode()}
	}
	return list, nil
}

func (d *snapshotsDir) Lookup(ctx context.Context, name string) (Node, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	idText, schemaText, marked := strings.Cut(name, schemaMark)
	id, ok := canonical(idText)
	if !ok {
		return nil, errNoEntry
	}
	s := t.snapshots[id]
	if s == nil || !t.exists(id) {
		return nil, errNoEntry
	}
	sd := t.snapshotDir(s)
	sd.name = name
	if marked {
		n, ok := canonical(schemaText)
		if !ok || t.meta.Schema(int(n)) == nil {
			return nil, errNoEntry
		}
		sd.schema = int(n)
	}
	return sd, nil
}

// canonical parses a number in the only spelling that a listing would give it.
func canonical(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && decimal(n) == s
}

// ownSchema stands for the schema a snapshot was written with.
const ownSchema = -1

// snapshotDir is the folder of a snapshot under one schema, or (empty) of a
// table that has none.
type snapshotDir struct {
	version
	snapshot int64 // unless empty
	mtime    time.Time
	name     string
	schema   int // ownSchema, or an id
	empty    bool
}

// snapshotDir returns the folder of a snapshot under its own schema.
func (t *table) snapshotDir(s *snapshot.Snapshot) *snapshotDir {
	return &snapshotDir{version: t.version(), snapshot: s.ID, mtime: s.Time, name: decimal(s.ID), schema: ownSchema}
}

// find returns the table and the snapshot, nil if the table has none.
func (d *snapshotDir) find(ctx context.Context) (*table, *snapshot.Snapshot, error) {
	t, err := d.load(ctx)
	if err != nil || d.empty {
		return t, nil, err
	}
	s := t.snapshots[d.snapshot]
	if s == nil {
		return nil, nil, fmt.Errorf("snapshot %d: %w", d.snapshot, ErrExpired)
	}
	return t, s, nil
}

var _ SnapshotFolder = (*snapshotDir)(nil)

func (d *snapshotDir) Scan(ctx context.Context) (merge.Scan, error) {
	p, err := d.plan(ctx)
	if err != nil {
		return merge.Scan{}, d.fail(ctx, err)
	}
	return p.scan, nil
}

// Names in a snapshot's folder.
const (
	nameParquet      = "data.parquet"
	nameCSV          = "data.csv"
	nameJSONL        = "data.jsonl"
	nameParts        = "parts"
	namePartsCSV     = "parts.csv"
	namePartsJSONL   = "parts.jsonl"
	nameSchema       = "schema.json"
	nameSnapshotJSON = "snapshot.json"
	nameFiles        = "files.csv"
)

// emptyID identifies the folder current of a table without a snapshot.
func (p *place) emptyID(schema int) snapshot.ID {
	return p.id("empty", strconv.Itoa(schema))
}

func (d *snapshotDir) id() snapshot.ID {
	if d.empty {
		return d.emptyID(d.schema)
	}
	return d.place.id("snapshot", d.name)
}

func (d *snapshotDir) Attr(context.Context) (Attr, error) {
	a := d.entry(KindDir, d.id(), d.mtime)
	a.Immutable = !d.empty
	return a, nil
}

// plan returns the snapshot's files under the folder's schema.
func (d *snapshotDir) plan(ctx context.Context) (*planned, error) {
	t, s, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	schema := d.schema
	if schema == ownSchema {
		if schema, err = t.loaded.SchemaOf(ctx, s); err != nil {
			return nil, err
		}
	}
	return t.plan(ctx, s, schema)
}

func (d *snapshotDir) schemaID(ctx context.Context) (int, error) {
	if d.schema != ownSchema {
		return d.schema, nil
	}
	t, s, err := d.find(ctx)
	if err != nil {
		return 0, err
	}
	return t.loaded.SchemaOf(ctx, s)
}

// files lists the folder's entries without their inode numbers.
func (d *snapshotDir) files() []Entry {
	show := d.dir.tree.opt.Show
	var list []Entry
	add := func(shown bool, name string, kind Kind) {
		if shown {
			list = append(list, Entry{Name: name, Kind: kind})
		}
	}
	add(show.Parquet, nameParquet, KindFile)
	add(show.CSV, nameCSV, KindFile)
	add(show.JSONL, nameJSONL, KindFile)
	add(show.Parts, nameParts, KindDir)
	add(show.PartsCSV, namePartsCSV, KindDir)
	add(show.PartsJSONL, namePartsJSONL, KindDir)
	add(true, nameSchema, KindFile)
	add(!d.empty, nameSnapshotJSON, KindFile)
	add(true, nameFiles, KindFile)
	return list
}

// Entries lists what the folder shows. If the manifests cannot be read the
// files are listed all the same, with a number of their names alone.
func (d *snapshotDir) Entries(ctx context.Context) ([]Entry, error) {
	list := d.files()
	for i := range list {
		a, err := d.node(list[i].Name).Attr(ctx)
		switch {
		case err == nil:
			list[i].Ino = a.Ino
		case ctx.Err() != nil:
			return nil, err
		default:
			list[i].Ino = snapshot.HashID("unreadable", d.id().String(), list[i].Name).Inode()
		}
	}
	return list, nil
}

func (d *snapshotDir) Lookup(_ context.Context, name string) (Node, error) {
	for _, e := range d.files() {
		if e.Name == name {
			return d.node(name), nil
		}
	}
	return nil, errNoEntry
}

// node returns the entry of a name that files lists.
func (d *snapshotDir) node(name string) Node {
	switch name {
	case nameParts:
		return &partsDir{dir: d, name: name, form: formParquet}
	case namePartsCSV:
		return &partsDir{dir: d, name: name, form: formCSV}
	case namePartsJSONL:
		return &partsDir{dir: d, name: name, form: formJSONL}
	case nameCSV:
		return &viewFile{dir: d, form: formCSV}
	case nameJSONL:
		return &viewFile{dir: d, form: formJSONL}
	case nameParquet:
		return &viewFile{dir: d, form: formParquet}
	case nameFiles:
		return &filesFile{dir: d}
	case nameSchema:
		return &describedFile{dir: d, name: name, text: d.schemaJSON}
	}
	return &describedFile{dir: d, name: name, text: d.snapshotJSON}
}

// mtime of everything in the folder: the commit's.
func (d *snapshotDir) attr(kind Kind, id snapshot.ID) Attr {
	a := d.entry(kind, id, d.mtime)
	a.Immutable = true
	return a
}

// fail adds ErrExpired to a failure if the snapshot has left the table's
// metadata, or the table the catalog, since the folder was looked up.
func (d *snapshotDir) fail(ctx context.Context, err error) error {
	if err == nil || d.empty || ctx.Err() != nil || errors.Is(err, ErrExpired) {
		return err
	}
	l, loadErr := d.dir.src.Load(ctx)
	t := d.made.Value()
	switch {
	case loadErr == nil && t != nil && l == t.loaded:
		return err
	case loadErr == nil:
		for i := range l.Table().Snapshots {
			if l.Table().Snapshots[i].ID == d.snapshot {
				return err
			}
		}
	case !errors.Is(loadErr, iofs.ErrNotExist):
		return err
	}
	return fmt.Errorf("snapshot %d: %w: %w", d.snapshot, ErrExpired, err)
}
