package warehouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// manifest is the live files of a manifest. Immutable: all snapshots that list
// the manifest share it.
type manifest struct {
	files []snapshot.DataFile
}

// manifests returns the manifests of a snapshot, as its manifest list or (old
// v1) the snapshot itself lists them.
func (l *Loaded) manifests(ctx context.Context, s *snapshot.Snapshot) ([]iceberg.ManifestFile, error) {
	if s.ManifestList == "" {
		return l.inlineManifests(ctx, s)
	}
	o, err := l.store.Open(ctx, s.ManifestList)
	if err != nil {
		return nil, err
	}
	list, err := l.env.cache.Get(ctx, "list|"+o.Version(), func(ctx context.Context) (any, int64, error) {
		l.env.stats.ListsRead.Add(1)
		raw, err := readAll(ctx, o)
		if err != nil {
			return nil, 0, err
		}
		if err := readable(o, raw); err != nil {
			return nil, 0, err
		}
		var list []iceberg.ManifestFile
		err = guard(o, func() error {
			list, err = iceberg.ReadManifestList(bytes.NewReader(raw))
			return err
		})
		return list, int64(len(raw)) + int64(len(list))*manifestFileBytes, err
	})
	if err != nil {
		return nil, err
	}
	return list.([]iceberg.ManifestFile), nil
}

// manifestFileBytes is about what iceberg-go keeps for a manifest-list entry.
const manifestFileBytes = 512

