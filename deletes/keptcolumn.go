package deletes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// The key columns of a data file are read again for every delete file that is
// added, and most of the time goes into decoding them. So what was decoded is
// offered to the cache, where it is small: numbers, and what a dictionary codes.

// keptBytes bounds a key column of a row group that is kept. One that is larger
// is decoded as it is matched, a batch at a time.
const keptBytes = 16 << 20

// keptColumn is a key column of a row group, decoded: either fixed, or a
// dictionary and indexes. Immutable.
type keptColumn struct {
	def    []uint8 // levels by row, nil if no row is NULL
	starts []int   // of each batch, the place of its first value
	n      int     // values
	typ    pqfile.Type
	width  int
	fixed  []byte

	dict  *pqfile.Values
	short []uint16 // indexes of dictionaries of up to 64 Ki values
	long  []uint32 // of larger ones
}

// errNotKept says that a column is of a form that is not kept.
var errNotKept = errors.New("not to be kept")

// keptColumns are the key columns of one row group, of a kind that reads them as
// batches of rows ask for them. Not safe for concurrent use.
type keptColumns struct {
	*matcher
	group   int
	columns []*keptColumn
	decided []bool // of which columns are read from columns, or never will
	vectors []pqfile.Vector
	index   [][]uint32 // memory of indexes
}

func newKeptColumns(m *matcher) *keptColumns {
	n := len(m.proj.Columns)
	return &keptColumns{
		matcher: m, columns: make([]*keptColumn, n), decided: make([]bool, n),
		vectors: make([]pqfile.Vector, n), index: make([][]uint32, n),
	}
}

// reset makes them the columns of a row group.
func (k *keptColumns) reset(group int) {
	k.group = group
	clear(k.columns)
	clear(k.decided)
}

// over returns a batch whose columns are those kept, where they are. Columns are
// kept in batches of batchRows; the batches of a file with long values are smaller,
// and are read.
func (k *keptColumns) over(ctx context.Context, rows rowBatch) rowBatch {
	groups := k.file.groups()
	if !wholeBatch(rows, groups[k.group], groups[k.group+1]) {
		return rows
	}
	batch := int((rows.first - groups[k.group]) / batchRows)
	read := rows.column
	rows.column = func(i int) (*pqfile.Vector, error) {
		if !k.decided[i] {
			var err error
			if k.columns[i], err = k.column(ctx, i); err != nil {
				return nil, err
			}
			k.decided[i] = true
		}
		if c := k.columns[i]; c != nil {
			k.index[i] = c.batch(&k.vectors[i], k.index[i], batch, rows.rows)
			return &k.vectors[i], nil
		}
		return read(i)
	}
	return rows
}

// wholeBatch reports whether a batch is one of those that batchRows divides the
// rows from first to end into.
func wholeBatch(b rowBatch, first, end int64) bool {
	return (b.first-first)%batchRows == 0 && (b.rows == batchRows || b.first+int64(b.rows) == end)
}

// column returns a column from the cache or decoded, nil if it is not kept.
func (k *keptColumns) column(ctx context.Context, i int) (*keptColumn, error) {
	col := &k.proj.Columns[i]
	if n := k.file.decodedBytes(k.group, col); k.r.opt.Cache == nil || n < 0 || n > keptBytes {
		return nil, nil
	}
	if col.Leaf.Type == pqfile.ByteArray && !k.file.allDictionary(k.group, col) {
		return nil, nil
	}
	key := fmt.Sprintf("deletes/column|%s|%s|%d|%d", k.data.obj.Version(), k.data.keys.identity, k.group, i)
	read := false
	m, group := k.matcher, k.group // a load goes on without its callers, when k is of another row group
	c, err := get(ctx, k.r, key, func(ctx context.Context) (*keptColumn, int64, error) {
		read = true
		c, err := m.decodeColumn(ctx, group, i)
		if err != nil {
			return nil, 0, err
		}
		return c, c.size(), nil
	})
	if errors.Is(err, errNotKept) {
		return nil, nil
	}
	if err == nil && !read {
		k.r.opt.Counters.KeptColumns.Add(1)
	}
	return c, err
}

