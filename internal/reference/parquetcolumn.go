package reference

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// column reads a whole chunk. arrow-go has no codec for LZ4 in Hadoop's framing,
// and its Brotli fails on pages without values.
func (f *parquetFile) column(group *file.RowGroupReader, g, leaf int) (column, error) {
	chunk, err := group.MetaData().ColumnChunk(leaf)
	if err != nil {
		return column{}, err
	}
	if codec := chunk.Compression(); codec == compress.Codecs.Lz4 || codec == compress.Codecs.Lzo || codec == compress.Codecs.Brotli {
		if f.decode == nil {
			return column{}, fmt.Errorf("codec %s: %w", codec, ErrUnsupported)
		}
		return f.decode(g, leaf)
	}
	reader, err := group.Column(leaf)
	if err != nil {
		return column{}, err
	}
	switch r := reader.(type) {
	case *file.BooleanColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v bool) any { return v })
	case *file.Int32ColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v int32) any { return v })
	case *file.Int64ColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v int64) any { return v })
	case *file.Int96ColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v parquet.Int96) any { return v })
	case *file.Float32ColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v float32) any { return v })
	case *file.Float64ColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v float64) any { return v })
	case *file.ByteArrayColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v parquet.ByteArray) any { return slices.Clone([]byte(v)) })
	case *file.FixedLenByteArrayColumnChunkReader:
		return readColumn(r, group.NumRows(), func(v parquet.FixedLenByteArray) any { return slices.Clone([]byte(v)) })
	}
	return column{}, fmt.Errorf("column reader %T: %w", reader, ErrUnsupported)
}

// batchReader is what arrow-go's typed column readers have in common.
type batchReader[T any] interface {
	file.ColumnChunkReader
	ReadBatch(batchSize int64, values []T, defLvls, repLvls []int16) (total int64, valuesRead int, err error)
}

// readColumn reads all entries of a chunk.
func readColumn[T any](r batchReader[T], rows int64, box func(T) any) (column, error) {
	const batch = 1024
	values, def, rep := make([]T, batch), make([]int16, batch), make([]int16, batch)
	maxDef, maxRep := r.Descriptor().MaxDefinitionLevel(), r.Descriptor().MaxRepetitionLevel()
	var c column
	for r.HasNext() {
		total, read, err := r.ReadBatch(batch, values, def, rep)
		if err != nil {
			return c, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if total == 0 {
			break
		}
		if maxDef == 0 {
			clear(def)
		}
		if maxRep == 0 {
			clear(rep)
		}
		c.def, c.rep = append(c.def, def[:total]...), append(c.rep, rep[:total]...)
		for _, v := range values[:read] {
			c.values = append(c.values, box(v))
		}
	}
	if err := r.Err(); err != nil {
		return c, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	count := 0
	for _, rep := range c.rep {
		if rep == 0 {
			count++
		}
	}
	if int64(count) != rows {
		return c, fmt.Errorf("%d rows where the row group has %d: %w", count, rows, ErrCorrupt)
	}
	return c, nil
}
