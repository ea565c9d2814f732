package snapshot

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
)

// world makes random tables whose rows are known, with metrics that are true,
// or damaged in the ways that Pair has to see through.
type world struct {
	*rand.Rand
	schema *iceberg.Schema
	rows   map[*DataFile][]row
}

// row is a row's (or a key's) values by field id; nil is NULL.
type row map[int]any

const (
	longField, stringField, doubleField, uuidField, structField, nestedField, timestampField, droppedField = 1, 2, 3, 4, 5, 6, 7, 9
)

// dayMicros is a day in a timestamp's unit.
const dayMicros = 86_400_000_000

func newWorld(seed uint64) *world {
	nested := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: nestedField, Name: "n", Type: iceberg.PrimitiveTypes.Int64}}}
	return &world{
		Rand: rand.New(rand.NewPCG(seed, 1)),
		rows: map[*DataFile][]row{},
		schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: longField, Name: "l", Type: iceberg.PrimitiveTypes.Int64},
			iceberg.NestedField{ID: stringField, Name: "s", Type: iceberg.PrimitiveTypes.String},
			iceberg.NestedField{ID: doubleField, Name: "d", Type: iceberg.PrimitiveTypes.Float64},
			iceberg.NestedField{ID: uuidField, Name: "u", Type: iceberg.PrimitiveTypes.UUID},
			iceberg.NestedField{ID: structField, Name: "st", Type: nested},
			iceberg.NestedField{ID: timestampField, Name: "ts", Type: iceberg.PrimitiveTypes.Timestamp},
		),
	}
}

func (w *world) value(field, center int) any {
	if w.IntN(8) == 0 {
		return nil
	}
	switch field {
	case longField, nestedField, droppedField:
		return int64(center + w.IntN(5) - 2)
	case timestampField:
		return int64(center+w.IntN(3)-1) * dayMicros
	case stringField:
		return strings.Repeat(string(rune('a'+(center+w.IntN(3))%20)), 1+w.IntN(2)) + "x"
	case doubleField:
		return []float64{math.NaN(), 0, math.Copysign(0, -1), float64(center), -float64(center), math.Inf(1)}[w.IntN(6)]
	default:
		return string(rune('a' + w.IntN(3)))
	}
}

func (w *world) fill(f *DataFile, fields []int) {
	center := w.IntN(60)
	noNulls := w.IntN(2) == 0
	allNull := w.IntN(10) == 0
	for range w.IntN(4) {
		r := row{}
		for _, field := range fields {
			v := w.value(field, center)
			for noNulls && v == nil {
				v = w.value(field, center)
			}
			if allNull {
				v = nil
			}
			r[field] = v
		}
		w.rows[f] = append(w.rows[f], r)
	}
	f.Records = int64(len(w.rows[f]))
	f.Metrics = w.metrics(f, fields)
}

// bound encodes a value as a bound; ok is false for types that have none.
func bound(v any) ([]byte, bool) {
	switch v := v.(type) {
	case int64:
		return le64(v), true
	case float64:
		return f64(v), v == v
	case string:
		return []byte(v), true
	}
	return nil, false
}

// metricMaps are metrics by field id, as manifests have them.
type metricMaps struct {
	ValueCounts, NullCounts, NaNCounts map[int]int64
	Lower, Upper                       map[int][]byte
}

func (m *metricMaps) list(fields []int) (list []ColumnMetrics) {
	count := func(m map[int]int64, id int) int64 {
		if n, ok := m[id]; ok {
			return n
		}
		return -1
	}
	for _, id := range fields {
		list = append(list, ColumnMetrics{ID: id, Values: count(m.ValueCounts, id), Nulls: count(m.NullCounts, id),
			NaNs: count(m.NaNCounts, id), Lower: m.Lower[id], Upper: m.Upper[id]})
	}
	return list
}

