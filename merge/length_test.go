package merge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
)

// randomText is a string of bytes that forms treat in different ways.
func randomText(r *rand.Rand) string {
	alphabet := []string{"a", "0", ",", ";", "\"", "\n", "\r", "\t", "\\", "\x01", "\x7f", "é", "\xff", "\xed\xa0\x80", "\u2028", "😀", " ", "NULL", "null", "[", "}"}
	kinds := 1 + r.IntN(len(alphabet))
	s := ""
	for range r.IntN(12) {
		s += alphabet[r.IntN(kinds)]
	}
	return s
}

// randomInt has as many digits as not.
func randomInt(r *rand.Rand) int64 {
	v := int64(r.Uint64() >> r.IntN(64))
	switch r.IntN(8) {
	case 0:
		return []int64{0, 1, -1, 9, 10, 99, 100, math.MaxInt64, math.MinInt64, -1000, 999_999}[r.IntN(11)]
	case 1, 2:
		return -v
	case 3:
		return int64(math.Pow10(r.IntN(19))) - int64(r.IntN(2))
	}
	return v
}

func randomFloat(r *rand.Rand) float64 {
	switch r.IntN(6) {
	case 0:
		return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e21, 1e-6, 9.999999e-7, 5e-324, math.MaxFloat64}[r.IntN(10)]
	case 1:
		return math.Float64frombits(r.Uint64())
	case 2:
		return float64(randomInt(r))
	case 3:
		return float64(r.IntN(2_000_000)-1_000_000) / 1000
	}
	return r.NormFloat64()
}

// randomTicks are times of all years, more of those of the last centuries.
func randomTicks(r *rand.Rand, units int64) int64 {
	v := r.Int64N(1e10)*units - 5e9*units
	if units == 1e9 {
		v = r.Int64N(1<<62) - 1<<61
	}
	switch r.IntN(6) {
	case 0:
		return randomInt(r)
	case 1:
		return v / units * units
	case 2:
		return v / 1000 * 1000
	case 3:
		edges := []int64{firstPlainDay, lastPlainDay, lastPlainDay + 1, firstPlainDay - 1}
		return edges[r.IntN(4)]*86400*units + r.Int64N(3) - 1 // wraps for nanoseconds
	}
	return v
}

// someValues makes n random values of a leaf in its view's physical type.
func someValues(r *rand.Rand, leaf *pqfile.Node, n int) pqfile.Values {
	form, err := scalarOf(leaf)
	if err != nil {
		panic(err)
	}
	var texts []string
	var longs []int64
	var ints []int32
	for range n {
		switch form.kind {
		case scalarTimestamp, scalarTime:
			if x := randomTicks(r, form.units); form.kind == scalarTime && r.IntN(4) > 0 {
				longs = append(longs, ((x%(86400*form.units))+86400*form.units)%(86400*form.units))
			} else {
				longs = append(longs, x)
			}
		default:
			longs = append(longs, randomInt(r))
		}
		days := int32(r.IntN(40_000) - 5_000)
		if r.IntN(20) == 0 {
			days = int32(randomInt(r))
		}
		ints = append(ints, days)
		switch {
		case leaf.Type == pqfile.FixedLenByteArray:
			b := make([]byte, leaf.TypeLength)
			sign := byte(-r.IntN(2))
			wide := r.IntN(len(b) + 1)
			for i := range b {
				if b[i] = sign; i >= len(b)-wide {
					b[i] = byte(r.Uint32())
				}
			}
			texts = append(texts, string(b))
		default:
			texts = append(texts, randomText(r))
		}
	}
	switch leaf.Type {
	case pqfile.Boolean:
		v := pqfile.Values{Type: pqfile.Boolean, N: n}
		for range n {
			v.Bools = append(v.Bools, byte(r.IntN(2)))
		}
		return v
	case pqfile.Int32:
		return fixed32(ints...)
	case pqfile.Int64:
		return fixed64(longs...)
	case pqfile.Float:
		var v []float32
		for range n {
			v = append(v, float32(randomFloat(r)))
		}
		return floats(v...)
	case pqfile.Double:
		var v []float64
		for range n {
			v = append(v, randomFloat(r))
		}
		return doubles(v...)
	case pqfile.FixedLenByteArray:
		return flbas(int(leaf.TypeLength), texts...)
	}
	return byteArrays(texts...)
}

// someVector makes rows of a leaf without lists: plain or by a dictionary, a
// constant now and then, some NULL.
func someVector(r *rand.Rand, leaf *pqfile.Node, rows int) pqfile.Vector {
	v := pqfile.Vector{Rows: rows}
	present := rows
	if leaf.MaxDef > 0 && r.IntN(3) > 0 {
		present = 0
		for range rows {
			v.Def = append(v.Def, uint8(r.IntN(2)*leaf.MaxDef))
			present += int(v.Def[len(v.Def)-1]) / leaf.MaxDef
		}
	}
	switch r.IntN(4) {
	case 0:
		v.Repeat, v.Values = true, someValues(r, leaf, 1)
	case 1, 2:
		d := someValues(r, leaf, 1+r.IntN(rows))
		var index []uint32
		for range present {
			index = append(index, r.Uint32N(uint32(d.N)))
		}
		v.Values = dictionary(d, index...)
	default:
		v.Values = someValues(r, leaf, present)
	}
	return v
}

// lengthOptions are CSV options under which fields are quoted differently.
func lengthOptions() []CSVOptions {
	return []CSVOptions{
		{}, {Delimiter: '\t'}, {Delimiter: ';', Null: "NULL"}, {Null: "null"}, {Delimiter: '1'}, {Delimiter: ':'}, {Delimiter: '['}, {Delimiter: 'a', Null: "0"},
		{Null: "[]"}, {Delimiter: '|', Null: "-"}, {Delimiter: ' '}, {Delimiter: '-'},
	}
}