// decodeColumn reads a column of a row group.
func (m *matcher) decodeColumn(ctx context.Context, group, i int) (*keptColumn, error) {
	groups := m.file.groups()
	first, end := groups[group], groups[group+1]
	one := &pqfile.Projection{Columns: m.proj.Columns[i : i+1]}
	c := &keptColumn{}
	err := m.file.scan(ctx, one, group, func(batch rowBatch) error {
		if !wholeBatch(batch, first, end) {
			return errNotKept
		}
		v, err := batch.column(0)
		if err != nil {
			return err
		}
		return c.append(v, m.proj.Columns[i].Leaf, int(batch.first-first), int(end-first))
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// append adds a batch of rows, from row on of all of the row group. leaf is the
// column in the view.
func (c *keptColumn) append(v *pqfile.Vector, leaf *pqfile.Node, row, all int) error {
	values := &v.Values
	if v.Repeat || values.Type == pqfile.Boolean {
		return errNotKept
	}
	if row == 0 {
		c.typ, c.width, c.dict = values.Type, values.Width, values.Dict
	}
	if c.dict != nil && values.Dict != c.dict {
		c.materialize(all)
	}
	if c.dict == nil && (c.typ == pqfile.ByteArray || c.width <= 0) {
		return errNotKept
	}
	c.appendLevels(v, leaf, row, all)
	c.starts = append(c.starts, c.n)
	c.n += values.N
	switch {
	case c.dict == nil:
		c.fixed = appendFixed(slices.Grow(c.fixed, c.width*(all-len(c.fixed)/c.width)), values)
	case c.dict.N <= 1<<16:
		n := len(c.short)
		c.short = slices.Grow(c.short, all-n)[:n+values.N]
		for i, x := range values.Index {
			c.short[n+i] = uint16(x)
		}
	default:
		c.long = append(slices.Grow(c.long, all-len(c.long)), values.Index...)
	}
	if c.size() > keptBytes {
		return errNotKept
	}
	return nil
}

// appendLevels adds the levels of a batch, from its first row that is NULL on.
func (c *keptColumn) appendLevels(v *pqfile.Vector, leaf *pqfile.Node, row, all int) {
	if v.Def == nil && c.def == nil {
		return
	}
	if c.def == nil {
		c.def = make([]uint8, 0, all)
	}
	for len(c.def) < row || v.Def == nil && len(c.def) < row+v.Rows {
		c.def = append(c.def, uint8(leaf.MaxDef))
	}
	c.def = append(c.def, v.Def...)
}

// materialize turns indexes into values, where a chunk has given its dictionary
// up. Of byte arrays nothing is kept then.
func (c *keptColumn) materialize(all int) {
	index := c.long
	for _, x := range c.short {
		index = append(index, uint32(x))
	}
	if c.typ != pqfile.ByteArray {
		c.fixed = appendFixed(make([]byte, 0, c.width*all), &pqfile.Values{Width: c.width, N: len(index), Dict: c.dict, Index: index})
	}
	c.dict, c.short, c.long = nil, nil, nil
}

// appendFixed appends values of a fixed width.
func appendFixed(dst []byte, v *pqfile.Values) []byte {
	if v.Dict == nil {
		return append(dst, v.Fixed[:v.N*v.Width]...)
	}
	for _, x := range v.Index {
		dst = append(dst, v.Dict.Fixed[int(x)*v.Width:(int(x)+1)*v.Width]...)
	}
	return dst
}

// batch sets v to a batch of rows. index is memory for indexes; what is used of
// it is returned.
func (c *keptColumn) batch(v *pqfile.Vector, index []uint32, batch, rows int) []uint32 {
	start, end := c.starts[batch], c.n
	if batch+1 < len(c.starts) {
		end = c.starts[batch+1]
	}
	*v = pqfile.Vector{Rows: rows, Values: pqfile.Values{Type: c.typ, Width: c.width, N: end - start}}
	if c.def != nil {
		v.Def = c.def[batch*batchRows:][:rows]
	}
	switch {
	case c.dict == nil:
		v.Values.Fixed = c.fixed[start*c.width : end*c.width]
	case c.dict.N <= 1<<16:
		index = slices.Grow(index[:0], end-start)[:end-start]
		for i, x := range c.short[start:end] {
			index[i] = uint32(x)
		}
		v.Values.Dict, v.Values.Index = c.dict, index
	default:
		v.Values.Dict, v.Values.Index = c.dict, c.long[start:end]
	}
	return index
}

// size is the heap kept.
func (c *keptColumn) size() int64 {
	n := 256 + cap(c.def) + 8*cap(c.starts) + cap(c.fixed) + 2*cap(c.short) + 4*cap(c.long)
	if d := c.dict; d != nil {
		n += len(d.Fixed) + len(d.Data) + 4*len(d.Offsets)
	}
	return int64(n)
}
