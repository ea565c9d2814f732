package deletes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

func ptr[T any](v T) *T { return &v }

// field is an optional column.
func field(id int, name string, typ iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: typ}
}

// one is a file of the optional column 1.
type one[T any] struct {
	V *T `parquet:"v,optional,id(1)"`
}

func ones[T any](values ...any) []one[T] {
	rows := make([]one[T], len(values))
	for i, v := range values {
		if v != nil {
			rows[i].V = ptr(v.(T))
		}
	}
	return rows
}

// TestSeedExample is the smallest case with all kinds: P1 deletes row 1 of x,
// P2 row 3, and an equality delete the row with id 42.
func TestSeedExample(t *testing.T) {
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.file.Path = "x"
	l.files["x"] = parquetOf(t, 100, ones[int64](int64(40), int64(41), int64(42), int64(43), int64(44)))
	l.addPositions(parquetOf(t, 10, posRows("x", 1)))
	l.addPositions(parquetOf(t, 10, posRows("x", 3)))
	l.want(t, "[{1 2} {3 4}]")
	l.addEquality(parquetOf(t, 10, ones[int64](int64(42))), 1)
	l.want(t, "[{1 4}]")
	l.file.Positions = nil
	l.want(t, "[{2 3}]")
	l.file.Equality = nil
	l.want(t, "[]")
}

func TestEqualityNulls(t *testing.T) {
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 2, ones[int64](int64(1), nil, int64(5), nil, int64(0)))
	l.addEquality(parquetOf(t, 10, ones[int64](int64(5))), 1)
	l.want(t, "[{2 3}]") // NULL is not matched by values
	l.file.Equality = nil
	l.addEquality(parquetOf(t, 10, ones[int64](nil)), 1)
	l.want(t, "[{1 2} {3 4}]") // NULL matches NULL only
	l.file.Equality = nil
	l.addEquality(parquetOf(t, 10, ones[int64](nil, int64(0), nil)), 1)
	l.want(t, "[{1 2} {3 5}]")
	l.file.Equality = nil
	l.addEquality(parquetOf(t, 10, ones[int64]()), 1) // empty
	l.want(t, "[]")
}

// TestEqualityEvolved: keys by field id through renames, promotions, drops,
// columns added later and a name used again.
func TestEqualityEvolved(t *testing.T) {
	p := iceberg.PrimitiveTypes
	v0 := iceberg.NewSchema(0, field(1, "a", p.Int32), field(2, "b", p.String))
	v1 := iceberg.NewSchema(1, field(1, "a", p.Int64), field(2, "renamed", p.String), field(3, "added", p.Int32))
	v2 := iceberg.NewSchema(2, field(1, "a", p.Int64), iceberg.NestedField{ID: 4, Name: "b", Type: p.String, InitialDefault: "dflt"}, field(3, "added", p.Int32))
	type old struct {
		A *int32  `parquet:"a,optional,id(1)"`
		B *string `parquet:"b,optional,id(2)"`
	}
	data := []old{{ptr(int32(1)), ptr("x")}, {ptr(int32(2)), nil}, {nil, ptr("y")}}
	type keyB struct {
		Extra *int64  `parquet:"extra,optional,id(77)"`
		B     *string `parquet:"whatever,optional,id(2)"`
		A     *int64  `parquet:"a,optional,id(1)"`
	}
	type added struct {
		V *int32 `parquet:"added,optional,id(3)"`
	}
	type newB struct {
		B *string `parquet:"b,optional,id(4)"`
	}
	for _, c := range []struct {
		name string
		keys []byte
		ids  []int
		want string
	}{
		{"promoted, delete newer", parquetOf(t, 9, ones[int64](int64(2))), []int{1}, "[{1 2}]"},
		{"promoted, delete older", parquetOf(t, 9, ones[int32](int32(2))), []int{1}, "[{1 2}]"},
		{"dropped column", parquetOf(t, 9, []keyB{{B: ptr("y")}}), []int{2}, "[{2 3}]"},
		{"extra columns, other order", parquetOf(t, 9, []keyB{{A: ptr(int64(2)), Extra: ptr(int64(9))}, {B: ptr("x"), A: ptr(int64(1))}}), []int{2, 1}, "[{0 2}]"},
		{"ids repeated", parquetOf(t, 9, []keyB{{A: ptr(int64(2))}}), []int{1, 2, 1}, "[{1 2}]"},
		{"added later, value", parquetOf(t, 9, []added{{ptr(int32(5))}}), []int{3}, "[]"},
		{"added later, NULL", parquetOf(t, 9, []added{{nil}}), []int{3}, "[{0 3}]"},
		{"initial default", parquetOf(t, 9, []newB{{ptr("dflt")}}), []int{4}, "[{0 3}]"},
		{"initial default is not NULL", parquetOf(t, 9, []newB{{nil}, {ptr("x")}}), []int{4}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(v0, v1, v2)
			l.files["data"] = parquetOf(t, 2, data)
			l.addEquality(c.keys, c.ids...)
			l.want(t, c.want)
		})
	}
}

