// Command longchunk makes an Iceberg table of one Parquet file that is there
// already, below the table's data folder, with columns n (long, id 1, the row's
// number) and s (string, id 2), and deletes every 50th row by a deletion vector:
//
//	longchunk -rows 1250000 TABLE_DIR FILE
//
// It prints "main <snapshot id>". bench/sections/longchunk.py writes the file.
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// every is of how many rows one is deleted: those whose n leaves a rest of 7.
const every = 50

func main() {
	log.SetFlags(0)
	rows := flag.Int64("rows", 0, "rows of the file")
	flag.Parse()
	if flag.NArg() != 2 || *rows <= 0 {
		log.Fatal("usage: longchunk -rows N TABLE_DIR FILE")
	}
	t := fixture.New(flag.Arg(0), fixture.Options{FormatVersion: 3, Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "n", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String})})
	tx := t.Begin()
	f := tx.Adopt(flag.Arg(1), *rows, map[int][2]iceberg.Literal{1: {iceberg.Int64Literal(0), iceberg.Int64Literal(*rows - 1)}})
	tx.Commit()
	var gone []int64
	for n := int64(7); n < *rows; n += every {
		gone = append(gone, n)
	}
	tx = t.Begin()
	tx.DeleteVector(f, gone...)
	s := tx.Commit()
	if err := t.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("main", s.ID)
}
