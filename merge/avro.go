package merge

import (
	"context"

	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
)

const (
	// avroGroupRows is where Avro files are divided into row groups, at the next
	// end of a block: what a Parquet writer might choose.
	avroGroupRows = 128 << 10
	// avroRatio is a guess at how far blocks are compressed.
	avroRatio = 4
)

// avroGroups divides an Avro file's rows into row groups.
func avroGroups(f *avrofile.File) []int64 {
	first := []int64{0}
	for _, b := range f.Blocks {
		if b.FirstRow-first[len(first)-1] >= avroGroupRows {
			first = append(first, b.FirstRow)
		}
	}
	return append(first, f.Rows)
}

// avroRowBytes is about how long a decoded row is.
func avroRowBytes(f *avrofile.File) int64 {
	stored := int64(0)
	for _, b := range f.Blocks {
		stored += b.Size
	}
	return avroRatio * stored / max(f.Rows, 1)
}

// avroColumn reads one leaf of an Avro file's rows; the others are passed over.
type avroColumn struct{ rows *avrofile.RowReader }

var _ vectorReader = (*avroColumn)(nil)

// openAvroColumn starts reading at the first row of a row group.
func openAvroColumn(ctx context.Context, in *input, rowGroup, leaf int) (vectorReader, error) {
	rows, err := in.avro.RowReader(&pqfile.Projection{Columns: in.columns[leaf : leaf+1]})
	if err != nil {
		return nil, err
	}
	if err := rows.Skip(ctx, in.firstRow[rowGroup]); err != nil {
		rows.Close()
		return nil, err
	}
	return &avroColumn{rows}, nil
}

func (c *avroColumn) Read(ctx context.Context, n int) (*pqfile.Vector, error) {
	v, err := c.rows.Read(ctx, n)
	if err != nil {
		return nil, err
	}
	return v[0], nil
}

func (c *avroColumn) Skip(ctx context.Context, n int64) error { return c.rows.Skip(ctx, n) }

func (c *avroColumn) Close() { c.rows.Close() }
