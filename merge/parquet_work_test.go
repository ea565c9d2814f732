package merge

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/viewtest"
)

// workEngine returns an engine whose work is counted.
func workEngine(opt Options) (*Engine, *pqfile.Stats, *Counters) {
	stats, counters := &pqfile.Stats{}, &Counters{}
	opt.Stats, opt.Counters = stats, counters
	opt.Cache, opt.Deletes = &mapCache{}, deletes.NewResolver(deletes.Options{})
	return NewEngine(opt), stats, counters
}

// sortedTable has row groups of 20,000 rows, sorted by id, of which one has lost
// rows.
func sortedTable(t *testing.T, gone ...int64) *fixture.Table {
	t.Helper()
	schema := formsSchema().Fields()
	flat := fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0, schema[:9]...), Parquet: fixture.ParquetOptions{RowGroup: 20_000}}
	tab := fixture.New(t.TempDir(), flat)
	rows := formsRows(0, 60_000)
	for _, r := range rows {
		for _, name := range []string{"l", "st", "same", "full"} {
			delete(r, name)
		}
	}
	tx := tab.Begin()
	f := tx.Append(rows...)
	tx.Commit()
	if len(gone) > 0 {
		tx = tab.Begin()
		tx.DeleteVector(f, gone...)
		tx.Commit()
	}
	return tab
}

// The size of a view of flat columns with deletion vectors decodes no page, and
// reading one column decodes that column alone.
func TestSizeDecodesNoPage(t *testing.T) {
	scan := currentScan(t, sortedTable(t, 20_005, 20_006, 39_000))
	e, stats, counters := workEngine(Options{Statistics: StatisticsNone})
	v := e.Parquet(scan).(*parquetView)
	if _, err := v.Size(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := stats.DataPages.Load(); n != 0 || counters.ChunksMeasured.Load() != 0 || counters.ChunksRewritten.Load() != 0 {
		t.Fatalf("size decoded %d data pages, measured %d chunks", n, counters.ChunksMeasured.Load())
	}
	l, err := v.layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := &l.footer.groups[1]
	for i := range g.chunks {
		if g.chunks[i].kind != rewrittenChunk && g.chunks[i].reason == "" {
			t.Errorf("column %d of the group with deletes is %v", i, g.chunks[i].kind)
		}
	}
	for _, other := range []int{0, 2} {
		for i := range l.footer.groups[other].chunks {
			if k := l.footer.groups[other].chunks[i].kind; k != rawChunk {
				t.Errorf("group %d column %d is %v, want raw", other, i, k)
			}
		}
	}
	p := make([]byte, 100)
	c := &g.chunks[2]
	if _, err := v.ReadAt(t.Context(), p, c.offset+c.dictionary-50); err != nil {
		t.Fatal(err)
	}
	if n := counters.ChunksRewritten.Load(); n != 1 {
		t.Errorf("a read in one chunk rewrote %d", n)
	}
	if n := counters.RawBytes.Load(); n != 50 {
		t.Errorf("a read of 50 bytes of a dictionary page, and 50 of a rewritten page, served %d raw bytes", n)
	}
}

// Statistics are computed for columns whose row groups are apart, when the
// footer is read, and kept.
func TestStatisticsPolicy(t *testing.T) {
	scan := currentScan(t, sortedTable(t, 20_000, 20_001, 39_999))
	for _, c := range []struct {
		name   string
		policy Statistics
		with   []string // columns that have statistics
	}{
		// day is clustered as well; wide and none are all NULL.
		{"exact", StatisticsExact, []string{"id", "day", "wide", "none"}},
		{"none", StatisticsNone, nil},
		{"all", StatisticsAll, []string{"id", "i", "d", "few", "many", "b", "day", "wide", "none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			persist := &memoryPersist{}
			e, stats, _ := workEngine(Options{Statistics: c.policy, Persist: persist})
			v := e.Parquet(scan)
			size, err := v.Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if stats.DataPages.Load() != 0 {
				t.Errorf("size decoded %d data pages", stats.DataPages.Load())
			}
			data := viewtest.Bytes(t, v)
			if int64(len(data)) != size {
				t.Errorf("%d bytes, size %d", len(data), size)
			}
			checkParquet(t, data)
			m := footerOf(t, data)
			for i, col := range m.RowGroups[1].Columns {
				name := strings.Join(col.MetaData.Path, ".")
				want := false
				for _, w := range c.with {
					want = want || w == name
				}
				if got := m.RowGroups[0].Columns[i].MetaData.Statistics != nil; got != want {
					t.Errorf("column %s: statistics %v, want %v", name, got, want)
				}
			}
			again, stats, _ := workEngine(Options{Statistics: c.policy, Persist: persist})
			tail := make([]byte, 100)
			if _, err := again.Parquet(scan).ReadAt(t.Context(), tail, size-100); err != nil {
				t.Fatal(err)
			}
			if stats.DataPages.Load() != 0 || !bytes.Equal(tail, data[size-100:]) {
				t.Errorf("kept statistics: %d data pages decoded, footer equal %v", stats.DataPages.Load(), bytes.Equal(tail, data[size-100:]))
			}
		})
	}
}

// memoryPersist keeps values in memory.
type memoryPersist struct{ values sync.Map }

func (p *memoryPersist) Get(key string) ([]byte, bool) {
	v, ok := p.values.Load(key)
	if !ok {
		return nil, false
	}
	return v.([]byte), true
}

func (p *memoryPersist) Put(key string, value []byte) { p.values.Store(key, value) }

func footerOf(t testing.TB, data []byte) *pqfile.FileMetaData {
	t.Helper()
	f, err := pqfile.Open(context.Background(), memoryObject(data), pqfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Metadata
}
