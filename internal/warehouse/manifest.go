package warehouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// manifest is the live files of a manifest. Immutable: all snapshots that list
// the manifest share it.
type manifest struct {
	files []snapshot.DataFile
	rows  int64 // of files
	bytes int64 // kept by files, about
}

// manifests returns the manifests of a snapshot, as its manifest list or (old
// v1) the snapshot itself lists them.
func (l *Loaded) manifests(ctx context.Context, s *snapshot.Snapshot) ([]manifestFile, error) {
	if s.ManifestList == "" {
		return l.inlineManifests(ctx, s)
	}
	o, err := l.store.Open(ctx, s.ManifestList)
	if err != nil {
		return nil, err
	}
	list, err := l.env.cache.Get(ctx, "list|"+o.Version(), func(ctx context.Context) (any, int64, error) {
		l.env.stats.ListsRead.Add(1)
		raw, err := readAll(ctx, o, l.env.limits.metadata)
		if err != nil {
			return nil, 0, err
		}
		if err := readable(o, raw); err != nil {
			return nil, 0, err
		}
		var list []manifestFile
		err = guard(o, func() error {
			list, err = readList(raw, &l.env.schemas)
			return named(o, err)
		})
		return list, int64(len(raw)) + int64(len(list))*manifestFileBytes, err
	})
	if err != nil {
		return nil, err
	}
	return list.([]manifestFile), nil
}

// inlineManifests describes the manifests that a v1 snapshot lists itself. Their
// own headers tell the partition spec.
func (l *Loaded) inlineManifests(ctx context.Context, s *snapshot.Snapshot) ([]manifestFile, error) {
	if s.Manifests == nil { // not even an empty list: files are somewhere, but where
		return nil, fmt.Errorf("%w: snapshot %d names no manifest list", ErrCorrupt, s.ID)
	}
	list := make([]manifestFile, 0, len(s.Manifests))
	for _, path := range s.Manifests {
		h, err := l.header(ctx, path)
		if err != nil {
			return nil, err
		}
		list = append(list, manifestFile{path: path, version: 1, specID: h.specID, snapshot: s.ID, firstRow: -1, length: -1, files: -1, rows: -1})
	}
	return list, nil
}

// manifestHeader is what the key-value metadata of a manifest tells; -1 is
// nothing.
type manifestHeader struct {
	size     int64
	specID   int
	schemaID int
}

// header reads the header of a manifest.
func (l *Loaded) header(ctx context.Context, path string) (h manifestHeader, err error) {
	o, err := l.store.Open(ctx, path)
	if err != nil {
		return h, err
	}
	h = manifestHeader{size: o.Size(), schemaID: -1}
	err = guard(o, func() error {
		r, err := ocf.NewReader(&sequential{ctx: ctx, object: o})
		if err != nil {
			return err
		}
		defer r.Close()
		meta := r.Metadata()
		if text, ok := meta["partition-spec-id"]; ok {
			if h.specID, err = strconv.Atoi(string(text)); err != nil {
				return fmt.Errorf("partition-spec-id: %w", err)
			}
		}
		h.schemaID = l.schemaOfHeader(meta)
		return nil
	})
	return h, err
}

// readManifest returns the live files of a manifest. Metrics are kept for the
// columns metricIDs of data files, for the key columns of equality deletes, and
// for the paths of position deletes.
func (l *Loaded) readManifest(ctx context.Context, m manifestFile, metricIDs []int) (*manifest, error) {
	if m.encrypted {
		return nil, fmt.Errorf("%w: manifest %s is encrypted", ErrUnsupported, m.path)
	}
	if m.deletes {
		metricIDs = nil
	}
	o, err := l.recent.open(ctx, l.store, m.path)
	if err != nil {
		return nil, err
	}
	// All that entries inherit from the list is part of the key.
	key := fmt.Sprintf("manifest|%s|%d|%d|%d|%d|%d|%v", o.Version(), m.version, m.sequence, m.specID, m.snapshot, m.firstRow, metricIDs)
	v, err := l.env.cache.Get(ctx, key, func(ctx context.Context) (any, int64, error) {
		l.env.stats.ManifestsRead.Add(1)
		raw, err := readAll(ctx, o, l.env.limits.metadata)
		if err != nil {
			return nil, 0, err
		}
		if err := readable(o, raw); err != nil {
			return nil, 0, err
		}
		r := entryReader{table: l.table, manifest: m, schemas: &l.env.schemas, metricIDs: metricIDs, limit: l.env.limits.manifest}
		if err := guard(o, func() error { return named(o, r.read(raw)) }); err != nil {
			return nil, 0, err
		}
		return &manifest{files: r.files, rows: r.rows, bytes: r.bytes}, r.bytes, nil
	})
	if err != nil {
		return nil, err
	}
	// Not part of what is cached: another list may say something else.
	return v.(*manifest), m.checkWhole(v.(*manifest), o.Size())
}

// readable refuses what is known not to be Avro by its first bytes.
func readable(o source.Object, raw []byte) error {
	switch {
	case bytes.HasPrefix(raw, []byte("PAR1")):
		return fmt.Errorf("%w: manifest %s is a Parquet file (format version 4)", ErrUnsupported, o.Location())
	case bytes.HasPrefix(raw, []byte("AGS1")): // Iceberg spec, "AES GCM Stream file format"
		return fmt.Errorf("%w: manifest %s is encrypted", ErrUnsupported, o.Location())
	}
	return nil
}

// named adds the object to an error that guard leaves as it is.
func named(o source.Object, err error) error {
	if errors.Is(err, ErrUnsupported) {
		return fmt.Errorf("%s: %w", o.Location(), err)
	}
	return err
}

// guard turns errors and panics of decoders into ErrCorrupt of o. Decoders of
// untrusted bytes that are not ours are not trusted to return errors.
func guard(o source.Object, decode func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s: %v", ErrCorrupt, o.Location(), r)
		}
	}()
	err = decode()
	for _, own := range []error{ErrCorrupt, ErrUnsupported, source.ErrRead, source.ErrChanged, source.ErrTruncated, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, own) {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, o.Location(), err)
	}
	return nil
}
