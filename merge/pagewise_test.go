package merge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
)

// pagedTable has one file of 128 pages of 8 rows a column, of which gone are
// deleted, and the rows that remain.
func pagedTable(t *testing.T, form fixture.ParquetOptions, gone []int64) (*fixture.Table, *fixture.File, []string) {
	t.Helper()
	const rows = 1 << 10
	form.PageSize = 1 // a page ends after the writer's batch
	schema := formsSchema().Fields()
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0, schema[:9]...), Parquet: form})
	all := formsRows(0, rows)
	for _, r := range all {
		for _, name := range []string{"l", "st", "same", "full"} {
			delete(r, name)
		}
	}
	tx := tab.Begin()
	f := tx.Append(all...)
	tx.Commit()
	stored, err := os.ReadFile(f.Local)
	if err != nil {
		t.Fatal(err)
	}
	tx = tab.Begin()
	tx.DeleteVector(f, gone...)
	tx.Commit()
	return tab, f, without(arrowRowsInOrder(t, stored), gone)
}

func span(from, to int64) (out []int64) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// Pages without deleted rows stay as stored, those without live ones vanish, and
// only the others are made, whichever way the pages are found.
func TestPagesWithoutDeletesAreKept(t *testing.T) {
	gone := append(append(append([]int64{5}, span(256, 512)...), 600), span(900, 950)...)
	for name, form := range map[string]fixture.ParquetOptions{
		"dictionary": {}, "plain": {NoDictionary: true}, "fallback": {DictionaryLimit: 2000},
		"snappy": {Codec: fixture.Snappy}, "stored": {Codec: fixture.Uncompressed, NoDictionary: true},
	} {
		for _, index := range []bool{false, true} {
			for _, v2 := range []bool{false, true} {
				form.PageIndex, form.PageV2 = index, v2
				t.Run(fmt.Sprintf("%s, index %v, v2 %v", name, index, v2), func(t *testing.T) {
					tab, _, want := pagedTable(t, form, gone)
					scan := currentScan(t, tab)
					for _, how := range []string{"kept apart", "page by page", "whole", "in a store"} {
						counters := checkForm(t, how, scan, how, want)
						// Of 128 pages 32 are gone, 2 have lost a row, and 8 are within or at the
						// ends of a run; not of the boolean column. A column that falls back
						// may have been rewritten whole.
						if copied := counters.PagesCopied.Load(); how == "page by page" && (copied < 4*87 || copied > 9*87) {
							t.Errorf("%d pages were kept as stored", copied)
						} else if how == "whole" && copied != 0 {
							t.Errorf("%d pages were kept as stored with NoPages", copied)
						}
					}
				})
			}
		}
	}
}

// A read of one page of many makes the run that it is in, and no other.
func TestOnePageIsMade(t *testing.T) {
	tab, _, _ := pagedTable(t, fixture.ParquetOptions{PageIndex: true}, []int64{5, 100, 410, 650})
	e, stats, counters := workEngine(Options{Statistics: StatisticsNone})
	e.limits.keptRows, e.limits.pieceBytes = 1, 1
	v := e.Parquet(currentScan(t, tab)).(*parquetView)
	l, err := v.layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &l.footer.groups[0].chunks[0]
	at, made := c.offset, int64(0)
	for _, s := range c.segments {
		if _, ok := s.(*rewrite); ok && made == 0 {
			if _, err := v.ReadAt(t.Context(), make([]byte, 10), at); err != nil {
				t.Fatal(err)
			}
			made++
		}
		at += s.size()
	}
	if n := counters.ChunksRewritten.Load(); n != 1 || stats.DataPages.Load() != 1 {
		t.Errorf("a read in one page made %d runs of %d pages: %s", n, stats.DataPages.Load(), c.how())
	}
}

// An offset index that is not of its pages is found out: rows are never shown by
// it.
func TestLyingOffsetIndex(t *testing.T) {
	for name, lie := range map[string]func(*pqfile.OffsetIndex){
		"rows are moved":       func(x *pqfile.OffsetIndex) { x.Pages[1].FirstRow -= 3 },
		"sizes without header": func(x *pqfile.OffsetIndex) { x.Pages[3].CompressedSize -= 20 },
	} {
		t.Run(name, func(t *testing.T) {
			tab, _, want := pagedTable(t, fixture.ParquetOptions{PageIndex: true, NoDictionary: true}, []int64{5, 610})
			scan := currentScan(t, tab)
			e := NewEngine(Options{Deletes: deletes.NewResolver(deletes.Options{}), NoCoalesce: true, Statistics: StatisticsNone})
			e.limits.keptRows = 1
			inputs, err := e.openInputs(t.Context(), scan, scan.Plan.Files)
			if err != nil {
				t.Fatal(err)
			}
			in := inputs[0]
			view, err := pqfile.ViewOf(scan.Schema)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.project(scan, view); err != nil {
				t.Fatal(err)
			}
			leaf := view.Leaves[0]
			groups := sourcesOf(inputs)
			r := &rewrite{engine: e, sources: groups[:1], form: pageForm{leaf: leaf, codec: pqfile.Zstd, rows: fixedRows(8), bytes: 1 << 30}}
			if r.encoded = r.copyable(); r.encoded == nil {
				t.Fatal("not copyable")
			}
			r.from, r.to = r.encoded.Start, r.encoded.Start+r.encoded.Length
			index, err := r.encoded.OffsetIndex(t.Context())
			if err != nil || index == nil {
				t.Fatal(index, err)
			}
			honest := r.indexed(index)
			lie(index)
			pages := r.indexed(index)
			if len(honest) != 128 || name != "rows are moved" {
				if len(honest) != 128 || pages != nil {
					t.Fatalf("%d pages, and %d by a lie", len(honest), len(pages))
				}
				return
			}
			c := &chunk{}
			if ok, err := r.layPages(t.Context(), c, pages); !ok || err != nil {
				t.Fatal(ok, err)
			}
			wrong := 0
			for _, s := range c.segments {
				if err := s.readAt(t.Context(), nil, make([]byte, s.size()), 0); errors.Is(err, ErrCorrupt) || errors.Is(err, pqfile.ErrCorrupt) {
					wrong++
				} else if err != nil {
					t.Errorf("%v, want ErrCorrupt", err)
				}
			}
			if wrong == 0 {
				t.Errorf("pages of other rows are served (%d rows)", len(want))
			}
		})
	}
}