func (w *world) metrics(f *DataFile, fields []int) []ColumnMetrics {
	m := &metricMaps{
		ValueCounts: map[int]int64{}, NullCounts: map[int]int64{}, NaNCounts: map[int]int64{},
		Lower: map[int][]byte{}, Upper: map[int][]byte{},
	}
	for _, field := range fields {
		var values []any
		m.ValueCounts[field] = f.Records
		for _, r := range w.rows[f] {
			v := r[field]
			if d, ok := v.(float64); ok && d != d {
				m.NaNCounts[field]++
			} else if v == nil {
				m.NullCounts[field]++
			} else {
				values = append(values, v)
			}
		}
		m.NullCounts[field] += 0
		m.NaNCounts[field] += 0
		if len(values) == 0 {
			continue
		}
		slices.SortFunc(values, compareValues)
		m.Lower[field], _ = bound(values[0])
		m.Upper[field], _ = bound(values[len(values)-1])
		if field == stringField && w.IntN(2) == 0 { // truncated as the specification says
			m.Lower[field] = m.Lower[field][:1]
			m.Upper[field] = []byte{m.Upper[field][0] + 1}
		}
	}
	for _, field := range fields {
		if w.IntN(4) == 0 {
			promoted(m, field)
		}
		w.damage(m, field)
	}
	if w.IntN(20) == 0 {
		return nil
	}
	return m.list(fields)
}

// promoted makes a column's bounds those of the type that it had before it was
// promoted: int, float and date.
func promoted(m *metricMaps, field int) {
	for _, bounds := range []map[int][]byte{m.Lower, m.Upper} {
		b := bounds[field]
		if len(b) != 8 {
			continue
		}
		bits := binary.LittleEndian.Uint64(b)
		switch field {
		case longField:
			bounds[field] = le32(int32(bits))
		case doubleField:
			bounds[field] = f32(float32(math.Float64frombits(bits)))
		case timestampField:
			bounds[field] = le32(int32(int64(bits) / dayMicros))
		}
	}
}

// damage takes information away from a column's metrics.
func (w *world) damage(m *metricMaps, field int) {
	switch w.IntN(16) {
	case 0:
		delete(m.NullCounts, field)
	case 1:
		delete(m.ValueCounts, field)
	case 2:
		delete(m.NaNCounts, field)
	case 3:
		delete(m.Lower, field)
	case 4:
		delete(m.Upper, field)
	case 5:
		m.NullCounts[field] = -1
	case 6:
		m.ValueCounts[field]--
	case 7:
		m.NullCounts[field] = m.ValueCounts[field] + 1
	case 8:
		m.Lower[field], m.Upper[field] = m.Upper[field], m.Lower[field]
	case 9:
		if b := m.Upper[field]; field != stringField && len(b) > 5 {
			m.Upper[field] = b[:5]
		}
	case 10:
		if b := m.Lower[field]; field != stringField && len(b) > 3 {
			m.Lower[field] = b[:3]
		}
	case 11:
		if field == doubleField {
			m.Lower[field] = f64(math.NaN())
		}
	}
}

func compareValues(a, b any) int {
	switch a := a.(type) {
	case int64:
		return int(a - b.(int64))
	case string:
		return strings.Compare(a, b.(string))
	case float64:
		switch b := b.(float64); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
	}
	return 0
}

