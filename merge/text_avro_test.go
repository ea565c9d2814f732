package merge

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/snapshot"
)

// An Avro data file of several blocks of text, with a column that it lacks.
func TestTextOfAvro(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.avro")
	var file bytes.Buffer
	w, err := ocf.NewWriter(&file, avro.MustParse(`{"type":"record","name":"table","fields":[
		{"name":"id","type":"int","field-id":1},{"name":"s","type":["null","string"],"field-id":2}]}`), ocf.WithCodec(ocf.SnappyCodec()))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("id,s,new\n")
	for i := range 30_000 {
		row := map[string]any{"id": int32(i), "s": nil}
		if i%3 > 0 {
			row["s"] = strings.Repeat("é", i%90)
		}
		if err := w.Encode(row); err != nil {
			t.Fatal(err)
		}
		switch s, _ := row["s"].(string); {
		case s == "" && i%3 > 0:
			fmt.Fprintf(&want, "%d,\"\",7\n", i)
		default:
			fmt.Fprintf(&want, "%d,%s,7\n", i, s)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := source.NewLocal(source.NewPool(0), dir)
	if err != nil {
		t.Fatal(err)
	}
	scan := Scan{
		Table: &snapshot.Table{}, Store: store,
		Schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
			iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String},
			iceberg.NestedField{ID: 3, Name: "new", Type: iceberg.PrimitiveTypes.Int32, InitialDefault: 7}),
		Plan: &snapshot.Plan{Files: []snapshot.File{{DataFile: &snapshot.DataFile{Path: path, Format: snapshot.Avro, Records: 30_000}}}},
	}
	v := testEngine(t, Options{}).CSV(scan)
	if got := string(viewtest.Bytes(t, v)); got != want.String() {
		t.Fatalf("%d bytes, want %d", len(got), want.Len())
	}
	viewtest.Check(t, v, func() viewtest.View { return oneHandle(t, plainEngine(Options{}).CSV(scan)) })
	var layout bytes.Buffer
	if err := v.(Explainer).Explain(t.Context(), &layout); err != nil {
		t.Fatal(err)
	}
	if got := layout.String(); !strings.HasPrefix(got, fmt.Sprintf("csv %d bytes, head 9 bytes, 1 units\n", want.Len())) ||
		!strings.Contains(got, "30000 of 30000 rows  2 blocks  row group 0 of "+path) {
		t.Error(got)
	}
}
