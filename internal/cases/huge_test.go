package cases

import (
	"runtime"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/fixture"
)

// A row group of more text than 2 GiB: the size of the CSV is known without
// having it, and no view holds all of it to serve a part.
func TestHugeTexts(t *testing.T) {
	const rows, long = 500, 5_000_000
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{DictionaryLimit: 16 << 20}})
	big := strings.Repeat("x", long)
	var all []fixture.Row
	for i := range rows {
		all = append(all, fixture.Row{"id": 1000 + i, "s": big})
	}
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(all...) })
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 250) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := open(t, tab)
	views, _ := o.views(o.scan(0, nil))
	const line = 4 + 1 + long + 1
	size, err := views.CSV.Size(t.Context())
	if err != nil || size != 5+(rows-1)*line {
		t.Fatalf("data.csv has %d bytes, not %d: %v", size, 5+(rows-1)*line, err)
	}
	for row, id := range map[int64]string{0: "1000,xx", 249: "1249,xx", 250: "1251,xx", rows - 2: "1499,xx"} {
		got := make([]byte, len(id))
		if _, err := views.CSV.ReadAt(t.Context(), got, 5+row*line); err != nil || string(got) != id {
			t.Errorf("row %d starts with %q, %v", row, got, err)
		}
	}
	if n := parquetRows(t, views.Parquet); n != rows-1 {
		t.Errorf("data.parquet has %d rows", n)
	}
	checkFooter(t, views.Parquet)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > rows*long/4 {
		t.Errorf("%d bytes were allocated for views of %d", n, rows*long)
	}
}
