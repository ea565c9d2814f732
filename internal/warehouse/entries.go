package warehouse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/snapshot"
)

// maxEntries bounds the entries of a manifest, far above the hundred thousand
// that writers put into one.
const maxEntries = 1 << 21

// entryReader reads the live files of one manifest.
type entryReader struct {
	table     *snapshot.Table
	manifest  manifestFile
	schemas   *schemas
	metricIDs []int // of data files

	schema   *manifestSchema
	firstRow int64 // of the next file that has none; -1 if files inherit none
	fieldIDs []int // of the partition spec; nil if it is unknown
	days     map[int]bool

	raw        rawEntry
	files      []snapshot.DataFile
	rows       int64    // of files, capped
	names      []byte   // paths and referenced paths of files, end to end
	ends       [][2]int // ends of each file's in names
	partitions map[string]map[int]any
	last       lastPartition
	bytes      int64 // kept by files, about
	limit      int64 // of bytes; 0 = none
}

// lastPartition is the partition of the entry before: most often the next one's.
type lastPartition struct {
	raw    []byte
	values map[int]any
}

// rawEntry is an entry as it is stored. Numbers are noNumber where there is none;
// the rest are parts of the block, nil where there is none.
type rawEntry struct {
	numbers   [fieldCount]int64
	texts     [fieldCount][]byte
	arrays    [fieldCount][]byte
	arrayType [fieldCount]*avroType
}

const noNumber = math.MinInt64

func newRawEntry() (e rawEntry) {
	for i := range e.numbers {
		e.numbers[i] = noNumber
	}
	return e
}

// number returns a number, or another where there is none.
func (e *rawEntry) number(f entryField, otherwise int64) int64 {
	if n := e.numbers[f]; n != noNumber {
		return n
	}
	return otherwise
}

// read decodes all entries.
func (r *entryReader) read(stored []byte) error {
	c, err := openContainer(stored)
	if err != nil {
		return err
	}
	defer c.close()
	if err := r.begin(c); err != nil {
		return err
	}
	for {
		block, rows, err := c.next()
		if err == io.EOF {
			r.finish()
			return nil
		}
		if err != nil {
			return err
		}
		if rows > int64(maxEntries-len(r.files)) {
			return fmt.Errorf("%w: a manifest of more than %d entries", ErrUnsupported, maxEntries)
		}
		// An entry takes more bytes than this: a count that lies reserves little.
		r.files = slices.Grow(r.files, min(int(rows), len(block)/64+1))
		d := cursor{buf: block}
		for range rows {
			if err := r.entry(&d); err != nil {
				return err
			}
			if r.limit > 0 && r.bytes > r.limit {
				return tooLarge("a manifest's list of files", r.limit)
			}
		}
		if d.failed || d.at != len(block) {
			return errors.New("entries do not end with their block")
		}
	}
}

// begin checks the header against what the manifest list says.
func (r *entryReader) begin(c *container) (err error) {
	version := 1
	if text, ok := c.metadata["format-version"]; ok {
		if version, err = strconv.Atoi(string(text)); err != nil {
			return fmt.Errorf("format-version: %w", err)
		}
	}
	if version < 1 || version > maxFormatVersion || version > r.manifest.version {
		return fmt.Errorf("format version %d in a list of version %d", version, r.manifest.version)
	}
	content := string(c.metadata["content"])
	switch {
	case content == "" && version == 1:
		content = "data"
	case content != "data" && content != "deletes":
		return fmt.Errorf("content %q", content)
	}
	if deletes := content == "deletes"; deletes != r.manifest.deletes {
		return fmt.Errorf("content is %s, unlike what the manifest list says", content)
	}
	r.firstRow = -1
	if !r.manifest.deletes {
		r.firstRow = r.manifest.firstRow
	}
	r.partitions, r.days = map[string]map[int]any{}, map[int]bool{}
	if spec, ok := r.table.Specs[r.manifest.specID]; ok {
		r.fieldIDs = snapshot.FieldIDs(spec)
		for _, f := range spec.Fields() {
			if _, ok := f.Transform.(iceberg.DayTransform); ok {
				r.days[f.FieldID] = true
			}
		}
	}
	r.schema, err = r.schemas.manifests.get(c.metadata["avro.schema"], newManifestSchema)
	return err
}

