package deletes

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// At most batchRows rows of a file are looked at together, and about batchBytes
// of their values; one row may have more.
const (
	batchRows  = 8 << 10
	batchBytes = 16 << 20
)

// batchOf is how many of so many rows with so many bytes are looked at together.
func batchOf(rows, bytes int64) int {
	return int(max(1, min(batchRows, batchBytes/max(bytes/max(rows, 1), 1))))
}

// columnFile is a data or delete file, of whatever format, read by columns.
type columnFile interface {
	// hasIDs reports whether any column carries a field id.
	hasIDs() bool
	// project maps the target onto the file. The order of the columns is that of
	// the target's leaves.
	project(t pqfile.Target) (*pqfile.Projection, error)
	// bounds returns what is proven about a column in a row group, if anything.
	bounds(group int, col *pqfile.Column) (bounds, bool)
	// scan reads the projected columns of the row groups that use approves, in
	// order; use is asked about each just before its rows. (A file of a format
	// without row groups is one group.) The vectors passed to each have the same
	// rows, the first at file position first, and are valid during the call.
	scan(ctx context.Context, p *pqfile.Projection, use func(group int) bool, each eachBatch) error
}

// eachBatch takes a run of rows.
type eachBatch func(first int64, rows int, cols []*pqfile.Vector) error

// openColumns opens a file by its format. Kind names it in messages.
func (r *Resolver) openColumns(ctx context.Context, obj source.Object, f *snapshot.DataFile) (columnFile, error) {
	switch f.Format {
	case snapshot.Parquet:
		file, err := r.footer(ctx, obj)
		if err != nil {
			return nil, err
		}
		return parquetColumns{file}, nil
	case snapshot.Avro:
		file, err := get(ctx, r, "deletes/avro|"+obj.Version(), func(ctx context.Context) (*avrofile.File, int64, error) {
			f, err := avrofile.OpenKept(ctx, obj, r.opt.Persist)
			if err != nil {
				return nil, 0, err
			}
			return f, f.FootprintBytes(), nil
		})
		if err != nil {
			return nil, err
		}
		return avroColumns{file}, file.CheckRows(f.Records)
	default:
		return nil, fmt.Errorf("%s: %s files cannot be read here: %w", f.Path, f.Format, ErrUnsupported)
	}
}

// footer returns a Parquet file with its footer, through the cache.
func (r *Resolver) footer(ctx context.Context, obj source.Object) (*pqfile.File, error) {
	return get(ctx, r, "deletes/footer|"+obj.Version(), func(ctx context.Context) (*pqfile.File, int64, error) {
		f, err := pqfile.Open(ctx, obj, pqfile.Options{Stats: r.opt.Stats, Pools: r.opt.Pools})
		if err != nil {
			return nil, 0, err
		}
		return f, f.FootprintBytes(), nil
	})
}

// parquetColumns is a columnFile over Parquet.
type parquetColumns struct{ *pqfile.File }

var _ columnFile = parquetColumns{}

func (f parquetColumns) hasIDs() bool { return f.Schema.HasIDs }

func (f parquetColumns) project(t pqfile.Target) (*pqfile.Projection, error) { return f.Project(t) }

func (f parquetColumns) scan(ctx context.Context, p *pqfile.Projection, use func(group int) bool, each eachBatch) error {
	for g := range f.Metadata.RowGroups {
		if f.FirstRow[g] == f.FirstRow[g+1] || !use(g) {
			continue
		}
		if err := f.scanGroup(ctx, g, p.Columns, each); err != nil {
			return err
		}
	}
	return nil
}

func (f parquetColumns) scanGroup(ctx context.Context, group int, cols []pqfile.Column, each eachBatch) error {
	readers := make([]*pqfile.ColumnReader, 0, len(cols))
	defer func() {
		for _, r := range readers {
			r.Close()
		}
	}()
	for i := range cols {
		r, err := f.Column(group, &cols[i])
		if err != nil {
			return err
		}
		readers = append(readers, r)
	}
	stored := int64(0)
	for i := range cols {
		for _, leaf := range cols[i].Stored() {
			stored += f.Metadata.RowGroups[group].Columns[leaf.Leaf].MetaData.StoredBytes()
		}
	}
	batch := int64(batchOf(f.FirstRow[group+1]-f.FirstRow[group], stored))
	vectors := make([]*pqfile.Vector, len(cols))
	for first, end := f.FirstRow[group], f.FirstRow[group+1]; first < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := int(min(batch, end-first))
		for i, r := range readers {
			v, err := r.Read(ctx, rows)
			if err == nil && v.Rows != rows {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			vectors[i] = v
		}
		if err := each(first, rows, vectors); err != nil {
			return err
		}
		first += int64(rows)
	}
	return nil
}

// avroColumns is a columnFile over Avro.
type avroColumns struct{ *avrofile.File }

var _ columnFile = avroColumns{}

func (f avroColumns) hasIDs() bool { return f.Schema.HasIDs }

func (f avroColumns) project(t pqfile.Target) (*pqfile.Projection, error) { return f.Project(t) }

// bounds proves nothing: Avro has no statistics.
func (f avroColumns) bounds(int, *pqfile.Column) (bounds, bool) { return bounds{}, false }

func (f avroColumns) scan(ctx context.Context, p *pqfile.Projection, use func(group int) bool, each eachBatch) error {
	if !use(0) {
		return nil
	}
	r, err := f.RowReader(p)
	if err != nil {
		return err
	}
	defer r.Close()
	stored := int64(0)
	for _, b := range f.Blocks {
		stored += b.Size
	}
	const ratio = 4 // a guess at the compression
	batch := batchOf(f.Rows, ratio*stored)
	for first := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		cols, err := r.Read(ctx, batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		rows := cols[0].Rows // a key or a position-delete file has at least one column
		if err := each(first, rows, cols); err != nil {
			return err
		}
		first += int64(rows)
	}
}

// deleteFileError gives an error from reading a delete file this package's
// sentinels. The error names the file already.
func deleteFileError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported):
		return err
	case errors.Is(err, pqfile.ErrCorrupt), errors.Is(err, pqfile.ErrNoFieldIDs), errors.Is(err, avrofile.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, pqfile.ErrUnsupported), errors.Is(err, avrofile.ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
