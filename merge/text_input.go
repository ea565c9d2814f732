package merge

import (
	"context"
	"fmt"
	"iter"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/snapshot"
)

// textInput is a data file opened for a text view.
type textInput struct {
	engine  *Engine
	scan    Scan
	setup   *textSetup
	file    *snapshot.File
	dataKey string // identity of the file's bytes and constants under the setup
	key     string // the same with its deletes
	source  rowSource
	deleted *deletes.Positions // set by resolve
}

// rowSource reads the rows of a data file in the view's terms.
type rowSource interface {
	// groups is the file positions at which row groups begin, and the end.
	groups() []int64
	// rows starts reading a row group; bytes estimates a row's decoded bytes.
	rows(group int) (r rowReader, bytes int64, err error)
}

// rowReader reads one row group batch by batch.
type rowReader interface {
	// batch passes over skip rows and makes the n rows after them current.
	batch(ctx context.Context, skip int64, n int) error
	// column returns the current rows of a leaf, once per batch, valid until
	// the next batch. Different leaves may be asked for concurrently.
	column(ctx context.Context, leaf int) (*pqfile.Vector, error)
	close()
}

// openText opens data file i of the plan. Its deletes are not resolved.
func (e *Engine) openText(ctx context.Context, s Scan, set *textSetup, i int) (*textInput, error) {
	f := &s.Plan.Files[i]
	if f.Err != nil {
		return nil, fmt.Errorf("deletes of %s: %w", f.Path, f.Err)
	}
	if f.EncryptedKey {
		return nil, fmt.Errorf("%s is encrypted: %w", f.Path, ErrUnsupported)
	}
	in := &textInput{engine: e, scan: s, setup: set, file: f}
	target := s.target(f.DataFile, set.view)
	obj, err := s.Store.Open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	switch f.Format {
	case snapshot.Parquet:
		pq, err := e.openFooter(ctx, obj)
		if err != nil {
			return nil, err
		}
		projection, err := pq.Project(target)
		if err != nil {
			return nil, err
		}
		in.source = &parquetRows{file: pq, columns: projection.Columns}
	case snapshot.Avro:
		file, err := e.openAvro(ctx, obj, f.Records)
		if err != nil {
			return nil, err
		}
		projection, err := file.Project(target)
		if err != nil {
			return nil, err
		}
		in.source = &avroRows{file, projection}
	default:
		return nil, fmt.Errorf("%s is a data file in format %s: %w", f.Path, f.Format, ErrUnsupported)
	}
	in.dataKey = textKey(set.key, obj.Version(), snapshot.PartitionKey(0, nil, target.Constants))
	if o := target.Origin; o != nil {
		in.dataKey = textKey(in.dataKey, fmt.Sprintf("%q %d %d %d", o.Path, o.SpecID, o.Sequence, o.FirstRowID))
	}
	in.key = textKey(in.dataKey, f.DeleteKey())
	return in, nil
}

// resolve reads the deletes that apply to the file.
func (in *textInput) resolve(ctx context.Context) error {
	if in.file.DV == nil && len(in.file.Positions) == 0 && len(in.file.Equality) == 0 {
		return nil
	}
	var err error
	in.deleted, err = in.engine.opt.Deletes.Resolve(ctx, in.scan.Table, in.scan.Store, in.file)
	if err != nil {
		return fmt.Errorf("deletes of %s: %w", in.file.Path, err)
	}
	return nil
}

// groups yields each row group with the number of its rows.
func (in *textInput) groups() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		first := in.source.groups()
		for g := range len(first) - 1 {
			if !yield(g, first[g+1]-first[g]) {
				return
			}
		}
	}
}

// unitKey is the cache identity of a row group's text.
func (in *textInput) unitKey(group int) string { return textKey(in.key, fmt.Sprint(group)) }

// parquetRows is a Parquet data file projected to the view.
type parquetRows struct {
	file    *pqfile.File
	columns []pqfile.Column
}

func (p *parquetRows) groups() []int64 { return p.file.FirstRow }

func (p *parquetRows) rows(group int) (rowReader, int64, error) {
	p.file.Prefetch(context.Background(), group, p.columns) // which outlives the block that it is made for
	r := &parquetReader{}
	g := &p.file.Metadata.RowGroups[group]
	stored := int64(0)
	for i := range p.columns {
		c, err := p.file.Column(group, &p.columns[i])
		if err != nil {
			r.close()
			return nil, 0, err
		}
		r.columns = append(r.columns, c)
		for _, leaf := range p.columns[i].Stored() {
			stored += g.Columns[leaf.Leaf].MetaData.StoredBytes()
		}
	}
	return r, stored / max(g.NumRows, 1), nil
}

// parquetReader reads one row group, each column on its own.
type parquetReader struct {
	columns []*pqfile.ColumnReader
	skip    int64
	n       int
}

func (r *parquetReader) batch(_ context.Context, skip int64, n int) error {
	r.skip, r.n = skip, n
	return nil
}

func (r *parquetReader) column(ctx context.Context, leaf int) (*pqfile.Vector, error) {
	c := r.columns[leaf]
	if r.skip > 0 {
		if err := c.Skip(ctx, r.skip); err != nil {
			return nil, unexpectedEnd(err)
		}
	}
	v, err := c.Read(ctx, r.n)
	if err != nil {
		return nil, unexpectedEnd(err)
	}
	return v, nil
}

func (r *parquetReader) close() {
	for _, c := range r.columns {
		c.Close()
	}
}
