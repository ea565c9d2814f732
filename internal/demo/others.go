package demo

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// customers is kept as a stream of changes keeps it: every batch deletes the
// older rows of its keys by equality and appends the new ones.
func customers(shop string) error {
	t := fixture.New(filepath.Join(shop, "customers"), fixture.Options{
		Seed: 2, Start: monday().Add(-2 * time.Hour),
		Schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32, Required: true},
			iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
			iceberg.NestedField{ID: 3, Name: "since", Type: iceberg.PrimitiveTypes.Date},
			iceberg.NestedField{ID: 4, Name: "address", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
				{ID: 5, Name: "street", Type: iceberg.PrimitiveTypes.String},
				{ID: 6, Name: "town", Type: iceberg.PrimitiveTypes.String},
			}}},
			iceberg.NestedField{ID: 7, Name: "tags", Type: &iceberg.ListType{ElementID: 8, Element: iceberg.PrimitiveTypes.String}},
		),
	})
	rnd := rand.New(rand.NewPCG(2, 2))
	for d := range 4 {
		tx := t.Begin()
		tx.Time = day(d).Add(-time.Hour)
		var changed, keys []fixture.Row
		for id := 1; id <= 200; id++ {
			if d > 0 && rnd.IntN(12) > 0 {
				continue
			}
			keys = append(keys, fixture.Row{"id": id})
			if d < 3 || id%9 > 0 { // some left on the last day
				changed = append(changed, customer(rnd, id))
			}
		}
		if d > 0 {
			tx.DeleteEqual([]int{1}, keys...)
		}
		tx.Append(changed...)
		tx.Commit()
	}
	return t.Err()
}

// customer is one customer's row.
func customer(rnd *rand.Rand, id int) fixture.Row {
	towns := []string{"Springfield", "Ålesund", "São Paulo", "Kyōto"}
	row := fixture.Row{
		"id": id, "name": fmt.Sprintf("Customer %03d", id), "since": monday().AddDate(0, 0, -id*3),
		"address": fixture.Row{"street": fmt.Sprintf("%d Main Street", 1+rnd.IntN(99)), "town": towns[rnd.IntN(len(towns))]},
		"tags":    []any{},
	}
	switch rnd.IntN(5) {
	case 0:
		row["tags"] = []any{"regular"}
	case 1:
		row["tags"] = []any{"regular", "newsletter"}
	case 2:
		row["address"] = nil
	}
	return row
}

// stock is a version 3 table: two warehouses' lists as partitions, rows deleted
// by deletion vectors.
func stock(shop string) error {
	t := fixture.New(filepath.Join(shop, "stock"), fixture.Options{
		FormatVersion: 3, Seed: 3, Start: monday().Add(-3 * time.Hour), UUIDNames: true,
		Schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "warehouse", Type: iceberg.PrimitiveTypes.String, Required: true},
			iceberg.NestedField{ID: 2, Name: "sku", Type: iceberg.PrimitiveTypes.Int64},
			iceberg.NestedField{ID: 3, Name: "pieces", Type: iceberg.PrimitiveTypes.Int32},
			iceberg.NestedField{ID: 4, Name: "weight", Type: iceberg.PrimitiveTypes.Float64},
		),
		Partition: []iceberg.PartitionField{{SourceIDs: []int{1}, Name: "warehouse", Transform: iceberg.IdentityTransform{}}},
	})
	rnd := rand.New(rand.NewPCG(3, 3))
	var files []*fixture.File
	tx := t.Begin()
	for _, warehouse := range []string{"north", "south"} {
		rows := make([]fixture.Row, 5000)
		for i := range rows {
			rows[i] = fixture.Row{
				"warehouse": warehouse, "sku": 10_000 + i, "pieces": rnd.IntN(500), "weight": float64(rnd.IntN(10_000)) / 64,
			}
		}
		files = append(files, tx.Append(rows...))
	}
	tx.Commit()
	for d := range 3 {
		tx := t.Begin()
		tx.Time = day(d + 1)
		for _, f := range files {
			var sold []int64
			for p := range f.Count {
				if rnd.IntN(100) < 2 {
					sold = append(sold, p)
				}
			}
			tx.DeleteVector(f, sold...)
		}
		tx.Commit()
	}
	t.Evolve(func(e *fixture.Evolution) {
		e.Add("", fixture.Column{Name: "shelf", Type: iceberg.PrimitiveTypes.Int32, Default: 1})
	})
	return t.Err()
}