// entry decodes an entry, and keeps its file if it is live.
func (r *entryReader) entry(d *cursor) error {
	r.raw = newRawEntry()
	e := &r.raw
	for _, s := range r.schema.entry {
		if s.field != fieldDataFile {
			e.set(d, s)
			continue
		}
		for _, s := range r.schema.file {
			e.set(d, s)
		}
	}
	if d.failed {
		return errors.New("an entry ends early")
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("%s: %w", e.texts[fieldPath], err)
	}
	if iceberg.ManifestEntryStatus(e.numbers[fieldStatus]) == iceberg.EntryStatusDELETED {
		return nil
	}
	if err := r.add(); err != nil {
		return fmt.Errorf("%s: %w", e.texts[fieldPath], err)
	}
	return nil
}

// set reads a field.
func (e *rawEntry) set(d *cursor, s step) {
	if s.field == fieldSkipped {
		d.skip(s.typ)
		return
	}
	t := d.option(s.typ)
	switch t.kind {
	case avroInt:
		e.numbers[s.field] = d.long()
	case avroBytes:
		e.texts[s.field] = d.bytes()
	default:
		start := d.at
		d.skip(t)
		if t.kind != avroNull {
			e.arrays[s.field], e.arrayType[s.field] = d.buf[start:d.at], t
		}
	}
}

// check refuses what no entry can be, deleted ones included.
func (r *entryReader) check() error {
	e := &r.raw
	if s := e.numbers[fieldStatus]; s < 0 || s > int64(iceberg.EntryStatusDELETED) {
		return fmt.Errorf("entry status %d", s)
	}
	switch content := iceberg.ManifestEntryContent(e.number(fieldContent, 0)); {
	case content < iceberg.EntryContentData || content > iceberg.EntryContentEqDeletes:
		return fmt.Errorf("entry content %d", content)
	case content == iceberg.EntryContentData && r.manifest.deletes:
		return errors.New("data file in a manifest of delete files")
	case content != iceberg.EntryContentData && !r.manifest.deletes:
		return errors.New("delete file in a manifest of data files")
	}
	if e.texts[fieldPath] == nil || e.texts[fieldFormat] == nil {
		return errors.New("entry without a path or a format")
	}
	return nil
}

// sequences returns the sequence numbers of the entry's data and file. Only
// ADDED entries, and all of a manifest of number 0 (written in v1), inherit the
// manifest's: an existing one has its own, or is corrupt.
func (r *entryReader) sequences() (data, file int64, err error) {
	data, file = r.raw.numbers[fieldSequence], r.raw.numbers[fieldFileSequence]
	inherited := r.manifest.sequence
	added := iceberg.ManifestEntryStatus(r.raw.numbers[fieldStatus]) == iceberg.EntryStatusADDED
	if inherited == 0 || added {
		if data == noNumber {
			data = inherited
		}
		if file == noNumber {
			file = inherited
		}
	}
	switch {
	case data == noNumber:
		return 0, 0, errors.New("existing entry without a sequence number")
	case data < 0:
		return 0, 0, fmt.Errorf("sequence number %d", data)
	case file == noNumber:
		file = data
	}
	return data, file, nil
}

// dataFileBytes is the size of a snapshot.DataFile with its bookkeeping.
const dataFileBytes = 264

// add keeps the entry's file.
func (r *entryReader) add() error {
	e := &r.raw
	data, file, err := r.sequences()
	if err != nil {
		return err
	}
	records := e.numbers[fieldRecords]
	if records < 0 {
		return fmt.Errorf("record count %d", records)
	}
	partition, err := r.partition(e.arrays[fieldPartition])
	if err != nil {
		return err
	}
	firstRow := e.number(fieldFirstRow, r.firstRow)
	if e.numbers[fieldFirstRow] == noNumber && r.firstRow >= 0 {
		if firstRow > math.MaxInt64-records {
			return fmt.Errorf("row ids from %d on overflow", firstRow)
		}
		r.firstRow += records
	}
	f := snapshot.DataFile{
		Content:       snapshot.Content(e.number(fieldContent, 0)),
		Format:        format(e.texts[fieldFormat]),
		SpecID:        r.manifest.specID,
		Partition:     partition,
		Records:       records,
		Size:          e.number(fieldSize, 0),
		Sequence:      data,
		FileSequence:  file,
		FirstRowID:    firstRow,
		EqualityIDs:   ids(e.arrays[fieldEqualityIDs]),
		HasReferenced: e.texts[fieldReferenced] != nil,
		ContentOffset: e.number(fieldOffset, -1),
		ContentSize:   e.number(fieldLength, -1),
		EncryptedKey:  len(e.texts[fieldKey]) > 0,
	}
	f.Metrics = r.metrics(&f)
	r.names = append(r.names, e.texts[fieldPath]...)
	path := len(r.names)
	r.names = append(r.names, e.texts[fieldReferenced]...)
	r.ends = append(r.ends, [2]int{path, len(r.names)})
	r.bytes += dataFileBytes + int64(len(e.texts[fieldPath])+len(e.texts[fieldReferenced])+8*len(f.EqualityIDs))
	r.files = append(r.files, f)
	r.rows = min(r.rows, math.MaxInt64-records) + records
	return nil
}

