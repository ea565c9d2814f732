package tree

import (
	"context"
	"strconv"
	"time"

	"github.com/icefs/icefs/snapshot"
)

// refLink is current or the link of a branch: its target is the snapshot's
// folder, with the table's current schema if that is not the snapshot's own.
type refLink struct {
	dir    *tableDir
	name   string // nameCurrent, or a branch's shown name
	branch bool
}

var _ Link = (*refLink)(nil)

func (p *place) linkID(name string) snapshot.ID { return p.id("link", name) }

func (l *refLink) key() string {
	if l.branch {
		return nameBranches + "/" + l.name
	}
	return l.name
}

func (l *refLink) Attr(ctx context.Context) (Attr, error) {
	t, err := l.dir.load(ctx)
	if err != nil {
		return Attr{}, err
	}
	a := t.attr(KindLink, t.linkID(l.key()))
	a.MTime = t.commitTime(l.snapshot(t))
	return a, nil
}

// snapshot is what the link leads to now; -1 if it is gone.
func (l *refLink) snapshot(t *table) int64 {
	if !l.branch {
		return t.meta.Current
	}
	for _, b := range t.branches {
		if b.name == l.name {
			return b.snapshot
		}
	}
	return -1
}

// commitTime of a snapshot; the table's last update if the snapshot is gone.
func (t *table) commitTime(id int64) time.Time {
	if s := t.snapshots[id]; s != nil {
		return s.Time
	}
	return t.meta.LastUpdated
}

func (l *refLink) Target(ctx context.Context) (string, error) {
	t, err := l.dir.load(ctx)
	if err != nil {
		return "", err
	}
	id := l.snapshot(t)
	if id < 0 {
		return "", errNoEntry
	}
	target, err := t.currentTarget(ctx, id)
	if l.branch {
		target = "../" + target
	}
	return target, err
}

// currentTarget is the folder that shows a snapshot with the table's current
// schema, relative to the table's.
func (t *table) currentTarget(ctx context.Context, id int64) (string, error) {
	s := t.snapshots[id]
	if s == nil {
		return "", t.gone(id)
	}
	own, err := t.loaded.SchemaOf(ctx, s)
	if err != nil {
		return "", err
	}
	target := nameSnapshots + "/" + decimal(id)
	if own != t.meta.CurrentSchema {
		target += schemaMark + strconv.Itoa(t.meta.CurrentSchema)
	}
	return target, nil
}

// snapshotLink is a link to a snapshot with its own schema: a tag, an entry of
// the log, or a moment.
type snapshotLink struct {
	place
	name  string // with the folder's
	id    int64
	mtime time.Time
}

func (t *table) link(name string, id int64) *snapshotLink {
	return &snapshotLink{t.place, name, id, t.commitTime(id)}
}

var _ Link = (*snapshotLink)(nil)

func (l *snapshotLink) Attr(context.Context) (Attr, error) {
	return l.entry(KindLink, l.linkID(l.name), l.mtime), nil
}

func (l *snapshotLink) Target(context.Context) (string, error) {
	return "../" + nameSnapshots + "/" + decimal(l.id), nil
}

// refsDir is branches or tags.
type refsDir struct {
	dir  *tableDir
	name string
}

var _ Dir = (*refsDir)(nil)

func (d *refsDir) Attr(ctx context.Context) (Attr, error) { return d.dir.folderAttr(ctx, d.name) }

func (d *tableDir) folderAttr(ctx context.Context, name string) (Attr, error) {
	t, err := d.load(ctx)
	if err != nil {
		return Attr{}, err
	}
	return t.attr(KindDir, t.id("folder", name)), nil
}

func (d *refsDir) refs(t *table) []named {
	if d.name == nameTags {
		return t.tags
	}
	return t.branches
}

func (d *refsDir) Entries(ctx context.Context) ([]Entry, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	return t.linkEntries(d.name, d.refs(t)), nil
}

func (t *table) linkEntries(folder string, links []named) []Entry {
	list := make([]Entry, len(links))
	for i, l := range links {
		list[i] = Entry{l.name, KindLink, t.linkID(folder + "/" + l.name).Inode()}
	}
	return list
}

func (d *refsDir) Lookup(ctx context.Context, name string) (Node, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range d.refs(t) {
		if r.name != name {
			continue
		}
		if d.name == nameBranches {
			return &refLink{dir: d.dir, name: name, branch: true}, nil
		}
		return t.link(nameTags+"/"+name, r.snapshot), nil
	}
	return nil, errNoEntry
}

// timesDir is by-time: one link for each entry of the snapshot log whose
// snapshot still exists.
type timesDir struct{ dir *tableDir }

var _ Dir = (*timesDir)(nil)

func (d *timesDir) Attr(ctx context.Context) (Attr, error) { return d.dir.folderAttr(ctx, nameByTime) }

func (d *timesDir) Entries(ctx context.Context) ([]Entry, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	return t.linkEntries(nameByTime, listed(t, t.byTime(), func(n named) int64 { return n.snapshot })), nil
}

func (d *timesDir) Lookup(ctx context.Context, name string) (Node, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	t.byTime()
	id, ok := t.timeOf[name]
	if !ok || !t.exists(id) {
		return nil, errNoEntry
	}
	return t.link(nameByTime+"/"+name, id), nil
}

// byTime names the entries of the snapshot log by their moment in UTC. Of
// several within one millisecond the last has the plain name, the others
// "~<snapshot id>".
func (t *table) byTime() []named {
	t.timesOnce.Do(func() {
		log := t.meta.Log
		t.timeOf = make(map[string]int64, len(log))
		for i, e := range log {
			if t.snapshots[e.SnapshotID] == nil {
				continue
			}
			name := timeName(e.Time)
			if t.sameMilliLater(i) {
				name += "~" + decimal(e.SnapshotID)
			}
			if _, taken := t.timeOf[name]; !taken {
				t.timeOf[name] = e.SnapshotID
				t.times = append(t.times, named{name, e.SnapshotID})
			}
		}
	})
	return t.times
}

// sameMilliLater reports whether a later entry of the log that is shown has the
// millisecond of entry i.
func (t *table) sameMilliLater(i int) bool {
	at := t.meta.Log[i].Time.UnixMilli()
	for _, e := range t.meta.Log[i+1:] {
		if e.Time.UnixMilli() != at {
			return false
		}
		if t.snapshots[e.SnapshotID] != nil {
			return true
		}
	}
	return false
}

// timeName is the name of a moment, free of colons.
func timeName(t time.Time) string { return t.UTC().Format("2006-01-02T15-04-05.000Z") }
