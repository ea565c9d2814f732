package demo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// orders has position deletes, a correction, a schema change, a tag and a
// branch.
func orders(shop string) error {
	t := fixture.New(filepath.Join(shop, "orders"), fixture.Options{
		Seed: 1, Start: monday().Add(-time.Hour),
		Parquet: fixture.ParquetOptions{RowGroup: 500},
		Schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			iceberg.NestedField{ID: 2, Name: "customer", Type: iceberg.PrimitiveTypes.Int32},
			iceberg.NestedField{ID: 3, Name: "item", Type: iceberg.PrimitiveTypes.String},
			iceberg.NestedField{ID: 4, Name: "price", Type: iceberg.DecimalTypeOf(9, 2)},
			iceberg.NestedField{ID: 5, Name: "ordered", Type: iceberg.PrimitiveTypes.TimestampTz},
			iceberg.NestedField{ID: 6, Name: "note", Type: iceberg.PrimitiveTypes.String},
		),
	})
	rnd := rand.New(rand.NewPCG(1, 1))
	const tuesday, thursday, days = 1, 3, 5
	var files [days]*fixture.File
	var cancelled [days]map[int64]bool
	for d := range days {
		if d == thursday {
			t.Evolve(func(e *fixture.Evolution) {
				e.Add("", fixture.Column{Name: "coupon", Type: iceberg.PrimitiveTypes.String})
			})
		}
		tx := t.Begin()
		tx.Time = day(d)
		files[d] = tx.Append(orderRows(rnd, d, d >= thursday)...)
		s := tx.Commit()
		if d == 0 {
			t.Tag("monday", s)
			t.SetBranch("audit", s)
			audit := t.BeginOn("audit")
			audit.Time = day(d).Add(time.Hour)
			audit.DeletePositions(files[0], 1, 2, 3, 5, 8, 13, 21)
			audit.Commit()
		}
		if d > 0 {
			cancelled[d-1] = cancel(t, files[d-1], rnd, day(d).Add(30*time.Minute))
		}
	}
	correct(t, files[tuesday], cancelled[tuesday])
	t.Evolve(func(e *fixture.Evolution) { e.Rename("note", "remark") })
	return t.Err()
}

// orderRows are a day's orders.
func orderRows(rnd *rand.Rand, d int, coupons bool) []fixture.Row {
	items := []string{"tea", "coffee", "honey", "bread", "olive oil", "salt, fine", `jam "grandma"`, "soap"}
	rows := make([]fixture.Row, ordersADay)
	start := day(d).Add(-10 * time.Hour)
	for i := range rows {
		rows[i] = fixture.Row{
			"id": d*ordersADay + i + 1, "customer": 1 + rnd.IntN(200), "item": items[rnd.IntN(len(items))],
			"price":   fmt.Sprintf("%d.%02d", 1+rnd.IntN(60), rnd.IntN(100)),
			"ordered": start.Add(time.Duration(i) * 15 * time.Second),
		}
		if rnd.IntN(10) == 0 {
			rows[i]["note"] = "leave at the door"
		}
		if coupons && rnd.IntN(4) == 0 {
			rows[i]["coupon"] = "WINTER"
		}
	}
	return rows
}

// cancel position-deletes about two in a hundred orders of a file.
func cancel(t *fixture.Table, f *fixture.File, rnd *rand.Rand, at time.Time) map[int64]bool {
	cancelled := map[int64]bool{}
	var positions []int64
	for p := range f.Count {
		if rnd.IntN(50) == 0 {
			positions = append(positions, p)
			cancelled[p] = true
		}
	}
	tx := t.Begin()
	tx.Time = at
	tx.DeletePositions(f, positions...)
	tx.Commit()
	return cancelled
}

// correct replaces a file whose prices were ten times too high by one with the
// right ones and without its cancelled orders, as an engine does that copies on
// write.
func correct(t *fixture.Table, wrong *fixture.File, cancelled map[int64]bool) {
	const price = 4 // field id
	var right []fixture.Record
	for p, rec := range wrong.Records {
		if cancelled[int64(p)] {
			continue
		}
		fixed := maps.Clone(rec)
		stated := rec[price].(iceberg.Decimal)
		tenth, _ := stated.Val.Div(decimal128.FromI64(10))
		fixed[price] = iceberg.Decimal{Val: tenth, Scale: stated.Scale}
		right = append(right, fixed)
	}
	tx := t.Begin()
	tx.Time = day(4).Add(2 * time.Hour)
	tx.Remove(wrong)
	tx.AppendRecords(fixture.FileOptions{}, right)
	tx.Commit()
}
