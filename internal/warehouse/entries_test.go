package warehouse

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/snapshot"
)

// byIcebergGo decodes a manifest as iceberg-go does.
func byIcebergGo(m iceberg.ManifestFile, raw []byte, metricIDs []int) (files []snapshot.DataFile, err error) {
	r, err := iceberg.NewManifestReader(m, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		e, err := r.ReadEntry()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if e.Status() == iceberg.EntryStatusDELETED {
			continue
		}
		f := e.DataFile()
		d := snapshot.DataFile{
			Path: f.FilePath(), Content: snapshot.Content(f.ContentType()), Format: snapshot.Format(strings.ToUpper(string(f.FileFormat()))),
			SpecID: int(f.SpecID()), Partition: f.Partition(), Records: f.Count(), Size: f.FileSizeBytes(), Sequence: e.SequenceNum(),
			FileSequence: valueOr(e.FileSequenceNum(), e.SequenceNum()), FirstRowID: valueOr(f.FirstRowID(), -1),
			EqualityIDs: f.EqualityFieldIDs(), Referenced: valueOr(f.ReferencedDataFile(), ""), HasReferenced: f.ReferencedDataFile() != nil,
			ContentOffset: valueOr(f.ContentOffset(), -1), ContentSize: valueOr(f.ContentSizeInBytes(), -1), EncryptedKey: len(f.KeyMetadata()) > 0,
		}
		ids := metricIDs
		switch {
		case d.IsDV():
			ids = nil
		case d.Content == snapshot.PositionDeletes:
			ids = []int{snapshot.PathFieldID}
		case d.Content == snapshot.EqualityDeletes:
			ids = d.EqualityIDs
		}
		count := func(m map[int]int64, id int) int64 {
			if n, ok := m[id]; ok {
				return n
			}
			return -1
		}
		for _, id := range ids {
			d.Metrics = append(d.Metrics, snapshot.ColumnMetrics{ID: id, Values: count(f.ValueCounts(), id), Nulls: count(f.NullValueCounts(), id),
				NaNs: count(f.NaNValueCounts(), id), Lower: f.LowerBoundValues()[id], Upper: f.UpperBoundValues()[id]})
		}
		files = append(files, d)
	}
}

// sameFiles compares files; no partition values is an empty map or none.
func sameFiles(t *testing.T, name string, got, want []snapshot.DataFile) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d files, want %d", name, len(got), len(want))
		return
	}
	for i := range got {
		g, w := got[i], want[i]
		if len(g.Partition) == 0 && len(w.Partition) == 0 {
			g.Partition, w.Partition = nil, nil
		}
		if snapshot.PartitionKey(1, nil, g.Partition) == snapshot.PartitionKey(1, nil, w.Partition) && hasNaN(w.Partition) {
			g.Partition, w.Partition = nil, nil
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("%s: file %d\n%+v\nwant\n%+v", name, i, g, w)
		}
	}
}

func hasNaN(partition map[int]any) bool {
	for _, v := range partition {
		if f, ok := v.(float64); ok && f != f {
			return true
		}
	}
	return false
}

// TestManifestsOfEnginesAsIcebergGo decodes every manifest of the tables that
// engines wrote.
func TestManifestsOfEnginesAsIcebergGo(t *testing.T) {
	ctx := context.Background()
	decoded, ids := 0, []int{1, 2, 3, 4, 5}
	c := open(t, testdata+"/warehouse", Options{AllowPaths: []string{testdata + "/elsewhere"}})
	for name, table := range tablesOf(t, c) {
		l, err := table.Load(ctx)
		if err != nil {
			continue // a table that cannot be read: TestRealTables knows which
		}
		for i := range l.table.Snapshots {
			s := &l.table.Snapshots[i]
			if s.ManifestList == "" {
				continue // nothing that iceberg-go would read alone
			}
			list, err := l.manifests(ctx, s)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			theirs, err := iceberg.ReadManifestList(bytes.NewReader(contentOf(t, l, s.ManifestList)))
			if err != nil || len(theirs) != len(list) {
				t.Fatalf("%s: %d manifests, want %d, %v", name, len(list), len(theirs), err)
			}
			for i, m := range list {
				if want := listedByIcebergGo(theirs[i]); m != want {
					t.Errorf("%s: manifest %+v, want %+v", name, m, want)
				}
				raw := contentOf(t, l, m.path)
				if m.length != int64(len(raw)) {
					t.Errorf("%s: %s has %d bytes, the list says %d", name, m.path, len(raw), m.length)
				}
				r := entryReader{table: l.table, manifest: m, schemas: &schemas{}, metricIDs: ids}
				if err := r.read(raw); err != nil {
					t.Errorf("%s: %s: %v", name, m.path, err)
					continue
				}
				if int64(len(r.files)) != m.files || r.rows != m.rows {
					t.Errorf("%s: %s: %d files of %d rows, the list says %d of %d", name, m.path, len(r.files), r.rows, m.files, m.rows)
				}
				want, err := byIcebergGo(theirs[i], raw, ids)
				if err != nil {
					t.Fatal(err)
				}
				sameFiles(t, name+" "+m.path, r.files, want)
				decoded++
			}
		}
	}
	if decoded < 100 {
		t.Errorf("only %d manifests", decoded)
	}
}