// TestEqualityRolledBackSchema: the widest type counts, not the current one.
func TestEqualityRolledBackSchema(t *testing.T) {
	p := iceberg.PrimitiveTypes
	l := newLab(iceberg.NewSchema(1, field(1, "v", p.Int64)), iceberg.NewSchema(0, field(1, "v", p.Int32)))
	l.files["data"] = parquetOf(t, 9, ones[int64](int64(1), int64(1)<<32+1))
	l.addEquality(parquetOf(t, 9, ones[int32](int32(1))), 1)
	l.want(t, "[{0 1}]")
	l.file.Equality = nil
	l.addEquality(parquetOf(t, 9, ones[int64](int64(1)<<32+1)), 1)
	l.want(t, "[{1 2}]")
}

func TestEqualityNested(t *testing.T) {
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, field(1, "v", p.Int64), field(2, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{
		field(3, "x", p.Int64), field(4, "y", p.String)}}))
	type inner struct {
		X *int64  `parquet:"x,optional,id(3)"`
		Y *string `parquet:"y,optional,id(4)"`
	}
	type row struct {
		V  *int64 `parquet:"v,optional,id(1)"`
		St *inner `parquet:"st,optional,id(2)"`
	}
	l := newLab(schema)
	l.files["data"] = parquetOf(t, 2, []row{
		{ptr(int64(1)), &inner{ptr(int64(10)), ptr("a")}},
		{ptr(int64(2)), &inner{nil, ptr("b")}},
		{ptr(int64(3)), nil},
		{ptr(int64(4)), &inner{ptr(int64(11)), nil}},
	})
	type key struct {
		St *struct {
			X *int64 `parquet:"x,optional,id(3)"`
		} `parquet:"st,optional,id(2)"`
	}
	in := func(x *int64) key {
		k := key{}
		k.St = &struct {
			X *int64 `parquet:"x,optional,id(3)"`
		}{x}
		return k
	}
	l.addEquality(parquetOf(t, 9, []key{in(ptr(int64(11)))}), 3)
	l.want(t, "[{3 4}]")
	l.file.Equality = nil
	l.addEquality(parquetOf(t, 9, []key{in(nil)}), 3) // a field of a NULL struct is NULL
	l.want(t, "[{1 3}]")
	l.file.Equality = nil
	l.addEquality(parquetOf(t, 9, []row{{ptr(int64(1)), &inner{ptr(int64(10)), nil}}, {ptr(int64(4)), &inner{ptr(int64(10)), nil}}}), 1, 3)
	l.want(t, "[{0 1}]")
}

