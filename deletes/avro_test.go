package deletes

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/snapshot"
)

// avroOf writes rows as an Avro file.
func avroOf(t testing.TB, schema string, rows ...map[string]any) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	avroPositions = `{"type":"record","name":"d","fields":[
 {"name":"file_path","type":"string","field-id":2147483546},
 {"name":"pos","type":"long","field-id":2147483545}]}`
	avroKeys = `{"type":"record","name":"r","fields":[
 {"name":"v","type":["null","int"],"field-id":1},
 {"name":"other","type":"string","field-id":2}]}`
)

func avroPosition(path string, pos int64) map[string]any {
	return map[string]any{"file_path": path, "pos": pos}
}

func TestAvroPositions(t *testing.T) {
	l := newLab()
	l.files["data"] = nil
	good := avroOf(t, avroPositions, avroPosition("data", 5), avroPosition("b", 1), avroPosition("data", 4))
	d := l.addPositions(good)
	d.Format, d.Records = snapshot.Avro, 3
	l.want(t, "[{4 6}]")
	for name, bad := range map[string][]byte{
		"cut":      good[:len(good)-1],
		"no block": good[:afterHeader(good)],
		"no Avro":  []byte("file_path,pos"),
		"negative": avroOf(t, avroPositions, avroPosition("data", -1)),
		"no pos":   avroOf(t, `{"type":"record","name":"d","fields":[{"name":"file_path","type":"string","field-id":2147483546}]}`, map[string]any{"file_path": "data"}),
	} {
		l.files["positions-0"] = bad
		if got, err := l.resolve(NewResolver(Options{})); !errors.Is(err, ErrCorrupt) || strings.Count(err.Error(), "positions-0") != 1 {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// afterHeader is where the blocks of a file of one block begin.
func afterHeader(b []byte) int { return bytes.Index(b, b[len(b)-16:]) + 16 }

// TestCutAvroEquality: files that lost all their rows, which nothing but their
// manifests shows.
func TestCutAvroEquality(t *testing.T) {
	row := func(v any) map[string]any { return map[string]any{"v": v, "other": "x"} }
	data, keys := avroOf(t, avroKeys, row(int32(1)), row(nil)), avroOf(t, avroKeys, row(int32(1)))
	for name, files := range map[string][2][]byte{
		"data": {data[:afterHeader(data)], keys}, "equality-0": {data, keys[:afterHeader(keys)]}, "": {data, keys},
	} {
		l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int32)))
		l.file.Format, l.file.Records, l.files["data"] = snapshot.Avro, 2, files[0]
		d := l.addEquality(files[1], 1)
		d.Format, d.Records = snapshot.Avro, 1
		got, err := l.resolve(NewResolver(Options{}))
		if name == "" && (got != "[{0 1}]" || err != nil) || name != "" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q cut: %s, %v", name, got, err)
		}
	}
}

// TestAvroEquality: data and deletes in Avro and Parquet, the key promoted
// since the Avro files were written.
func TestAvroEquality(t *testing.T) {
	row := func(v any) map[string]any { return map[string]any{"v": v, "other": "x"} }
	avroData := avroOf(t, avroKeys, row(int32(1)), row(nil), row(int32(2)), row(int32(1)))
	parquetData := parquetOf(t, 2, ones[int64](int64(1), nil, int64(2), int64(1)))
	for _, data := range []snapshot.Format{snapshot.Avro, snapshot.Parquet} {
		for _, keys := range []snapshot.Format{snapshot.Avro, snapshot.Parquet} {
			l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int32)), iceberg.NewSchema(1, field(1, "v", iceberg.PrimitiveTypes.Int64)))
			l.file.Format, l.files["data"] = data, parquetData
			if data == snapshot.Avro {
				l.files["data"] = avroData
			}
			b := parquetOf(t, 9, ones[int64](int64(1), nil))
			if keys == snapshot.Avro {
				b = avroOf(t, avroKeys, row(int32(1)), row(nil))
			}
			l.addEquality(b, 1).Format = keys
			l.want(t, "[{0 2} {3 4}]")
		}
	}
}