func contentOf(t *testing.T, l *Loaded, location string) []byte {
	t.Helper()
	o, err := l.store.Open(context.Background(), location)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := readAll(context.Background(), o, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func listedByIcebergGo(m iceberg.ManifestFile) manifestFile {
	return manifestFile{
		path: m.FilePath(), version: m.Version(), deletes: m.ManifestContent() == iceberg.ManifestContentDeletes, specID: int(m.PartitionSpecID()),
		sequence: m.SequenceNum(), snapshot: m.SnapshotID(), firstRow: valueOr(m.FirstRowID(), -1), encrypted: len(m.KeyMetadata()) > 0,
		length: m.Length(), files: int64(m.AddedDataFiles()) + int64(m.ExistingDataFiles()), rows: m.AddedRows() + m.ExistingRows(),
	}
}

// TestPartitionValues writes and reads partitions of every type.
func TestPartitionValues(t *testing.T) {
	p := iceberg.PrimitiveTypes
	types := []iceberg.Type{p.Bool, p.Int32, p.Int64, p.Float32, p.Float64, p.Date, p.Time, p.Timestamp, p.TimestampTz, p.TimestampNs,
		p.String, p.UUID, p.Binary, iceberg.FixedTypeOf(3), iceberg.DecimalTypeOf(9, 2), iceberg.DecimalTypeOf(38, 10)}
	values := [][]any{
		{true, int32(-5), int64(math.MinInt64), float32(1.5), math.Copysign(0, -1), iceberg.Date(-1), iceberg.Time(86_399_999_999),
			iceberg.Timestamp(-1), iceberg.Timestamp(1_767_600_000_123_456), iceberg.TimestampNano(-7), "a/b=é", uuid.UUID{1, 2, 15: 9},
			[]byte{0, 255}, []byte{1, 2, 3}, iceberg.DecimalLiteral{Scale: 2, Val: decimal128.FromI64(-12345)},
			iceberg.DecimalLiteral{Scale: 10, Val: decimal128.New(-3, 17)}},
		{false, int32(math.MaxInt32), int64(0), float32(math.Inf(-1)), math.NaN(), iceberg.Date(math.MaxInt32), iceberg.Time(0),
			iceberg.Timestamp(0), iceberg.Timestamp(0), iceberg.TimestampNano(math.MaxInt64), "", uuid.UUID{}, []byte{}, []byte{0, 0, 0},
			iceberg.DecimalLiteral{Scale: 2, Val: decimal128.FromI64(0)}, iceberg.DecimalLiteral{Scale: 10, Val: decimal128.FromI64(127)}},
		make([]any, len(types)),
	}
	for k, typ := range types {
		spec := iceberg.NewPartitionSpecID(0, iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "c", Transform: iceberg.IdentityTransform{}})
		schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "c", Type: typ})
		var column []any
		for _, row := range values {
			column = append(column, row[k])
		}
		for i, f := range writeAndRead(t, spec, schema, column) {
			got, want := f.Partition[1000], column[i]
			if w, ok := want.(float64); ok {
				if g, _ := got.(float64); math.Float64bits(w) != math.Float64bits(g) {
					t.Errorf("%s: %v, want %v", typ, got, want)
				}
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v (%T), want %v (%T)", typ, got, got, want, want)
			}
		}
	}
}

