package reference

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/snapshot"
)

// Reserved field ids of the columns that tell where rows come from (Iceberg
// spec, "Reserved Field IDs").
const (
	fileID     = 2147483646
	positionID = 2147483645
	specID     = 2147483643
	rowID      = 2147483540
	sequenceID = 2147483539
)

// metadataFields are those columns in the order of views.
func metadataFields() []iceberg.NestedField {
	p := iceberg.PrimitiveTypes
	return []iceberg.NestedField{
		{ID: fileID, Name: "_file", Type: p.String, Required: true},
		{ID: positionID, Name: "_pos", Type: p.Int64, Required: true},
		{ID: rowID, Name: "_row_id", Type: p.Int64},
		{ID: sequenceID, Name: "_last_updated_sequence_number", Type: p.Int64},
		{ID: specID, Name: "_spec_id", Type: p.Int32, Required: true},
	}
}

// withMetadata returns the merge with its metadata columns in the schema, after
// the table's own.
func (m *Merge) withMetadata() *Merge {
	if len(m.Metadata) == 0 {
		return m
	}
	out := *m
	own := m.Schema.Fields()
	fields := slices.Clone(own)
	for _, f := range metadataFields() {
		if slices.Contains(m.Metadata, f.Name) {
			fields = append(fields, f)
		}
	}
	out.Schema, out.own, out.Metadata = iceberg.NewSchema(m.Schema.ID, fields...), len(own), nil
	return &out
}

// record reads a stored row: the table's columns, and those that tell where the
// row is stored.
func (m *Merge) record(p *projector, f *snapshot.DataFile, pos int64, stored Record) (Record, error) {
	fields := m.Schema.Fields()
	own := len(fields)
	if m.own > 0 {
		own = m.own
	}
	rec, err := p.record(fields[:own], stored)
	if err != nil {
		return nil, err
	}
	for _, field := range fields[own:] {
		for _, column := range fields[:own] {
			if column.ID == field.ID || column.Name == field.Name {
				return nil, fmt.Errorf("column %q of the table and a metadata column: %w", column.Name, ErrUnsupported)
			}
		}
		switch field.ID {
		case fileID:
			rec[fileID] = f.Path
		case positionID:
			rec[positionID] = pos
		case specID:
			rec[specID] = int32(f.SpecID)
		default:
			if rec[field.ID], err = p.lineage(field, f, pos, stored); err != nil {
				return nil, err
			}
		}
	}
	return rec, nil
}

// lineage is what a row stores of its lineage, or else inherits from its file
// (Iceberg spec, "Row Lineage").
func (p *projector) lineage(field iceberg.NestedField, f *snapshot.DataFile, pos int64, stored Record) (any, error) {
	v, err := p.field(field, stored)
	if err != nil || v != nil || f.FirstRowID < 0 {
		return v, err
	}
	if field.ID == rowID {
		return f.FirstRowID + pos, nil
	}
	return f.Sequence, nil
}