// What measuring says is as long as what formatting makes, for every type, in
// every form. (formatted compares each cell and each row.)
func TestLengthsAgree(t *testing.T) {
	p := iceberg.PrimitiveTypes
	var fields []iceberg.NestedField
	for i, typ := range []iceberg.Type{
		p.Bool, p.Int32, p.Int64, p.Float32, p.Float64, p.Date, p.Time, p.Timestamp, p.TimestampTz, p.TimestampNs, p.TimestampTzNs,
		p.String, p.UUID, p.Binary, iceberg.FixedTypeOf(7), iceberg.FixedTypeOf(1),
		iceberg.DecimalTypeOf(9, 0), iceberg.DecimalTypeOf(9, 9), iceberg.DecimalTypeOf(18, 4), iceberg.DecimalTypeOf(38, 0), iceberg.DecimalTypeOf(38, 37),
	} {
		f := field(i+1, fmt.Sprintf("c%d\"", i), typ)
		f.Required = i%5 == 4
		fields = append(fields, f)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		rows := 1 + r.IntN(40)
		for i := range fields { // alone: one-column CSV writes NULL as ""
			some := fields[i : i+1]
			if i == 0 {
				some = fields
			}
			schema := schemaOf(some...)
			view, err := pqfile.ViewOf(schema)
			if err != nil {
				t.Fatal(err)
			}
			var vectors []pqfile.Vector
			for _, leaf := range view.Leaves {
				vectors = append(vectors, someVector(r, leaf, rows))
			}
			for _, opt := range lengthOptions() {
				if _, err := formatted(t, schema, opt, false, rows, vectors...); err != nil {
					t.Fatalf("%v %+v: %v", some, opt, err)
				}
			}
			if _, err := formatted(t, schema, CSVOptions{}, true, rows, vectors...); err != nil {
				t.Fatalf("%v: %v", some, err)
			}
			if t.Failed() {
				t.Fatalf("%v", some)
			}
		}
	}
}

// Nested columns: a struct of a list, a map by text, and a map by numbers.
func TestNestedLengthsAgree(t *testing.T) {
	p := iceberg.PrimitiveTypes
	r := rand.New(rand.NewPCG(5, 6))
	for _, element := range []iceberg.Type{p.String, p.Float64, p.Int32, p.Date, p.Bool, iceberg.DecimalTypeOf(5, 2), p.Binary} {
		schema := schemaOf(
			field(1, "l", &iceberg.ListType{ElementID: 2, Element: element}),
			field(3, "m", &iceberg.MapType{KeyID: 4, KeyType: p.String, ValueID: 5, ValueType: element}),
			field(6, "n", &iceberg.MapType{KeyID: 7, KeyType: p.Int32, ValueID: 8, ValueType: element}),
			field(9, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{field(10, "x,\"", element), field(11, "y", p.String)}}),
			field(12, "e", &iceberg.StructType{FieldList: []iceberg.NestedField{field(13, "z", element)}}),
		)
		view, err := pqfile.ViewOf(schema)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			rows := 1 + r.IntN(8)
			var vectors []pqfile.Vector
			for _, column := range view.Root.Children {
				vectors = append(vectors, nestedVectors(r, column, rows)...)
			}
			for _, opt := range lengthOptions() {
				if _, err := formatted(t, schema, opt, false, rows, vectors...); err != nil {
					t.Fatalf("%v %+v: %v", element, opt, err)
				}
			}
			if _, err := formatted(t, schema, CSVOptions{}, true, rows, vectors...); err != nil || t.Failed() {
				t.Fatalf("%v: %v", element, err)
			}
		}
	}
}

// nestedVectors makes the vectors of a list or map of scalars, or a struct of
// them, all optional.
func nestedVectors(r *rand.Rand, n *pqfile.Node, rows int) []pqfile.Vector {
	var leaves []*pqfile.Node
	var walk func(*pqfile.Node)
	walk = func(n *pqfile.Node) {
		if n.Kind == pqfile.KindLeaf {
			leaves = append(leaves, n)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(n)
	out := make([]pqfile.Vector, len(leaves))
	present := make([]int, len(leaves))
	entry := func(rep uint8, base int, whole bool) {
		for i, leaf := range leaves {
			d := base
			if whole {
				d = leaf.MaxDef - r.IntN(2)*(leaf.MaxDef-base)
			}
			if d == leaf.MaxDef {
				present[i]++
			}
			out[i].Def = append(out[i].Def, uint8(d))
			if leaf.MaxRep > 0 {
				out[i].Rep = append(out[i].Rep, rep)
			}
		}
	}
	for range rows {
		switch {
		case r.IntN(5) == 0:
			entry(0, n.Present-1, false)
		case n.Kind == pqfile.KindStruct:
			entry(0, n.Present, true)
		case r.IntN(5) == 0:
			entry(0, n.Entry-1, false)
		default:
			for k := range 1 + r.IntN(3) {
				entry(uint8(min(k, 1)), n.Entry, true)
			}
		}
	}
	for i, leaf := range leaves {
		out[i].Rows = rows
		if d := someValues(r, leaf, max(1, present[i])); r.IntN(2) == 0 {
			var index []uint32
			for range present[i] {
				index = append(index, r.Uint32N(uint32(d.N)))
			}
			out[i].Values = dictionary(d, index...)
		} else {
			out[i].Values = someValues(r, leaf, present[i])
		}
	}
	return out
}
