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
	// groups returns the row groups' rows, as bounds of half-open ranges. A file of
	// a format without row groups is one group, whose end is not known: -1.
	groups() []int64
	// allDictionary reports whether all data pages of a column in a row group are
	// coded by its dictionary, NULLs aside.
	allDictionary(group int, col *pqfile.Column) bool
	// decodedBytes is about how much memory a column in a row group takes when it is
	// decoded, -1 if that is not known.
	decodedBytes(group int, col *pqfile.Column) int64
	// scan reads the projected columns of a row group, in order.
	scan(ctx context.Context, p *pqfile.Projection, group int, each eachBatch) error
}

// rowBatch is a run of rows, the first at file position first.
type rowBatch struct {
	first int64
	rows  int
	// column reads one of the projected columns, at most once. Columns that are not
	// asked for are not decoded, where the format allows it. The vector is valid
	// until the next batch.
	column func(i int) (*pqfile.Vector, error)
}

// eachBatch takes a run of rows.
type eachBatch func(rows rowBatch) error

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
		f, err := pqfile.Open(ctx, obj, pqfile.Options{Stats: r.opt.Stats, Pools: r.opt.Pools, MemoryBytes: r.opt.MemoryBytes})
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

func (f parquetColumns) groups() []int64 { return f.FirstRow }

// allDictionary asks the chunk's encoding statistics, as other readers do; not
// all writers have them.
func (f parquetColumns) allDictionary(group int, col *pqfile.Column) bool {
	meta := f.metadata(group, col)
	if meta == nil {
		return false
	}
	pages := int32(0)
	for _, s := range meta.EncodingStats {
		if s.PageType == pqfile.DictionaryPage || s.Count == 0 {
			continue
		}
		if s.Encoding != pqfile.RLEDictionary && s.Encoding != pqfile.PlainDictionary {
			return false
		}
		pages += s.Count
	}
	return pages > 0
}

func (f parquetColumns) decodedBytes(group int, col *pqfile.Column) int64 {
	rows := f.FirstRow[group+1] - f.FirstRow[group]
	if meta := f.metadata(group, col); meta != nil {
		return meta.TotalUncompressedSize + 4*rows
	}
	return rows
}

// metadata returns the metadata of the chunk that a column is stored in, nil if
// it is not stored.
func (f parquetColumns) metadata(group int, col *pqfile.Column) *pqfile.ColumnMetaData {
	if col.Source == nil {
		return nil
	}
	return f.Metadata.RowGroups[group].Columns[col.Source.Leaf].MetaData
}

func (f parquetColumns) scan(ctx context.Context, p *pqfile.Projection, group int, each eachBatch) error {
	columns := make([]lazyColumn, len(p.Columns))
	defer func() {
		for i := range columns {
			columns[i].close()
		}
	}()
	for i := range columns {
		columns[i] = lazyColumn{open: func() (*pqfile.ColumnReader, error) { return f.Column(group, &p.Columns[i]) }}
	}
	stored := int64(0)
	for i := range p.Columns {
		for _, leaf := range p.Columns[i].Stored() {
			stored += f.Metadata.RowGroups[group].Columns[leaf.Leaf].MetaData.StoredBytes()
		}
	}
	first, end := f.FirstRow[group], f.FirstRow[group+1]
	batch := int64(batchOf(end-first, stored))
	for at := first; at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := int(min(batch, end-at))
		column := func(i int) (*pqfile.Vector, error) { return columns[i].read(ctx, at-first, rows) }
		if err := each(rowBatch{at, rows, column}); err != nil {
			return err
		}
		at += int64(rows)
	}
	return nil
}

// lazyColumn reads what is asked for of a column of a row group.
type lazyColumn struct {
	open   func() (*pqfile.ColumnReader, error)
	reader *pqfile.ColumnReader
	row    int64 // that the reader is at
}

// read returns rows from a row of the row group on, which are not before the
// last ones.
func (c *lazyColumn) read(ctx context.Context, row int64, rows int) (*pqfile.Vector, error) {
	if c.reader == nil {
		var err error
		if c.reader, err = c.open(); err != nil {
			return nil, err
		}
	}
	if row > c.row {
		if err := c.reader.Skip(ctx, row-c.row); err != nil {
			return nil, err
		}
	}
	c.row = row + int64(rows)
	v, err := c.reader.Read(ctx, rows)
	if err == nil && v.Rows != rows {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

func (c *lazyColumn) close() {
	if c.reader != nil {
		c.reader.Close()
	}
}

// avroColumns is a columnFile over Avro.
type avroColumns struct{ *avrofile.File }

var _ columnFile = avroColumns{}

func (f avroColumns) hasIDs() bool { return f.Schema.HasIDs }

func (f avroColumns) project(t pqfile.Target) (*pqfile.Projection, error) { return f.Project(t) }

// bounds proves nothing: Avro has no statistics.
func (f avroColumns) bounds(int, *pqfile.Column) (bounds, bool) { return bounds{}, false }

// allDictionary is false: Avro has no dictionaries.
func (f avroColumns) allDictionary(int, *pqfile.Column) bool { return false }

func (f avroColumns) decodedBytes(int, *pqfile.Column) int64 { return -1 }

func (f avroColumns) groups() []int64 { return []int64{0, -1} }

func (f avroColumns) scan(ctx context.Context, p *pqfile.Projection, _ int, each eachBatch) error {
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
		column := func(i int) (*pqfile.Vector, error) { return cols[i], nil }
		if err := each(rowBatch{first, rows, column}); err != nil {
			return err
		}
		first += int64(rows)
	}
}

// scanFrom reads the projected columns of a file from a row on.
func scanFrom(ctx context.Context, f columnFile, p *pqfile.Projection, from int64, each eachBatch) error {
	groups := f.groups()
	for g := range len(groups) - 1 {
		if end := groups[g+1]; end == groups[g] || end >= 0 && end <= from {
			continue
		}
		err := f.scan(ctx, p, g, func(rows rowBatch) error {
			if rows.first < from { // the cut between what was read and what was not is one of batches
				return nil
			}
			return each(rows)
		})
		if err != nil {
			return err
		}
	}
	return nil
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
