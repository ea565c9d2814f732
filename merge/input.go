package merge

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// input is a live data file as a Parquet view reads it. Immutable once its
// projection is set.
type input struct {
	file   *snapshot.File
	object source.Object // that its bytes are served from
	// pq or avro is set.
	pq   *pqfile.File
	avro *avrofile.File
	// firstRow[g] is the file position of row group g's first row; the last
	// element is the number of rows.
	firstRow []int64
	// stored is how long the row groups of an Avro file are, as stored.
	stored  []int64
	deleted *deletes.Positions
	// columns[i] is where leaf i of the view's schema comes from.
	columns []pqfile.Column
	remote  bool // it is in an object store, by its location
	// extra reports columns in the file that the view does not show.
	extra bool
	// key is the cache identity of what is made from the file: its bytes and
	// its delete set.
	key string
}

// live returns how many rows of a row group are visible.
func (in *input) live(rowGroup int) int64 {
	from, to := in.firstRow[rowGroup], in.firstRow[rowGroup+1]
	return to - from - in.deleted.CountRange(from, to)
}

// hasLive reports whether the file has any visible row.
func (in *input) hasLive() bool {
	last := in.firstRow[len(in.firstRow)-1]
	return last > in.deleted.CountRange(0, last)
}

// heap estimates the memory that the input keeps.
func (in *input) heap() int64 {
	n := int64(len(in.columns)) * 128
	if in.avro != nil {
		return n + in.avro.FootprintBytes() + 16*int64(len(in.firstRow))
	}
	return n + in.pq.FootprintBytes()
}

// bytes is about how long the values of a row group are.
func (in *input) bytes(rowGroup int) int64 {
	if in.avro != nil {
		return decodedRatio * in.stored[rowGroup]
	}
	n := int64(0)
	for i := range in.pq.Metadata.RowGroups[rowGroup].Columns {
		if m := in.pq.Metadata.RowGroups[rowGroup].Columns[i].MetaData; m != nil {
			n += max(m.TotalUncompressedSize, 0)
		}
	}
	return n
}

// meta describes the stored chunk of a leaf of the view, nil if there is none or
// it is encrypted.
func (s *groupSource) meta(leaf int) *pqfile.ColumnMetaData {
	src := s.in.columns[leaf].Source
	if src == nil || s.in.pq == nil {
		return nil
	}
	return s.in.pq.Metadata.RowGroups[s.rowGroup].Columns[src.Leaf].MetaData
}

// storedBytes is about how long the values of a leaf are in PLAIN, as far as a
// Parquet footer tells.
func (s *groupSource) storedBytes(leaf int) int64 {
	n := int64(0)
	for _, src := range s.in.columns[leaf].Stored() {
		if s.in.pq != nil {
			n += s.in.pq.Metadata.RowGroups[s.rowGroup].Columns[src.Leaf].MetaData.StoredBytes()
		}
	}
	return n
}

// openedAtOnce is how many files are opened at a time for each worker: while one
// reads equality deletes, which the others wait for, these read their footers.
const openedAtOnce = 4

