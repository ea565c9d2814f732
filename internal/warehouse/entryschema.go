package warehouse

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/avro"
)

// entryField is a field that is used of a manifest entry, its data_file, or an
// entry of a manifest list.
type entryField uint8

const (
	fieldSkipped entryField = iota
	fieldStatus
	fieldSequence
	fieldFileSequence
	fieldDataFile
	fieldContent
	fieldPath
	fieldFormat
	fieldPartition
	fieldRecords
	fieldSize
	fieldValueCounts
	fieldNullCounts
	fieldNaNCounts
	fieldLower
	fieldUpper
	fieldKey
	fieldEqualityIDs
	fieldFirstRow
	fieldReferenced
	fieldOffset
	fieldLength
	fieldSpec
	fieldSnapshot
	fieldCount
)

// Fields that only manifest lists have, in the places of ones that only manifests
// have: each place costs time with every entry.
const (
	fieldManifestLength = fieldSize
	fieldAddedFiles     = fieldStatus
	fieldExistingFiles  = fieldFileSequence
	fieldAddedRows      = fieldRecords
	fieldExistingRows   = fieldLength
)

// usedField is a field by its name and id (Iceberg spec, "Manifests"), with the
// kind of its values. A manifest that lacks a required one is none. Fields are
// found by name, since old writers leave ids out; one that has the id and another
// name is refused rather than passed over.
type usedField struct {
	name     string
	id       int
	field    entryField
	kind     avroKind
	required bool
}

func usedOfEntry() []usedField {
	return []usedField{
		{"status", 0, fieldStatus, avroInt, true},
		{"sequence_number", 3, fieldSequence, avroInt, false},
		{"file_sequence_number", 4, fieldFileSequence, avroInt, false},
		{"data_file", 2, fieldDataFile, avroRecord, true},
	}
}

func usedOfFile() []usedField {
	return []usedField{
		{"content", 134, fieldContent, avroInt, false},
		{"file_path", 100, fieldPath, avroBytes, true},
		{"file_format", 101, fieldFormat, avroBytes, true},
		{"partition", 102, fieldPartition, avroRecord, true},
		{"record_count", 103, fieldRecords, avroInt, true},
		{"file_size_in_bytes", 104, fieldSize, avroInt, false},
		{"value_counts", 109, fieldValueCounts, avroArray, false},
		{"null_value_counts", 110, fieldNullCounts, avroArray, false},
		{"nan_value_counts", 137, fieldNaNCounts, avroArray, false},
		{"lower_bounds", 125, fieldLower, avroArray, false},
		{"upper_bounds", 128, fieldUpper, avroArray, false},
		{"key_metadata", 131, fieldKey, avroBytes, false},
		{"equality_ids", 135, fieldEqualityIDs, avroArray, false},
		{"first_row_id", 142, fieldFirstRow, avroInt, false},
		{"referenced_data_file", 143, fieldReferenced, avroBytes, false},
		{"content_offset", 144, fieldOffset, avroInt, false},
		{"content_size_in_bytes", 145, fieldLength, avroInt, false},
	}
}

// step is a field of a record, in the order of its bytes.
type step struct {
	field entryField
	typ   *avroType
}

// manifestSchema is the schema of a manifest's entries, compiled.
type manifestSchema struct {
	entry     []step
	file      []step
	partition []avroField
}

func newManifestSchema(t *avroType) (*manifestSchema, error) {
	s := &manifestSchema{}
	var err error
	if s.entry, err = newSteps(t, usedOfEntry()); err != nil {
		return nil, err
	}
	file := stepOf(s.entry, fieldDataFile)
	if s.file, err = newSteps(file, usedOfFile()); err != nil {
		return nil, err
	}
	s.partition = stepOf(s.file, fieldPartition).fields
	return s, nil
}

func stepOf(steps []step, f entryField) *avroType {
	return steps[slices.IndexFunc(steps, func(s step) bool { return s.field == f })].typ
}

// newSteps compiles a record.
func newSteps(t *avroType, used []usedField) ([]step, error) {
	if t.kind != avroRecord {
		return nil, errors.New("not a record")
	}
	steps := make([]step, len(t.fields))
	for i, f := range t.fields {
		steps[i].typ = f.typ
		u := slices.IndexFunc(used, func(u usedField) bool { return u.name == f.name })
		if u < 0 {
			if slices.ContainsFunc(used, func(u usedField) bool { return u.id == f.id }) {
				return nil, fmt.Errorf("field %s has id %d, which is another's", f.name, f.id)
			}
			continue
		}
		if !f.typ.holds(used[u].kind) || !f.typ.holdsItems(used[u].field) {
			return nil, fmt.Errorf("field %s is of another type", f.name)
		}
		steps[i].field = used[u].field
	}
	for _, u := range used {
		if u.required && !slices.ContainsFunc(steps, func(s step) bool { return s.field == u.field }) {
			return nil, fmt.Errorf("no field %s", u.name)
		}
	}
	return steps, nil
}

// holds reports whether values are of a kind or, but for records, NULL.
func (t *avroType) holds(kind avroKind) bool {
	if t.kind != avroUnion || kind == avroRecord {
		return t.kind == kind
	}
	for _, o := range t.options {
		if o.kind != kind && o.kind != avroNull {
			return false
		}
	}
	return true
}

// holdsItems reports whether arrays of a field have the items that it should:
// ids, or pairs of a column's id and a value.
func (t *avroType) holdsItems(f entryField) bool {
	for _, o := range append([]*avroType{t}, t.options...) {
		if o.kind != avroArray {
			continue
		}
		item := o.element
		switch f {
		case fieldEqualityIDs:
			if item.kind != avroInt {
				return false
			}
		case fieldValueCounts, fieldNullCounts, fieldNaNCounts:
			if !item.isPair(avroInt) {
				return false
			}
		case fieldLower, fieldUpper:
			if !item.isPair(avroBytes) {
				return false
			}
		}
	}
	return true
}

// isPair reports whether values are a column's id and a value, in this order.
func (t *avroType) isPair(value avroKind) bool {
	return t.kind == avroRecord && len(t.fields) == 2 && t.fields[0].typ.kind == avroInt && t.fields[1].typ.kind == value &&
		t.fields[0].name != "value" && t.fields[1].name != "key"
}

// schemas keeps compiled schemas, which are few: one for each partition spec,
// format version and writer. Parsing one takes longer than many entries.
type schemas struct {
	manifests compiled[manifestSchema]
	lists     compiled[listSchema]
}

// compiled keeps what schemas of one kind were compiled to, by their texts.
type compiled[T any] struct {
	mu    sync.Mutex
	known map[string]*T
}

// maxSchemas bounds what is kept; with more, some are parsed again.
// maxSchemaText bounds the text of one: a hundred times that of the spec's fields.
const (
	maxSchemas    = 256
	maxSchemaText = 1 << 20
)

// get returns what a schema was compiled to, or compiles it.
func (c *compiled[T]) get(text []byte, compile func(*avroType) (*T, error)) (*T, error) {
	c.mu.Lock()
	known := c.known[string(text)]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if len(text) > maxSchemaText {
		return nil, fmt.Errorf("%w: an Avro schema of %d bytes in a manifest", ErrUnsupported, len(text))
	}
	parsed, err := avro.Parse(string(text), avro.WithLaxNames(nil))
	if err != nil {
		return nil, err
	}
	t, err := newAvroType(parsed.Root(), avroNames{}, "", 0)
	if err != nil {
		return nil, err
	}
	fresh, err := compile(t)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxSchemas {
		c.known = map[string]*T{}
	}
	c.known[string(text)] = fresh
	return fresh, nil
}