// TestEqualityMany compares multi-column keys with a map of rows, over several
// row groups, batches, dictionaries and NULLs.
func TestEqualityMany(t *testing.T) {
	type row struct {
		A *int64   `parquet:"a,optional,id(1)"`
		B *string  `parquet:"b,optional,id(2),dict"`
		C *float64 `parquet:"c,optional,id(3)"`
		D bool     `parquet:"d,id(4)"`
	}
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, field(1, "a", p.Int64), field(2, "b", p.String), field(3, "c", p.Float64), field(4, "d", p.Bool))
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (row row) {
		if r.IntN(5) > 0 {
			row.A = ptr(r.Int64N(12))
		}
		if r.IntN(5) > 0 {
			row.B = ptr(strings.Repeat("k", r.IntN(6)))
		}
		if r.IntN(5) > 0 {
			row.C = ptr(float64(r.IntN(4)))
		}
		row.D = r.IntN(2) == 0
		return row
	}
	text := func(row row) string {
		s := func(p any) string { return fmt.Sprint(p) }
		a, b, c := "NULL", "NULL", "NULL"
		if row.A != nil {
			a = s(*row.A)
		}
		if row.B != nil {
			b = "'" + *row.B
		}
		if row.C != nil {
			c = s(*row.C)
		}
		return a + "|" + b + "|" + c + "|" + s(row.D)
	}
	rows := make([]row, 60_000)
	for i := range rows {
		rows[i] = random()
	}
	l := newLab(schema)
	l.files["data"] = parquetOf(t, 25_000, rows)
	gone := map[string]bool{}
	for range 3 {
		keys := make([]row, 150)
		for i := range keys {
			keys[i] = random()
			gone[text(keys[i])] = true
		}
		l.addEquality(parquetOf(t, 40, keys), 1, 2, 3, 4)
	}
	got, err := NewResolver(Options{}).Resolve(context.Background(), l.table, l, &l.file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, row := range rows {
		if gone[text(row)] {
			n++
		}
		if (got.CountRange(int64(i), int64(i)+1) == 1) != gone[text(row)] {
			t.Fatalf("row %d, %s: deleted %v", i, text(row), !gone[text(row)])
		}
	}
	if n < 1000 || got.Count() != int64(n) {
		t.Errorf("%d deleted, want %d", got.Count(), n)
	}
}

func TestEqualityRefused(t *testing.T) {
	p := iceberg.PrimitiveTypes
	list := &iceberg.ListType{ElementID: 3, Element: p.Int64}
	schema := iceberg.NewSchema(0, field(1, "v", p.Int64), field(2, "l", list), field(4, "s", p.String), field(5, "var", iceberg.VariantType{}))
	keys := parquetOf(t, 9, ones[int64](int64(1)))
	text := parquetOf(t, 9, ones[string]("1"))
	type noIDs struct {
		V int64 `parquet:"v"`
	}
	for _, c := range []struct {
		name string
		keys []byte
		ids  []int
		want error
	}{
		{"no ids", keys, nil, ErrCorrupt},
		{"column missing in the delete file", keys, []int{4}, ErrCorrupt},
		{"one of two missing", keys, []int{1, 4}, ErrCorrupt},
		{"id of no schema", keys, []int{99}, ErrCorrupt},
		{"id of a list", keys, []int{2}, ErrUnsupported},
		{"id of a variant", keys, []int{5}, ErrUnsupported},
		{"id inside a list", keys, []int{3}, ErrCorrupt},
		{"another type", text, []int{1}, ErrUnsupported},
		{"cut", keys[:len(keys)-3], []int{1}, ErrCorrupt},
		{"no ids in the file", parquetOf(t, 9, []noIDs{{1}}), []int{1}, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(schema)
			l.files["data"] = parquetOf(t, 2, ones[int64](int64(1), int64(2)))
			l.addEquality(c.keys, c.ids...)
			got, err := l.resolve(NewResolver(Options{Cache: &mapCache{}, Persist: &mapPersist{}}))
			if !errors.Is(err, c.want) || strings.Count(fmt.Sprint(err), "equality-0") != 1 {
				t.Errorf("%s, error %v, want %v", got, err, c.want)
			}
		})
	}
	l := newLab(schema)
	l.files["data"] = parquetOf(t, 2, ones[int64](int64(1)))
	l.addEquality(nil, 1).Records = 0
	delete(l.files, "equality-0")
	if _, err := l.resolve(NewResolver(Options{})); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("missing delete file without records: %v", err)
	}
}

