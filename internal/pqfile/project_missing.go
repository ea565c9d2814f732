package pqfile

import (
	"fmt"

	"github.com/apache/iceberg-go"
)

// missing projects a field that the struct at path's end does not store: its
// identity-partition constant, else its initial default, else NULL, wherever
// that struct is present.
func (p *projector) missing(v *Node, path []step) error {
	at := path[len(path)-1].file
	base := Column{DefMap: levelMap(path, at.Present)}
	if at.Present > 0 {
		base.Levels, base.RepKeep = p.donor(at), at.Repeat
		if base.Levels == nil {
			return fmt.Errorf("%w: struct %s of the file has no column", ErrUnsupported, at.fullName())
		}
	}
	return p.fill(v, base, base.DefMap[at.Present])
}

// donor is the leaf below a file's node whose levels are cheapest to read.
func (p *projector) donor(n *Node) *Node {
	var best *Node
	var least int64
	for _, leaf := range n.appendLeaves(nil) {
		size := p.chunkSize(leaf)
		if best == nil || leaf.MaxRep < best.MaxRep || leaf.MaxRep == best.MaxRep && size < least {
			best, least = leaf, size
		}
	}
	return best
}

// chunkSize is a leaf's stored size in the first row group, 0 if unknown.
func (p *projector) chunkSize(leaf *Node) int64 {
	m := p.file.Metadata
	if m == nil || len(m.RowGroups) == 0 || leaf.Leaf >= len(m.RowGroups[0].Columns) {
		return 0
	}
	meta := m.RowGroups[0].Columns[leaf.Leaf].MetaData
	if meta == nil {
		return 0
	}
	return meta.TotalCompressedSize
}

// fill sets the columns of v and of all below it, none of them stored. base has
// the levels of the parent, its DefMap up to the one from which that is
// present; present is the view's level there.
func (p *projector) fill(v *Node, base Column, present uint8) error {
	f, _ := p.icebergField(v)
	constant, isConstant := p.target.Constants[v.FieldID]
	isConstant = isConstant && v.FieldID >= 0 && v.Kind == KindLeaf
	value := f.InitialDefault
	if isConstant {
		value = constant
	}
	if value == nil {
		if !v.Optional {
			return fmt.Errorf("%w: required column %s is missing and has no default", ErrCorrupt, v.fullName())
		}
		for _, leaf := range v.appendLeaves(nil) {
			p.set(leaf, base, present, noValue(leaf))
		}
		return nil
	}
	switch v.Kind {
	case KindLeaf:
		c, err := constantOf(f.Type, v, value)
		if err != nil {
			return fmt.Errorf("column %s: %w", v.fullName(), err)
		}
		p.set(v, base, uint8(v.MaxDef), c)
		return nil
	case KindStruct:
		if _, ok := value.(map[string]any); ok {
			for _, child := range v.Children {
				if err := p.fill(child, base, uint8(v.Present)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return fmt.Errorf("%w: column %s: default %v of a %s", ErrUnsupported, v.fullName(), value, v.typeName())
}

// icebergField is the schema's field for a view's node.
func (p *projector) icebergField(v *Node) (iceberg.NestedField, bool) {
	if p.target.Schema == nil || v.FieldID < 0 {
		return iceberg.NestedField{}, false
	}
	return p.target.Schema.FindFieldByID(v.FieldID)
}

// set gives a missing leaf its value at the view's level, for every stored
// level at which the parent is present.
func (p *projector) set(leaf *Node, base Column, level uint8, value Values) {
	col := base
	col.Leaf, col.Constant = leaf, value
	present := len(base.DefMap) - 1
	col.DefMap = append(make([]uint8, 0, present+1), base.DefMap[:present]...)
	col.DefMap = append(col.DefMap, level)
	for base.Levels != nil && len(col.DefMap) <= base.Levels.MaxDef {
		col.DefMap = append(col.DefMap, level)
	}
	p.columns[leaf.Leaf] = col
}

// noValue is an empty run in the leaf's physical type.
func noValue(leaf *Node) Values {
	v := Values{Type: leaf.Type, Width: fixedWidth(leaf)}
	if leaf.Type == ByteArray {
		v.Offsets = []uint32{0}
	}
	return v
}
