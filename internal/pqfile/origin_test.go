package pqfile

import (
	"encoding/binary"
	"slices"
	"testing"
)

func TestFillComplete(t *testing.T) {
	ints := func(x ...int64) []byte {
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		return b
	}
	dict := &Values{Type: Int64, Width: 8, N: 2, Fixed: ints(-1, -2)}
	coded := func(index ...uint32) Values {
		return Values{Type: Int64, Width: 8, N: len(index), Dict: dict, Index: index}
	}
	plain := func(x ...int64) Values { return Values{Type: Int64, Width: 8, N: len(x), Fixed: ints(x...)} }
	for name, c := range map[string]struct {
		fill Fill
		v    Vector
		want []int64
	}{
		"missing":        {Fill{First: 100, Each: true}, Vector{Rows: 3, Repeat: true}, []int64{105, 106, 107}},
		"missing, NULL":  {Fill{First: 100, Each: true}, Vector{Rows: 2, Repeat: true, Def: []uint8{0, 0}}, []int64{105, 106}},
		"some stored":    {Fill{First: 100, Each: true}, Vector{Rows: 4, Def: []uint8{1, 0, 0, 1}, Values: plain(7, 8)}, []int64{7, 106, 107, 8}},
		"some coded":     {Fill{First: 9}, Vector{Rows: 3, Def: []uint8{0, 1, 1}, Values: coded(1, 0)}, []int64{9, -2, -1}},
		"none stored":    {Fill{First: 9}, Vector{Rows: 2, Def: []uint8{0, 0}, Values: plain()}, []int64{9, 9}},
		"all stored":     {Fill{First: 9}, Vector{Rows: 2, Values: plain(1, 2)}, []int64{1, 2}},
		"all of a level": {Fill{First: 9, Each: true}, Vector{Rows: 2, Def: []uint8{1, 1}, Values: coded(0, 1)}, []int64{-1, -2}},
	} {
		v := c.v
		c.fill.Complete(&v, 5, make([]byte, 3, 64)[:0])
		if v.Def != nil || v.Repeat || v.Values.N != len(c.want) {
			t.Errorf("%s: %+v", name, v)
			continue
		}
		var got []int64
		for i := range v.Values.N {
			got = append(got, int64(binary.LittleEndian.Uint64(int64Bytes(&v.Values, i))))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