func TestEqualityConstantsAndMapping(t *testing.T) {
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, field(1, "v", p.Int64), field(2, "part", p.String))
	type key struct {
		V    int64  `parquet:"v,id(1)"`
		Part string `parquet:"part,id(2)"`
	}
	type imported struct {
		V int64 `parquet:"old_v"`
	}
	spec := iceberg.NewPartitionSpecID(3, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "part", Transform: iceberg.IdentityTransform{}})
	l := newLab(schema)
	l.table.Specs = map[int]iceberg.PartitionSpec{3: spec}
	l.table.NameMapping = iceberg.NameMapping{{FieldID: ptr(1), Names: []string{"v", "old_v"}}, {FieldID: ptr(2), Names: []string{"part"}}}
	l.file.SpecID, l.file.Partition = 3, map[int]any{1000: "p1"}
	l.files["data"] = parquetOf(t, 9, []imported{{1}, {2}, {3}})
	l.addEquality(parquetOf(t, 9, []key{{2, "p1"}, {3, "p2"}}), 1, 2)
	r := NewResolver(Options{Cache: &mapCache{}, Persist: &mapPersist{}})
	for _, c := range []struct {
		value any
		want  string
	}{{"p1", "[{1 2}]"}, {"p2", "[{2 3}]"}, {nil, "[]"}} {
		// One resolver: what the constant is belongs to the cached result's key.
		l.file.DataFile = ptr(*l.file.DataFile)
		l.file.Partition = map[int]any{1000: c.value}
		if got, err := l.resolve(r); got != c.want || err != nil {
			t.Errorf("partition %v: %s, %v, want %s", c.value, got, err, c.want)
		}
	}
	l.table = ptr(*l.table) // tables never change: another version of it
	l.table.NameMapping = nil
	if _, err := l.resolve(r); !errors.Is(err, pqfile.ErrNoFieldIDs) {
		t.Errorf("without a name mapping: %v", err)
	}
}

// TestEqualityPrunes: only row groups that can hold a key are decoded.
func TestEqualityPrunes(t *testing.T) {
	var ints, texts []any
	for i := range 1000 {
		ints = append(ints, int64(i))
		texts = append(texts, fmt.Sprintf("k%03d", i))
	}
	withNull := slices.Clone(ints)
	withNull[5] = nil
	type required struct {
		V int64 `parquet:"v,id(1)"`
	}
	must := make([]required, 1000)
	for i := range must {
		must[i].V = int64(i)
	}
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		name   string
		typ    iceberg.Type
		data   []byte
		keys   []byte
		want   string
		chunks int64 // of ten
	}{
		{"one key", p.Int64, parquetOf(t, 100, ones[int64](ints...)), parquetOf(t, 9, ones[int64](int64(555))), "[{555 556}]", 1},
		{"between groups", p.Int64, parquetOf(t, 100, ones[int64](ints...)), parquetOf(t, 9, ones[int64](int64(50), int64(950))), "[{50 51} {950 951}]", 2},
		{"outside", p.Int64, parquetOf(t, 100, ones[int64](ints...)), parquetOf(t, 9, ones[int64](int64(-5), int64(5000))), "[]", 0},
		{"NULL may be anywhere", p.Int64, parquetOf(t, 100, ones[int64](withNull...)), parquetOf(t, 9, ones[int64](nil)), "[{5 6}]", 10},
		{"NULL in a required column", p.Int64, parquetOf(t, 100, must), parquetOf(t, 9, ones[int64](nil, int64(7))), "[{7 8}]", 1},
		{"text", p.String, parquetOf(t, 100, ones[string](texts...)), parquetOf(t, 9, ones[string]("k150", "k160")), "[{150 151} {160 161}]", 1},
		{"promoted", p.Int64, parquetOf(t, 100, func() []one[int32] {
			var v []any
			for i := range 1000 {
				v = append(v, int32(i))
			}
			return ones[int32](v...)
		}()), parquetOf(t, 9, ones[int64](int64(999))), "[{999 1000}]", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(iceberg.NewSchema(0, field(1, "v", c.typ)))
			l.files["data"] = c.data
			l.addEquality(c.keys, 1)
			// The keys' own chunks are counted by a look at the delete file alone.
			var keyStats, stats pqfile.Stats
			schema, err := newKeySchema(l.table, []int{1})
			if err != nil {
				t.Fatal(err)
			}
			obj, _ := l.Open(context.Background(), "equality-0")
			run := &run{files: []equalityFile{newEqualityFile(l.file.Equality[0], obj)}}
			if _, err := NewResolver(Options{Stats: &keyStats}).keySet(context.Background(), schema, run); err != nil {
				t.Fatal(err)
			}
			got, err := l.resolve(NewResolver(Options{Stats: &stats}))
			if got != c.want || err != nil {
				t.Errorf("deleted %s, %v, want %s", got, err, c.want)
			}
			if n := stats.Chunks.Load() - keyStats.Chunks.Load(); n != c.chunks {
				t.Errorf("%d chunks decoded, want %d", n, c.chunks)
			}
		})
	}
}

