package deletes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"
)

// formRow has a column of each form that key columns are read in.
type formRow struct {
	Plain  *int64   `parquet:"plain,optional,id(1)"`
	Coded  *int64   `parquet:"coded,optional,dict,id(2)"`
	Text   *string  `parquet:"text,optional,dict,id(3)"`
	Free   *string  `parquet:"free,optional,id(4)"`
	Double *float64 `parquet:"double,optional,dict,id(5)"`
	Flag   *bool    `parquet:"flag,optional,id(6)"`
	Narrow *int32   `parquet:"narrow,optional,dict,id(7)"` // a long in the table
}

func formSchema() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchema(0, field(1, "plain", p.Int64), field(2, "coded", p.Int64), field(3, "text", p.String), field(4, "free", p.String),
		field(5, "double", p.Float64), field(6, "flag", p.Bool), field(7, "narrow", p.Int64))
}

// formKeys are the columns' values of a row, by field id.
func (r *formRow) key(ids []int) string {
	var key []any
	for _, id := range ids {
		switch id {
		case 1:
			key = append(key, text(r.Plain))
		case 2:
			key = append(key, text(r.Coded))
		case 3:
			key = append(key, text(r.Text))
		case 4:
			key = append(key, text(r.Free))
		case 5:
			key = append(key, text(r.Double))
		case 6:
			key = append(key, text(r.Flag))
		case 7:
			key = append(key, text(r.Narrow))
		}
	}
	return fmt.Sprintf("%q", key)
}

func text[T any](v *T) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint("=", *v)
}

func randomForms(r *rand.Rand, n int, nulls float64) []formRow {
	rows := make([]formRow, n)
	for i := range rows {
		if r.Float64() >= nulls {
			rows[i].Plain = ptr(r.Int64N(40_000))
		}
		if r.Float64() >= nulls {
			rows[i].Coded = ptr(r.Int64N(2_000))
		}
		if r.Float64() >= nulls {
			rows[i].Text = ptr(fmt.Sprint("t", r.IntN(300)))
		}
		if r.Float64() >= nulls {
			rows[i].Free = ptr(fmt.Sprint("", r.IntN(20_000)))
		}
		if r.Float64() >= nulls {
			rows[i].Double = ptr([]float64{0, math.Copysign(0, -1), 1.5, math.NaN(), float64(r.IntN(50))}[r.IntN(5)])
		}
		if r.Float64() >= nulls {
			rows[i].Flag = ptr(r.IntN(2) == 0)
		}
		if r.Float64() >= nulls {
			rows[i].Narrow = ptr(int32(r.IntN(90_000)))
		}
	}
	return rows
}

// TestEqualityFormsAsNaive resolves random keys over columns of all forms,
// decoded anew or kept, at once or in passes, as comparing every row with every
// key does.
func TestEqualityFormsAsNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, nulls := range []float64{0, 0.2} {
		data := randomForms(r, 24_000, nulls)
		stored := parquetOf(t, 10_000, data, parquet.PageBufferSize(16<<10))
		for _, ids := range [][]int{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {1, 3}, {2, 3}, {4, 7}, {6, 5}, {2, 3, 6}, {1, 4, 5, 7}} {
			l := newLab(formSchema())
			l.files["data"] = stored
			want := map[string]bool{}
			for range 3 {
				keys := randomForms(r, 200, nulls)
				for range 9_000 {
					keys = append(keys, data[r.IntN(len(data))])
				}
				if slices.Contains([]int{3, 5, 6}, ids[len(ids)-1]) && len(ids) == 1 {
					keys = keys[:3]
				}
				for i := range keys {
					want[keys[i].key(ids)] = true
				}
				l.addEquality(parquetOf(t, 5_000, keys), ids...)
			}
			counters := map[string]*Counters{"nothing kept": {}, "kept": {}, "in passes": {}}
			for name, opt := range map[string]Options{"nothing kept": {}, "kept": {Cache: &mapCache{}}, "in passes": {Cache: &mapCache{}, KeyBytes: 1}} {
				opt.Counters = counters[name]
				p, err := NewResolver(opt).Resolve(context.Background(), l.table, l, &l.file)
				if err != nil {
					t.Fatal(err)
				}
				for row := range data {
					if deleted := p.CountRange(int64(row), int64(row)+1) == 1; deleted != want[data[row].key(ids)] {
						t.Fatalf("%s, key %v: row %d, %s: deleted %v", name, ids, row, data[row].key(ids), deleted)
					}
				}
			}
			// A file of 9,200 keys is read in two parts of one batch each, and each run
			// of files in a pass of its own. Small files have too few keys for either.
			one, passes := counters["kept"].Passes.Load(), counters["in passes"].Passes.Load()
			if one != 1 || passes < 1 || len(ids) > 1 && passes != 6 {
				t.Errorf("key %v: %d passes, with little memory %d", ids, one, passes)
			}
		}
	}
}

