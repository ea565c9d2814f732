package merge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
)

func TestDates(t *testing.T) {
	for days, want := range map[int64]string{
		0: "1970-01-01", -1: "1969-12-31", 20787: "2026-11-30", -719162: "0001-01-01", 2932896: "9999-12-31",
		-719528: "0000-01-01", -719529: "-0001-12-31", 11016: "2000-02-29", 2932897: "10000-01-01",
		math.MaxInt32: "5881580-07-11", math.MinInt32: "-5877641-06-23",
	} {
		if got := string(appendDate(nil, days)); got != want {
			t.Errorf("day %d: %s, want %s", days, got, want)
		}
	}
	for day := int64(-800000); day < 3000000; day += 37 {
		at := time.Unix(day*86400, 0).UTC()
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		if got, want := string(appendDate(nil, day)), at.Format("2006-01-02"); got != want {
			t.Fatalf("day %d: %s, want %s", day, got, want)
		}
	}
}

func TestTimestamps(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse("2006-01-02 15:04:05.999999999", s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	for _, s := range []string{
		"1848-03-15 09:23:59.764999", "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999",
		"2026-11-30 02:53:19.5", "1970-01-01 00:00:00.000001", "2026-11-30 02:53:19",
	} {
		if got := string(appendTimestamp(nil, at(s), 1e6, false)); got != s {
			t.Errorf("%s, want %s", got, s)
		}
		if got := string(appendTimestamp(nil, at(s), 1e6, true)); got != s+"Z" {
			t.Errorf("%s, want %sZ", got, s)
		}
	}
	for v, want := range map[int64]string{
		-1: "1969-12-31 23:59:59.999999999", 1: "1970-01-01 00:00:00.000000001", 1500000000: "1970-01-01 00:00:01.5",
		math.MinInt64: "1677-09-21 00:12:43.145224192", math.MaxInt64: "2262-04-11 23:47:16.854775807",
	} {
		if got := string(appendTimestamp(nil, v, 1e9, false)); got != want {
			t.Errorf("nanos %d: %s, want %s", v, got, want)
		}
	}
	if got := string(appendTimestamp(nil, math.MinInt64, 1e6, false)); got != "-290308-12-21 19:59:05.224192" {
		t.Errorf("least micros: %s", got)
	}
	for v, want := range map[int64]string{0: "00:00:00", 1: "00:00:00.000001", 10399500000: "02:53:19.5", 86399999999: "23:59:59.999999"} {
		if got := string(appendClock(nil, v, 1e6)); got != want {
			t.Errorf("time %d: %s, want %s", v, got, want)
		}
	}
}

func TestFloats(t *testing.T) {
	for _, c := range []struct {
		f    float64
		bits int
		want string
	}{
		{0, 64, "0"}, {math.Copysign(0, -1), 64, "-0"}, {1, 64, "1"}, {-1.5, 64, "-1.5"}, {0.1, 64, "0.1"}, {float64(float32(0.1)), 32, "0.1"},
		{1e-6, 64, "0.000001"}, {9.99e-7, 64, "9.99e-7"}, {1e-7, 64, "1e-7"}, {1e-10, 64, "1e-10"}, {1e-300, 64, "1e-300"},
		{1e21, 64, "1e+21"}, {1e20, 64, "100000000000000000000"}, {999999999999999868928, 64, "999999999999999900000"},
		{5e-324, 64, "5e-324"}, {math.MaxFloat64, 64, "1.7976931348623157e+308"}, {1 << 53, 64, "9007199254740992"}, {1<<53 - 1, 64, "9007199254740991"},
		{123456.789012, 64, "123456.789012"}, {0.30000000000000004, 64, "0.30000000000000004"}, {99999999.999999, 64, "99999999.999999"},
		{math.NaN(), 64, "NaN"}, {math.Inf(1), 64, "Infinity"}, {math.Inf(-1), 64, "-Infinity"}, {math.Inf(-1), 32, "-Infinity"},
		{float64(float32(16777216)), 32, "16777216"}, {float64(math.MaxFloat32), 32, "3.4028235e+38"}, {float64(float32(1e-6)), 32, "0.000001"},
		{math.SmallestNonzeroFloat32, 32, "1e-45"}, {math.Copysign(0, -1), 32, "-0"}, {float64(float32(3.3)), 32, "3.3"},
	} {
		if got := string(appendDouble(nil, c.f, c.bits)); got != c.want {
			t.Errorf("%v: %s, want %s", c.f, got, c.want)
		}
		if got := string(newFloatText(c.bits).append(nil, c.f, false)); got != c.want {
			t.Errorf("%v: %s, want %s", c.f, got, c.want)
		}
	}
	if got := string(appendJSONDouble(nil, math.Inf(-1), 64)); got != `"-Infinity"` {
		t.Error(got)
	}
}

// FuzzFloats compares with the standard library's shortest digits.
func FuzzFloats(f *testing.F) {
	for _, v := range []float64{0, 0.1, 12.34, 1e15, 123456789.123456, 0.000123, 8.5e7, 99999999.9999995} {
		f.Add(math.Float64bits(v))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		check := func(v float64, size int) {
			if v-v != 0 {
				return
			}
			abs := math.Abs(v)
			form := byte('f')
			if abs != 0 && (abs < 1e-6 || abs >= 1e21) && (size == 64 || float32(abs) != float32(1e-6)) {
				form = 'e'
			}
			want := strconv.FormatFloat(v, form, -1, size)
			want = strings.Replace(want, "e-0", "e-", 1)
			if got := string(newFloatText(size).append(nil, v, false)); got != want {
				t.Errorf("%x: %s, want %s", bits, got, want)
			}
		}
		v := math.Float64frombits(bits)
		check(v, 64)
		check(float64(math.Float32frombits(uint32(bits))), 32)
		check(math.Mod(math.RoundToEven(v*1e4)/1e4, 1e9), 64)
	})
}

