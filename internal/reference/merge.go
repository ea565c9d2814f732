package reference

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Merge is a snapshot to be read row by row under a schema.
type Merge struct {
	Table  *snapshot.Table
	Schema *iceberg.Schema
	Plan   *snapshot.Plan
	Store  source.Store
	// Metadata names the metadata columns that Verify expects after the table's.
	Metadata []string

	own      int // columns of Schema that are the table's; 0 = all
	defaults map[int]json.RawMessage
}

// Rows yields the visible rows in the order of views: files as the plan has
// them, rows as the files have them. It ends with the first error.
func (m *Merge) Rows(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for i := range m.Plan.Files {
			for rec, err := range m.FileRows(ctx, i) {
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
}

// FileRows yields the visible rows of one data file, m.Plan.Files[i].
func (m *Merge) FileRows(ctx context.Context, i int) iter.Seq2[Record, error] {
	f := &m.Plan.Files[i]
	return func(yield func(Record, error) bool) {
		if err := m.fileRows(ctx, f, func(rec Record) bool { return yield(rec, nil) }); err != nil {
			yield(nil, fmt.Errorf("%s: %w", f.Path, err))
		}
	}
}

func (m *Merge) fileRows(ctx context.Context, f *snapshot.File, yield func(Record) bool) (err error) {
	if f.Err != nil {
		return f.Err
	}
	if m.defaults == nil {
		if m.defaults, err = initialDefaults(m.Table.Metadata); err != nil {
			return err
		}
	}
	dead, err := m.deletedPositions(ctx, f)
	if err != nil {
		return err
	}
	equalities, err := m.equalities(ctx, f)
	if err != nil {
		return err
	}
	rows, err := m.open(ctx, f.DataFile, m.Table.NameMapping)
	if err != nil {
		return err
	}
	p := newProjector(m.Table, f.DataFile, m.defaults)
	pos := int64(-1)
	for stored, err := range rows {
		if err != nil {
			return err
		}
		pos++
		gone := dead[pos]
		for i := range equalities {
			deleted, err := equalities[i].deletes(p, stored)
			if err != nil {
				return err
			}
			gone = gone || deleted
		}
		if gone {
			continue
		}
		rec, err := m.record(p, f.DataFile, pos, stored)
		if err != nil {
			return fmt.Errorf("row %d: %w", pos, err)
		}
		if !yield(rec) {
			return nil
		}
	}
	return nil
}

// open reads the stored records of a data or delete file.
func (m *Merge) open(ctx context.Context, d *snapshot.DataFile, mapping iceberg.NameMapping) (iter.Seq2[Record, error], error) {
	if d.EncryptedKey {
		return nil, fmt.Errorf("encrypted file: %w", ErrUnsupported)
	}
	obj, err := m.Store.Open(ctx, d.Path)
	if err != nil {
		return nil, err
	}
	switch d.Format {
	case snapshot.Parquet:
		f, err := openParquet(ctx, obj, obj.Size(), mapping)
		if err != nil {
			return nil, err
		}
		if mapping == nil && len(f.leaves) > 0 && !f.root.hasID() {
			return nil, fmt.Errorf("no field ids and no name mapping: %w", ErrUnsupported)
		}
		f.decode = hadoopDecoder(ctx, obj)
		return f.rows(), nil
	case snapshot.Avro:
		return avroRows(ctx, obj, mapping, d.Records)
	}
	return nil, fmt.Errorf("format %s: %w", d.Format, ErrUnsupported)
}