// inlineManifests describes the manifests that a v1 snapshot lists itself. Their
// own headers tell the partition spec.
func (l *Loaded) inlineManifests(ctx context.Context, s *snapshot.Snapshot) ([]iceberg.ManifestFile, error) {
	list := make([]iceberg.ManifestFile, 0, len(s.Manifests))
	for _, path := range s.Manifests {
		h, err := l.header(ctx, path)
		if err != nil {
			return nil, err
		}
		list = append(list, iceberg.NewManifestFile(1, path, h.size, int32(h.specID), s.ID).
			AddedFiles(-1).ExistingFiles(-1).DeletedFiles(-1).Build())
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
func (l *Loaded) readManifest(ctx context.Context, m iceberg.ManifestFile, metricIDs []int) (*manifest, error) {
	if len(m.KeyMetadata()) > 0 {
		return nil, fmt.Errorf("%w: manifest %s is encrypted", ErrUnsupported, m.FilePath())
	}
	if m.ManifestContent() != iceberg.ManifestContentData {
		metricIDs = nil
	}
	o, err := l.store.Open(ctx, m.FilePath())
	if err != nil {
		return nil, err
	}
	firstRow := int64(-1)
	if id := m.FirstRowID(); id != nil {
		firstRow = *id
	}
	// All that entries inherit from the list is part of the key.
	key := fmt.Sprintf("manifest|%s|%d|%d|%d|%d|%d|%v", o.Version(), m.Version(), m.SequenceNum(),
		m.PartitionSpecID(), m.SnapshotID(), firstRow, metricIDs)
	v, err := l.env.cache.Get(ctx, key, func(ctx context.Context) (any, int64, error) {
		l.env.stats.ManifestsRead.Add(1)
		raw, err := readAll(ctx, o)
		if err != nil {
			return nil, 0, err
		}
		if err := readable(o, raw); err != nil {
			return nil, 0, err
		}
		d := decoder{table: l.table, manifest: m, metricIDs: metricIDs, partitions: map[string]map[int]any{}}
		if err := guard(o, func() error { return d.decode(bytes.NewReader(raw)) }); err != nil {
			return nil, 0, err
		}
		return &manifest{files: d.files}, d.bytes, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*manifest), nil
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

// decoder reads the entries of one manifest.
type decoder struct {
	table      *snapshot.Table
	manifest   iceberg.ManifestFile
	metricIDs  []int
	fieldIDs   []int // of the partition spec; nil if it is unknown
	partitions map[string]map[int]any
	files      []snapshot.DataFile
	bytes      int64
}

func (d *decoder) decode(raw io.Reader) error {
	stats := len(d.metricIDs) > 0 || d.manifest.ManifestContent() == iceberg.ManifestContentDeletes
	r, err := iceberg.NewManifestReaderWithProjection(d.manifest, raw,
		iceberg.ManifestEntryProjection{IncludePruningStats: stats})
	if err != nil {
		return err
	}
	defer r.Close()
	if spec, ok := d.table.Specs[int(d.manifest.PartitionSpecID())]; ok {
		d.fieldIDs = snapshot.FieldIDs(spec)
	}
	for {
		e, err := r.ReadEntry()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Status() == iceberg.EntryStatusDELETED {
			continue
		}
		if err := d.add(e); err != nil {
			return fmt.Errorf("%w: manifest %s: %s: %w", ErrCorrupt, d.manifest.FilePath(), e.DataFile().FilePath(), err)
		}
	}
}

// dataFileBytes is the size of a snapshot.DataFile with its bookkeeping.
const dataFileBytes = 320

// add appends a live entry. Only ADDED entries inherit the manifest's sequence
// number (iceberg-go does that): an existing one has its own, or is corrupt.
func (d *decoder) add(e iceberg.ManifestEntry) error {
	f := e.DataFile()
	if e.SequenceNum() < 0 {
		return errors.New("existing entry without a sequence number")
	}
	if f.Count() < 0 {
		return fmt.Errorf("record count %d", f.Count())
	}
	partition, err := d.partition(f.Partition())
	if err != nil {
		return err
	}
	out := snapshot.DataFile{
		Path:          f.FilePath(),
		Content:       snapshot.Content(f.ContentType()),
		Format:        snapshot.Format(strings.ToUpper(string(f.FileFormat()))),
		SpecID:        int(f.SpecID()),
		Partition:     partition,
		Records:       f.Count(),
		Size:          f.FileSizeBytes(),
		Sequence:      e.SequenceNum(),
		FileSequence:  valueOr(e.FileSequenceNum(), e.SequenceNum()),
		FirstRowID:    valueOr(f.FirstRowID(), -1),
		EqualityIDs:   f.EqualityFieldIDs(),
		Referenced:    valueOr(f.ReferencedDataFile(), ""),
		HasReferenced: f.ReferencedDataFile() != nil,
		ContentOffset: valueOr(f.ContentOffset(), -1),
		ContentSize:   valueOr(f.ContentSizeInBytes(), -1),
		EncryptedKey:  len(f.KeyMetadata()) > 0,
	}
	d.bytes += dataFileBytes + int64(len(out.Path)+len(out.Referenced)+8*len(out.EqualityIDs))
	out.Metrics = d.metrics(f, &out)
	d.files = append(d.files, out)
	return nil
}

// partition checks that a partition has every field of its spec (a field that
// is left out would make two partitions look alike), and shares the maps of
// equal partitions.
func (d *decoder) partition(p map[int]any) (map[int]any, error) {
	for _, id := range d.fieldIDs {
		if _, ok := p[id]; !ok {
			return nil, fmt.Errorf("partition without field %d", id)
		}
	}
	if len(p) == 0 {
		return nil, nil
	}
	key := snapshot.PartitionKey(0, nil, p)
	if shared, ok := d.partitions[key]; ok {
		return shared, nil
	}
	d.partitions[key] = p
	d.bytes += int64(len(key)) + 64 + 32*int64(len(p))
	return p, nil
}

// metrics keeps what pairing needs.
func (d *decoder) metrics(f iceberg.DataFile, out *snapshot.DataFile) []snapshot.ColumnMetrics {
	switch {
	case out.IsDV():
		return nil
	case out.Content == snapshot.PositionDeletes:
		return d.keep(f, []int{snapshot.PathFieldID})
	case out.Content == snapshot.EqualityDeletes:
		return d.keep(f, out.EqualityIDs)
	case len(d.metricIDs) > 0:
		return d.keep(f, d.metricIDs)
	}
	return nil
}

func (d *decoder) keep(f iceberg.DataFile, ids []int) []snapshot.ColumnMetrics {
	values, nulls, nans := f.ValueCounts(), f.NullValueCounts(), f.NaNValueCounts()
	lower, upper := f.LowerBoundValues(), f.UpperBoundValues()
	list := make([]snapshot.ColumnMetrics, len(ids))
	for i, id := range ids {
		m := snapshot.NoMetrics(id)
		m.Lower, m.Upper = lower[id], upper[id]
		for _, count := range []struct {
			from map[int]int64
			to   *int64
		}{{values, &m.Values}, {nulls, &m.Nulls}, {nans, &m.NaNs}} {
			if n, ok := count.from[id]; ok {
				*count.to = n
			}
		}
		list[i] = m
		d.bytes += columnMetricsBytes + int64(len(m.Lower)+len(m.Upper))
	}
	return list
}

// columnMetricsBytes is the size of a snapshot.ColumnMetrics.
const columnMetricsBytes = 80