func TestDecimals(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, c := range []struct {
		hex   string
		scale int
		want  string
	}{
		{"00", 2, "0.00"}, {"ce", 2, "-0.50"}, {"ff", 2, "-0.01"}, {"7b", 0, "123"}, {"00", 0, "0"}, {"85", 0, "-123"},
		{"4b3b4ca85a86c47a098a223fffffffff", 0, nines}, {"4b3b4ca85a86c47a098a223fffffffff", 38, "0." + nines},
		{"b4c4b357a5793b85f675ddc000000001", 10, "-" + nines[:28] + "." + nines[:10]},
		{"80000000000000000000000000000000", 0, "-170141183460469231731687303715884105728"},
		{"8ac7230489e80000", 0, "-8446744073709551616"}, {"008ac7230489e80000", 0, "10000000000000000000"}, {"008ac7230489e80000", 19, "1.0000000000000000000"},
		{"008ac7230489e80000", 20, "0.10000000000000000000"}, {"ab54a98ceb1f0ad2", 10, "-610106517.2474983726"},
		{"00000000000000000000000000000000ff", 1, "25.5"}, {"ffffffffffffffffffffffffffffffffff01", 1, "-25.5"},
	} {
		got, err := appendDecimalBytes(nil, unhex(t, c.hex), c.scale)
		if err != nil || string(got) != c.want {
			t.Errorf("%s scale %d: %s %v, want %s", c.hex, c.scale, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "0100000000000000000000000000000000", "ff7fffffffffffffffffffffffffffffff"} {
		if _, err := appendDecimalBytes(nil, unhex(t, bad), 0); err == nil {
			t.Errorf("%q was taken for a decimal", bad)
		}
	}
	if got := string(appendDecimal(nil, math.MinInt64, 3)); got != "-9223372036854775.808" {
		t.Error(got)
	}
	if got := string(appendDecimal(nil, -5, 4)); got != "-0.0005" {
		t.Error(got)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	for i := 0; i < len(s); i += 2 {
		v, err := strconv.ParseUint(s[i:i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, byte(v))
	}
	return b
}

// Values for tests.

func fixed32(v ...int32) pqfile.Values {
	out := pqfile.Values{Type: pqfile.Int32, Width: 4, N: len(v)}
	for _, x := range v {
		out.Fixed = binary.LittleEndian.AppendUint32(out.Fixed, uint32(x))
	}
	return out
}

func fixed64(v ...int64) pqfile.Values {
	out := pqfile.Values{Type: pqfile.Int64, Width: 8, N: len(v)}
	for _, x := range v {
		out.Fixed = binary.LittleEndian.AppendUint64(out.Fixed, uint64(x))
	}
	return out
}

func doubles(v ...float64) pqfile.Values {
	out := pqfile.Values{Type: pqfile.Double, Width: 8, N: len(v)}
	for _, x := range v {
		out.Fixed = binary.LittleEndian.AppendUint64(out.Fixed, math.Float64bits(x))
	}
	return out
}

func floats(v ...float32) pqfile.Values {
	out := pqfile.Values{Type: pqfile.Float, Width: 4, N: len(v)}
	for _, x := range v {
		out.Fixed = binary.LittleEndian.AppendUint32(out.Fixed, math.Float32bits(x))
	}
	return out
}

func flbas(width int, v ...string) pqfile.Values {
	return pqfile.Values{Type: pqfile.FixedLenByteArray, Width: width, N: len(v), Fixed: []byte(strings.Join(v, ""))}
}

// byteArrays begins at an offset of its own, as a slice of a larger page does.
func byteArrays(v ...string) pqfile.Values {
	out := pqfile.Values{Type: pqfile.ByteArray, N: len(v), Data: []byte("??"), Offsets: []uint32{2}}
	for _, s := range v {
		out.Data = append(out.Data, s...)
		out.Offsets = append(out.Offsets, uint32(len(out.Data)))
	}
	return out
}

func dictionary(d pqfile.Values, index ...uint32) pqfile.Values {
	return pqfile.Values{Type: d.Type, Width: d.Width, N: len(index), Dict: &d, Index: index}
}

// formatted formats one batch as text, with or without its header.
func formatted(t *testing.T, schema *iceberg.Schema, opt CSVOptions, json bool, rows int, vectors ...pqfile.Vector) (string, error) {
	t.Helper()
	view, err := pqfile.ViewOf(schema)
	if err != nil {
		t.Fatal(err)
	}
	form, err := newCSVForm(view, opt)
	if json {
		form, err = newJSONLForm(view)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := newTextBatch(view, form)
	if err != nil {
		t.Fatal(err)
	}
	dst := append([]byte{}, form.head...)
	for round := range 2 { // a second batch has the same text as the first
		b.begin(rows, 2)
		for _, c := range b.columns {
			var v []*pqfile.Vector
			for _, leaf := range c.leaves {
				vectors[leaf].Rows = rows
				v = append(v, &vectors[leaf])
			}
			measured := make([]int, rows)
			failed := c.addLengths(measured, v)
			if err := c.format(rows, v); err != nil || failed != nil {
				if fmt.Sprint(failed) != fmt.Sprint(err) {
					t.Errorf("measuring: %v, formatting: %v", failed, err)
				}
				return "", err
			}
			c.cells.addLengths(b.sums[0])
			for i, n := range measured {
				if got := c.cells.row(i); len(got) != n {
					t.Errorf("row %d: %d bytes measured for %q", i, n, got)
				}
			}
		}
		b.finish()
		b.setStrips()
		was := string(dst)
		dst = append(dst[:0], form.head...)
		total := 0
		for i := range rows {
			dst = b.appendRows(dst, []deletes.Range{{Start: int64(i), End: int64(i + 1)}}, b.lengths[i], 2)
			if total += b.lengths[i]; len(dst) != len(form.head)+total {
				t.Errorf("row %d has %d bytes too many, measured %d", i, len(dst)-len(form.head)-total, b.lengths[i])
			}
		}
		if round > 0 && string(dst) != was {
			t.Errorf("batch %d: %q, was %q", round, dst, was)
		}
		at := append([]byte{}, form.head...)
		if at = b.appendRows(at, []deletes.Range{{End: int64(rows)}}, total, 2); !bytes.Equal(at, dst) {
			t.Errorf("%q together, %q row by row", at, dst)
		}
	}
	return string(dst), nil
}
