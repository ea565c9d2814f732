package tree

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// tableDir is a table's folder. It holds no state: each call loads the table.
type tableDir struct {
	tree *Tree
	src  Table
	path string // in the mount; "" is the root
}

var _ Dir = (*tableDir)(nil)

// Names in a table's folder.
const (
	nameCurrent   = "current"
	nameSnapshots = "snapshots"
	nameBranches  = "branches"
	nameTags      = "tags"
	nameByTime    = "by-time"
	nameAt        = "at"
	nameMetadata  = "metadata.json"
	nameError     = "error.txt"
)

// place is where a table is, and which: all that nodes know of it for good.
type place struct {
	dir *tableDir
	key string // identifies the table; see identity.go
}

// tableKey names a table at one metadata version among what is kept.
type tableKey struct {
	loaded Loaded
	path   string
}

// table is what the tree derives from one metadata version. Immutable, but for
// what its Once fields compute. Nodes do not hold it; see version.
type table struct {
	place
	loaded Loaded
	meta   *snapshot.Table

	snapshots map[int64]*snapshot.Snapshot
	kept      map[int64]bool // that exist by History, whatever their age; nil = all
	branches  []named
	tags      []named

	timesOnce sync.Once
	times     []named
	timeOf    map[string]int64 // the snapshot of each of times

	metadataID func() snapshot.ID // of metadata.json; hashes it once

	schemasOnce sync.Once
	schemas     map[int][]byte // as in the metadata
}

// named is a link's name and the snapshot it leads to.
type named struct {
	name     string
	snapshot int64
}

// load returns the table at its current metadata version.
func (d *tableDir) load(ctx context.Context) (*table, error) {
	l, err := d.src.Load(ctx)
	if err != nil {
		return nil, err
	}
	if t, ok := d.tree.keeper.get(tableKey{l, d.path}); ok {
		return t.(*table), nil
	}
	return newTable(d, l).keep(), nil
}

// keep keeps a table, and returns the one that is kept for its version.
func (t *table) keep() *table {
	return t.dir.tree.keeper.add(tableKey{t.loaded, t.dir.path}, t, t.bytes()).(*table)
}

// bytes is about what a table takes: its metadata as text, and twice as much as
// values and as what is derived of them.
func (t *table) bytes() int64 { return 4<<10 + 3*int64(len(t.meta.Metadata)) }

// version leads a node to its table: at the version that it was made of as long as
// that is kept or in use, then at the current one.
type version struct {
	place
	made weak.Pointer[table]
}

func (t *table) version() version { return version{t.place, weak.Make(t)} }

func (v version) load(ctx context.Context) (*table, error) {
	if t := v.made.Value(); t != nil {
		return t.keep(), nil
	}
	return v.dir.load(ctx)
}

func newTable(d *tableDir, l Loaded) *table {
	meta := l.Table()
	t := &table{place: place{d, keyOf(meta)}, loaded: l, meta: meta,
		snapshots: make(map[int64]*snapshot.Snapshot, len(meta.Snapshots))}
	for i := range meta.Snapshots {
		t.snapshots[meta.Snapshots[i].ID] = &meta.Snapshots[i]
	}
	t.kept = d.tree.opt.History.kept(meta)
	t.metadataID = sync.OnceValue(func() snapshot.ID { return t.id(nameMetadata, string(meta.Metadata)) })
	refs := slices.Clone(meta.Refs)
	slices.SortFunc(refs, func(a, b snapshot.Ref) int { return strings.Compare(a.Name, b.Name) })
	branches, tags := newNamer(), newNamer()
	for _, r := range refs {
		escaped := escapeName(r.Name)
		if r.Tag {
			t.tags = append(t.tags, named{tags.assign(escaped, r.Name, "~tag"), r.SnapshotID})
		} else {
			t.branches = append(t.branches, named{branches.assign(escaped, r.Name, "~branch"), r.SnapshotID})
		}
	}
	return t
}

// empty reports whether main has no snapshot.
func (t *table) empty() bool { return t.meta.Current < 0 }

// snapshotIDs are those to list, in the order of the metadata.
func (t *table) snapshotIDs() []int64 {
	ids := make([]int64, len(t.meta.Snapshots))
	for i := range t.meta.Snapshots {
		ids[i] = t.meta.Snapshots[i].ID
	}
	return listed(t, ids, func(id int64) int64 { return id })
}

func (d *tableDir) Attr(ctx context.Context) (Attr, error) {
	id := dirID("table", d.path)
	a := Attr{Kind: KindDir, Ino: id.Inode(), Generation: generation(id, d.path), MTime: Fixed()}
	t, err := d.load(ctx)
	if err != nil {
		return a, d.fatal(ctx, err)
	}
	a.MTime = t.meta.LastUpdated
	return a, nil
}

// fatal returns err if it ends a call on the table's folder: the table is gone,
// or the caller gave up. Any other failure is shown as error.txt instead.
func (d *tableDir) fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *tableDir) Entries(ctx context.Context) ([]Entry, error) {
	t, err := d.load(ctx)
	if err != nil {
		if fatal := d.fatal(ctx, err); fatal != nil {
			return nil, fatal
		}
		return d.failedEntries(ctx, err), nil
	}
	list := make([]Entry, 0, 7)
	if t.empty() {
		list = append(list, Entry{nameCurrent, KindDir, t.emptyID(t.meta.CurrentSchema).Inode()})
	} else {
		list = append(list, Entry{nameCurrent, KindLink, t.linkID(nameCurrent).Inode()})
	}
	for _, name := range []string{nameSnapshots, nameBranches, nameTags, nameByTime, nameAt} {
		list = append(list, Entry{name, KindDir, t.id("folder", name).Inode()})
	}
	return append(list, Entry{nameMetadata, KindFile, t.metadataFile().id.Inode()}), nil
}

