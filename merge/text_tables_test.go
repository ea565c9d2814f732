package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/viewtest"
)

// Every snapshot of the tables has, as text, the rows that the writing engine
// saw, in the forms that the contract gives.
func TestTextOfRealTables(t *testing.T) {
	read := 0
	for _, x := range expectedTables(t) {
		if strings.HasPrefix(x.Source, "object-store") {
			continue
		}
		l := x.load(t)
		if l == nil {
			continue
		}
		e := testEngine(t, Options{})
		for i := range l.Table().Snapshots {
			s := &l.Table().Snapshots[i]
			scan := scanOf(t, l, s)
			var want []string
			for _, w := range x.Snapshots {
				if w.ID == s.ID {
					want = x.rows(t, w.Rows)
				}
			}
			for name, v := range map[string]View{"csv": e.CSV(scan), "jsonl": e.JSONL(scan)} {
				what := fmt.Sprintf("%s, snapshot %d, %s", x.Name, s.ID, name)
				if _, err := v.Size(t.Context()); needsORC(err) {
					continue
				}
				got, expect := textRows(t, scan.Schema, viewtest.Bytes(t, v), name == "csv"), want
				if len(scan.Schema.Fields()) == 1 && name == "csv" {
					expect = blankRows(want)
				}
				if !slices.Equal(got, expect) {
					t.Errorf("%s: %d rows, want %d: %s", what, len(got), len(expect), firstDifference(got, expect))
				}
				read++
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d views were compared", read)
	}
}

// blankRows writes NULL as the empty string, as a one-column CSV does.
func blankRows(rows []string) []string {
	out := slices.Clone(rows)
	for i := range out {
		out[i] = strings.Replace(out[i], ":null}", `:""}`, 1)
	}
	slices.Sort(out)
	return out
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " is not " + b[i]
		}
	}
	return ""
}

// textRows reads a text view back to rows in the expectations' spelling.
func textRows(t *testing.T, schema *iceberg.Schema, data []byte, csv bool) []string {
	t.Helper()
	var out []string
	lines := bytes.SplitAfter(data, []byte("\n"))
	if csv {
		lines = csvLines(t, data)[1:]
	}
	for _, line := range lines {
		if len(line) == 0 {
			continue
		}
		row := map[string]any{}
		if csv {
			fields, err := splitCSVRaw(string(line))
			if err != nil || len(fields) != len(schema.Fields()) {
				t.Fatalf("%q: %d fields %v", line, len(fields), err)
			}
			for i, f := range schema.Fields() {
				row[f.Name] = csvValue(t, fields[i], f.Type)
			}
		} else {
			parsed := parseJSON(t, line).(map[string]any)
			for _, f := range schema.Fields() {
				v, ok := parsed[f.Name]
				if !ok {
					t.Fatalf("%s has no key %q", line, f.Name)
				}
				row[f.Name] = expectedForm(t, v, f.Type)
			}
		}
		out = append(out, canonical(row))
	}
	slices.Sort(out)
	return out
}

func parseJSON(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

// csvLines splits at the line ends outside quotes.
func csvLines(t *testing.T, data []byte) [][]byte {
	t.Helper()
	var out [][]byte
	quoted, start := false, 0
	for i, c := range data {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\n' && !quoted:
			out = append(out, data[start:i+1])
			start = i + 1
		}
	}
	if start != len(data) {
		t.Fatalf("the last line does not end: %q", data[start:])
	}
	return out
}

// splitCSVRaw splits a line; NULL is the field "\x00NULL".
func splitCSVRaw(line string) ([]string, error) {
	if line == "\n" {
		return nil, nil
	}
	fields, err := splitCSV(line, ',')
	quoted, at := false, 0
	for i := range len(line) {
		switch {
		case line[i] == '"':
			quoted = !quoted
		case !quoted && (line[i] == ',' || line[i] == '\n'):
			if (i == 0 || line[i-1] == ',') && fields[at] == "" {
				fields[at] = "\x00NULL"
			}
			at++
		}
	}
	return fields, err
}

// csvValue turns a field to the expected form.
func csvValue(t *testing.T, field string, typ iceberg.Type) any {
	if field == "\x00NULL" {
		return nil
	}
	switch typ.(type) {
	case *iceberg.StructType, *iceberg.ListType, *iceberg.MapType:
		return expectedForm(t, parseJSON(t, []byte(field)), typ)
	case iceberg.BooleanType:
		return expectedForm(t, field == "true", typ)
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.Float32Type, iceberg.Float64Type, iceberg.DecimalType:
		if strings.Trim(field, "NaInfity-") == "" {
			return field
		}
		return expectedForm(t, json.Number(field), typ)
	}
	return expectedForm(t, field, typ)
}

// expectedForm turns a JSON value of the views to the expectations' form.
func expectedForm(t *testing.T, v any, typ iceberg.Type) any {
	if v == nil {
		return nil
	}
	switch typ := typ.(type) {
	case *iceberg.StructType:
		out := map[string]any{}
		for _, f := range typ.FieldList {
			out[f.Name] = expectedForm(t, v.(map[string]any)[f.Name], f.Type)
		}
		return out
	case *iceberg.ListType:
		out := []any{}
		for _, e := range v.([]any) {
			out = append(out, expectedForm(t, e, typ.Element))
		}
		return out
	case *iceberg.MapType:
		return expectedMap(t, v, typ)
	case iceberg.DecimalType:
		return string(v.(json.Number))
	case iceberg.Float32Type:
		if n, ok := v.(json.Number); ok {
			f, err := strconv.ParseFloat(string(n), 32)
			if err != nil && !math.IsInf(f, 0) {
				t.Fatal(err)
			}
			return floatValue(f)
		}
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return expectedTime(t, v.(string), ".000000")
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return expectedTime(t, v.(string), ".000000000")
	case iceberg.TimeType:
		at, err := time.Parse("15:04:05.999999", v.(string))
		if err != nil {
			t.Fatal(err)
		}
		return at.Format("15:04:05.000000")
	}
	return v
}

// expectedTime respells 2026-11-30 02:53:19.5Z as 2026-11-30T02:53:19.500000+00:00.
func expectedTime(t *testing.T, s, fraction string) any {
	text, utc := strings.CutSuffix(s, "Z")
	at, err := time.Parse("2006-01-02 15:04:05.999999999", text)
	if err != nil {
		t.Fatal(err)
	}
	out := at.Format("2006-01-02T15:04:05" + fraction)
	if utc {
		out += "+00:00"
	}
	return out
}

// expectedMap turns a map to [key, value] pairs sorted by the key's JSON.
func expectedMap(t *testing.T, v any, typ *iceberg.MapType) any {
	pairs := [][2]any{}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			pairs = append(pairs, [2]any{k, expectedForm(t, e, typ.ValueType)})
		}
	case []any:
		for _, e := range v {
			e := e.(map[string]any)
			pairs = append(pairs, [2]any{expectedForm(t, e["key"], typ.KeyType), expectedForm(t, e["value"], typ.ValueType)})
		}
	}
	sort.Slice(pairs, func(i, j int) bool { return canonical(pairs[i][0]) < canonical(pairs[j][0]) })
	out := []any{}
	for _, p := range pairs {
		out = append(out, []any{p[0], p[1]})
	}
	return out
}
