package pqfile

import (
	"fmt"
	"slices"
	"strings"
)

// Shredding is how a file stores a variant in pieces (parquet-format,
// VariantShredding.md):
//
//	group v (VARIANT) { metadata; value; typed_value }
//
// where typed_value is a primitive, or a list of pieces, or a group of named
// pieces, and a piece is a group of value and typed_value again, either of
// which may be left out.
type Shredding struct {
	variant *Node
	// leaves are all that have to be read, metadata first.
	leaves []*Node
	root   piece
}

// piece is one place of a variant. Leaves are indexes in Shredding.leaves.
type piece struct {
	node    *Node
	value   int // leaf of the encoded form; -1 = none
	typed   *Node
	leaf    int           // typed is a primitive: its leaf
	encode  variantEncode // and how its values are encoded
	fields  []shreddedField
	element *piece // typed is a list
	below   []int  // leaves of typed
	all     []int  // leaves of the piece
}

type shreddedField struct {
	name string
	piece
}

// shredded projects a variant that is stored in pieces: metadata as it is
// stored, and the value put together of all of them. A piece without a value is
// a variant null where there is no object to leave it out of.
func (p *projector) shredded(path []step, metadata *Node) error {
	at := path[len(path)-1]
	s := &Shredding{variant: at.file, leaves: []*Node{metadata}}
	if err := s.build(&s.root, at.file); err != nil {
		return fmt.Errorf("column %s: %w", at.view.fullName(), err)
	}
	s.root.all = append(s.root.all, 0)
	for _, leaf := range s.leaves {
		p.used[leaf.Leaf] = true
	}
	v := at.view.Children[1]
	col := &p.columns[v.Leaf]
	col.Leaf, col.Source, col.Shredding = v, metadata, s
	col.DefMap = levelMap(path, metadata.MaxDef)
	for d := at.file.Present; d <= metadata.MaxDef; d++ {
		col.DefMap[d] = uint8(v.MaxDef)
	}
	return nil
}

// build describes the piece that a group is.
func (s *Shredding) build(p *piece, group *Node) error {
	p.node, p.value, p.leaf = group, -1, -1
	for _, n := range group.Children {
		switch n.Name {
		case "value":
			if n.Kind != KindLeaf || n.Type != ByteArray || p.value >= 0 {
				return fmt.Errorf("%w: variant value stored as %s", ErrCorrupt, n.typeName())
			}
			p.value = s.leaf(n)
			p.all = append(p.all, p.value)
		case "typed_value":
			if p.typed != nil {
				return fmt.Errorf("%w: two fields typed_value", ErrCorrupt)
			}
			p.typed = n
			if err := s.buildTyped(p, n); err != nil {
				return err
			}
			p.all = append(p.all, p.below...)
		}
	}
	if len(p.all) == 0 {
		return fmt.Errorf("%w: %s has neither value nor typed_value", ErrCorrupt, group.fullName())
	}
	return nil
}

func (s *Shredding) buildTyped(p *piece, n *Node) (err error) {
	switch n.Kind {
	case KindLeaf:
		p.leaf = s.leaf(n)
		p.below = []int{p.leaf}
		p.encode, err = variantEncoding(n)
		return err
	case KindList:
		p.element = &piece{}
		if n.Children[0].Kind != KindStruct {
			return fmt.Errorf("%w: variant array of %s", ErrCorrupt, n.Children[0].typeName())
		}
		err = s.build(p.element, n.Children[0])
		p.below = p.element.all
		return err
	case KindStruct:
		p.fields = make([]shreddedField, len(n.Children))
		for i, child := range n.Children {
			f := &p.fields[i]
			f.name = child.Name
			if child.Kind != KindStruct {
				return fmt.Errorf("%w: variant field %q stored as %s", ErrCorrupt, child.Name, child.typeName())
			}
			if err := s.build(&f.piece, child); err != nil {
				return err
			}
			p.below = append(p.below, f.all...)
		}
		// Variant objects list their fields by name.
		slices.SortStableFunc(p.fields, func(a, b shreddedField) int { return strings.Compare(a.name, b.name) })
		for i := 1; i < len(p.fields); i++ {
			if p.fields[i].name == p.fields[i-1].name {
				return fmt.Errorf("%w: two variant fields %q", ErrCorrupt, p.fields[i].name)
			}
		}
		return nil
	}
	return fmt.Errorf("%w: variant stored as %s", ErrUnsupported, n.typeName())
}

// field reports whether the piece has a field of its own for a name.
func (p *piece) field(name string) bool {
	_, ok := slices.BinarySearchFunc(p.fields, name, func(f shreddedField, name string) int { return strings.Compare(f.name, name) })
	return ok
}

// leaf adds a leaf to those that are read.
func (s *Shredding) leaf(n *Node) int {
	s.leaves = append(s.leaves, n)
	return len(s.leaves) - 1
}

// Stored lists the file's leaves that a column is read from: none if the file
// does not have it.
func (c *Column) Stored() []*Node {
	switch {
	case c.Shredding != nil:
		return c.Shredding.leaves
	case c.Source != nil:
		return []*Node{c.Source}
	}
	return nil
}
