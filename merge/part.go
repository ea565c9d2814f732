package merge

import (
	"context"
	"os"
	"reflect"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// Passthrough is a View that may be a local file as it is, whose descriptor can
// be handed out.
type Passthrough interface {
	View
	// OpenFile returns a descriptor of the file that has the view's bytes, or nil
	// if there is none. The caller closes it.
	OpenFile(ctx context.Context) (*os.File, error)
}

var _ Passthrough = (*parquetView)(nil)

// OpenFile implements Passthrough.
func (v *parquetView) OpenFile(ctx context.Context) (*os.File, error) {
	l, err := v.layout(ctx)
	if err != nil {
		return nil, err
	}
	if f, ok := l.whole.(source.Filer); ok {
		return f.OpenFile()
	}
	return nil, nil
}

// wholeFile is the layout of a part that is its data file.
func (e *Engine) wholeFile(in *input) *layout {
	l := &layout{heap: in.heap(), rows: in.firstRow[len(in.firstRow)-1], whole: in.pq.Object}
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
			if err != nil || !c.TrustedWriter || c.Meta.Codec == pqfile.LZ4 || c.Meta.Codec == pqfile.LZO {
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
			x.Type != y.Type || x.TypeLength != y.TypeLength || !reflect.DeepEqual(x.Logical, y.Logical) || !sameNodes(x.Children, y.Children) {
			return false
		}
	}
	return true
}