// TestGrownDeletesReadKeptColumns: what a later delete file costs is the file
// and the rows that it deletes.
func TestGrownDeletesReadKeptColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	data := randomForms(r, 50_000, 0.1)
	l := newLab(formSchema())
	l.files["data"] = parquetOf(t, 20_000, data)
	l.addEquality(parquetOf(t, 1_000, data[:1_000]), 1, 2)
	counters := &Counters{}
	resolver := NewResolver(Options{Cache: &mapCache{}, Counters: counters})
	if _, err := l.resolve(resolver); err != nil {
		t.Fatal(err)
	}
	if n := counters.KeptColumns.Load(); n != 0 {
		t.Errorf("%d columns known beforehand", n)
	}
	l.addEquality(parquetOf(t, 1_000, data[1_000:2_000]), 1, 2)
	if _, err := l.resolve(resolver); err != nil {
		t.Fatal(err)
	}
	if files, columns := counters.KeyFiles.Load(), counters.KeptColumns.Load(); files != 2 || columns != 6 {
		t.Errorf("%d delete files read, %d kept columns used, want 2 and those of two columns in three row groups", files, columns)
	}
}

// TestEqualityKeysOnce: many data files share the keys of a delete file.
func TestEqualityKeysOnce(t *testing.T) {
	data := randomForms(rand.New(rand.NewPCG(8, 8)), 1_000, 0)
	l := newLab(formSchema())
	l.addEquality(parquetOf(t, 100, data[:500]), 1)
	counters := &Counters{}
	resolver := NewResolver(Options{Cache: &mapCache{}, Counters: counters})
	for i := range 20 {
		l.file.DataFile = ptr(*l.file.DataFile)
		l.file.Path = fmt.Sprint("data-", i)
		l.files[l.file.Path] = parquetOf(t, 500, data[i*50:])
		if _, err := l.resolve(resolver); err != nil {
			t.Fatal(err)
		}
	}
	if n := counters.KeyFiles.Load(); n != 1 {
		t.Errorf("the delete file was read %d times", n)
	}
}

// TestEqualityNearlyAll: a delete file that leaves five rows of 50,000.
func TestEqualityNearlyAll(t *testing.T) {
	type row struct {
		V int64 `parquet:"v,id(1)"`
	}
	data := make([]row, 50_000)
	var keys []row
	var want []Range
	for i := range data {
		data[i].V = int64(i) * 7919 % 50_000
		if i%10_000 == 1234 {
			want = append(want, Range{int64(i), int64(i) + 1})
		} else {
			keys = append(keys, data[i])
		}
	}
	rand.New(rand.NewPCG(9, 9)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 20_000, data)
	l.addEquality(parquetOf(t, 1<<20, keys), 1)
	for _, bytes := range []int64{0, 1, 300_000} {
		p, err := NewResolver(Options{KeyBytes: bytes}).Resolve(context.Background(), l.table, l, &l.file)
		if err != nil || p.Count() != 49_995 || !slices.Equal(p.LiveRanges(nil, 0, 50_000), want) {
			t.Errorf("%d bytes for keys: %d rows deleted, %v", bytes, p.Count(), err)
		}
	}
}

