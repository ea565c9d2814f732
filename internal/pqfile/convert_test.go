package pqfile

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"
)

func fixed(t Type, width int, b ...byte) Values {
	return Values{Type: t, Width: width, N: len(b) / width, Fixed: b}
}

func int64s(v ...int64) Values {
	var b []byte
	for _, n := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return fixed(Int64, 8, b...)
}

func int96(nanos int64, day int32) Values {
	b := binary.LittleEndian.AppendUint64(nil, uint64(nanos))
	return fixed(Int96, 12, binary.LittleEndian.AppendUint32(b, uint32(day))...)
}

func byteArrays(v ...string) Values {
	out := Values{Type: ByteArray, Offsets: []uint32{0}, N: len(v)}
	for _, s := range v {
		out.Data = append(out.Data, s...)
		out.Offsets = append(out.Offsets, uint32(len(out.Data)))
	}
	return out
}

func TestConvert(t *testing.T) {
	decimal := LogicalType{Kind: LogicalDecimal, Precision: 38}
	stamp := func(u TimeUnit) LogicalType { return LogicalType{Kind: LogicalTimestamp, Unit: u} }
	i64, i32 := Node{Type: Int64}, Node{Type: Int32}
	micros := Node{Type: Int64, Logical: stamp(Micros)}
	nanos := Node{Type: Int64, Logical: stamp(Nanos)}
	dec := func(t Type, n int) Node { return Node{Type: t, TypeLength: n, Logical: decimal} }
	for _, c := range []struct {
		name     string
		from, to Node
		in       Values
		want     Values // N < 0 = does not fit
	}{
		{"int to long", i32, i64, fixed(Int32, 4, 0xFF, 0xFF, 0xFF, 0xFF), int64s(-1)},
		{"long to int", i64, i32, int64s(-1), fixed(Int32, 4, 0xFF, 0xFF, 0xFF, 0xFF)},
		{"long to int, too large", i64, i32, int64s(0, 1<<31), Values{N: -1}},
		{"float to double", Node{Type: Float}, Node{Type: Double}, fixed(Float, 4, 0, 0, 0xC0, 0x3F), int64s(int64(math.Float64bits(1.5)))},
		{"float -0 to double", Node{Type: Float}, Node{Type: Double}, fixed(Float, 4, 0, 0, 0, 0x80), int64s(math.MinInt64)},
		{"INT96 epoch", Node{Type: Int96}, micros, int96(0, 2440588), int64s(0)},
		{"INT96 a nanosecond before", Node{Type: Int96}, micros, int96(86400e9-1, 2440587), int64s(-1)},
		{"INT96 year 1", Node{Type: Int96}, micros, int96(0, 1721426), int64s(-62135596800000000)},
		{"INT96 negative time of day", Node{Type: Int96}, micros, int96(-1, 2440588), int64s(-1)},
		{"INT96 far away", Node{Type: Int96}, micros, int96(0, math.MaxInt32), Values{N: -1}},
		{"INT96 nanoseconds", Node{Type: Int96}, nanos, int96(7, 2440589), int64s(86400e9 + 7)},
		{"INT96 nanoseconds too far", Node{Type: Int96}, nanos, int96(0, 2440588+110_000), Values{N: -1}},
		{"nanos to micros", nanos, micros, int64s(-1, 1999), int64s(-1, 1)},
		{"millis to micros", Node{Type: Int64, Logical: stamp(Millis)}, micros, int64s(-1), int64s(-1000)},
		{"millis to micros, too far", Node{Type: Int64, Logical: stamp(Millis)}, micros, int64s(math.MaxInt64 / 999), Values{N: -1}},
		{"date to timestamp", Node{Type: Int32, Logical: LogicalType{Kind: LogicalDate}}, micros, fixed(Int32, 4, 0xFF, 0xFF, 0xFF, 0xFF), int64s(-86400e6)},
		{"decimal INT32 to INT64", dec(Int32, 0), dec(Int64, 0), fixed(Int32, 4, 0xFE, 0xFF, 0xFF, 0xFF), int64s(-2)},
		{"decimal INT32 to fixed", dec(Int32, 0), dec(FixedLenByteArray, 9), fixed(Int32, 4, 0xFE, 0xFF, 0xFF, 0xFF), fixed(FixedLenByteArray, 9, 255, 255, 255, 255, 255, 255, 255, 255, 254)},
		{"decimal fixed to INT32", dec(FixedLenByteArray, 5), dec(Int32, 0), fixed(FixedLenByteArray, 5, 255, 255, 255, 255, 254), fixed(Int32, 4, 0xFE, 0xFF, 0xFF, 0xFF)},
		{"decimal fixed to INT32, too large", dec(FixedLenByteArray, 5), dec(Int32, 0), fixed(FixedLenByteArray, 5, 0, 0x80, 0, 0, 0), Values{N: -1}},
		{"decimal bytes to INT64", dec(ByteArray, 0), dec(Int64, 0), byteArrays("\x7F", "\xFF\x00", "", "\x00\x80"), int64s(127, -256, 0, 128)},
		{"decimal bytes to INT64, too long", dec(ByteArray, 0), dec(Int64, 0), byteArrays("\x01\x00\x00\x00\x00\x00\x00\x00\x00"), Values{N: -1}},
		{"decimal fixed to bytes", dec(FixedLenByteArray, 2), dec(ByteArray, 0), fixed(FixedLenByteArray, 2, 1, 2, 3, 4), byteArrays("\x01\x02", "\x03\x04")},
		{"bytes to fixed", Node{Type: ByteArray}, Node{Type: FixedLenByteArray, TypeLength: 2}, byteArrays("ab", "cd"), fixed(FixedLenByteArray, 2, 'a', 'b', 'c', 'd')},
		{"bytes to fixed of another length", Node{Type: ByteArray}, Node{Type: FixedLenByteArray, TypeLength: 2}, byteArrays("abc"), Values{N: -1}},
		{"fixed to bytes", Node{Type: FixedLenByteArray, TypeLength: 2}, Node{Type: ByteArray}, fixed(FixedLenByteArray, 2, 'a', 'b', 'c', 'd'), byteArrays("ab", "cd")},
	} {
		conversion, err := conversionOf(&c.to, &c.from)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got Values
		err = conversion.convert(&got, &c.in, &c.to)
		switch {
		case c.want.N < 0:
			if err == nil {
				t.Errorf("%s: %v fitted", c.name, c.in)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case got.N != c.want.N || got.Width != fixedWidth(&c.to) || got.Type != c.to.Type || !bytes.Equal(got.Fixed, c.want.Fixed) || !bytes.Equal(got.Data, c.want.Data) ||
			len(got.Offsets) != len(c.want.Offsets):
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

// A dictionary is converted once; a value in it that does not fit is an error
// only where a row uses it.
func TestConvertDictionary(t *testing.T) {
	from, to := &Node{Type: Int64}, &Node{Type: Int32}
	conversion, err := conversionOf(to, from)
	if err != nil {
		t.Fatal(err)
	}
	good, bad := int64s(5, 6), int64s(5, 1<<40)
	c := converter{kind: &conversion, leaf: to}
	v, err := c.page(&Values{Type: Int64, Width: 8, N: 2, Dict: &good, Index: []uint32{1, 0}})
	if err != nil || v.Dict == nil || v.Width != 4 || v.Dict.Fixed[4] != 6 {
		t.Fatalf("%v, %v", v, err)
	}
	again, err := c.page(&Values{Type: Int64, Width: 8, N: 1, Dict: &good, Index: []uint32{1}})
	if err != nil || again.Dict != v.Dict {
		t.Errorf("converted twice: %v", err)
	}
	v, err = c.page(&Values{Type: Int64, Width: 8, N: 2, Dict: &bad, Index: []uint32{0, 0}})
	if err != nil || v.N != 2 || v.Fixed[4] != 5 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err = c.page(&Values{Type: Int64, Width: 8, N: 1, Dict: &bad, Index: []uint32{1}}); err == nil {
		t.Error("a used value that does not fit was accepted")
	}
}

func TestMulAdd(t *testing.T) {
	const perSecond = int64(time.Second)
	for _, c := range []struct {
		a, b, c, want int64
		ok            bool
	}{
		{-9223372037, perSecond, 145224192, math.MinInt64, true}, // 1677-09-21T00:12:43.145224192
		{-9223372037, perSecond, 145224191, 0, false},
		{9223372036, perSecond, 854775807, math.MaxInt64, true},
		{9223372036, perSecond, 854775808, 0, false},
		{9223372037, perSecond, -145224193, math.MaxInt64, true},
		{-9223372036, perSecond, -854775808, math.MinInt64, true},
		{-1, perSecond, 1, -999999999, true},
		{1, perSecond, -1, 999999999, true},
		{0, 7, -3, -3, true},
		{math.MaxInt64, 2, 0, 0, false},
	} {
		if n, ok := mulAdd(c.a, c.b, c.c); ok != c.ok || ok && n != c.want {
			t.Errorf("%d*%d + %d = %d, %t, want %d, %t", c.a, c.b, c.c, n, ok, c.want, c.ok)
		}
	}
}