// Pages that are not as the footer says are errors, not rows.
func TestCopiedPagesHostile(t *testing.T) {
	node := &pqfile.Node{Type: pqfile.Int64}
	text := &pqfile.Node{Type: pqfile.ByteArray}
	le := binary.LittleEndian
	live := []deletes.Range{{Start: 0, End: 3}}
	for name, c := range map[string]struct {
		leaf *pqfile.Node
		form pageForm
		page pqfile.PageData
	}{
		"too few values":    {node, pageForm{}, pqfile.PageData{NumValues: 3, Values: make([]byte, 23)}},
		"text is cut":       {text, pageForm{}, pqfile.PageData{NumValues: 3, Values: le.AppendUint32(nil, 4)}},
		"text without end":  {text, pageForm{}, pqfile.PageData{NumValues: 3, Values: le.AppendUint32(nil, 1<<31)}},
		"another encoding":  {node, pageForm{}, pqfile.PageData{NumValues: 3, Encoding: pqfile.DeltaBinaryPacked}},
		"coded among plain": {node, pageForm{}, pqfile.PageData{NumValues: 3, Encoding: pqfile.RLEDictionary, Values: []byte{1, 3, 1}}},
		"plain among coded": {node, pageForm{dict: true, dictN: 2}, pqfile.PageData{NumValues: 3, Values: make([]byte, 24)}},
		"33 bits":           {node, pageForm{dict: true, dictN: 2}, pqfile.PageData{NumValues: 3, Encoding: pqfile.RLEDictionary, Values: []byte{33, 6, 1}}},
		"index too wide":    {node, pageForm{dict: true, dictN: 2}, pqfile.PageData{NumValues: 3, Encoding: pqfile.RLEDictionary, Values: []byte{2, 6, 2}}},
		"index page is cut": {node, pageForm{dict: true, dictN: 2}, pqfile.PageData{NumValues: 3, Encoding: pqfile.RLEDictionary, Values: []byte{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &pageWriter{}
			c.form.leaf = c.leaf
			w.reset(c.form, true, true)
			copier := pageCopier{w: w, leaf: c.leaf, copyScratch: &w.scratch}
			from, err := copier.open(&c.page)
			if err == nil {
				err = from.copyTo(w, append([]deletes.Range{}, live...))
			}
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
}

// What is read of some columns decodes the chunks of those columns, and what is
// read ahead past a chunk's end is of the same column.
func TestFourColumnsDecodeFourColumns(t *testing.T) {
	const groups, readAhead = 6, 8 << 10
	schema := formsSchema().Fields()
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0, schema[:9]...), Parquet: fixture.ParquetOptions{RowGroup: 20_000}})
	all := formsRows(0, 20_000*groups)
	for _, r := range all {
		for _, name := range []string{"l", "st", "same", "full"} {
			delete(r, name)
		}
	}
	tx := tab.Begin()
	f := tx.Append(all...)
	tx.Commit()
	var gone []int64
	for i := int64(3); i < 20_000*groups; i += 20 {
		gone = append(gone, i)
	}
	tx = tab.Begin()
	tx.DeleteVector(f, gone...)
	tx.Commit()
	e, stats, counters := workEngine(Options{Statistics: StatisticsNone})
	v := e.Parquet(currentScan(t, tab)).(*parquetView)
	l, err := v.layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	columns := []int{0, 2, 4, 6}
	for i := range l.footer.groups {
		for n, j := range columns {
			c := &l.footer.groups[i].chunks[j]
			size := c.size
			if i+1 < groups {
				size += readAhead // of the last group's chunk something else follows
				if next := &l.footer.groups[i+1].chunks[j]; c.offset+c.size != next.offset {
					t.Errorf("column %d of group %d is not followed by that of the next", j, i)
				}
			}
			if _, err := v.ReadAt(t.Context(), make([]byte, size), c.offset); err != nil {
				t.Fatal(err)
			}
			if want := int64(len(columns) * min(i+2, groups)); counters.ChunksRewritten.Load() > want {
				t.Fatalf("%d chunks were made of %d groups and %d columns", counters.ChunksRewritten.Load(), i+1, n+1)
			}
		}
	}
	if n := counters.ChunksRewritten.Load(); n != int64(groups*len(columns)) || stats.Chunks.Load() != n {
		t.Errorf("%d chunks were made and %d decoded, want %d", n, stats.Chunks.Load(), groups*len(columns))
	}
	if how := l.footer.groups[0].chunks[0].how(); !strings.Contains(how, "as stored") {
		t.Errorf("the dictionary of a chunk is made: %s", how)
	}
}
