package merge

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// arrowRows reads a Parquet file with arrow-go and returns its rows as the
// files of testdata/expected spell them, sorted.
func arrowRows(t testing.TB, data []byte) []string {
	t.Helper()
	out := arrowRowsInOrder(t, data)
	slices.Sort(out)
	return out
}

// arrowRowsInOrder is arrowRows in the file's order.
func arrowRowsInOrder(t testing.TB, data []byte) []string {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("arrow-go: %v", err)
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatalf("arrow-go: %v", err)
	}
	if f.NumRows() == 0 {
		return nil
	}
	table, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatalf("arrow-go: %v", err)
	}
	defer table.Release()
	rows := make([]map[string]any, table.NumRows())
	for i := range rows {
		rows[i] = make(map[string]any)
	}
	for c := range int(table.NumCols()) {
		i := 0
		for _, chunk := range table.Column(c).Data().Chunks() {
			for k := range chunk.Len() {
				rows[i][table.Column(c).Name()] = arrowValue(chunk, k)
				i++
			}
		}
		if i != len(rows) {
			t.Fatalf("arrow-go: column %q has %d of %d rows", table.Column(c).Name(), i, len(rows))
		}
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = canonical(row)
	}
	return out
}

// arrowValue is value i of an array in the terms of encoding/json.
func arrowValue(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		if strings.Contains(a.ExtensionType().ExtensionName(), "uuid") {
			b := a.Storage().(*array.FixedSizeBinary).Value(i)
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		}
		return arrowValue(a.Storage(), i)
	case *array.Null:
		return nil
	case *array.Boolean:
		return a.Value(i)
	case *array.Int32:
		return json.Number(strconv.Itoa(int(a.Value(i))))
	case *array.Int64:
		return json.Number(strconv.FormatInt(a.Value(i), 10))
	case *array.Float32:
		return floatValue(float64(a.Value(i)))
	case *array.Float64:
		return floatValue(a.Value(i))
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Date32:
		return a.Value(i).ToTime().Format("2006-01-02")
	case *array.Time64:
		return timeOfDay(int64(a.Value(i)))
	case *array.Timestamp:
		return timestampText(int64(a.Value(i)), a.DataType().(*arrow.TimestampType))
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return hex.EncodeToString(a.Value(i))
	case *array.Struct:
		out := make(map[string]any)
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			out[f.Name] = arrowValue(a.Field(k), i)
		}
		return out
	case *array.Map:
		s, e := a.ValueOffsets(i)
		out := []any{}
		for k := s; k < e; k++ {
			out = append(out, []any{arrowValue(a.Keys(), int(k)), arrowValue(a.Items(), int(k))})
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(canonical(a), canonical(b)) })
		return out
	case *array.List:
		s, e := a.ValueOffsets(i)
		out := []any{}
		for k := s; k < e; k++ {
			out = append(out, arrowValue(a.ListValues(), int(k)))
		}
		return out
	}
	return fmt.Sprintf("no rule for %s", a.DataType())
}

func floatValue(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(fmt.Sprintf("%+vinity", f), "+")
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

func timeOfDay(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("15:04:05.000000")
}

func timestampText(v int64, typ *arrow.TimestampType) string {
	at, layout := time.UnixMicro(v), "2006-01-02T15:04:05.000000"
	if typ.Unit == arrow.Nanosecond {
		at, layout = time.Unix(0, v), "2006-01-02T15:04:05.000000000"
	}
	if typ.TimeZone != "" {
		layout += "+00:00"
	}
	return at.UTC().Format(layout)
}

// canonical spells a value so that equal ones are equal as text: object keys
// in order, a number in one form whether written as an integer or not.
func canonical(v any) string {
	b, err := json.Marshal(normal(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Int64(); err == nil && v != "-0" {
			return v
		}
		f, err := v.Float64()
		if err != nil {
			return v
		}
		if f == math.Trunc(f) && math.Abs(f) < 1e15 && !(f == 0 && math.Signbit(f)) {
			return json.Number(strconv.FormatInt(int64(f), 10))
		}
		return "float " + strconv.FormatFloat(f, 'g', -1, 64)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = normal(v[k])
		}
		return out
	}
	return v
}
