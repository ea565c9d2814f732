package merge

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/viewtest"
)

// fallbackTable has strings that start with a dictionary and go on PLAIN, and
// NULLs; every third row is deleted. It returns the stored file's visible rows.
func fallbackTable(t *testing.T, parquet fixture.ParquetOptions) (*fixture.Table, []string) {
	t.Helper()
	fields := formsSchema().Fields()
	schema := iceberg.NewSchema(0, fields[0], fields[4])
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: schema, Parquet: parquet})
	rows := formsRows(0, 5000)
	for i, r := range rows {
		rows[i] = fixture.Row{"id": r["id"], "many": r["many"]}
		if i > 2000 && i < 2400 || i > 4900 {
			rows[i]["many"] = nil
		}
	}
	tx := tab.Begin()
	f := tx.Append(rows...)
	tx.Commit()
	var gone []int64
	for i := int64(0); i < 5000; i += 3 {
		gone = append(gone, i)
	}
	tx = tab.Begin()
	tx.DeleteVector(f, gone...)
	tx.Commit()
	return tab, without(arrowRowsInOrder(t, fileBytes(t, f.Local)), gone)
}

// A chunk that falls back from its dictionary keeps both encodings, and its size
// needs no page decoded.
func TestFallbackChunk(t *testing.T) {
	for name, parquet := range map[string]fixture.ParquetOptions{
		"in a store": {DictionaryLimit: 20_000, PageSize: 9_000},
		"V1":         {DictionaryLimit: 20_000, PageSize: 9_000}, "V2": {DictionaryLimit: 20_000, PageSize: 9_000, PageV2: true},
		"gzip": {DictionaryLimit: 20_000, PageSize: 9_000, Codec: fixture.Gzip},
	} {
		t.Run(name, func(t *testing.T) {
			tab, want := fallbackTable(t, parquet)
			e, stats, counters := workEngine(Options{NoCoalesce: true})
			scan := currentScan(t, tab)
			if name == "in a store" {
				scan.Store = &storeOf{Store: scan.Store}
			}
			v := e.Parquet(scan).(*parquetView)
			if _, err := v.Size(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stats.DataPages.Load() != 0 || counters.ChunksMeasured.Load() != 0 {
				t.Errorf("size decoded %d data pages and measured %d chunks", stats.DataPages.Load(), counters.ChunksMeasured.Load())
			}
			var how strings.Builder
			if err := v.Explain(t.Context(), &how); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(how.String(), ", then plain") {
				t.Errorf("no chunk falls back:\n%s", how.String())
			}
			data := viewtest.Bytes(t, v)
			checkParquet(t, data)
			if got := arrowRowsInOrder(t, data); !slices.Equal(got, want) {
				t.Fatalf("%d rows, want %d; or others", len(got), len(want))
			}
			if n := len(parquetGoRows(t, data)); n != len(want) {
				t.Errorf("parquet-go reads %d rows, want %d", n, len(want))
			}
			encodings := footerOf(t, data).RowGroups[0].Columns[1].MetaData.Encodings
			if !slices.Contains(encodings, pqfile.Plain) || !slices.Contains(encodings, pqfile.RLEDictionary) {
				t.Errorf("encodings %v", encodings)
			}
		})
	}
}

// A rewritten chunk is made once: a second engine with the same store decodes
// nothing. Entries that are not the chunk's are made anew.
func TestKeptChunks(t *testing.T) {
	tab, want := fallbackTable(t, fixture.ParquetOptions{DictionaryLimit: 20_000, PageSize: 9_000})
	scan := currentScan(t, tab)
	persist := &memoryPersist{}
	e, _, counters := workEngine(Options{NoCoalesce: true, Persist: persist})
	data := viewtest.Bytes(t, e.Parquet(scan))
	made := counters.ChunksRewritten.Load()
	if made == 0 || counters.ChunksLoaded.Load() != 0 {
		t.Fatalf("first: %d chunks made, %d loaded", made, counters.ChunksLoaded.Load())
	}
	e, stats, counters := workEngine(Options{NoCoalesce: true, Persist: persist})
	if again := viewtest.Bytes(t, e.Parquet(scan)); !bytes.Equal(again, data) {
		t.Error("kept chunks give other bytes")
	}
	if stats.DataPages.Load() != 0 || counters.ChunksRewritten.Load() != 0 || counters.ChunksLoaded.Load() < made {
		t.Errorf("second: %d pages decoded, %d chunks made, %d of %d loaded", stats.DataPages.Load(), counters.ChunksRewritten.Load(), counters.ChunksLoaded.Load(), made)
	}
	persist.values.Range(func(key, value any) bool {
		if strings.HasPrefix(key.(string), "pages|") {
			persist.values.Store(key, value.([]byte)[1:])
		}
		return true
	})
	e, _, counters = workEngine(Options{NoCoalesce: true, Persist: persist})
	again := viewtest.Bytes(t, e.Parquet(scan))
	if got := arrowRowsInOrder(t, again); !bytes.Equal(again, data) || !slices.Equal(got, want) || counters.ChunksLoaded.Load() != 0 {
		t.Errorf("entries of another length: equal %v, %d loaded", bytes.Equal(again, data), counters.ChunksLoaded.Load())
	}
}

func fileBytes(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
