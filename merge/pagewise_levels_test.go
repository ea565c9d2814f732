package merge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/viewtest"
)

// A page is kept only if its levels are those of the view: one of a file whose
// columns are REQUIRED has none, and the view's are OPTIONAL, at whatever depth.
func TestPagesOfOtherLevelsAreMade(t *testing.T) {
	gone := append(append([]int64{5}, span(256, 512)...), 600)
	for name, form := range map[string]fixture.ParquetOptions{
		"dictionary": {}, "plain": {NoDictionary: true}, "fallback": {DictionaryLimit: 2000},
		"v2": {PageV2: true}, "snappy, indexed": {Codec: fixture.Snappy, PageIndex: true},
	} {
		t.Run(name, func(t *testing.T) {
			form.PageSize = 1
			tight := form
			tight.Tighten = true
			all := formsSchema().Fields()
			schema := append(all[:5:5], all[10]) // st, a struct
			tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0, schema...), Parquet: form})
			full, some := rowsOf(0, 1<<10, false), rowsOf(1<<10, 64, true)
			tx := tab.Begin()
			f := tx.AppendFile(fixture.FileOptions{Parquet: &tight}, full...)
			tx.Append(some...)
			tx.Commit()
			stored := arrowRowsInOrder(t, viewtest.Bytes(t, NewEngine(Options{NoCoalesce: true}).Parquet(currentScan(t, tab))))
			tx = tab.Begin()
			tx.DeleteVector(f, gone...)
			tx.Commit()
			want := without(stored, gone)
			if len(want) != 1<<10+64-len(gone) || slices.Contains(want, stored[5]) {
				t.Fatalf("%d rows expected", len(want))
			}
			for _, how := range []string{"kept apart", "page by page"} {
				checkForm(t, how, currentScan(t, tab), how, want)
			}
		})
	}
}

// rowsOf makes rows, some of whose fields are NULL if that is asked for.
func rowsOf(first, n int, nulls bool) []fixture.Row {
	rows := make([]fixture.Row, n)
	for k := range rows {
		i := first + k
		rows[k] = fixture.Row{"id": int64(i), "i": int32(i % 97), "d": float64(i) / 7, "few": fmt.Sprintf("few %d", i%13), "many": fmt.Sprintf("many %d", i*i)}
		rows[k]["st"] = fixture.Row{"x": int64(i % 50), "y": fmt.Sprintf("y %d", i%11)}
		if nulls && i%3 == 0 {
			for _, name := range []string{"i", "d", "few", "many", "st"} {
				delete(rows[k], name)
			}
		}
	}
	return rows
}