// openInputs opens the scan's files, reads their footers and resolves their
// deletes, a few at a time (more if they come from an object store).
func (e *Engine) openInputs(ctx context.Context, s Scan, files []snapshot.File) ([]*input, error) {
	inputs := make([]*input, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(openedAtOnce * e.workers())
	if len(files) > 0 && source.InStore(s.Store, files[0].Path) {
		g.SetLimit(max(openedAtOnce*e.workers(), remoteWorkers))
	}
	for i := range files {
		g.Go(func() error {
			return pqfile.Protect(func() (err error) {
				inputs[i], err = e.openInput(ctx, s, &files[i])
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return inputs, nil
}

func (e *Engine) openInput(ctx context.Context, s Scan, f *snapshot.File) (*input, error) {
	if f.Err != nil {
		return nil, fmt.Errorf("deletes of %s: %w", f.Path, f.Err)
	}
	if f.EncryptedKey {
		return nil, fmt.Errorf("%w: %s is encrypted", ErrUnsupported, f.Path)
	}
	if f.Format != snapshot.Parquet && f.Format != snapshot.Avro {
		return nil, fmt.Errorf("%w: data file %s is in format %s", ErrUnsupported, f.Path, f.Format)
	}
	obj, err := s.Store.Open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	in := &input{file: f, object: obj, key: obj.Version() + "|" + f.DeleteKey(), remote: source.InStore(s.Store, f.Path)}
	if f.Format == snapshot.Avro {
		if in.avro, err = e.openAvro(ctx, obj, f.Records); err != nil {
			return nil, err
		}
		in.firstRow, in.stored = avroGroups(in.avro.Blocks)
	} else {
		if in.pq, err = e.openFooter(ctx, obj); err != nil {
			return nil, err
		}
		in.object, in.firstRow = in.pq.Object, in.pq.FirstRow
	}
	if f.DV == nil && len(f.Positions) == 0 && len(f.Equality) == 0 {
		return in, nil
	}
	if in.deleted, err = e.opt.Deletes.Resolve(ctx, s.Table, s.Store, f); err != nil {
		return nil, fmt.Errorf("deletes of %s: %w", f.Path, err)
	}
	return in, nil
}

// openFooter returns the parsed footer of a data file, through the cache.
func (e *Engine) openFooter(ctx context.Context, obj source.Object) (*pqfile.File, error) {
	v, err := e.cached(ctx, "footer|"+obj.Version(), func(ctx context.Context) (any, int64, error) {
		f, err := pqfile.Open(ctx, obj, pqfile.Options{Stats: e.opt.Stats, MemoryBytes: e.opt.MemoryBytes})
		if err != nil {
			return nil, 0, err
		}
		return f, f.FootprintBytes(), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*pqfile.File), nil
}

// target is what a data file is read as.
func (s *Scan) target(f *snapshot.DataFile, view *pqfile.Schema) pqfile.Target {
	t := pqfile.Target{
		Schema:      s.Schema,
		NameMapping: s.Table.NameMapping,
		Constants:   identityConstants(s.Table, f),
		View:        view,
	}
	if s.metadata {
		t.Origin = &pqfile.Origin{Path: f.Path, SpecID: f.SpecID, Sequence: f.Sequence, FirstRowID: f.FirstRowID}
	}
	return t
}

// project maps the view's leaves onto the file.
func (in *input) project(s Scan, view *pqfile.Schema) error {
	target := s.target(in.file.DataFile, view)
	var p *pqfile.Projection
	var err error
	if in.avro != nil {
		p, err = in.avro.Project(target)
	} else {
		p, err = in.pq.Project(target)
	}
	if err != nil {
		return err
	}
	in.columns, in.extra = p.Columns, p.Extra
	return nil
}

// identityConstants returns the values that identity partitions give to columns
// by source field id (Iceberg spec, "Column Projection").
func identityConstants(t *snapshot.Table, f *snapshot.DataFile) map[int]any {
	spec, ok := t.Specs[f.SpecID]
	if !ok {
		return nil
	}
	var out map[int]any
	for _, field := range spec.Fields() {
		if _, ok := field.Transform.(iceberg.IdentityTransform); !ok {
			continue
		}
		v, ok := f.Partition[field.FieldID]
		if !ok {
			continue
		}
		if out == nil {
			out = make(map[int]any)
		}
		out[field.SourceID()] = v
	}
	return out
}

// appendColumnKey identifies a leaf's data in the view's form, for cache keys.
func (in *input) appendColumnKey(b []byte, leaf int) []byte {
	text := func(s []byte) {
		b = append(binary.AppendVarint(b, int64(len(s))), s...)
	}
	c := &in.columns[leaf]
	source := -1
	if c.Source != nil {
		source = c.Source.Leaf
	} else if c.Levels != nil {
		source = c.Levels.Leaf
	}
	b = append(binary.AppendVarint(b, int64(len(in.key))), in.key...)
	for _, n := range [...]int{source, int(c.Convert.Kind), int(c.RepKeep)} {
		b = binary.AppendVarint(b, int64(n))
	}
	text(c.DefMap)
	b = binary.AppendVarint(b, bit(c.Shredding != nil))
	b = binary.AppendVarint(b, bit(c.Fill != nil))
	if c.Fill != nil {
		b = binary.AppendVarint(binary.AppendVarint(b, c.Fill.First), bit(c.Fill.Each))
	}
	if c.Source == nil {
		b = binary.AppendVarint(b, int64(c.Constant.N))
		text(c.Constant.Fixed)
		text(c.Constant.Data)
		text(c.Constant.Bools)
	}
	return b
}
