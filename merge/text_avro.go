package merge

import (
	"context"

	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// openAvro returns an Avro data file of so many records by its manifest, with its
// blocks indexed, through the cache.
func (e *Engine) openAvro(ctx context.Context, obj source.Object, records int64) (*avrofile.File, error) {
	v, err := e.cached(ctx, "avro|"+obj.Version(), func(ctx context.Context) (any, int64, error) {
		f, err := avrofile.OpenKept(ctx, obj, e.opt.Persist)
		if err != nil {
			return nil, 0, err
		}
		return f, f.FootprintBytes(), nil
	})
	if err != nil {
		return nil, err
	}
	f := v.(*avrofile.File)
	return f, f.CheckRows(records)
}

// avroRows is an Avro data file projected to the view: one row group.
type avroRows struct {
	file       *avrofile.File
	projection *pqfile.Projection
}

func (a *avroRows) groups() []int64 { return []int64{0, a.file.Rows} }

func (a *avroRows) rows(int) (rowReader, int64, error) {
	r, err := a.file.RowReader(a.projection)
	if err != nil {
		return nil, 0, err
	}
	stored := int64(0)
	for _, b := range a.file.Blocks {
		stored += b.Size
	}
	const ratio = 4 // a guess at the compression
	return &avroReader{rows: r}, ratio * stored / max(a.file.Rows, 1), nil
}

// avroReader reads batches of all columns.
type avroReader struct {
	rows    *avrofile.RowReader
	vectors []*pqfile.Vector
}

func (r *avroReader) batch(ctx context.Context, skip int64, n int) error {
	if err := r.rows.Skip(ctx, skip); err != nil {
		return unexpectedEnd(err)
	}
	var err error
	if r.vectors, err = r.rows.Read(ctx, n); err != nil {
		return unexpectedEnd(err)
	}
	return nil
}

func (r *avroReader) column(_ context.Context, leaf int) (*pqfile.Vector, error) {
	return r.vectors[leaf], nil
}

func (r *avroReader) close() { r.rows.Close() }
