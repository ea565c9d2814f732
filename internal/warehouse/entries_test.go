package warehouse

import (
	"bytes"
	"context"
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
			list, err := l.manifests(ctx, &l.table.Snapshots[i])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, m := range list {
				o, err := l.store.Open(ctx, m.FilePath())
				if err != nil {
					t.Fatal(err)
				}
				raw, err := readAll(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				r := entryReader{table: l.table, manifest: m, schemas: &schemas{}, metricIDs: ids}
				if err := r.read(raw); err != nil {
					t.Errorf("%s: %s: %v", name, m.FilePath(), err)
					continue
				}
				want, err := byIcebergGo(m, raw, ids)
				if err != nil {
					t.Fatal(err)
				}
				sameFiles(t, name+" "+m.FilePath(), r.files, want)
				decoded++
			}
		}
	}
	if decoded < 100 {
		t.Errorf("only %d manifests", decoded)
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
	m := iceberg.NewManifestFile(3, "m.avro", int64(body.Len()), 0, id).SequenceNum(5, 5).Build()
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
	m := iceberg.NewManifestFile(2, "m.avro", int64(len(raw)), 0, 7).Content(iceberg.ManifestContentData).SequenceNum(5, 5).Build()
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
	m := iceberg.NewManifestFile(2, "m.avro", 100, 0, 7).Content(iceberg.ManifestContentData).SequenceNum(5, 5).Build()
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
	if _, err := (&schemas{}).entries([]byte(data(good))); err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]string{
		"not JSON":           `{`,
		"no record":          `"int"`,
		"no data_file":       `{"type":"record","name":"e","fields":[{"name":"status","type":"int"}]}`,
		"no path":            data(strings.Replace(good, "file_path", "path", 1)),
		"no partition":       data(strings.Replace(good, `"partition"`, `"p"`, 1)),
		"count as text":      data(strings.Replace(good, `"long"`, `"string"`, 1)),
		"partition optional": data(strings.Replace(good, `{"type":"record","name":"p","fields":[]}`, `["null","int"]`, 1)),
		"bounds as ints":     data(good + `,{"name":"lower_bounds","type":{"type":"array","items":{"type":"record","name":"k","fields":[{"name":"key","type":"int"},{"name":"value","type":"int"}]}}}`),
		"counts as a list":   data(good + `,{"name":"value_counts","type":{"type":"array","items":"long"}}`),
		"ids as text":        data(good + `,{"name":"equality_ids","type":["null",{"type":"array","items":"string"}]}`),
		"items of no bytes":  data(good + `,{"name":"x","type":{"type":"array","items":"null"}}`),
		"recursive":          data(good + `,{"name":"x","type":["null","d"]}`),
	} {
		if _, err := (&schemas{}).entries([]byte(schema)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
