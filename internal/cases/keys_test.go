package cases

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// A delete file of several keys deletes the rows of each, whatever the type: a
// reader that keeps keys in a buffer which it fills anew has only the last one.
func TestSeveralKeysOfOneFile(t *testing.T) {
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		typ    iceberg.Type
		values []any // of which the first, third and fourth are deleted
		left   [2]string
	}{
		{iceberg.FixedTypeOf(4), []any{"\x00\x00\x00\x01", "\x00\x00\x00\x02", "\xff\x00\x00\x01", "\x7f\x00\x00\x00", "\x00\x00\x00\x03"}, [2]string{"00000002", "00000003"}},
		{p.Binary, []any{"\x01", "\x01\x00", "", "\xff", "\x02"}, [2]string{"0100", "02"}},
		{p.UUID, []any{"f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e8", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000001"},
			[2]string{"f79c3e09-677c-4bbd-a479-3f349cb785e8", "00000000-0000-0000-0000-000000000001"}},
		{p.String, []any{"a", "b", "", "é", "ab"}, [2]string{"b", "ab"}},
		{iceberg.DecimalTypeOf(38, 2), []any{"0.01", "0.02", "-0.01", "999999999999999999999999999999999999.99", "1.00"}, [2]string{"0.02", "1.00"}},
		{iceberg.DecimalTypeOf(18, 2), []any{"0.01", "0.02", "-0.01", "9999999999999999.99", "1.00"}, [2]string{"0.02", "1.00"}},
		{p.Int32, []any{1, 2, -1, math.MaxInt32, 3}, [2]string{"2", "3"}},
		{p.Int64, []any{1, 2, -1, math.MaxInt64, 3}, [2]string{"2", "3"}},
		{p.Float64, []any{1.5, 2.5, -1.5, math.Inf(1), 3.5}, [2]string{"2.5", "3.5"}},
		{p.Date, []any{"1969-12-31", "1970-01-01", "0001-01-01", "9999-12-31", "2026-11-30"}, [2]string{"1970-01-01", "2026-11-30"}},
		{p.TimestampNs, []any{"1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00", "2026-11-30 02:53:19.123456789", "2200-01-01 00:00:00", "2026-11-30 02:53:19.12345678"},
			[2]string{"1970-01-01 00:00:00", "2026-11-30 02:53:19.12345678"}},
	} {
		for _, form := range []fixture.ParquetOptions{{}, {NoDictionary: true}} {
			t.Run(fmt.Sprintf("%s, plain %v", c.typ, form.NoDictionary), func(t *testing.T) {
				schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "n", Type: p.Int32}, iceberg.NestedField{ID: 2, Name: "k", Type: c.typ})
				tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema, FormatVersion: 3, Parquet: form})
				var rows []fixture.Row
				for i, v := range c.values {
					rows = append(rows, fixture.Row{"n": i, "k": v})
				}
				commit(tab, func(tx *fixture.Tx) { tx.Append(rows...) })
				commit(tab, func(tx *fixture.Tx) {
					tx.DeleteEqual([]int{2}, fixture.Row{"k": c.values[0]}, fixture.Row{"k": c.values[2]}, fixture.Row{"k": c.values[3]})
				})
				open(t, tab).rows("n,k", "1,"+c.left[0], "4,"+c.left[1])
			})
		}
	}
}

// Keys of a delete file that was written before its column was promoted delete
// rows of every snapshot, in whichever order one mount is asked for them: what
// is kept of the keys under one schema is not taken for those under another.
func TestKeysAcrossPromotion(t *testing.T) {
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		from, to iceberg.Type
		values   []any
		texts    [2][]string // under from and to
	}{
		{p.Int32, p.Int64, []any{1, 2, -3}, [2][]string{{"1", "2", "-3"}, {"1", "2", "-3"}}},
		{p.Float32, p.Float64, []any{0.5, 0.75, -0.25}, [2][]string{{"0.5", "0.75", "-0.25"}, {"0.5", "0.75", "-0.25"}}},
		{iceberg.DecimalTypeOf(6, 2), iceberg.DecimalTypeOf(12, 2), []any{"1.00", "2.50", "-3.00"}, [2][]string{{"1.00", "2.50", "-3.00"}, {"1.00", "2.50", "-3.00"}}},
		{iceberg.DecimalTypeOf(12, 2), iceberg.DecimalTypeOf(30, 2), []any{"1.00", "2.50", "-3.00"}, [2][]string{{"1.00", "2.50", "-3.00"}, {"1.00", "2.50", "-3.00"}}},
	} {
		for _, backwards := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s to %s, backwards %v", c.from, c.to, backwards), func(t *testing.T) {
				schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "n", Type: p.Int32}, iceberg.NestedField{ID: 2, Name: "k", Type: c.from})
				tab := fixture.New(t.TempDir(), fixture.Options{Schema: schema})
				rows := func(first int) (rows []fixture.Row) {
					for i, v := range c.values {
						rows = append(rows, fixture.Row{"n": first + i, "k": v})
					}
					return rows
				}
				commit(tab, func(tx *fixture.Tx) { tx.Append(rows(0)...) })
				before := commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{2}, fixture.Row{"k": c.values[0]}, fixture.Row{"k": nil}) })
				tab.Evolve(func(e *fixture.Evolution) { e.Promote("k", c.to) })
				commit(tab, func(tx *fixture.Tx) { tx.Append(rows(10)...) })
				after := commit(tab, func(tx *fixture.Tx) { tx.DeleteEqual([]int{2}, fixture.Row{"k": c.values[2]}) })
				was, is := c.texts[0], c.texts[1]
				o := open(t, tab)
				show := []func(){
					func() { o.shows(o.scan(before.ID, nil), fmt.Sprintf("n,k\n1,%s\n2,%s\n", was[1], was[2])) },
					func() { o.shows(o.scan(before.ID, tab.Schema()), fmt.Sprintf("n,k\n1,%s\n2,%s\n", is[1], is[2])) },
					func() { o.shows(o.scan(after.ID, nil), fmt.Sprintf("n,k\n1,%s\n10,%s\n11,%s\n", is[1], is[0], is[1])) },
				}
				for i := range show {
					if backwards {
						i = len(show) - 1 - i
					}
					show[i]()
				}
			})
		}
	}
}
