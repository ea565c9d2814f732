package deletes

import (
	"math"
	"testing"

	"github.com/apache/iceberg-go"
)

func TestEqualityFloats(t *testing.T) {
	nan2 := math.Float64frombits(0x7ff8000000000123)
	negNaN := math.Float64frombits(0xfff8000000000000)
	zero, minus := 0.0, math.Copysign(0, -1)
	data := ones[float64](zero, minus, math.NaN(), nan2, 1.5, negNaN, math.Inf(1), nil)
	for _, c := range []struct {
		key  any
		want string
	}{
		{zero, "[{0 1}]"},
		{minus, "[{1 2}]"},
		{math.NaN(), "[{2 4} {5 6}]"},
		{nan2, "[{2 4} {5 6}]"},
		{math.Inf(1), "[{6 7}]"},
		{nil, "[{7 8}]"},
		{2.5, "[]"},
	} {
		l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Float64)))
		l.files["data"] = parquetOf(t, 3, data)
		l.addEquality(parquetOf(t, 10, ones[float64](c.key)), 1)
		l.want(t, c.want)
		if c.key == nil || c.key != c.key && math.Float64bits(c.key.(float64)) == math.Float64bits(nan2) {
			continue
		}
		// A float column since promoted: the delete file still has floats.
		l.file.Equality = nil
		l.addEquality(parquetOf(t, 10, ones[float32](float32(c.key.(float64)))), 1)
		l.want(t, c.want)
	}
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Float32)))
	l.files["data"] = parquetOf(t, 3, ones[float32](float32(zero), float32(minus), float32(math.NaN()), math.Float32frombits(0x7fc00001)))
	l.addEquality(parquetOf(t, 10, ones[float32](float32(math.NaN()), float32(minus))), 1)
	l.want(t, "[{1 4}]")
}

// resolveOne resolves a single-column equality delete.
func resolveOne[D, K any](t *testing.T, schemas []*iceberg.Schema, data []D, keys []K) string {
	t.Helper()
	l := newLab(schemas...)
	l.files["data"] = parquetOf(t, 3, data)
	l.addEquality(parquetOf(t, 2, keys), 1)
	got, err := l.resolve(NewResolver(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEqualityTypes(t *testing.T) {
	schema := func(typ iceberg.Type) []*iceberg.Schema {
		return []*iceberg.Schema{iceberg.NewSchema(0, field(1, "v", typ))}
	}
	p := iceberg.PrimitiveTypes
	expect := func(name, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: deleted %s, want %s", name, got, want)
		}
	}
	expect("bool", resolveOne(t, schema(p.Bool), ones[bool](true, false, nil, true), ones[bool](true)), "[{0 1} {3 4}]")
	expect("int", resolveOne(t, schema(p.Int32), ones[int32](int32(-1), int32(7), nil), ones[int32](int32(-1))), "[{0 1}]")
	expect("string", resolveOne(t, schema(p.String), ones[string]("", "a", nil, "\x00", "a\x00", "ä"), ones[string]("", "a\x00", "ä")), "[{0 1} {4 6}]")
	expect("binary", resolveOne(t, schema(p.Binary), ones[[]byte]([]byte{}, []byte{0}, []byte{0, 0}), ones[[]byte]([]byte{0})), "[{1 2}]")

	type id struct {
		V [16]byte `parquet:"v,uuid,id(1)"`
	}
	expect("uuid", resolveOne(t, schema(p.UUID), []id{{[16]byte{1}}, {[16]byte{2}}, {[16]byte{15: 1}}}, []id{{[16]byte{15: 1}}, {[16]byte{1}}}), "[{0 1} {2 3}]")
	type fixed struct {
		V [4]byte `parquet:"v,id(1)"`
	}
	expect("fixed, several keys", resolveOne(t, schema(iceberg.FixedTypeOf(4)), []fixed{{[4]byte{1}}, {[4]byte{2}}, {[4]byte{3}}}, []fixed{{[4]byte{1}}, {[4]byte{3}}}), "[{0 1} {2 3}]")
	type date struct {
		V int32 `parquet:"v,date,id(1)"`
	}
	type micros struct {
		V int64 `parquet:"v,timestamp(microsecond:local),id(1)"`
	}
	type millis struct {
		V int64 `parquet:"v,timestamp(millisecond:local),id(1)"`
	}
	type nanos struct {
		V int64 `parquet:"v,timestamp(nanosecond:local),id(1)"`
	}
	type clock struct {
		V int64 `parquet:"v,time(microsecond),id(1)"`
	}
	expect("date", resolveOne(t, schema(p.Date), []date{{-1}, {0}, {20000}}, []date{{-1}, {20000}}), "[{0 1} {2 3}]")
	expect("time", resolveOne(t, schema(p.Time), []clock{{0}, {1}, {86399999999}}, []clock{{86399999999}}), "[{2 3}]")
	expect("timestamp", resolveOne(t, schema(p.Timestamp), []micros{{-1}, {0}, {1500}}, []micros{{-1}}), "[{0 1}]")
	expect("timestamp in millis", resolveOne(t, schema(p.Timestamp), []micros{{-1}, {-1000}, {2000}}, []millis{{-1}, {2}}), "[{1 3}]")
	expect("timestamp_ns", resolveOne(t, schema(p.TimestampNs), []nanos{{1}, {2}}, []nanos{{2}}), "[{1 2}]")
	toTimestamp := []*iceberg.Schema{iceberg.NewSchema(0, field(1, "v", p.Date)), iceberg.NewSchema(1, field(1, "v", p.Timestamp))}
	expect("date promoted to timestamp", resolveOne(t, toTimestamp, []date{{0}, {1}, {-1}}, []micros{{86400e6}, {-86400e6}, {1}}), "[{1 3}]")
}

func TestEqualityDecimals(t *testing.T) {
	type in32 struct {
		V int32 `parquet:"v,decimal(2:9),id(1)"`
	}
	type in64 struct {
		V int64 `parquet:"v,decimal(2:18),id(1)"`
	}
	type in16 struct {
		V [16]byte `parquet:"v,decimal(2:38),id(1)"`
	}
	minus := [16]byte{}
	for i := range minus {
		minus[i] = 0xFF
	}
	d := func(precision, id int) *iceberg.Schema {
		return iceberg.NewSchema(id, field(1, "v", iceberg.DecimalTypeOf(precision, 2)))
	}
	grown := []*iceberg.Schema{d(9, 0), d(18, 1), d(38, 2)}
	for name, got := range map[string]string{
		"4 bytes by 8":  resolveOne(t, grown, []in32{{-1}, {150}, {7}}, []in64{{-1}, {7}}),
		"4 bytes by 16": resolveOne(t, grown, []in32{{-1}, {150}, {7}}, []in16{{minus}, {[16]byte{15: 7}}}),
		"8 bytes by 4":  resolveOne(t, grown, []in64{{-1}, {150}, {7}}, []in32{{-1}, {7}}),
		"16 bytes by 4": resolveOne(t, grown, []in16{{minus}, {[16]byte{14: 1}}, {[16]byte{15: 7}}}, []in32{{-1}, {7}}),
		"16 by 16":      resolveOne(t, grown, []in16{{minus}, {[16]byte{14: 1}}, {[16]byte{15: 7}}}, []in16{{minus}, {[16]byte{15: 7}}}),
	} {
		if want := "[{0 1} {2 3}]"; got != want {
			t.Errorf("%s: deleted %s, want %s", name, got, want)
		}
	}
}