// finish cuts the files' paths out of one string, and gives back what was
// reserved for more files.
func (r *entryReader) finish() {
	names := string(r.names)
	start := 0
	for i, ends := range r.ends {
		r.files[i].Path, r.files[i].Referenced = names[start:ends[0]], names[ends[0]:ends[1]]
		start = ends[1]
	}
	if cap(r.files)-len(r.files) > len(r.files)/8 {
		r.files = append(make([]snapshot.DataFile, 0, len(r.files)), r.files...)
	}
}

// format spells a format as constants of package snapshot do.
func format(text []byte) snapshot.Format {
	for _, f := range []snapshot.Format{snapshot.Parquet, snapshot.Puffin, snapshot.Avro, snapshot.ORC} {
		if strings.EqualFold(string(f), string(text)) {
			return f
		}
	}
	return snapshot.Format(strings.ToUpper(string(text)))
}

// partition checks that a partition has every field of its spec (a field that
// is left out would make two partitions look alike), and shares the maps of
// equal partitions.
func (r *entryReader) partition(raw []byte) (map[int]any, error) {
	if r.last.raw != nil && bytes.Equal(raw, r.last.raw) {
		return r.last.values, nil
	}
	values, ok := r.partitions[string(raw)]
	if !ok {
		var err error
		if values, err = r.schema.partitionOf(raw, r.days); err != nil {
			return nil, err
		}
		for _, id := range r.fieldIDs {
			if _, ok := values[id]; !ok {
				return nil, fmt.Errorf("partition without field %d", id)
			}
		}
		r.partitions[string(raw)] = values
		r.bytes += 64 + 32*int64(len(values))
	}
	r.last = lastPartition{append(r.last.raw[:0], raw...), values}
	return values, nil
}

// ids decodes an array of ints, nil if there is none.
func ids(array []byte) (list []int) {
	c := cursor{buf: array}
	for n := c.items(); n > 0; n = c.items() {
		for range n {
			list = append(list, int(c.long()))
		}
	}
	return list
}

// metrics keeps what pairing needs: metrics of the columns metricIDs of data
// files, of the key columns of equality deletes, and of the paths of position
// deletes.
func (r *entryReader) metrics(f *snapshot.DataFile) []snapshot.ColumnMetrics {
	columns := r.metricIDs
	switch {
	case f.IsDV():
		return nil
	case f.Content == snapshot.PositionDeletes:
		columns = []int{snapshot.PathFieldID}
	case f.Content == snapshot.EqualityDeletes:
		columns = f.EqualityIDs
	}
	if len(columns) == 0 {
		return nil
	}
	list := make([]snapshot.ColumnMetrics, len(columns))
	for i, id := range columns {
		list[i] = snapshot.NoMetrics(id)
	}
	r.eachPair(fieldValueCounts, columns, func(i int, c *cursor) { list[i].Values = c.long() })
	r.eachPair(fieldNullCounts, columns, func(i int, c *cursor) { list[i].Nulls = c.long() })
	r.eachPair(fieldNaNCounts, columns, func(i int, c *cursor) { list[i].NaNs = c.long() })
	r.eachPair(fieldLower, columns, func(i int, c *cursor) { list[i].Lower = r.bound(c) })
	r.eachPair(fieldUpper, columns, func(i int, c *cursor) { list[i].Upper = r.bound(c) })
	r.bytes += columnMetricsBytes * int64(len(list))
	return list
}

// columnMetricsBytes is the size of a snapshot.ColumnMetrics.
const columnMetricsBytes = 80

func (r *entryReader) bound(c *cursor) []byte {
	b := c.bytes()
	r.bytes += int64(len(b))
	return append(make([]byte, 0, len(b)), b...)
}

// eachPair calls value for each of the columns that an array of pairs has, with
// the column's place, to read the value.
func (r *entryReader) eachPair(f entryField, columns []int, value func(i int, c *cursor)) {
	array := r.raw.arrays[f]
	if array == nil {
		return
	}
	c := cursor{buf: array}
	other := r.raw.arrayType[f].element.fields[1].typ
	for n := c.items(); n > 0; n = c.items() {
		for range n {
			id := c.long()
			if i := slices.Index(columns, int(id)); i >= 0 {
				value(i, &c)
			} else {
				c.skip(other)
			}
		}
	}
}