func (d *tableDir) Lookup(ctx context.Context, name string) (Node, error) {
	t, err := d.load(ctx)
	if err != nil {
		if fatal := d.fatal(ctx, err); fatal != nil {
			return nil, fatal
		}
		return d.failedLookup(ctx, err, name)
	}
	switch name {
	case nameCurrent:
		if t.empty() {
			return &snapshotDir{version: t.version(), mtime: t.meta.LastUpdated, schema: t.meta.CurrentSchema, empty: true}, nil
		}
		return &refLink{dir: d, name: nameCurrent}, nil
	case nameSnapshots:
		return &snapshotsDir{dir: d}, nil
	case nameBranches, nameTags:
		return &refsDir{dir: d, name: name}, nil
	case nameByTime:
		return &timesDir{dir: d}, nil
	case nameAt:
		return &atDir{dir: d}, nil
	case nameMetadata:
		return t.metadataFile(), nil
	}
	return nil, errNoEntry
}

// metadataFile is metadata.json at one version.
type metadataFile struct {
	version
	id    snapshot.ID
	mtime time.Time
	size  int64
}

var _ File = (*metadataFile)(nil)

func (t *table) metadataFile() *metadataFile {
	return &metadataFile{t.version(), t.metadataID(), t.meta.LastUpdated, int64(len(t.meta.Metadata))}
}

func (f *metadataFile) Attr(context.Context) (Attr, error) {
	return f.entry(KindFile, f.id, f.mtime), nil
}

func (f *metadataFile) Size(context.Context) (int64, error) { return f.size, nil }

func (f *metadataFile) Open(ctx context.Context) (merge.Handle, error) {
	t, err := f.load(ctx)
	if err != nil {
		return nil, err
	}
	if t.metadataID() != f.id {
		return nil, fmt.Errorf("%s: %w: it was replaced", nameMetadata, ErrExpired)
	}
	return newBytesHandle(t.meta.Metadata), nil
}

// failedEntries is what a table shows that cannot be loaded.
func (d *tableDir) failedEntries(ctx context.Context, err error) []Entry {
	var list []Entry
	if f, ok := d.rawMetadata(ctx); ok {
		list = append(list, Entry{nameMetadata, KindFile, f.id.Inode()})
	}
	return append(list, Entry{nameError, KindFile, d.errorFile(err).id.Inode()})
}

func (d *tableDir) failedLookup(ctx context.Context, err error, name string) (Node, error) {
	switch name {
	case nameError:
		return d.errorFile(err), nil
	case nameMetadata:
		if f, ok := d.rawMetadata(ctx); ok {
			return f, nil
		}
	}
	return nil, errNoEntry
}

func (d *tableDir) errorFile(err error) *staticFile {
	text := "This table cannot be shown: " + err.Error() + "\n"
	return d.fixedFile(nameError, []byte(text))
}

// rawMetadata is metadata.json of a table that cannot be loaded. It may be of any
// length, and is not kept: it is read again when it is opened.
func (d *tableDir) rawMetadata(ctx context.Context) (*rawFile, bool) {
	raw, err := d.src.RawMetadata(ctx)
	if err != nil || raw == nil {
		return nil, false
	}
	return &rawFile{dir: d, id: d.fixedID(nameMetadata, raw), size: int64(len(raw))}, true
}

func (d *tableDir) fixedFile(name string, content []byte) *staticFile {
	return &staticFile{content: content, id: d.fixedID(name, content), place: d.path, mtime: Fixed()}
}

func (d *tableDir) fixedID(name string, content []byte) snapshot.ID {
	return snapshot.HashID("failed", d.path, name, string(content))
}

// rawFile is a file as rawMetadata found it.
type rawFile struct {
	dir  *tableDir
	id   snapshot.ID
	size int64
}

var _ File = (*rawFile)(nil)

func (f *rawFile) Attr(context.Context) (Attr, error) {
	return Attr{Kind: KindFile, Ino: f.id.Inode(), Generation: generation(f.id, f.dir.path), MTime: Fixed()}, nil
}

func (f *rawFile) Size(context.Context) (int64, error) { return f.size, nil }

func (f *rawFile) Open(ctx context.Context) (merge.Handle, error) {
	raw, err := f.dir.src.RawMetadata(ctx)
	if err != nil {
		return nil, err
	}
	if f.dir.fixedID(nameMetadata, raw) != f.id {
		return nil, fmt.Errorf("%s: %w: it was replaced", nameMetadata, ErrExpired)
	}
	return newBytesHandle(raw), nil
}

// staticFile is a short file with its content in memory.
type staticFile struct {
	content []byte
	id      snapshot.ID
	place   string
	mtime   time.Time
}

var _ File = (*staticFile)(nil)

func (f *staticFile) Attr(context.Context) (Attr, error) {
	return Attr{Kind: KindFile, Ino: f.id.Inode(), Generation: generation(f.id, f.place), MTime: f.mtime}, nil
}

func (f *staticFile) Size(context.Context) (int64, error) { return int64(len(f.content)), nil }

func (f *staticFile) Open(context.Context) (merge.Handle, error) {
	return newBytesHandle(f.content), nil
}

// gone names a snapshot that is not in the metadata.
func (t *table) gone(id int64) error {
	return fmt.Errorf("snapshot %d: %w", id, errNoEntry)
}
