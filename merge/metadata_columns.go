package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
)

// metadataFields are the metadata columns that a view can have, in the order of
// AllMetadataColumns, with the field ids that Iceberg reserves for them.
func metadataFields() []iceberg.NestedField {
	return []iceberg.NestedField{
		{ID: pqfile.FileFieldID, Name: "_file", Type: iceberg.PrimitiveTypes.String, Required: true},
		{ID: pqfile.PosFieldID, Name: "_pos", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: iceberg.RowIDFieldID, Name: iceberg.RowIDColumnName, Type: iceberg.PrimitiveTypes.Int64},
		{ID: iceberg.LastUpdatedSequenceNumberFieldID, Name: iceberg.LastUpdatedSequenceNumberColumnName, Type: iceberg.PrimitiveTypes.Int64},
		{ID: pqfile.SpecIDFieldID, Name: "_spec_id", Type: iceberg.PrimitiveTypes.Int32, Required: true},
	}
}

// AllMetadataColumns names the metadata columns: the data file's path as the
// manifest spells it, the row's position in it (deleted rows count), the row
// lineage of format version 3, and the file's partition spec. A row has no
// lineage (NULL) in snapshots from before version 3.
func AllMetadataColumns() []string {
	var names []string
	for _, f := range metadataFields() {
		names = append(names, f.Name)
	}
	return names
}

// ParseMetadataColumns reads a comma-separated list of metadata columns; "all"
// and "none" stand for what they say. The result is in the order of
// AllMetadataColumns whatever the list's.
func ParseMetadataColumns(list string) ([]string, error) {
	all := AllMetadataColumns()
	switch list {
	case "all":
		return all, nil
	case "none":
		return nil, nil
	}
	chosen := make(map[string]bool)
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("unknown metadata column %q: want all, none, or a list of %s", name, strings.Join(all, ", "))
		}
		chosen[name] = true
	}
	return slices.DeleteFunc(all, func(name string) bool { return !chosen[name] }), nil
}

// withMetadata adds the engine's metadata columns to a scan's schema. Where a
// column of the table has the name of one of them, the scan is invalid: readers
// could not tell them apart.
func (e *Engine) withMetadata(s Scan) Scan {
	if len(e.opt.MetadataColumns) == 0 {
		return s
	}
	s.metadata = true
	fields := s.Schema.Fields()
	for _, f := range metadataFields() {
		if !slices.Contains(e.opt.MetadataColumns, f.Name) {
			continue
		}
		for _, own := range s.Schema.Fields() {
			if own.Name == f.Name || own.ID == f.ID {
				s.invalid = fmt.Errorf("%w: the table's column %q stands where metadata column %q should (choose others with --metadata-columns)",
					ErrUnsupported, own.Name, f.Name)
			}
		}
		fields = append(fields, f)
	}
	s.Schema = iceberg.NewSchemaWithIdentifiers(s.Schema.ID, s.Schema.IdentifierFieldIDs, fields...)
	return s
}
