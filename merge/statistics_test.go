package merge

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
)

func int64Bytes(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func float64Bytes(v float64) []byte { return int64Bytes(int64(math.Float64bits(v))) }

func int64Range(lo, hi int64) *pqfile.Statistics {
	return exactStatistics(0, int64Bytes(lo), int64Bytes(hi))
}

func TestPrunes(t *testing.T) {
	leaf := &pqfile.Node{Type: pqfile.Int64}
	none := exactStatistics(5, nil, nil)
	for _, c := range []struct {
		name   string
		ranges []*pqfile.Statistics
		want   bool
	}{
		{"one group", []*pqfile.Statistics{int64Range(1, 2)}, false},
		{"two apart", []*pqfile.Statistics{int64Range(1, 2), int64Range(3, 4)}, true},
		{"two touching", []*pqfile.Statistics{int64Range(1, 2), int64Range(2, 4)}, false},
		{"negative numbers are below", []*pqfile.Statistics{int64Range(-9, -3), int64Range(-2, 4)}, true},
		{"half overlap", []*pqfile.Statistics{int64Range(1, 5), int64Range(2, 6), int64Range(7, 8), int64Range(9, 9)}, true},
		{"most overlap", []*pqfile.Statistics{int64Range(1, 5), int64Range(2, 6), int64Range(3, 8), int64Range(9, 9)}, false},
		{"all-NULL groups hold no point", []*pqfile.Statistics{int64Range(1, 5), none}, true},
	} {
		if got := prunes(leaf, c.ranges); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestCompareBounds(t *testing.T) {
	for _, c := range []struct {
		name string
		leaf pqfile.Node
		less [][]byte // ascending
	}{
		{"int32", pqfile.Node{Type: pqfile.Int32}, [][]byte{{0, 0, 0, 0x80}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {0, 1, 0, 0}}},
		{"double", pqfile.Node{Type: pqfile.Double}, [][]byte{float64Bytes(math.Inf(-1)), float64Bytes(-1), float64Bytes(0), float64Bytes(1e-300), float64Bytes(2)}},
		{"decimal", pqfile.Node{Type: pqfile.FixedLenByteArray, TypeLength: 2, Logical: pqfile.LogicalType{Kind: pqfile.LogicalDecimal}},
			[][]byte{{0x80, 0}, {0xff, 0xfe}, {0xff, 0xff}, {0, 0}, {0, 0xff}, {1, 0}}},
		{"fixed", pqfile.Node{Type: pqfile.FixedLenByteArray, TypeLength: 2}, [][]byte{{0, 0}, {0, 0xff}, {0x7f, 0}, {0x80, 0}}},
		{"string", pqfile.Node{Type: pqfile.ByteArray}, [][]byte{{}, []byte("a"), []byte("ab"), []byte("b"), {0xff}}},
	} {
		for i := range c.less {
			for j := range c.less {
				want := cmpOrdered(int32(i), int32(j))
				if got := compareBounds(&c.leaf, c.less[i], c.less[j]); got != want {
					t.Errorf("%s: compare %x with %x: got %d, want %d", c.name, c.less[i], c.less[j], got, want)
				}
			}
		}
	}
}

func TestCollector(t *testing.T) {
	doubles := func(v ...float64) *pqfile.Values {
		out := &pqfile.Values{Type: pqfile.Double, Width: 8, N: len(v)}
		for _, x := range v {
			out.Fixed = append(out.Fixed, float64Bytes(x)...)
		}
		return out
	}
	run := func(leaf *pqfile.Node, nulls int, v *pqfile.Values) *pqfile.Statistics {
		c := collector{leaf: leaf}
		c.addEntries(v.N+nulls, v.N)
		c.addValues(v, 0, v.N)
		return c.result()
	}
	double := &pqfile.Node{Type: pqfile.Double}
	if s := run(double, 3, doubles(0, 5)); *s.NullCount != 3 || !bytes.Equal(s.MinValue, float64Bytes(math.Copysign(0, -1))) || !bytes.Equal(s.MaxValue, float64Bytes(5)) {
		t.Errorf("zero minimum: %+v", s)
	}
	if s := run(double, 0, doubles(math.Copysign(0, -1), -3)); !bytes.Equal(s.MaxValue, float64Bytes(0)) {
		t.Errorf("zero maximum: %x", s.MaxValue)
	}
	if s := run(double, 0, doubles(1, math.NaN(), 2)); s != nil {
		t.Errorf("NaN: %+v, want none", s)
	}
	if s := run(double, 7, doubles()); *s.NullCount != 7 || s.MinValue != nil || s.MaxValue != nil {
		t.Errorf("all NULL: %+v", s)
	}
	text := &pqfile.Node{Type: pqfile.ByteArray, Logical: pqfile.LogicalType{Kind: pqfile.LogicalString}}
	words := func(v ...string) *pqfile.Values {
		out := &pqfile.Values{Type: pqfile.ByteArray, N: len(v), Offsets: []uint32{0}}
		for _, x := range v {
			out.Data = append(out.Data, x...)
			out.Offsets = append(out.Offsets, uint32(len(out.Data)))
		}
		return out
	}
	if s := run(text, 0, words("b", "", "c")); s.MinValue == nil || len(s.MinValue) != 0 || string(s.MaxValue) != "c" {
		t.Errorf("empty string: %+v, want it as minimum", s)
	}
	if s := run(text, 0, words("b", string(make([]byte, maxBound+1)))); s != nil {
		t.Errorf("long string: %+v, want none", s)
	}
	c := collector{leaf: text}
	c.addEntries(3, 3)
	c.addIndexes(words("z", "b", "a", "c"), []uint32{1, 3, 1})
	c.endSource()
	if s := c.result(); string(s.MinValue) != "b" || string(s.MaxValue) != "c" {
		t.Errorf("dictionary: %q to %q, want the values that rows use", s.MinValue, s.MaxValue)
	}
}

func TestKeptStatisticsRoundTrip(t *testing.T) {
	leaf := &pqfile.Node{Type: pqfile.Int64}
	for _, s := range []*pqfile.Statistics{nil, exactStatistics(300, nil, nil), int64Range(-1, 1<<40)} {
		b := encodeStatistics(s)
		got, ok := decodeStatistics(leaf, b)
		if !ok || (got == nil) != (s == nil) {
			t.Fatalf("%+v: got %+v, %v", s, got, ok)
		}
		if s != nil && (*got.NullCount != *s.NullCount || !bytes.Equal(got.MinValue, s.MinValue) || !bytes.Equal(got.MaxValue, s.MaxValue) || (got.MinValue == nil) != (s.MinValue == nil)) {
			t.Errorf("%+v: got %+v", s, got)
		}
		for n := range b {
			if got, ok := decodeStatistics(leaf, b[:n]); ok {
				t.Errorf("%x cut to %d bytes: got %+v", b, n, got)
			}
		}
	}
}