// TestEqualityByDictionary: row groups whose dictionary has no key are left
// where they are, if all their pages are coded by it.
func TestEqualityByDictionary(t *testing.T) {
	type row struct {
		A string `parquet:"a,dict,id(1)"`
		B int64  `parquet:"b,id(2)"`
	}
	var data []row
	for i := range 40_000 {
		data = append(data, row{fmt.Sprintf("k%d", i/10_000+4*(i%2)), int64(i)}) // groups hold k0 and k4, k1 and k5 …
	}
	p := iceberg.PrimitiveTypes
	l := newLab(iceberg.NewSchema(0, field(1, "a", p.String), field(2, "b", p.Int64)))
	l.files["data"] = parquetOf(t, 10_000, data)
	l.addEquality(parquetOf(t, 10, []row{{"k5", 10_001}, {"k5", 12_345}, {"k3x", 1}, {"k3x", 35_000}}), 1, 2)
	counters := &Counters{}
	got, err := l.resolve(NewResolver(Options{Counters: counters}))
	if want := "[{10001 10002} {12345 12346}]"; got != want || err != nil {
		t.Errorf("deleted %s, %v, want %s", got, err, want)
	}
	if s, d := counters.ByStatistics.Load(), counters.ByDictionary.Load(); s != 1 || d != 2 {
		t.Errorf("%d row groups passed over by statistics and %d by dictionaries, want 1 and 2", s, d)
	}
}

// TestEqualityOfOneCodedColumn: a key of one column is looked up by value, not by
// row, and each of several delete files finds its own rows.
func TestEqualityOfOneCodedColumn(t *testing.T) {
	type row struct {
		V *int64 `parquet:"v,optional,dict,id(1)"`
	}
	var data []row
	for i := range int64(40_000) {
		r := row{ptr(i/10_000*100 + i%50*2)} // groups hold the even numbers of 0 to 98, 100 to 198 …
		if i == 15_000 {
			r.V = nil
		}
		data = append(data, r)
	}
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 10_000, data)
	counters := &Counters{}
	resolver := NewResolver(Options{Cache: &mapCache{}, Counters: counters})
	steps := []struct {
		keys         []row
		deleted      int64
		byDictionary int64 // groups passed over so far
	}{
		{[]row{{ptr(int64(2))}, {ptr(int64(205))}, {ptr(int64(310))}}, 400, 1}, // the third group has no 205
		{[]row{{ptr(int64(2))}, {ptr(int64(4))}, {nil}}, 601, 1},               // any group may have NULL
		{[]row{{ptr(int64(3))}, {ptr(int64(399))}}, 601, 2},                    // 399 is past the last group's values
	}
	for i, step := range steps {
		l.addEquality(parquetOf(t, 10, step.keys), 1)
		p, err := resolver.Resolve(t.Context(), l.table, l, &l.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := p.Count(); n != step.deleted {
			t.Errorf("step %d: %d rows deleted, want %d", i, n, step.deleted)
		}
		if n := counters.ByDictionary.Load(); n != step.byDictionary {
			t.Errorf("step %d: %d row groups passed over by dictionaries, want %d", i, n, step.byDictionary)
		}
	}
	whole, err := l.resolve(NewResolver(Options{}))
	p, _ := resolver.Resolve(t.Context(), l.table, l, &l.file)
	if grown := fmt.Sprint(p.DeletedRanges([]Range{}, 0, 1<<40)); whole != grown || err != nil {
		t.Errorf("at once %s, %v; grown %s", whole, err, grown)
	}
	if p.CountRange(15_000, 15_001) != 1 {
		t.Error("the row with NULL is not deleted")
	}
}

// lateCache gives up a load at first, as for a caller that goes, and keeps it.
type lateCache struct {
	mapCache
	key  string // that begins with deletes/column and ends so
	load func(context.Context) (any, int64, error)
}

func (c *lateCache) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	if c.load == nil && strings.HasPrefix(key, "deletes/column|") && strings.HasSuffix(key, c.key) {
		c.key, c.load = key, load
		return nil, context.Canceled
	}
	return c.mapCache.Get(ctx, key, load)
}

// TestLateColumn: a load that goes on when those who wanted it have gone is of the
// row group that it was asked for.
func TestLateColumn(t *testing.T) {
	type row struct {
		V int64 `parquet:"v,dict,id(1)"`
	}
	var data []row
	for i := range int64(30_000) {
		data = append(data, row{i/10_000*100 + i%50*2})
	}
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 10_000, data)
	l.addEquality(parquetOf(t, 10, []row{{2}, {102}, {202}}), 1)
	late := &lateCache{key: "|1|0"}
	if _, err := l.resolve(NewResolver(Options{Cache: late})); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got, _, err := late.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := got.(*keptColumn); len(c.short) != 10_000 || c.dict.N != 50 || binary.LittleEndian.Uint64(c.dict.Fixed) != 100 {
		t.Errorf("%d rows, dictionary of %d from %x, want that of the second row group", len(c.short), c.dict.N, c.dict.Fixed[:8])
	}
}