// writeAndRead writes a manifest with a file for each value of a partition, and
// reads it.
func writeAndRead(t *testing.T, spec iceberg.PartitionSpec, schema *iceberg.Schema, values []any) []snapshot.DataFile {
	t.Helper()
	var body bytes.Buffer
	id := int64(7)
	w, err := iceberg.NewManifestWriter(3, &body, spec, schema, id)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		partition := map[int]any{1000: v}
		b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, fmt.Sprint("f", i), iceberg.ParquetFile, partition, nil, nil, 10, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(iceberg.NewManifestEntryBuilder(iceberg.EntryStatusADDED, &id, b.Build()).Build()); err != nil {
			t.Fatalf("%v: %v", v, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m := manifestFile{path: "m.avro", version: 3, sequence: 5, snapshot: id, firstRow: -1}
	r := entryReader{table: &snapshot.Table{Specs: map[int]iceberg.PartitionSpec{0: spec}}, manifest: m, schemas: &schemas{}}
	if err := r.read(body.Bytes()); err != nil {
		t.Fatal(err)
	}
	return r.files
}

// TestCodecsOfManifests reads the same entries in every codec, in several
// blocks.
func TestCodecsOfManifests(t *testing.T) {
	for name, codec := range map[string]func() ocf.Codec{
		"null": nil, "deflate": func() ocf.Codec { return ocf.DeflateCodec(6) }, "snappy": ocf.SnappyCodec,
		"zstandard": func() ocf.Codec { return ocf.MustZstdCodec(nil, nil) },
	} {
		opts := []ocf.WriterOpt{ocf.WithBlockCount(3)}
		if codec != nil {
			opts = append(opts, ocf.WithCodec(codec()))
		}
		var entries []record
		for i := range 10 {
			entries = append(entries, entryOf(1, fmt.Sprint("file ", i)))
		}
		raw := avroFileWith(t, fmt.Sprintf(entryFields, ""), v2Meta("data"), opts, entries...)
		files, err := planFiles(t, raw)
		if err != nil || len(files) != 10 || files[9].Path != "file 9" {
			t.Errorf("%s: %d files, %v", name, len(files), err)
		}
		for cut := range len(raw) {
			if _, err := planFiles(t, raw[:cut]); err == nil {
				if files, _ := planFiles(t, raw[:cut]); len(files)%3 != 0 {
					t.Errorf("%s: cut at %d of %d: %d files and no error", name, cut, len(raw), len(files))
				}
			}
		}
	}
}

// planFiles reads the manifest of a table's only snapshot.
func planFiles(t *testing.T, raw string) ([]snapshot.DataFile, error) {
	t.Helper()
	m := manifestFile{path: "m.avro", version: 2, sequence: 5, snapshot: 7, firstRow: -1}
	r := entryReader{table: &snapshot.Table{}, manifest: m, schemas: &schemas{}}
	err := r.read([]byte(raw))
	return r.files, err
}

// FuzzEntries: no manifest makes the reader panic or take long.
func FuzzEntries(f *testing.F) {
	for _, name := range []string{"null", "snappy"} {
		var opts []ocf.WriterOpt
		if name == "snappy" {
			opts = append(opts, ocf.WithCodec(ocf.SnappyCodec()))
		}
		f.Add([]byte(avroFileWith(f, fmt.Sprintf(entryFields, identityField), v2Meta("data"), opts, entryOf(1, "a", "partition", record{"p": "x"}))))
	}
	m := manifestFile{path: "m.avro", version: 2, sequence: 5, snapshot: 7, firstRow: -1}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := entryReader{table: &snapshot.Table{}, manifest: m, schemas: &schemas{}, metricIDs: []int{1}}
		if err := r.read(raw); err == nil && len(r.files) > len(raw)*8 {
			t.Errorf("%d files of %d bytes", len(r.files), len(raw))
		}
	})
}

