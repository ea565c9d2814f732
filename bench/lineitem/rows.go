package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
)

// Field ids of l_orderkey and l_linenumber.
const (
	orderKeyID   = 1
	lineNumberID = 4
)

// column is one column: its name and its type in Iceberg and Arrow.
type column struct {
	name    string
	iceberg iceberg.Type
	arrow   arrow.DataType
}

var money = iceberg.DecimalTypeOf(15, 2)

// columns returns the table's columns; field ids count from 1.
func columns() []column {
	dec := &arrow.Decimal128Type{Precision: 15, Scale: 2}
	long, date, str := arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Date32, arrow.BinaryTypes.String
	return []column{
		{"l_orderkey", iceberg.PrimitiveTypes.Int64, long},
		{"l_partkey", iceberg.PrimitiveTypes.Int64, long},
		{"l_suppkey", iceberg.PrimitiveTypes.Int64, long},
		{"l_linenumber", iceberg.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32},
		{"l_quantity", money, dec},
		{"l_extendedprice", money, dec},
		{"l_discount", money, dec},
		{"l_tax", money, dec},
		{"l_returnflag", iceberg.PrimitiveTypes.String, str},
		{"l_linestatus", iceberg.PrimitiveTypes.String, str},
		{"l_shipdate", iceberg.PrimitiveTypes.Date, date},
		{"l_commitdate", iceberg.PrimitiveTypes.Date, date},
		{"l_receiptdate", iceberg.PrimitiveTypes.Date, date},
		{"l_shipinstruct", iceberg.PrimitiveTypes.String, str},
		{"l_shipmode", iceberg.PrimitiveTypes.String, str},
		{"l_comment", iceberg.PrimitiveTypes.String, str},
		{"l_receiptts", iceberg.PrimitiveTypes.Timestamp, &arrow.TimestampType{Unit: arrow.Microsecond}},
		{"l_weight", iceberg.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Float64},
	}
}

func schema() *iceberg.Schema {
	var fields []iceberg.NestedField
	for i, c := range columns() {
		fields = append(fields, iceberg.NestedField{ID: i + 1, Name: c.name, Type: c.iceberg})
	}
	return iceberg.NewSchema(0, fields...)
}

func arrowSchema() *arrow.Schema {
	var fields []arrow.Field
	for i, c := range columns() {
		md := arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(i + 1)})
		fields = append(fields, arrow.Field{Name: c.name, Type: c.arrow, Nullable: true, Metadata: md})
	}
	return arrow.NewSchema(fields, nil)
}

// generator makes rows in the order of their keys: orders of one to seven lines.
type generator struct {
	rnd      *rand.Rand
	orderKey int64 // of the row made last
	line     int
	lines    int
}

func newGenerator() *generator {
	return &generator{rnd: rand.New(rand.NewPCG(1, 2))}
}

// writeFile writes n rows and returns the first and last order key.
func (g *generator) writeFile(path string, n, groups int) (lower, upper int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, 0, err
	}
	sc := arrowSchema()
	w, err := pqarrow.NewFileWriter(sc, f,
		parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDictionaryDefault(true),
			parquet.WithMaxRowGroupLength(int64(n)), parquet.WithStoreDecimalAsInteger(true), parquet.WithCreatedBy("parquet-mr version 1.17.1 (build bench)")),
		pqarrow.NewArrowWriterProperties())
	if err != nil {
		return 0, 0, err
	}
	for i := range groups {
		rec := g.batch(sc, n*(i+1)/groups-n*i/groups)
		if i == 0 {
			lower = rec.Column(0).(*array.Int64).Value(0)
		}
		err := w.Write(rec)
		rec.Release()
		if err != nil {
			return 0, 0, err
		}
	}
	return lower, g.orderKey, w.Close()
}

func (g *generator) batch(sc *arrow.Schema, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	b.Reserve(n)
	for range n {
		g.row(b)
	}
	return b.NewRecordBatch()
}

// words of comments and of the enumerated columns.
var (
	words = strings.Fields(`furiously quickly carefully blithely slyly final ironic express regular special pending bold even silent
		unusual packages requests deposits accounts instructions theodolites foxes pinto beans dependencies excuses platelets asymptotes
		courts dolphins multipliers sauternes warthogs frets dinos attainments somas sleep wake are cajole haggle nag use boost affix
		detect integrate about above according across after against along among around at before between the`)
	instructs = []string{"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"}
	modes     = []string{"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"}
)

// Dates as days since 1970-01-01: orders from 1992-01-01 to 1998-08-02, and the
// day up to which goods count as received.
const (
	firstOrder   = 8035
	orderDays    = 2406
	statusDay    = 9298
	microsPerDay = 86_400_000_000
)

// row appends one row in the order of columns.
func (g *generator) row(b *array.RecordBuilder) {
	r := g.rnd
	if g.line == g.lines {
		g.orderKey++
		g.line, g.lines = 0, 1+r.IntN(7)
	}
	g.line++
	part := 1 + r.Int64N(200_000)
	quantity := 1 + r.Int64N(50)
	price := quantity * (90_000 + part%20_001 + 100*(part%1_000))
	ordered := firstOrder + r.IntN(orderDays)
	shipped := ordered + 1 + r.IntN(121)
	received := shipped + 1 + r.IntN(30)
	flag, status := "N", "O"
	if received <= statusDay {
		flag = []string{"R", "A"}[r.IntN(2)]
	}
	if shipped <= statusDay {
		status = "F"
	}
	comment := make([]string, 2+r.IntN(5))
	for i := range comment {
		comment[i] = words[r.IntN(len(words))]
	}

	long := func(i int, v int64) { b.Field(i).(*array.Int64Builder).Append(v) }
	dec := func(i int, v int64) { b.Field(i).(*array.Decimal128Builder).Append(decimal128.FromI64(v)) }
	str := func(i int, v string) { b.Field(i).(*array.StringBuilder).Append(v) }
	date := func(i, v int) { b.Field(i).(*array.Date32Builder).Append(arrow.Date32(v)) }
	long(0, g.orderKey)
	long(1, part)
	long(2, 1+r.Int64N(10_000))
	b.Field(3).(*array.Int32Builder).Append(int32(g.line))
	dec(4, quantity*100)
	dec(5, price)
	dec(6, r.Int64N(11))
	dec(7, r.Int64N(9))
	str(8, flag)
	str(9, status)
	date(10, shipped)
	date(11, ordered+30+r.IntN(61))
	date(12, received)
	str(13, instructs[r.IntN(len(instructs))])
	str(14, modes[r.IntN(len(modes))])
	str(15, strings.Join(comment, " ")+fmt.Sprintf(" %d", r.IntN(100_000)))
	b.Field(16).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(received)*microsPerDay + r.Int64N(microsPerDay)))
	b.Field(17).(*array.Float64Builder).Append(float64(quantity) * (0.5 + r.Float64()))
}
