package warehouse

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// manifestFile is an entry of a manifest list: all that its manifest's entries
// inherit from it.
type manifestFile struct {
	path      string
	version   int // format version of the list
	deletes   bool
	specID    int
	sequence  int64 // 0 in v1
	snapshot  int64 // that added it, -1 if unknown
	firstRow  int64 // -1 if none
	encrypted bool

	// What the list says of the manifest, -1 where it says nothing: the size, the
	// live files (added and existing), and their rows.
	length, files, rows int64
}

// manifestFileBytes is about the size of a manifestFile with its path.
const manifestFileBytes = 264

func usedOfList() []usedField {
	return []usedField{
		{"manifest_path", fieldPath, avroBytes, true},
		{"partition_spec_id", fieldSpec, avroInt, true},
		{"content", fieldContent, avroInt, false},
		{"sequence_number", fieldSequence, avroInt, false},
		{"added_snapshot_id", fieldSnapshot, avroInt, false},
		{"key_metadata", fieldKey, avroBytes, false},
		{"first_row_id", fieldFirstRow, avroInt, false},
		{"manifest_length", fieldManifestLength, avroInt, false},
		{"added_files_count", fieldAddedFiles, avroInt, false},
		{"existing_files_count", fieldExistingFiles, avroInt, false},
		{"added_data_files_count", fieldAddedFiles, avroInt, false}, // the names before version 2
		{"existing_data_files_count", fieldExistingFiles, avroInt, false},
		{"added_rows_count", fieldAddedRows, avroInt, false},
		{"existing_rows_count", fieldExistingRows, avroInt, false},
	}
}

// listSchema is the schema of a manifest list, compiled.
type listSchema struct {
	steps   []step
	version int // the least whose fields it has
}

// Field ids that only later format versions have (Iceberg spec, "Manifest Lists").
const (
	sequenceID = 515 // version 2
	contentID  = 517 // version 2
	firstRowID = 520 // version 3
)

func newListSchema(t *avroType) (*listSchema, error) {
	steps, err := newSteps(t, usedOfList())
	if err != nil {
		return nil, err
	}
	has := func(id int, name string) bool {
		return slices.ContainsFunc(t.fields, func(f avroField) bool { return f.id == id || f.id < 0 && f.name == name })
	}
	s := &listSchema{steps: steps, version: 1}
	switch {
	case has(firstRowID, "first_row_id"):
		s.version = 3
	case has(sequenceID, "sequence_number"), has(contentID, "content"):
		s.version = 2
	}
	return s, nil
}

// readList decodes a manifest list. Its format version is what its header says,
// or (DuckDB says nothing) that of its fields.
func readList(stored []byte, known *schemas) ([]manifestFile, error) {
	c, err := openContainer(stored)
	if err != nil {
		return nil, err
	}
	defer c.close()
	schema, err := known.lists.get(c.metadata["avro.schema"], newListSchema)
	if err != nil {
		return nil, err
	}
	version := schema.version
	if text, ok := c.metadata["format-version"]; ok {
		if version, err = strconv.Atoi(string(text)); err != nil {
			return nil, fmt.Errorf("format-version: %w", err)
		}
	}
	if version < schema.version || version > maxFormatVersion {
		return nil, fmt.Errorf("format version %d of a list with fields of version %d", version, schema.version)
	}
	var list []manifestFile
	for {
		block, rows, err := c.next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if rows > int64(maxEntries-len(list)) {
			return nil, fmt.Errorf("%w: a list of more than %d manifests", ErrUnsupported, maxEntries)
		}
		d := cursor{buf: block}
		for range rows {
			m, err := schema.manifest(&d, version)
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		}
		if d.at != len(block) {
			return nil, errors.New("entries do not end with their block")
		}
	}
}

// manifest decodes an entry.
func (s *listSchema) manifest(d *cursor, version int) (m manifestFile, err error) {
	e := newRawEntry()
	for _, step := range s.steps {
		e.set(d, step)
	}
	content := e.number(fieldContent, 0)
	switch {
	case d.failed:
		return m, errors.New("an entry ends early")
	case e.texts[fieldPath] == nil || e.numbers[fieldSpec] == noNumber:
		return m, errors.New("entry without a path or a partition spec")
	case content != 0 && content != 1:
		return m, fmt.Errorf("%s: content %d", e.texts[fieldPath], content)
	}
	m = manifestFile{
		path:      string(e.texts[fieldPath]),
		version:   version,
		specID:    int(e.numbers[fieldSpec]),
		snapshot:  e.number(fieldSnapshot, -1),
		firstRow:  -1,
		encrypted: len(e.texts[fieldKey]) > 0,
		length:    e.number(fieldManifestLength, -1),
		files:     e.sum(fieldAddedFiles, fieldExistingFiles),
		rows:      e.sum(fieldAddedRows, fieldExistingRows),
	}
	if version > 1 {
		m.deletes, m.sequence = content == 1, e.number(fieldSequence, 0)
		if id := e.numbers[fieldFirstRow]; id != noNumber {
			if id < 0 {
				return m, fmt.Errorf("%s: first row id %d", m.path, id)
			}
			m.firstRow = id
		}
	}
	return m, nil
}

// sum adds two counts; -1 if there is none of either. Some writers of version 1
// write -1 for what they do not know.
func (e *rawEntry) sum(a, b entryField) int64 {
	x, y := e.number(a, -1), e.number(b, -1)
	if x < 0 || y < 0 || x+y < 0 {
		return -1
	}
	return x + y
}

// checkWhole refuses a manifest of size bytes that has fewer live files than its
// list says: blocks have no end mark, so that one which was cut after a block
// looks like a whole one. Files are what counts; without them, their rows do,
// or else the bytes alone.
//
// In lists of version 1 counts are optional, and a writer is known that states
// the table's files as existing in each manifest (ClickHouse/ClickHouse#121222):
// there they count only against a manifest that is also shorter than it was.
func (m *manifestFile) checkWhole(found *manifest, size int64) error {
	short := size < m.length
	fewer := short
	switch {
	case m.files >= 0:
		fewer = int64(len(found.files)) < m.files
	case m.rows >= 0:
		fewer = found.rows < m.rows
	}
	if !fewer || m.version == 1 && !short {
		return nil
	}
	return fmt.Errorf("%w: %s: %d live files of %d rows in %d bytes, the manifest list says %d of %d in %d",
		ErrCorrupt, m.path, len(found.files), found.rows, size, m.files, m.rows, m.length)
}