// TestSchemasRefused are schemas that are none of a manifest.
func TestSchemasRefused(t *testing.T) {
	data := func(fields string) string {
		return `{"type":"record","name":"e","fields":[{"name":"status","type":"int"},{"name":"data_file","type":{"type":"record","name":"d","fields":[` + fields + `]}}]}`
	}
	const good = `{"name":"file_path","type":"string"},{"name":"file_format","type":"string"},{"name":"record_count","type":"long"},
		{"name":"partition","type":{"type":"record","name":"p","fields":[]}}`
	if _, err := (&schemas{}).manifests.get([]byte(data(good)), newManifestSchema); err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]string{
		"not JSON":             `{`,
		"no record":            `"int"`,
		"no data_file":         `{"type":"record","name":"e","fields":[{"name":"status","type":"int"}]}`,
		"no path":              data(strings.Replace(good, "file_path", "path", 1)),
		"no partition":         data(strings.Replace(good, `"partition"`, `"p"`, 1)),
		"count as text":        data(strings.Replace(good, `"long"`, `"string"`, 1)),
		"partition optional":   data(strings.Replace(good, `{"type":"record","name":"p","fields":[]}`, `["null","int"]`, 1)),
		"bounds as ints":       data(good + `,{"name":"lower_bounds","type":{"type":"array","items":{"type":"record","name":"k","fields":[{"name":"key","type":"int"},{"name":"value","type":"int"}]}}}`),
		"counts as a list":     data(good + `,{"name":"value_counts","type":{"type":"array","items":"long"}}`),
		"ids as text":          data(good + `,{"name":"equality_ids","type":["null",{"type":"array","items":"string"}]}`),
		"items of no bytes":    data(good + `,{"name":"x","type":{"type":"array","items":"null"}}`),
		"bounds turned around": data(good + `,{"name":"value_counts","type":{"type":"array","items":{"type":"record","name":"k","fields":[{"name":"value","type":"long"},{"name":"key","type":"int"}]}}}`),
		"another's id":         data(good + `,{"name":"refers_to","type":["null","string"],"field-id":143}`),
		"recursive":            data(good + `,{"name":"x","type":["null","d"]}`),
	} {
		if _, err := (&schemas{}).manifests.get([]byte(schema), newManifestSchema); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// list decodes a manifest list of one manifest.
func list(t *testing.T, schema string, meta map[string]string, entry record) ([]manifestFile, error) {
	t.Helper()
	return readList([]byte(avroFile(t, schema, meta, entry)), &schemas{})
}

func TestManifestLists(t *testing.T) {
	const v1 = `{"type":"record","name":"manifest_file","fields":[
		{"name":"manifest_path","type":"string","field-id":500},
		{"name":"partition_spec_id","type":"int","field-id":502},
		{"name":"added_snapshot_id","type":["null","long"],"default":null,"field-id":503}]}`
	v2 := strings.Replace(v1, `{"name":"manifest_path"`, `{"name":"content","type":"int","field-id":517},{"name":"sequence_number","type":"long","field-id":515},{"name":"manifest_path"`, 1)
	v3 := strings.Replace(v2, `{"name":"manifest_path"`, `{"name":"first_row_id","type":["null","long"],"field-id":520},{"name":"manifest_path"`, 1)
	counted := strings.Replace(v1, `{"name":"manifest_path"`, `{"name":"manifest_length","type":"long"},{"name":"added_files_count","type":["null","int"]},
		{"name":"existing_files_count","type":"int"},{"name":"added_rows_count","type":["null","long"]},{"name":"existing_rows_count","type":"long"},{"name":"manifest_path"`, 1)
	entry := func(snapshot any, changes ...any) record {
		r := record{"manifest_path": "m", "partition_spec_id": 4, "added_snapshot_id": snapshot, "content": 1, "sequence_number": int64(9), "first_row_id": nil}
		for i := 0; i < len(changes); i += 2 {
			r[changes[i].(string)] = changes[i+1]
		}
		return r
	}
	version := func(v string) map[string]string { return map[string]string{"format-version": v} }
	for _, c := range []struct {
		schema string
		meta   map[string]string
		entry  record
		want   manifestFile
		err    string
	}{
		{v1, nil, entry(nil), manifestFile{path: "m", version: 1, specID: 4, snapshot: -1, firstRow: -1, length: -1, files: -1, rows: -1}, ""},
		{v1, version("1"), entry(int64(7)), manifestFile{path: "m", version: 1, specID: 4, snapshot: 7, firstRow: -1, length: -1, files: -1, rows: -1}, ""},
		{v2, nil, entry(int64(7)), manifestFile{path: "m", version: 2, deletes: true, specID: 4, sequence: 9, snapshot: 7, firstRow: -1, length: -1, files: -1, rows: -1}, ""},
		{v2, version("3"), entry(int64(7), "content", 0), manifestFile{path: "m", version: 3, specID: 4, sequence: 9, snapshot: 7, firstRow: -1, length: -1, files: -1, rows: -1}, ""},
		{v3, nil, entry(int64(7), "first_row_id", int64(0)), manifestFile{path: "m", version: 3, deletes: true, specID: 4, sequence: 9, snapshot: 7, length: -1, files: -1, rows: -1}, ""},
		{counted, nil, entry(nil, "manifest_length", int64(99), "added_files_count", 2, "existing_files_count", 3, "added_rows_count", int64(20), "existing_rows_count", int64(30)),
			manifestFile{path: "m", version: 1, specID: 4, snapshot: -1, firstRow: -1, length: 99, files: 5, rows: 50}, ""},
		{strings.ReplaceAll(counted, "_files_count", "_data_files_count"), nil,
			entry(nil, "manifest_length", int64(0), "added_data_files_count", 2, "existing_data_files_count", 0, "added_rows_count", nil, "existing_rows_count", int64(30)),
			manifestFile{path: "m", version: 1, specID: 4, snapshot: -1, firstRow: -1, length: 0, files: 2, rows: -1}, ""},
		{counted, nil, entry(nil, "manifest_length", int64(7), "added_files_count", -1, "existing_files_count", 3, "added_rows_count", int64(math.MaxInt64), "existing_rows_count", int64(1)),
			manifestFile{path: "m", version: 1, specID: 4, snapshot: -1, firstRow: -1, length: 7, files: -1, rows: -1}, ""},
		{v3, nil, entry(int64(7), "first_row_id", int64(-2)), manifestFile{}, "first row id -2"},
		{v2, nil, entry(int64(7), "content", 2), manifestFile{}, "content 2"},
		{v2, nil, entry(int64(7), "sequence_number", int64(-1)), manifestFile{}, "no sequence number"},
		{strings.Replace(v2, `"sequence_number","type":"long"`, `"sequence_number","type":["null","long"]`, 1), nil, entry(int64(7), "sequence_number", nil), manifestFile{}, "no sequence number"},
		{v2, version("1"), entry(int64(7)), manifestFile{}, "format version 1"},
		{v2, version("4"), entry(int64(7)), manifestFile{}, "format version 4"},
		{v2, version("two"), entry(int64(7)), manifestFile{}, "format-version"},
		{`{"type":"record","name":"x","fields":[{"name":"manifest_path","type":"string"}]}`, nil, record{"manifest_path": "m"}, manifestFile{}, "partition_spec_id"},
	} {
		got, err := list(t, c.schema, c.meta, c.entry)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%v: %+v, error %v, want %q", c.entry, got, err, c.err)
		case c.err == "" && (err != nil || len(got) != 1 || got[0] != c.want):
			t.Errorf("%v: %+v, %v, want %+v", c.entry, got, err, c.want)
		}
	}
}

// TestNumbersTooLarge: a number of more bits than its type has is refused, not
// cut off.
func TestNumbersTooLarge(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  int64
		fails bool
	}{
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", math.MinInt64, false},
		{"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", math.MaxInt64, false},
		{"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x03", 0, true},
		{"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 0, true},
		{"\x80", 0, true},
	} {
		d := cursor{buf: []byte(c.bytes)}
		if n := d.long(); n != c.want || d.failed != c.fails {
			t.Errorf("%x: %d, failed %v", c.bytes, n, d.failed)
		}
	}
	d := cursor{buf: binary.AppendVarint(nil, 1<<32+5)}
	if v, err := d.value(&avroType{kind: avroInt, name: "int"}); err == nil {
		t.Errorf("an int of 33 bits is %v", v)
	}
}
