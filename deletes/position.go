package deletes

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Reserved field ids of the columns of position-delete files (Iceberg spec,
// appendix "Reserved field ids"). A third column, row, holds the deleted row and
// is of no use to readers.
const (
	filePathID = 2147483546
	posID      = 2147483545
)

// positionTarget is what a position-delete file is read as. Files without any
// field ids are taken by the columns' names.
func positionTarget(file columnFile) pqfile.Target {
	t := pqfile.Target{Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: filePathID, Name: "file_path", Type: iceberg.PrimitiveTypes.String, Required: true},
		iceberg.NestedField{ID: posID, Name: "pos", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	)}
	if !file.hasIDs() {
		path, pos := filePathID, posID
		t.NameMapping = iceberg.NameMapping{
			{FieldID: &path, Names: []string{"file_path"}},
			{FieldID: &pos, Names: []string{"pos"}},
		}
	}
	return t
}

// pathPositions is a position-delete file: the positions of each data file that
// it names, by source.Spelling of the path, so that the spellings of a local
// path are one.
type pathPositions map[string]*Positions

func (m pathPositions) bytes() int64 {
	n := int64(64)
	for path, p := range m {
		n += 64 + int64(len(path)) + p.Bytes()
	}
	return n
}

// positionDeletes returns the positions that a position-delete file has for a
// data file. The delete file is read once, for all of its data files: most are
// asked for together, and a file that names only one costs no more.
func (r *Resolver) positionDeletes(ctx context.Context, store source.Store, del, data *snapshot.DataFile) (*Positions, error) {
	obj, err := store.Open(ctx, del.Path)
	if err != nil {
		return nil, err
	}
	key := "deletes/position|" + obj.Version()
	m, err := get(ctx, r, key, func(ctx context.Context) (pathPositions, int64, error) {
		m, err := r.readPositionDeletes(ctx, obj, del)
		return m, m.bytes(), err
	})
	if err != nil {
		return nil, err
	}
	return m[source.Spelling(data.Path)], nil
}

// readPositionDeletes decodes the path and the position of every row.
func (r *Resolver) readPositionDeletes(ctx context.Context, obj source.Object, del *snapshot.DataFile) (pathPositions, error) {
	file, err := r.openColumns(ctx, obj, del)
	if err != nil {
		return nil, deleteFileError(err)
	}
	proj, err := file.project(positionTarget(file))
	if err != nil {
		return nil, deleteFileError(err)
	}
	c := positionCollector{builders: make(map[string]*builder)}
	err = scanFrom(ctx, file, proj, 0, c.add)
	if c.err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrCorrupt, del.Path, c.err)
	}
	if err != nil {
		return nil, deleteFileError(err)
	}
	return c.positions()
}

// positionCollector sorts rows by path. Rows come in any order, but nearly
// always grouped by path: only the builder of the path at hand has a batch.
type positionCollector struct {
	builders map[string]*builder
	current  *builder
	path     []byte // of current, as stored
	err      error

	dict     *pqfile.Values
	dictSeen []*builder // by dictionary index
}

// add takes a batch of rows. Both columns are required: the reader has refused
// NULLs.
func (c *positionCollector) add(batch rowBatch) error {
	pathColumn, err := batch.column(0)
	if err != nil {
		return err
	}
	posColumn, err := batch.column(1)
	if err != nil {
		return err
	}
	rows, paths, pos := batch.rows, &pathColumn.Values, &posColumn.Values
	if pathColumn.Repeat || posColumn.Repeat || paths.N != rows || pos.N != rows {
		c.err = fmt.Errorf("%d paths and %d positions in %d rows", paths.N, pos.N, rows)
		return c.err
	}
	values, index := pos, pos.Index
	if pos.Dict != nil {
		values = pos.Dict
	}
	for i := range rows {
		c.switchTo(paths, i)
		at := i
		if pos.Dict != nil {
			at = int(index[i])
		}
		p := int64(binary.LittleEndian.Uint64(values.Fixed[8*at:]))
		if p < 0 {
			c.err = fmt.Errorf("position %d", p)
			return c.err
		}
		c.current.add(p)
	}
	return nil
}

// switchTo makes the builder of the i-th path the current one.
func (c *positionCollector) switchTo(paths *pqfile.Values, i int) {
	if paths.Dict == nil {
		path := paths.Data[paths.Offsets[i]:paths.Offsets[i+1]]
		if c.current == nil || !bytes.Equal(path, c.path) {
			c.path = append(c.path[:0], path...)
			c.setCurrent(c.builder(path))
		}
		return
	}
	d := paths.Dict
	if d != c.dict {
		c.dict, c.dictSeen = d, make([]*builder, d.N)
	}
	x := paths.Index[i]
	b := c.dictSeen[x]
	if b == nil {
		b = c.builder(d.Data[d.Offsets[x]:d.Offsets[x+1]])
		c.dictSeen[x] = b
	}
	if b != c.current {
		c.path = append(c.path[:0], d.Data[d.Offsets[x]:d.Offsets[x+1]]...)
		c.setCurrent(b)
	}
}

// builder returns the builder of a path.
func (c *positionCollector) builder(path []byte) *builder {
	key := source.Spelling(string(path))
	b := c.builders[key]
	if b == nil {
		b = &builder{}
		c.builders[key] = b
	}
	return b
}

func (c *positionCollector) setCurrent(b *builder) {
	if b == c.current {
		return
	}
	if c.current != nil {
		c.current.flush()
		b.batch, c.current.batch = c.current.batch, nil
	}
	c.current = b
}

// positions finishes every builder.
func (c *positionCollector) positions() (pathPositions, error) {
	m := make(pathPositions, len(c.builders))
	for path, b := range c.builders {
		p, err := b.positions()
		if err != nil {
			return nil, err
		}
		m[path] = p
	}
	return m, nil
}
