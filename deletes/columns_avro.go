package deletes

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// openAvro returns an Avro file with its blocks indexed, through the cache.
func (r *Resolver) openAvro(ctx context.Context, obj source.Object) (columnFile, error) {
	f, err := get(ctx, r, "deletes/avro|"+obj.Version(), func(ctx context.Context) (*avrofile.File, int64, error) {
		f, err := avrofile.Open(ctx, obj)
		if err != nil {
			return nil, 0, err
		}
		return f, f.FootprintBytes(), nil
	})
	if err != nil {
		return nil, err
	}
	return avroColumns{f}, nil
}

// avroColumns is a columnFile over Avro: one row group without bounds, whose
// rows are decoded once for all columns asked for.
type avroColumns struct{ *avrofile.File }

var _ columnFile = avroColumns{}

func (f avroColumns) hasIDs() bool { return f.Schema.HasIDs }

func (f avroColumns) project(t pqfile.Target) (*pqfile.Projection, error) { return f.Project(t) }

func (avroColumns) bounds(int, *pqfile.Column) (bounds, bool) { return bounds{}, false }

func (f avroColumns) scan(ctx context.Context, cols []pqfile.Column, use func(group int) bool, each eachBatch) error {
	if f.Rows == 0 || !use(0) {
		return nil
	}
	rows, err := f.RowReader(&pqfile.Projection{Columns: cols})
	if err != nil {
		return err
	}
	defer rows.Close()
	for first := int64(0); first < f.Rows; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := int(min(batchRows, f.Rows-first))
		vectors, err := rows.Read(ctx, n)
		if errors.Is(err, io.EOF) || err == nil && vectors[0].Rows != n {
			err = fmt.Errorf("%s: %w", f.Object.Location(), io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		if err := each(first, n, vectors); err != nil {
			return err
		}
		first += int64(n)
	}
	return nil
}

// avroError gives an error from reading an Avro delete file this package's
// sentinels; nil if it is none.
func avroError(err error) error {
	switch {
	case errors.Is(err, avrofile.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, avrofile.ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}
