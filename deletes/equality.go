package deletes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Equality deletes become positions once: the key columns of a data file are
// read against the key sets of all delete files of one key that are new to it,
// in one pass over the row groups that can hold a key. Each (data file, delete
// file) result is kept by itself, in memory and on disk, so that a grown delete
// set costs only what is new.

// equalityFormat is part of the keys of persisted results: raise it when a
// change here could change a result.
const equalityFormat = 1

// jointBytes bounds the key sets that one pass over a data file holds.
const jointBytes = 256 << 20

// equality returns the positions that each equality delete of f gives.
func (r *Resolver) equality(ctx context.Context, t *snapshot.Table, store source.Store, f *snapshot.File) ([]*Positions, error) {
	obj, err := store.Open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	groups, err := groupByKey(f.Equality)
	if err != nil {
		return nil, err
	}
	var all []*Positions
	for _, g := range groups {
		keys, err := newKeySchema(t, g.ids)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.deletes[0].Path, err)
		}
		data := &keyedData{obj: obj, file: f.DataFile, keys: keys, constants: identityConstants(t, f.DataFile)}
		found, err := r.equalityGroup(ctx, store, data, g.deletes)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// equalityIdentity tells apart what the same equality deletes of f mean under
// other schemas, name mappings and partition constants.
func equalityIdentity(t *snapshot.Table, f *snapshot.File) (string, error) {
	groups, err := groupByKey(f.Equality)
	if err != nil {
		return "", err
	}
	var id strings.Builder
	for _, g := range groups {
		keys, err := newKeySchema(t, g.ids)
		if err != nil {
			return "", fmt.Errorf("%s: %w", g.deletes[0].Path, err)
		}
		id.WriteString(keys.identity)
	}
	fmt.Fprintf(&id, "%v", identityConstants(t, f.DataFile))
	return id.String(), nil
}

// keyGroup is equality deletes of one key.
type keyGroup struct {
	ids     []int
	deletes []*snapshot.DataFile
}

func groupByKey(deletes []*snapshot.DataFile) ([]keyGroup, error) {
	var groups []keyGroup
	for _, d := range deletes {
		ids, err := equalityIDs(d)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(groups, func(g keyGroup) bool { return slices.Equal(g.ids, ids) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, keyGroup{ids: ids})
		}
		groups[i].deletes = append(groups[i].deletes, d)
	}
	return groups, nil
}

// keyedData is a data file to be read by a key's columns.
type keyedData struct {
	obj       source.Object
	file      *snapshot.DataFile
	keys      *keySchema
	constants map[int]any
}

// pending is a delete file whose positions in the data file are not known yet.
type pending struct {
	del   *snapshot.DataFile
	obj   source.Object
	key   string // of the result
	set   *keySet
	found builder
}

// equalityGroup resolves deletes of one key.
func (r *Resolver) equalityGroup(ctx context.Context, store source.Store, data *keyedData, deletes []*snapshot.DataFile) ([]*Positions, error) {
	var known []*Positions
	var missing []*pending
	for _, del := range deletes {
		obj, err := store.Open(ctx, del.Path)
		if err != nil {
			return nil, err
		}
		p := &pending{del: del, obj: obj, key: data.resultKey(obj)}
		if found, ok := r.known(ctx, p.key); ok {
			known = append(known, found)
		} else {
			missing = append(missing, p)
		}
	}
	for len(missing) > 0 {
		n, err := r.loadKeys(ctx, data.keys, missing)
		if err != nil {
			return nil, err
		}
		if err := r.match(ctx, data, missing[:n]); err != nil {
			return nil, err
		}
		for _, p := range missing[:n] {
			found, err := p.found.positions()
			if err != nil {
				return nil, err
			}
			r.keep(ctx, p.key, found)
			known = append(known, found)
		}
		missing = missing[n:]
	}
	return known, nil
}

// resultKey identifies the positions that a delete file gives in a data file:
// by both versions, the key's columns and types, and what stands for columns
// that the data file lacks.
func (d *keyedData) resultKey(del source.Object) string {
	return fmt.Sprintf("deletes/equality/%d|%s|%s|%s|%v", equalityFormat, d.obj.Version(), del.Version(), d.keys.identity, d.constants)
}

// errAbsent is the answer of a look-up that must not load.
var errAbsent = errors.New("not in the cache")

