package reference_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// testdata holds tables that engines wrote, with their own answers.
const testdata = "../../testdata"

// answers is what the writing engine says of a table.
type answers struct {
	Table     string `json:"table"`
	Source    string `json:"source"`
	MountPath string `json:"mount_path"`
	MustError string `json:"must_error"`
	// MayError are the kinds of files that may fail to be read.
	MayError  []string `json:"may_error"`
	Snapshots []struct {
		ID   int64  `json:"snapshot_id"`
		Rows string `json:"rows"`
	} `json:"snapshots"`
}

// TestEngines compares the naive merge of real tables with the rows that the
// writing engines see, and all views with the naive merge.
func TestEngines(t *testing.T) {
	files, err := filepath.Glob(testdata + "/expected/*/index.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d tables, %v", len(files), err)
	}
	compared := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var a answers
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if a.MustError != "" {
			continue
		}
		t.Run(a.Table, func(t *testing.T) {
			l := openTable(t, filepath.Join(testdata, a.Source, a.MountPath))
			e := engine(t, merge.Options{})
			for _, s := range a.Snapshots {
				compared += compareAnswer(t, &a, l, e, s.ID, filepath.Join(filepath.Dir(file), s.Rows))
			}
		})
	}
	if compared < 100 {
		t.Errorf("only %d snapshots compared", compared)
	}
}

// openTable opens a table's folder, or metadata file.
func openTable(t *testing.T, path string) *warehouse.Loaded {
	t.Helper()
	c, err := warehouse.Open(t.Context(), path, warehouse.Options{AllowPaths: []string{testdata + "/elsewhere", testdata + "/warehouse"}})
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := c.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := table.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// compareAnswer compares one snapshot and returns 1 if it could be read.
func compareAnswer(t *testing.T, a *answers, l *warehouse.Loaded, e *merge.Engine, id int64, file string) int {
	t.Helper()
	schema := schemaOf(t, l, id)
	got, err := rows(t.Context(), l, id, schema)
	if err != nil {
		if len(a.MayError) == 0 {
			t.Errorf("snapshot %d: %v", id, err)
		}
		return 0
	}
	var have []string
	for _, rec := range got {
		have = append(have, plain(&iceberg.StructType{FieldList: schema.Fields()}, rec))
	}
	slices.Sort(have)
	want := readRows(t, file, schema)
	if !slices.Equal(have, want) {
		t.Errorf("snapshot %d: %d rows, want %d; first difference %s", id, len(have), len(want), firstDifference(have, want))
	}
	report, _ := verify(t, e, l, id, schema)
	for _, p := range report.Problems {
		t.Errorf("snapshot %d: %s: %v", id, p.Name, p.Err)
	}
	return 1
}

// schemaOf is the schema a snapshot was written with.
func schemaOf(t *testing.T, l *warehouse.Loaded, id int64) *iceberg.Schema {
	t.Helper()
	table := l.Table()
	for i := range table.Snapshots {
		if s := &table.Snapshots[i]; s.ID == id {
			schemaID, err := l.SchemaOf(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			return table.Schema(schemaID)
		}
	}
	t.Fatalf("no snapshot %d", id)
	return nil
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return "missing " + b[i]
		case i >= len(b):
			return "extra " + a[i]
		case a[i] != b[i]:
			return fmt.Sprintf("\n%s\nwant\n%s", a[i], b[i])
		}
	}
	return "none"
}

// readRows reads an engine's rows in plain's form, sorted.
func readRows(t *testing.T, file string, schema *iceberg.Schema) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	lines := bufio.NewScanner(zr)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		d := json.NewDecoder(strings.NewReader(lines.Text()))
		d.UseNumber()
		var row any
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		out = append(out, plainJSON(&iceberg.StructType{FieldList: schema.Fields()}, row))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// plain is a canonical text of a value, made from the reference's form.
func plain(typ iceberg.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case float32:
		return number(float64(v))
	case float64:
		return number(v)
	case string:
		return strconv.Quote(v)
	case []byte:
		return fmt.Sprintf("%q", fmt.Sprintf("%x", v))
	case reference.Record:
		var parts []string
		for _, f := range typ.(*iceberg.StructType).FieldList {
			parts = append(parts, strconv.Quote(f.Name)+":"+plain(f.Type, v[f.ID]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case reference.List:
		var parts []string
		for _, e := range v {
			parts = append(parts, plain(typ.(*iceberg.ListType).Element, e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case reference.Map:
		t := typ.(*iceberg.MapType)
		var parts []string
		for _, e := range v {
			parts = append(parts, "["+plain(t.KeyType, e.Key)+","+plain(t.ValueType, e.Value)+"]")
		}
		slices.Sort(parts)
		return "[" + strings.Join(parts, ",") + "]"
	case iceberg.Decimal, iceberg.Date:
		return strconv.Quote(strings.Trim(reference.JSON(typ, v), `"`))
	case iceberg.Time, iceberg.Timestamp, iceberg.TimestampNano:
		return moment(strings.Trim(reference.JSON(typ, v), `"`))
	}
	return reference.JSON(typ, v)
}

// plainJSON is the same text made from an engine's JSON.
func plainJSON(typ iceberg.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		switch typ.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			f, err := v.Float64()
			if err != nil {
				return err.Error()
			}
			return number(f)
		}
		return v.String()
	case string:
		switch typ.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			return v
		case iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return moment(v)
		}
		return strconv.Quote(v)
	case map[string]any:
		var parts []string
		for _, f := range typ.(*iceberg.StructType).FieldList {
			parts = append(parts, strconv.Quote(f.Name)+":"+plainJSON(f.Type, v[f.Name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		if t, ok := typ.(*iceberg.MapType); ok {
			for _, pair := range v {
				p := pair.([]any)
				parts = append(parts, "["+plainJSON(t.KeyType, p[0])+","+plainJSON(t.ValueType, p[1])+"]")
			}
			slices.Sort(parts)
			return "[" + strings.Join(parts, ",") + "]"
		}
		for _, e := range v {
			parts = append(parts, plainJSON(typ.(*iceberg.ListType).Element, e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return fmt.Sprintf("%T", v)
}

func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// moment brings both spellings of a time to one: a blank before the clock, no
// zeros at its end, Z for UTC.
func moment(s string) string {
	s = strings.Replace(s, "T", " ", 1)
	zone := ""
	if rest, ok := strings.CutSuffix(s, "+00:00"); ok {
		s, zone = rest, "Z"
	} else if rest, ok := strings.CutSuffix(s, "Z"); ok {
		s, zone = rest, "Z"
	}
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return strconv.Quote(s + zone)
}
