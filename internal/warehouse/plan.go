package warehouse

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/snapshot"
)

// manifestReaders is how many manifests of a snapshot are read at once: enough
// to hide the latency of a disk or an object store.
const manifestReaders = 8

// Plan returns the live files of a snapshot with the deletes that apply to
// each, from manifests that all snapshots share. It is for the caller to keep:
// plans hold on to all that was read of their manifests, so that no cache which
// keeps them beside those could tell what they take.
func (l *Loaded) Plan(ctx context.Context, snapshotID int64) (*snapshot.Plan, error) {
	i, ok := l.byID[snapshotID]
	if !ok {
		return nil, fmt.Errorf("%w: snapshot %d is not in the metadata", ErrCorrupt, snapshotID)
	}
	key := "plan|" + l.origin.Version() + "|" + strconv.FormatInt(snapshotID, 10)
	plan, err := l.env.cache.Get(ctx, key, func(ctx context.Context) (any, int64, error) {
		plan, err := l.plan(ctx, &l.table.Snapshots[i])
		if err != nil {
			return nil, 0, err
		}
		return plan, NotKept, nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot %d: %w", snapshotID, err)
	}
	return plan.(*snapshot.Plan), nil
}

// planBytes is about what a plan takes beside the entries of manifests.
func planBytes(p *snapshot.Plan) int64 {
	bytes := int64(len(p.Files)) * 104
	for i := range p.Files {
		bytes += 8 * int64(len(p.Files[i].Positions)+len(p.Files[i].Equality))
	}
	return bytes
}

func (l *Loaded) plan(ctx context.Context, s *snapshot.Snapshot) (*snapshot.Plan, error) {
	list, err := l.manifests(ctx, s)
	if err != nil {
		return nil, err
	}
	data, deletes := byContent(list)
	e := snapshot.Entries{
		SnapshotID:    s.ID,
		FormatVersion: l.table.FormatVersion,
		Specs:         l.table.Specs,
		Schema:        l.table.Schema(l.table.CurrentSchema),
	}
	var deleteBytes, dataBytes int64
	if e.Deletes, deleteBytes, err = l.readManifests(ctx, deletes, nil); err != nil {
		return nil, err
	}
	keys := equalityIDs(e.Deletes)
	if len(keys) == 0 {
		l.foresee(ctx)
	}
	if e.Data, dataBytes, err = l.readManifests(ctx, data, l.columns.with(keys)); err != nil {
		return nil, err
	}
	plan := snapshot.Pair(e)
	plan.Bytes = planBytes(plan) + deleteBytes + dataBytes
	return plan, nil
}

// equalityIDs returns the key columns of all equality deletes: those whose
// metrics pairing looks at.
func equalityIDs(deletes []*snapshot.DataFile) []int {
	ids := map[int]bool{}
	for _, d := range deletes {
		for _, id := range d.EqualityIDs {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// readManifests returns the live files of manifests, in their order, and about
// what they take.
func (l *Loaded) readManifests(ctx context.Context, list []manifestFile, metricIDs []int) (files []*snapshot.DataFile, bytes int64, err error) {
	read := make([]*manifest, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(manifestReaders)
	for i, m := range list {
		group.Go(func() (err error) {
			read[i], err = l.readManifest(ctx, m, metricIDs)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	n := 0
	for _, m := range read {
		bytes += m.bytes
		if n += len(m.files); n > l.env.limits.planned {
			return nil, 0, fmt.Errorf("%w: a snapshot of more than %d files (a larger --memory allows more)", ErrUnsupported, l.env.limits.planned)
		}
	}
	files = make([]*snapshot.DataFile, 0, n)
	for _, m := range read {
		for i := range m.files {
			files = append(files, &m.files[i])
		}
	}
	return files, bytes, nil
}

// SchemaOf returns the id of the schema that s was written with: its own, else
// that of its newest manifest, else the table's current one.
func (l *Loaded) SchemaOf(ctx context.Context, s *snapshot.Snapshot) (int, error) {
	if s.SchemaID >= 0 {
		if l.table.Schema(s.SchemaID) == nil {
			return 0, fmt.Errorf("%w: snapshot %d: no schema %d", ErrCorrupt, s.ID, s.SchemaID)
		}
		return s.SchemaID, nil
	}
	if len(l.table.Schemas) == 1 {
		return l.table.CurrentSchema, nil
	}
	list, err := l.manifests(ctx, s)
	if err != nil {
		return 0, err
	}
	if newest := newestManifest(list, s.ID); newest != nil {
		h, err := l.header(ctx, newest.path)
		if err != nil {
			return 0, err
		}
		if h.schemaID >= 0 {
			return h.schemaID, nil
		}
	}
	return l.table.CurrentSchema, nil
}

// newestManifest returns the first manifest that a snapshot added, else the
// first of the highest sequence number: writers list new manifests first.
func newestManifest(list []manifestFile, snapshotID int64) (newest *manifestFile) {
	for i := range list {
		m := &list[i]
		if m.snapshot == snapshotID {
			return m
		}
		if newest == nil || m.sequence > newest.sequence {
			newest = m
		}
	}
	return newest
}

// schemaOfHeader returns the id of the table's schema that a manifest's header
// names, or holds in full, else -1.
func (l *Loaded) schemaOfHeader(meta map[string][]byte) int {
	if id, err := strconv.Atoi(string(meta["schema-id"])); err == nil && l.table.Schema(id) != nil {
		return id
	}
	written := new(iceberg.Schema)
	if json.Unmarshal(meta["schema"], written) != nil {
		return -1
	}
	for _, s := range slices.Backward(l.table.Schemas) {
		if s.Equals(written) {
			return s.ID
		}
	}
	return -1
}
