package tree

import (
	"context"
	"fmt"
	"regexp"
	"sort"
	"time"
)

// atDir is at: it lists nothing and resolves moments to the snapshot that was
// current then.
type atDir struct{ dir *tableDir }

var _ Dir = (*atDir)(nil)

func (d *atDir) Attr(ctx context.Context) (Attr, error) { return d.dir.folderAttr(ctx, nameAt) }

func (d *atDir) Entries(ctx context.Context) ([]Entry, error) {
	_, err := d.dir.load(ctx)
	return nil, err
}

func (d *atDir) Lookup(ctx context.Context, name string) (Node, error) {
	t, err := d.dir.load(ctx)
	if err != nil {
		return nil, err
	}
	moment, ok := parseMoment(name)
	if !ok {
		return nil, errNoEntry
	}
	id, err := t.at(moment)
	if err != nil {
		return nil, err
	}
	return t.link(nameAt+"/"+name, id), nil
}

// at returns the snapshot of the last log entry at or before a moment. If that
// snapshot has expired there is no answer: an older one was not current then.
func (t *table) at(moment time.Time) (int64, error) {
	log := t.meta.Log
	later := sort.Search(len(log), func(i int) bool { return log[i].Time.After(moment) })
	if later == 0 {
		return 0, errNoEntry
	}
	id := log[later-1].SnapshotID
	if t.snapshots[id] == nil {
		return 0, fmt.Errorf("expired: %w", t.gone(id))
	}
	if !t.exists(id) {
		return 0, t.gone(id)
	}
	return id, nil
}

// momentForm is RFC 3339 with ':' or '-' in times and zones, the zone and the
// time of day optional.
const momentForm = `^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d)[:-](\d\d)[:-](\d\d)(\.\d+)?(?:([Zz])|([+-]\d\d)[:-](\d\d))?)?$`

// parseMoment reads a timestamp or a date; UTC if it names no zone.
func parseMoment(s string) (time.Time, bool) {
	m := regexp.MustCompile(momentForm).FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	text := m[1]
	if m[2] == "" {
		text += "T00:00:00Z"
	} else {
		text += "T" + m[2] + ":" + m[3] + ":" + m[4] + m[5]
		if m[7] != "" {
			text += m[7] + ":" + m[8]
		} else {
			text += "Z"
		}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}
