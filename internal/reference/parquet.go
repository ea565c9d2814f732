package reference

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// Bytes is what a file is read from: a view, or a source.Object.
type Bytes interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

// readerAt binds Bytes to a context, for libraries without one.
type readerAt struct {
	ctx  context.Context
	from Bytes
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.from.ReadAt(r.ctx, p, off) }

// parquetFile is an open Parquet file with its schema as a tree.
type parquetFile struct {
	*file.Reader
	root   *pnode
	leaves []*pnode
	// decode reads the chunks that arrow-go cannot; nil = an error.
	decode func(group, leaf int) (column, error)
}

// pnode is a node of a file's schema, list and map wrappers folded in.
type pnode struct {
	name     string
	id       int // field id, own or mapped; -1 = none
	kind     pkind
	optional bool
	present  int16 // definition level from which it is not NULL
	repeat   int16 // list, map: repetition level of further entries
	children []*pnode
	leaf     int // column index
	stored   *schema.PrimitiveNode
}

type pkind int

const (
	pleaf pkind = iota
	pstruct
	plist
	pmap
)

// scalar is a stored value with the column it comes from, which says how to
// understand it.
type scalar struct {
	from *pnode
	v    any // bool, int32, int64, parquet.Int96, float32, float64 or []byte
}

// openParquet opens a Parquet file. Columns without a field id get that of the
// mapping.
func openParquet(ctx context.Context, from Bytes, size int64, mapping iceberg.NameMapping) (f *parquetFile, err error) {
	defer recoverAs(&err)
	r, err := file.NewParquetReader(io.NewSectionReader(readerAt{ctx, from}, 0, size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	root := r.MetaData().Schema.Root()
	f = &parquetFile{Reader: r}
	f.root = &pnode{kind: pstruct, id: -1}
	for i := range root.NumFields() {
		f.root.children = append(f.root.children, f.build(root.Field(i), 0, 0))
	}
	assign(f.root, mapping)
	return f, nil
}

// recoverAs turns a panic of a decoder into ErrCorrupt.
func recoverAs(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
	}
}

// build makes the tree below a schema node.
func (f *parquetFile) build(s schema.Node, def, rep int16) *pnode {
	if s.RepetitionType() == parquet.Repetitions.Repeated {
		// A repeated field on its own is a required list of required elements.
		return &pnode{name: s.Name(), id: int(s.FieldID()), kind: plist, present: def, repeat: rep + 1,
			children: []*pnode{f.content(s, def+1, rep+1)}}
	}
	optional := s.RepetitionType() == parquet.Repetitions.Optional
	if optional {
		def++
	}
	n := f.content(s, def, rep)
	n.optional = optional
	return n
}

// content is a node apart from its own repetition, whose level is def.
func (f *parquetFile) content(s schema.Node, def, rep int16) *pnode {
	n := &pnode{name: s.Name(), id: int(s.FieldID()), present: def}
	group, ok := s.(*schema.GroupNode)
	if !ok {
		n.stored = s.(*schema.PrimitiveNode)
		n.leaf = len(f.leaves)
		f.leaves = append(f.leaves, n)
		return n
	}
	single := group.NumFields() == 1 && group.Field(0).RepetitionType() == parquet.Repetitions.Repeated
	switch converted := s.ConvertedType(); {
	case single && (isLogical[schema.ListLogicalType](s) || converted == schema.ConvertedTypes.List):
		n.kind, n.repeat = plist, rep+1
		n.children = []*pnode{f.element(group, def+1, rep+1)}
	case single && (isLogical[schema.MapLogicalType](s) || converted == schema.ConvertedTypes.Map || converted == schema.ConvertedTypes.MapKeyValue):
		entries := group.Field(0).(*schema.GroupNode)
		n.kind, n.repeat = pmap, rep+1
		for i := range entries.NumFields() {
			n.children = append(n.children, f.build(entries.Field(i), def+1, rep+1))
		}
	default:
		n.kind = pstruct
		for i := range group.NumFields() {
			n.children = append(n.children, f.build(group.Field(i), def, rep))
		}
	}
	return n
}

func isLogical[T schema.LogicalType](s schema.Node) bool {
	_, ok := s.LogicalType().(T)
	return ok
}

// element is a list's element, by the rules for old and new forms: the repeated
// field is the element itself unless it is a group of one field, whose name is
// neither "array" nor the list's with "_tuple".
func (f *parquetFile) element(list *schema.GroupNode, def, rep int16) *pnode {
	repeated := list.Field(0)
	group, ok := repeated.(*schema.GroupNode)
	if !ok || group.NumFields() != 1 || repeated.Name() == "array" || repeated.Name() == list.Name()+"_tuple" {
		return f.content(repeated, def, rep)
	}
	return f.build(group.Field(0), def, rep)
}

// hasID reports whether n or a node below it has a field id.
func (n *pnode) hasID() bool {
	if n.id >= 0 {
		return true
	}
	for _, c := range n.children {
		if c.hasID() {
			return true
		}
	}
	return false
}

// assign gives the fields below parent that have no id the one of a name
// mapping, where elements, keys and values have fixed names.
func assign(parent *pnode, mapping []iceberg.MappedField) {
	for i, n := range parent.children {
		name := n.name
		switch parent.kind {
		case plist:
			name = "element"
		case pmap:
			name = []string{"key", "value"}[i]
		}
		for _, m := range mapping {
			switch {
			case n.id >= 0 && m.ID() == n.id:
				assign(n, m.Fields)
			case n.id < 0 && slices.Contains(m.Names, name):
				n.id = m.ID()
				assign(n, m.Fields)
			}
		}
	}
}

// rows reads all rows, row group by row group, as Records of scalars.
func (f *parquetFile) rows() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for g := range f.NumRowGroups() {
			rows, err := f.rowGroup(g)
			if err != nil {
				yield(nil, fmt.Errorf("row group %d: %w", g, err))
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// rowGroup reads one row group.
func (f *parquetFile) rowGroup(g int) (rows []Record, err error) {
	defer recoverAs(&err)
	group := f.RowGroup(g)
	cursors := make([]*cursor, len(f.leaves))
	for i, leaf := range f.leaves {
		c, err := f.column(group, g, i)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", leaf.name, err)
		}
		cursors[i] = &cursor{column: c}
	}
	for range group.NumRows() {
		rows = append(rows, f.root.fields(cursors))
	}
	for i, c := range cursors {
		if c.at != len(c.def) {
			return nil, fmt.Errorf("column %s has more entries than rows: %w", f.leaves[i].name, ErrCorrupt)
		}
	}
	return rows, nil
}

// column is a chunk's entries: a level pair each, and the values of those that
// have one.
type column struct {
	def, rep []int16
	values   []any
}

// cursor walks a column.
type cursor struct {
	column
	at, value int
}

// assemble reads one instance of n, whose parent is present, from the cursors.
func (n *pnode) assemble(cursors []*cursor) any {
	first := cursors[n.firstLeaf()]
	def := first.def[first.at]
	if def < n.present {
		n.skip(cursors)
		return nil
	}
	switch n.kind {
	case pstruct:
		return n.fields(cursors)
	case plist, pmap:
		if def == n.present { // present, but without entries
			n.skip(cursors)
			if n.kind == plist {
				return List{}
			}
			return Map{}
		}
		return n.assembleEntries(cursors, first)
	}
	v := scalar{n, first.values[first.value]}
	first.at++
	first.value++
	return v
}

// fields reads one instance of a struct that is present, or of the root.
func (n *pnode) fields(cursors []*cursor) Record {
	rec := Record{groupKey: n}
	for i, c := range n.children {
		rec[c.key(i)] = c.assemble(cursors)
	}
	return rec
}

// key is where a struct's Record has its i-th field: one without an id is not to
// be found by id, but read all the same.
func (n *pnode) key(i int) int {
	if n.id < 0 {
		return -1 - i
	}
	return n.id
}

// assembleEntries reads the entries of a list or map that has some.
func (n *pnode) assembleEntries(cursors []*cursor, first *cursor) any {
	var list List
	var m Map
	for more := true; more; more = first.at < len(first.rep) && first.rep[first.at] >= n.repeat {
		if n.kind == plist {
			list = append(list, n.children[0].assemble(cursors))
			continue
		}
		e := Entry{Key: n.children[0].assemble(cursors)}
		if len(n.children) > 1 {
			e.Value = n.children[1].assemble(cursors)
		}
		m = append(m, e)
	}
	if n.kind == plist {
		return list
	}
	return m
}

// firstLeaf is the first column below n.
func (n *pnode) firstLeaf() int {
	for n.kind != pleaf {
		n = n.children[0]
	}
	return n.leaf
}

// skip passes over one entry without a value in every column below n.
func (n *pnode) skip(cursors []*cursor) {
	if n.kind == pleaf {
		cursors[n.leaf].at++
		return
	}
	for _, c := range n.children {
		c.skip(cursors)
	}
}
