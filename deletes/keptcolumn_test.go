package deletes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// TestKeptColumnsOfLongRows: a short key column is kept, in longer batches than
// those in which it is then matched beside a column of long texts.
func TestKeptColumnsOfLongRows(t *testing.T) {
	p := iceberg.PrimitiveTypes
	type row struct {
		N *int64  `parquet:"n,optional,id(1)"`
		S *string `parquet:"s,optional,id(2)"`
	}
	const rows = 3 * batchRows
	text := strings.Repeat("x", 4000)
	data := make([]row, rows)
	for i := range data {
		data[i].S = &text
		if i%7 != 6 { // NULL in some rows: values and rows are counted apart
			data[i].N = ptr(int64(i))
		}
	}
	if got := batchOf(rows, int64(rows*len(text))); got >= batchRows {
		t.Fatalf("batches of %d rows", got)
	}
	l := newLab(iceberg.NewSchema(0, field(1, "n", p.Int64), field(2, "s", p.String)))
	l.files["data"] = parquetOf(t, rows, data)
	dead := []int{0, 4_100, batchRows - 1, batchRows, batchRows + 1, 2*batchRows + 77, rows - 1}
	var keys []row
	want := []Range{}
	for _, i := range dead {
		if data[i].N == nil {
			t.Fatalf("row %d has no key", i)
		}
		keys = append(keys, row{N: data[i].N, S: &text})
		if n := len(want); n > 0 && want[n-1].End == int64(i) {
			want[n-1].End++
		} else {
			want = append(want, Range{Start: int64(i), End: int64(i) + 1})
		}
	}
	l.addEquality(parquetOf(t, 100, keys), 1, 2)
	r := NewResolver(Options{Cache: &mapCache{}})
	for range 2 {
		if got, err := l.resolve(r); err != nil || got != fmt.Sprint(want) {
			t.Errorf("deleted %s, want %v; %v", got, want, err)
		}
		l.addEquality(parquetOf(t, 100, []row{{N: ptr(int64(1)), S: ptr("no row has this")}}), 1, 2) // reads what was kept
	}
}