// known returns a result kept in memory or on disk.
func (r *Resolver) known(ctx context.Context, key string) (*Positions, bool) {
	p, err := r.cached(ctx, key, func(context.Context) (*Positions, error) {
		if r.opt.Persist == nil {
			return nil, errAbsent
		}
		b, ok := r.opt.Persist.Get(key)
		if !ok {
			return nil, errAbsent
		}
		p, err := decodePortable(b)
		if err != nil {
			return nil, errAbsent
		}
		return p.orNil(), nil
	})
	return p, err == nil
}

// keep stores a result in memory and on disk.
func (r *Resolver) keep(ctx context.Context, key string, p *Positions) {
	// The load cannot fail; if ctx has ended, the result is on disk alone.
	_, _ = r.cached(ctx, key, func(context.Context) (*Positions, error) { return p, nil })
	if r.opt.Persist != nil {
		r.opt.Persist.Put(key, appendPortable(nil, p))
	}
}

// loadKeys gives the first n of missing their key sets, as many as one pass may
// hold, at least one.
func (r *Resolver) loadKeys(ctx context.Context, keys *keySchema, missing []*pending) (n int, err error) {
	var total int64
	for n < len(missing) && total < jointBytes {
		p := missing[n]
		if p.set, err = r.keySet(ctx, keys, p); err != nil {
			return 0, err
		}
		total += p.set.size()
		n++
	}
	return n, nil
}

// keySet returns the keys of a delete file, through the cache: all data files
// that it covers share them.
func (r *Resolver) keySet(ctx context.Context, keys *keySchema, p *pending) (*keySet, error) {
	key := fmt.Sprintf("deletes/keys|%s|%s", p.obj.Version(), keys.identity)
	return get(ctx, r, key, func(ctx context.Context) (*keySet, int64, error) {
		s, err := r.readKeys(ctx, keys, p)
		if err != nil {
			return nil, 0, deleteFileError(err)
		}
		return s, s.size(), nil
	})
}

// readKeys decodes the key columns of a delete file. Other columns it has are
// never looked at.
func (r *Resolver) readKeys(ctx context.Context, keys *keySchema, p *pending) (*keySet, error) {
	file, err := r.openColumns(ctx, p.obj, p.del)
	if err != nil {
		return nil, err
	}
	proj, err := file.project(keys.target(nil))
	if err != nil {
		return nil, err
	}
	for _, col := range proj.Columns {
		if col.Source == nil {
			return nil, fmt.Errorf("%w: %s: no column %d, %q, which its equality ids name", ErrCorrupt, p.del.Path, col.Leaf.FieldID, col.Leaf.Name)
		}
	}
	set, err := newKeySet(keys.view.Leaves)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.del.Path, err)
	}
	e := newEncoder(set, true)
	err = file.scan(ctx, proj.Columns, func(int) bool { return true }, func(_ int64, rows int, cols []*pqfile.Vector) error {
		_, err := e.batch(rows, cols)
		return err
	})
	if err != nil {
		return nil, err
	}
	set.finish()
	return set, nil
}

// match reads the data file's key columns once and finds the rows of each
// pending delete file.
func (r *Resolver) match(ctx context.Context, data *keyedData, pend []*pending) error {
	pend = slices.DeleteFunc(slices.Clone(pend), func(p *pending) bool { return p.set.empty() })
	if len(pend) == 0 {
		return nil
	}
	file, err := r.openColumns(ctx, data.obj, data.file)
	if err != nil {
		return err
	}
	proj, err := file.project(data.keys.target(data.constants))
	if err != nil {
		return err
	}
	encoders := make([]*encoder, len(pend))
	for i, p := range pend {
		encoders[i] = newEncoder(p.set, false)
	}
	active := make([]int, 0, len(pend)) // whose keys the group at hand can hold
	use := func(group int) bool {
		active = active[:0]
		for i, p := range pend {
			if p.set.mayMatch(file, group, proj.Columns) {
				active = append(active, i)
			}
		}
		return len(active) > 0
	}
	return file.scan(ctx, proj.Columns, use, func(first int64, rows int, cols []*pqfile.Vector) error {
		for _, i := range active {
			codes, err := encoders[i].batch(rows, cols)
			if err != nil {
				return err
			}
			for row, code := range codes {
				if code != 0 {
					pend[i].found.add(first + int64(row))
				}
			}
		}
		return nil
	})
}
