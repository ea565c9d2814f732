package merge

import (
	"context"
	"os"
	"reflect"

	"github.com/icefs/icefs/internal/pqfile"
)

// Passthrough is a Handle that may have bytes of local files as they are, which
// a kernel can then take from there.
type Passthrough interface {
	Handle
	// OpenFile returns a descriptor of the file that has all of the view's bytes,
	// or nil if there is none. The caller closes it.
	OpenFile(ctx context.Context) (*os.File, error)
	// Stored reports whether most of the view's bytes are those of data files, so
	// that reading more than was asked for costs little, and whether any come from
	// an object store, where it costs much.
	Stored(ctx context.Context) (stored, remote bool)
	// Borrow calls each with the local files that have n bytes of the view, piece
	// after piece; a file is open until each returns, whose error ends it. It fails
	// too if a file has changed meanwhile. false if they are not all in local files:
	// nothing has been called then.
	Borrow(ctx context.Context, off int64, n int, each func(f *os.File, at int64, n int) error) (bool, error)
}

// wholeFile is the layout of a part that is its data file.
func (e *Engine) wholeFile(in *input) *layout {
	l := &layout{heap: in.heap(), whole: in.pq.Object}
	l.summary = Summary{Rows: in.firstRow[len(in.firstRow)-1], Whole: true}
	l.add(e.raw(in.pq.Object, 0, in.pq.Object.Size()))
	return l
}

// identical reports whether a data file is what its part would say: nothing
// deleted, the same names, order, types and ids, no column missing or extra, and
// every chunk servable as it is.
func identical(in *input, view *pqfile.Schema, noSplice bool) bool {
	rows := in.firstRow[len(in.firstRow)-1]
	if noSplice || in.pq == nil || in.extra || in.deleted.CountRange(0, rows) > 0 || !sameSchema(view, in.pq.Schema) {
		return false
	}
	for i := range in.columns {
		col := &in.columns[i]
		if col.Source == nil || col.Fill != nil || col.Shredding != nil || col.Source.Leaf != i || col.Convert.Kind != pqfile.ConvertNone || !col.SameLevels {
			return false
		}
		for g := range in.pq.Metadata.RowGroups {
			if in.firstRow[g] == in.firstRow[g+1] {
				return false // a row group without rows troubles readers
			}
			c, err := in.pq.Chunk(g, col.Source)
			if err != nil || !c.TrustedWriter || c.Meta.Codec == pqfile.LZ4 || !c.Meta.Codec.Decodable() {
				return false
			}
		}
	}
	return true
}

// sameSchema reports that a file's schema reads as the view's does.
func sameSchema(view, file *pqfile.Schema) bool {
	if len(view.Leaves) != len(file.Leaves) {
		return false
	}
	for i, leaf := range view.Leaves {
		if !reflect.DeepEqual(leaf.Path, file.Leaves[i].Path) {
			return false
		}
	}
	return sameNodes(view.Root.Children, file.Root.Children)
}

func sameNodes(a, b []*pqfile.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i, x := range a {
		y := b[i]
		if x.Name != y.Name || x.FieldID != y.FieldID || x.Kind != y.Kind || x.Optional != y.Optional || y.Legacy ||
			x.Type != y.Type || x.TypeLength != y.TypeLength || !reflect.DeepEqual(plainly(x), plainly(y)) || !sameNodes(x.Children, y.Children) {
			return false
		}
	}
	return true
}

// plainly is a node's logical type, without one that only repeats its physical
// type: some writers annotate every signed integer.
func plainly(n *pqfile.Node) pqfile.LogicalType {
	l := n.Logical
	if l.Kind == pqfile.LogicalInteger && l.Signed && (n.Type == pqfile.Int64 && l.BitWidth == 64 || n.Type == pqfile.Int32 && l.BitWidth == 32) {
		return pqfile.LogicalType{}
	}
	return l
}
