package deletes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Equality deletes become positions once: the key columns of a data file are
// read against key sets, in one pass over the row groups that can hold a key
// (equality_match.go). Results are kept by runs of delete files
// (equality_runs.go), in memory and on disk, so that a grown delete set costs
// only what is new. Keys that memory has no room for are matched in passes.

// equalityFormat is part of the keys of persisted results: raise it when a
// change here could change a result.
const equalityFormat = 1

// DefaultKeyBytes is the memory for keys when none is set: that of three
// million keys of a long, or one million of a short text.
const DefaultKeyBytes = 128 << 20

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
		keys, err := r.schemas.get(t, g.ids)
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
func (r *Resolver) equalityIdentity(t *snapshot.Table, f *snapshot.File) (string, error) {
	groups, err := groupByKey(f.Equality)
	if err != nil {
		return "", err
	}
	var id strings.Builder
	for _, g := range groups {
		keys, err := r.schemas.get(t, g.ids)
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

// equalityGroup resolves deletes of one key, in order of their sequence numbers.
func (r *Resolver) equalityGroup(ctx context.Context, store source.Store, data *keyedData, deletes []*snapshot.DataFile) ([]*Positions, error) {
	files := make([]equalityFile, len(deletes))
	for i, del := range deletes {
		obj, err := store.Open(ctx, del.Path)
		if err != nil {
			return nil, err
		}
		files[i] = newEqualityFile(del, obj)
	}
	runs := closedRuns(files, maxRunLevel)
	for i, run := range runs {
		r.lookUp(ctx, data, run, i >= len(runs)-growingRuns)
	}
	var missing []*run
	for _, run := range runs {
		missing = run.appendMissing(missing)
	}
	if err := r.matchAll(ctx, data, missing); err != nil {
		return nil, err
	}
	found := make([]*Positions, len(runs))
	for i, run := range runs {
		if err := r.unite(ctx, data, run); err != nil {
			return nil, err
		}
		found[i] = run.result
	}
	return found, nil
}

// resultKey identifies the positions that a run of delete files gives in a data
// file: by the versions of all, the key's columns and types, and what stands for
// columns that the data file lacks.
func (d *keyedData) resultKey(run *run) string {
	return fmt.Sprintf("deletes/equality/%d|%s|%s|%s|%v", equalityFormat, d.obj.Version(), run.identity(), d.keys.identity, d.constants)
}

// matchAll finds the results of runs, in as many passes over the data file as
// memory for keys demands.
func (r *Resolver) matchAll(ctx context.Context, data *keyedData, missing []*run) error {
	for len(missing) > 0 {
		n, err := r.loadKeys(ctx, data.keys, missing)
		if err != nil {
			return err
		}
		if err := r.match(ctx, data, missing[:n]); err != nil {
			return err
		}
		for _, run := range missing[:n] {
			run.from, run.set = run.set.next, nil
			if run.from != nil { // the last of the n: its other keys come next
				n--
				break
			}
			if run.result, err = run.found.positions(); err != nil {
				return err
			}
			run.known, run.found = true, builder{}
			r.keep(ctx, data.resultKey(run), run.result)
		}
		missing = missing[n:]
	}
	return nil
}

// loadKeys gives the first n of missing their key sets, as many as one pass may
// hold, at least one. Of the last one it may be only a part.
func (r *Resolver) loadKeys(ctx context.Context, keys *keySchema, missing []*run) (n int, err error) {
	var total int64
	for n < len(missing) && total < r.opt.KeyBytes {
		run := missing[n]
		if run.set, err = r.keySet(ctx, keys, run); err != nil {
			return 0, err
		}
		total += run.set.size()
		n++
		if run.set.next != nil {
			break
		}
	}
	return n, nil
}

// keySet returns the keys of a run of delete files from run.from on, as many as
// memory allows, through the cache: all data files that the run covers share
// them. Sets are hashed with the Resolver's seeds, so the cache key has those
// too.
func (r *Resolver) keySet(ctx context.Context, keys *keySchema, run *run) (*keySet, error) {
	key := fmt.Sprintf("deletes/keys|%x|%s|%s", r.hash.ints, run.part(), keys.identity)
	return get(ctx, r, key, func(ctx context.Context) (*keySet, int64, error) {
		s, err := newKeySet(keys.view.Leaves)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", run.files[0].del.Path, err)
		}
		batch := newKeyBatch(r.hash, keys.view.Leaves)
		at := keyCursor{}
		if run.from != nil {
			at = *run.from
		}
		for ; at.file < len(run.files) && s.next == nil; at = (keyCursor{file: at.file + 1}) {
			if err := r.readKeys(ctx, keys, run.files[at.file], at, s, batch); err != nil {
				return nil, 0, deleteFileError(err)
			}
		}
		s.finish()
		return s, s.size(), nil
	})
}

// expectedBytes is about what a key of a few numbers takes.
const expectedBytes = 64

// errFull ends the reading of keys that memory has no room for.
var errFull = errors.New("enough keys")

// readKeys adds the keys of a delete file from a row on to a set, until that is
// full. Other columns the file has are never looked at.
func (r *Resolver) readKeys(ctx context.Context, keys *keySchema, f equalityFile, from keyCursor, into *keySet, batch *keyBatch) error {
	r.opt.Counters.KeyFiles.Add(1)
	file, err := r.openColumns(ctx, f.obj, f.del)
	if err != nil {
		return err
	}
	proj, err := file.project(keys.target(nil))
	if err != nil {
		return err
	}
	for _, col := range proj.Columns {
		if col.Source == nil {
			return fmt.Errorf("%w: %s: no column %d, %q, which its equality ids name", ErrCorrupt, f.del.Path, col.Leaf.FieldID, col.Leaf.Name)
		}
	}
	if groups := file.groups(); from.row == 0 {
		into.expect(min(groups[len(groups)-1], r.opt.KeyBytes/expectedBytes))
	}
	err = scanFrom(ctx, file, proj, from.row, func(rows rowBatch) error {
		if into.n > 0 && into.size() >= r.opt.KeyBytes {
			into.next = &keyCursor{from.file, rows.first}
			return errFull
		}
		if err := batch.load(rows); err != nil {
			return err
		}
		return into.insert(batch)
	})
	if err == errFull {
		return nil
	}
	return err
}
