package merge

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/icefs/icefs/internal/pqfile"
)

// Key-value entries of a view's footer.
const (
	schemaKey = "iceberg.schema"
	// paddingKey entries fill the footer to its reserved length.
	paddingKey = "icefs.padding"
)

// footer is the view's last segment. Its length is fixed with the layout,
// before statistics are known: they are computed when it is first read.
type footer struct {
	engine *Engine
	view   *pqfile.Schema
	groups []group
	schema string // JSON of the Iceberg schema
	length int64
	stats  *statistics
	key    string // cache identity of the view
	// keep is called with the footer each time it was made; may be nil.
	keep func(ctx context.Context, footer []byte)
}

var _ segment = (*footer)(nil)

// newFooter reserves the footer's length.
func (e *Engine) newFooter(key string, s Scan, view *pqfile.Schema, groups []group) (*footer, error) {
	schema, err := json.Marshal(s.Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of table %s: %w", s.Table.UUID, err)
	}
	f := &footer{engine: e, view: view, groups: groups, schema: string(schema), key: key}
	f.stats = e.planStatistics(view, groups)
	longest, pending := f.stats.reserve()
	m := f.metadata(longest)
	n := len(m.Marshal())
	if pending {
		m.KeyValue = append(m.KeyValue, padding(0)...)
		n = len(m.Marshal()) + 1
	}
	f.length = int64(n) + 8
	return f, nil
}

// padding returns entries whose values have n bytes together.
func padding(n int) []pqfile.KeyValue {
	long, short := strings.Repeat(" ", n), ""
	return []pqfile.KeyValue{{Key: paddingKey, Value: &long}, {Key: paddingKey, Value: &short}}
}

func (f *footer) size() int64 { return f.length }

func (f *footer) describe() string { return "footer" }

func (f *footer) readAt(ctx context.Context, _ *handle, p []byte, off int64) error {
	b, err := f.bytes(ctx)
	if err != nil {
		return err
	}
	copy(p, b[off:])
	return nil
}

// bytes returns the footer, its length and the magic, from the cache or newly
// made.
func (f *footer) bytes(ctx context.Context) ([]byte, error) {
	v, err := f.engine.cached(ctx, "viewfooter|"+f.key, func(ctx context.Context) (any, int64, error) {
		b, err := f.make(ctx)
		if err == nil && f.keep != nil {
			f.keep(ctx, b)
		}
		return b, int64(len(b)), err
	})
	if err != nil {
		return nil, err
	}
	return v.([]byte), nil
}

func (f *footer) make(ctx context.Context) ([]byte, error) {
	stats, err := f.stats.finish(ctx)
	if err != nil {
		return nil, err
	}
	m := f.metadata(stats)
	b := m.Marshal()
	if missing := int(f.length) - 8 - len(b); missing > 0 {
		n := len(m.KeyValue)
		m.KeyValue = append(m.KeyValue, padding(0)...)
		if b, err = padded(m, n, int(f.length)-8); err != nil {
			return nil, err
		}
	}
	if int64(len(b))+8 != f.length {
		return nil, fmt.Errorf("%w: footer of %d bytes for a reserve of %d", ErrCorrupt, len(b), f.length-8)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return append(b, magic...), nil
}

// padded encodes m with padding entries n and n+1 so that it has length bytes.
// A value's length is a varint of its own length, so that one value alone
// cannot take every number of bytes: the second one makes up a byte.
func padded(m *pqfile.FileMetaData, n, length int) ([]byte, error) {
	fill := length - len(m.Marshal())
	for short := 0; short <= 1; short++ {
		for long := fill - short; long >= 0 && long >= fill-short-4; long-- {
			if long+int(uvarintLen(uint64(long)))-1+short == fill {
				*m.KeyValue[n].Value = strings.Repeat(" ", long)
				*m.KeyValue[n+1].Value = strings.Repeat(" ", short)
				return m.Marshal(), nil
			}
		}
	}
	return nil, fmt.Errorf("%w: footer cannot be filled by %d bytes", ErrCorrupt, fill)
}

// metadata describes the view; stats[leaf][group] is nil where a column has no
// statistics.
func (f *footer) metadata(stats [][]*pqfile.Statistics) *pqfile.FileMetaData {
	createdBy := fmt.Sprintf("icefs version %d.0.0 (build icefs)", LayoutFormat)
	m := &pqfile.FileMetaData{
		Version:      2,
		Schema:       f.view.Elements(),
		RowGroups:    make([]pqfile.RowGroup, len(f.groups)),
		KeyValue:     []pqfile.KeyValue{{Key: schemaKey, Value: &f.schema}},
		CreatedBy:    &createdBy,
		ColumnOrders: len(f.view.Leaves),
	}
	for i := range f.groups {
		g := &f.groups[i]
		out := &m.RowGroups[i]
		m.NumRows += g.rows
		out.NumRows = g.rows
		out.FileOffset = &g.offset
		out.TotalCompressedSize = &g.bytes
		out.Columns = make([]pqfile.ColumnChunk, len(g.chunks))
		for j := range g.chunks {
			c := &g.chunks[j]
			out.TotalByteSize += c.uncompressed
			out.Columns[j].MetaData = c.describe(f.view.Leaves[j])
			if s := stats[j]; s != nil {
				out.Columns[j].MetaData.Statistics = s[i]
			}
		}
	}
	return m
}

// describe gives the footer's entry of a chunk, statistics apart.
func (c *chunk) describe(leaf *pqfile.Node) *pqfile.ColumnMetaData {
	m := &pqfile.ColumnMetaData{
		Type:                  leaf.Type,
		Encodings:             c.encodings,
		Path:                  leaf.Path,
		Codec:                 c.codec,
		NumValues:             c.values,
		TotalUncompressedSize: c.uncompressed,
		TotalCompressedSize:   c.size,
		DataPageOffset:        c.offset + c.dictionary,
	}
	if c.dictionary > 0 {
		m.DictionaryPageOffset = &c.offset
	}
	return m
}
