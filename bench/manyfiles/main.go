// Command manyfiles writes an Iceberg table of many small data files of one
// schema (long, string, double, date), each with a sequence of keys of its own:
//
//	manyfiles -files 10000 -rows 100 TABLE_DIR
//
// It prints "main <snapshot id>". The same flags write the same rows.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

func main() {
	log.SetFlags(0)
	files := flag.Int("files", 10_000, "data files")
	rows := flag.Int("rows", 100, "rows of a file")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: manyfiles [flags] TABLE_DIR")
	}
	id, err := generate(flag.Arg(0), *files, *rows)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("main", id)
}

func generate(dir string, files, rows int) (int64, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return 0, fmt.Errorf("%s is not empty", dir)
	}
	column := func(id int, name string, typ iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: typ}
	}
	t := fixture.New(dir, fixture.Options{FormatVersion: 2, UUIDNames: true, Schema: iceberg.NewSchema(0,
		column(1, "k", iceberg.PrimitiveTypes.Int64), column(2, "s", iceberg.PrimitiveTypes.String),
		column(3, "d", iceberg.PrimitiveTypes.Float64), column(4, "n", iceberg.PrimitiveTypes.Int32))})
	tx := t.Begin()
	for i := range files {
		list := make([]fixture.Row, rows)
		for j := range list {
			k := i*rows + j
			list[j] = fixture.Row{"k": k, "s": fmt.Sprint("text ", k%1000), "d": float64(k) / 7, "n": k % 13}
		}
		tx.Append(list...)
	}
	s := tx.Commit()
	if err := t.Err(); err != nil {
		return 0, err
	}
	return s.ID, nil
}