// TestEqualityPrunesCutBounds: an upper bound that was cut and not made larger
// must not hide a value that begins with it.
func TestEqualityPrunesCutBounds(t *testing.T) {
	c := keyColumn{leaf: &pqfile.Node{Type: pqfile.ByteArray}, arena: []byte("abcdefgh"), ends: []uint64{8}}
	c.findExtremes(1)
	for _, b := range []struct {
		low, high string
		meets     bool
	}{
		{"abc", "abcd", true}, {"abcd", "abcd", true}, {"a", "abcdefgh", true}, {"abcdefgh", "b", true},
		{"", "abb", false}, {"abd", "b", false}, {"b", "c", false}, {"", "", true},
	} {
		if got := c.meets(bounds{lowBytes: []byte(b.low), highBytes: []byte(b.high)}); got != b.meets {
			t.Errorf("[%q, %q]: %v", b.low, b.high, got)
		}
	}
}

// TestEqualityIncremental: a grown delete set reads only what is new, across
// resolvers that share what is persisted.
func TestEqualityIncremental(t *testing.T) {
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 100, ones[int64](int64(1), int64(2), int64(3), int64(4)))
	l.addEquality(parquetOf(t, 9, ones[int64](int64(1))), 1)
	l.addEquality(parquetOf(t, 9, ones[int64](int64(3))), 1)
	persist := &mapPersist{}
	var stats pqfile.Stats
	opt := Options{Cache: &mapCache{}, Persist: persist, Stats: &stats}
	check := func(opt Options, want string, footers int64) {
		t.Helper()
		before := stats.Footers.Load()
		if got, err := l.resolve(NewResolver(opt)); got != want || err != nil {
			t.Errorf("deleted %s, %v, want %s", got, err, want)
		}
		if n := stats.Footers.Load() - before; n != footers {
			t.Errorf("%d footers read, want %d", n, footers)
		}
	}
	check(opt, "[{0 1} {2 3}]", 3) // two delete files and the data file, once
	check(opt, "[{0 1} {2 3}]", 0)
	l.addEquality(parquetOf(t, 9, ones[int64](int64(4))), 1)
	check(opt, "[{0 1} {2 4}]", 1) // the data file's footer is cached
	fresh := opt
	fresh.Cache = &mapCache{} // another mount
	check(fresh, "[{0 1} {2 4}]", 0)
	for key := range persist.values {
		persist.values[key] = []byte("not a bitmap")
	}
	fresh.Cache = &mapCache{}
	check(fresh, "[{0 1} {2 4}]", 4)
}