// sameKey compares as deletes do: NULL equals NULL, NaN equals NaN, -0 is not 0.
func sameKey(a, b any) bool {
	x, ok := a.(float64)
	y, ok2 := b.(float64)
	if ok && ok2 {
		return x != x && y != y || math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}

// hits reports whether a key of d equals a row of f.
func (w *world) hits(f, d *DataFile) bool {
	for _, r := range w.rows[f] {
		for _, k := range w.rows[d] {
			same := true
			for _, id := range d.EqualityIDs {
				same = same && sameKey(r[id], k[id])
			}
			if same {
				return true
			}
		}
	}
	return false
}

func (w *world) place(f *DataFile) {
	f.SpecID = w.IntN(4)
	value := func() any { return []any{nil, "x", "y"}[w.IntN(3)] }
	switch f.SpecID {
	case 0:
		in(0, value())(f)
	case 1:
		in(1, value(), value())(f)
	case 3:
		in(3, nil)(f)
	}
	f.Sequence = int64(w.IntN(6))
}

func (w *world) entries() Entries {
	e := Entries{FormatVersion: 2, Specs: testSpecs(), Schema: w.schema}
	all := []int{longField, stringField, doubleField, uuidField, nestedField, timestampField, droppedField}
	for i := range 1 + w.IntN(12) {
		f := file(Data, fmt.Sprintf("/d/%c%d", 'a'+w.IntN(3), i/2+i%2*10), 0)
		w.place(f)
		w.fill(f, all)
		e.Data = append(e.Data, f)
	}
	idSets := [][]int{{longField}, {longField}, {longField}, {stringField}, {doubleField}, {longField, stringField}, {doubleField, longField}, {uuidField}, {nestedField}, {timestampField}, {droppedField}}
	many := w.IntN(3) == 0
	n, frequent := w.IntN(12), idSets[w.IntN(7)]
	if many {
		n = 300
	}
	for i := range n {
		ids := idSets[w.IntN(len(idSets))]
		if many {
			ids = frequent
		}
		d := equality(fmt.Sprint("/e/", i), 0, ids)
		w.place(d)
		w.fill(d, ids)
		e.Deletes = append(e.Deletes, d)
	}
	for i := range w.IntN(10) {
		d := file(PositionDeletes, fmt.Sprint("/p/", i), 0)
		w.place(d)
		target := e.Data[w.IntN(len(e.Data))].Path
		switch w.IntN(5) {
		case 0:
			references(target)(d)
		case 1:
			pathBounds(target, target)(d)
		case 2:
			pathBounds(target[:4], target[:4])(d)
		case 3:
			pathBounds(target+"gone", target+"gone")(d)
		}
		e.Deletes = append(e.Deletes, d)
	}
	return e
}

// naive pairs f with every delete, one at a time.
func naive(e Entries, f *DataFile) (positions, equalities []*DataFile) {
	for _, d := range e.Deletes {
		samePartition := d.SpecID == f.SpecID && fmt.Sprint(d.Partition) == fmt.Sprint(f.Partition)
		if d.Content == EqualityDeletes {
			if f.Sequence < d.Sequence && (samePartition || d.SpecID >= 2) && !provenDisjoint(e.Schema, f, d) {
				equalities = append(equalities, d)
			}
			continue
		}
		applies := samePartition
		if d.HasReferenced {
			applies = d.Referenced == f.Path
		} else if d.Metrics != nil {
			prefix := string(d.Column(PathFieldID).Lower)
			live, exact := map[string]bool{}, false
			for _, other := range e.Data {
				if strings.HasPrefix(other.Path, prefix) {
					live[other.Path] = true
				}
				exact = exact || other.Path == prefix
			}
			switch {
			case len(live) == 0:
				applies = false
			case len(live) == 1 && exact:
				applies = f.Path == prefix
			}
		}
		if applies && f.Sequence <= d.Sequence {
			positions = append(positions, d)
		}
	}
	slices.SortFunc(positions, bySequence)
	slices.SortFunc(equalities, bySequence)
	return positions, equalities
}

func provenDisjoint(schema *iceberg.Schema, f, d *DataFile) bool {
	cols := newColumns(schema)
	for _, id := range d.EqualityIDs {
		if disjoint([]columnStats{cols.get(id).dataStats(f)}, []columnStats{cols.get(id).stats(d)}) {
			return true
		}
	}
	return false
}

func TestPairAgainstAllPairs(t *testing.T) {
	kept, pruned, indexed := 0, 0, 0
	for seed := range uint64(600) {
		w := newWorld(seed)
		e := w.entries()
		plan := Pair(e)
		if len(plan.Files) != len(e.Data) {
			t.Fatalf("seed %d: %d files of %d", seed, len(plan.Files), len(e.Data))
		}
		for i := range plan.Files {
			f := &plan.Files[i]
			positions, equalities := naive(e, f.DataFile)
			if !slices.Equal(f.Positions, positions) {
				t.Fatalf("seed %d: %s: positions %v, want %v", seed, f.Path, names(f.Positions), names(positions))
			}
			if !slices.Equal(f.Equality, equalities) {
				t.Fatalf("seed %d: %s: equality %v, want %v", seed, f.Path, names(f.Equality), names(equalities))
			}
			for _, d := range e.Deletes {
				inScope := d.SpecID >= 2 || d.SpecID == f.SpecID && fmt.Sprint(d.Partition) == fmt.Sprint(f.Partition)
				if d.Content != EqualityDeletes || !inScope || f.Sequence >= d.Sequence {
					continue
				}
				switch found := slices.Contains(f.Equality, d); {
				case !found && w.hits(f.DataFile, d):
					t.Fatalf("seed %d: %s: delete %s left out, but a row has its key:\n%v\n%v\n%+v\n%+v",
						seed, f.Path, d.Path, w.rows[f.DataFile], w.rows[d], f.Metrics, d.Metrics)
				case found:
					kept++
				default:
					pruned++
				}
			}
			if len(e.Deletes) > 200 {
				indexed++
			}
		}
	}
	if kept < 500 || pruned < 500 || indexed < 500 {
		t.Errorf("the worlds are too plain: %d kept, %d pruned, %d files against an index", kept, pruned, indexed)
	}
}

func names(files []*DataFile) (list []string) {
	for _, f := range files {
		list = append(list, fmt.Sprintf("%s@%d", f.Path, f.Sequence))
	}
	return list
}

func TestDisjointByNullCounts(t *testing.T) {
	no, all, may := columnStats{noNull: true}, columnStats{allNull: true}, columnStats{}
	low := columnStats{noNull: true, bounded: true, lower: "a", upper: "b"}
	high := columnStats{noNull: true, bounded: true, lower: "c", upper: "d"}
	touch := columnStats{noNull: true, bounded: true, lower: "b", upper: "c"}
	lowMay := columnStats{bounded: true, lower: "a", upper: "b"}
	highMay := columnStats{bounded: true, lower: "c", upper: "d"}
	for _, c := range []struct {
		name      string
		data, del columnStats
		want      bool
	}{
		{"all against none", all, no, true},
		{"none against all", no, all, true},
		{"all against all", all, all, false},
		{"none against none", no, no, false},
		{"nothing known", may, may, false},
		{"apart", low, high, true},
		{"apart the other way", high, low, true},
		{"touching", low, touch, false},
		{"apart, data may have NULL", lowMay, high, true},
		{"apart, delete may have NULL", low, highMay, true},
		{"apart, both may have NULL", lowMay, highMay, false},
		{"one unbounded", low, no, false},
	} {
		if got := disjoint([]columnStats{c.data}, []columnStats{c.del}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if !disjoint([]columnStats{c.data, low}, []columnStats{c.del, high}) {
			t.Errorf("%s: a second column that is disjoint is not enough", c.name)
		}
	}
}

func TestAllNullProvesNothingForAColumnWithADefault(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "l", Type: iceberg.PrimitiveTypes.Int64, InitialDefault: int64(7)})
	counts := func(nulls int64) func(*DataFile) {
		return func(f *DataFile) {
			f.Records = 2
			f.Metrics = []ColumnMetrics{{ID: 1, Values: 2, Nulls: nulls, NaNs: -1}}
		}
	}
	plan := Pair(Entries{
		FormatVersion: 2, Specs: testSpecs(), Schema: schema,
		Data:    []*DataFile{file(Data, "a", 1, counts(2)), file(Data, "b", 1, counts(0))},
		Deletes: []*DataFile{equality("none null", 2, []int{1}, counts(0)), equality("all null", 2, []int{1}, counts(2))},
	})
	want := []string{"a: eq=[all null none null]", "b: eq=[none null]"}
	if got := describe(plan); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
