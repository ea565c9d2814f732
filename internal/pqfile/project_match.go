package pqfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

// Project maps the target's view onto f: fields by id at every level, those
// without an id by the name mapping, and never by position or by name alone.
// The error names the column and, for a type that cannot be read, both types.
func (f *File) Project(t Target) (*Projection, error) {
	proj, err := project(f, t)
	if err != nil {
		return nil, f.wrap(err)
	}
	return proj, nil
}

func project(f *File, t Target) (*Projection, error) {
	view := t.View
	if view == nil {
		var err error
		if view, err = ViewOf(t.Schema); err != nil {
			return nil, err
		}
	}
	if !f.Schema.HasIDs && t.NameMapping == nil && len(f.Schema.Leaves) > 0 {
		return nil, ErrNoFieldIDs
	}
	p := &projector{file: f, target: t, columns: make([]Column, len(view.Leaves)), used: make([]bool, len(f.Schema.Leaves))}
	if t.NameMapping != nil {
		p.mapped = map[*Node]int{}
		p.mapFields(f.Schema.Root, t.NameMapping)
	}
	root := []step{{view.Root, f.Schema.Root}}
	if err := p.structFields(root); err != nil {
		return nil, err
	}
	return &Projection{View: view, Columns: p.columns, Extra: slices.Contains(p.used, false)}, nil
}

// step is a view's node beside the file's node that it is read from.
type step struct{ view, file *Node }

// projector fills columns; used marks the file's leaves that the view shows.
type projector struct {
	file    *File
	target  Target
	mapped  map[*Node]int // ids that the name mapping gives
	columns []Column
	used    []bool
}

// mapFields gives ids to the id-less nodes below parent. The mapping names the
// element of a list "element" and the sides of a map "key" and "value",
// whatever the file calls them.
func (p *projector) mapFields(parent *Node, fields []iceberg.MappedField) {
	for i, n := range parent.Children {
		name := n.Name
		switch {
		case parent.Kind == KindList:
			name = "element"
		case parent.Kind == KindMap:
			name = [...]string{"key", "value"}[i]
		}
		entry := findMapping(fields, n.FieldID, name)
		if entry == nil {
			continue
		}
		if n.FieldID < 0 && entry.FieldID != nil {
			p.mapped[n] = *entry.FieldID
		}
		p.mapFields(n, entry.Fields)
	}
}

// findMapping finds the entry of a field: by its id where the file gives one,
// else by name.
func findMapping(fields []iceberg.MappedField, id int, name string) *iceberg.MappedField {
	for i := range fields {
		f := &fields[i]
		if id >= 0 && f.FieldID != nil && *f.FieldID == id || id < 0 && slices.Contains(f.Names, name) {
			return f
		}
	}
	return nil
}

// id is a file node's id, its own or the name mapping's, or -1.
func (p *projector) id(n *Node) int {
	if n.FieldID >= 0 {
		return n.FieldID
	}
	if id, ok := p.mapped[n]; ok {
		return id
	}
	return -1
}

// child finds a struct's field by id; two of them are an error.
func (p *projector) child(parent *Node, id int) (*Node, error) {
	var found *Node
	for _, n := range parent.Children {
		if id < 0 || p.id(n) != id {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: columns %q and %q both have field id %d", ErrCorrupt, found.Name, n.Name, id)
		}
		found = n
	}
	return found, nil
}

// structFields projects the fields of the struct that path ends at.
func (p *projector) structFields(path []step) error {
	at := path[len(path)-1]
	for _, v := range at.view.Children {
		if known, err := p.metadata(v, path); known {
			if err != nil {
				return err
			}
			continue
		}
		f, err := p.child(at.file, v.FieldID)
		if err != nil {
			return err
		}
		if f == nil {
			err = p.missing(v, path)
		} else {
			err = p.match(append(path, step{v, f}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// match projects the node that path ends at.
func (p *projector) match(path []step) error {
	at := path[len(path)-1]
	v, f := at.view, at.file
	if v.Kind != f.Kind && !(v.Kind == KindVariant && f.Kind == KindStruct) {
		return mismatch(v, f)
	}
	switch v.Kind {
	case KindLeaf:
		return p.leaf(path)
	case KindStruct:
		return p.structFields(path)
	case KindVariant:
		return p.variant(path)
	}
	// List and map: children correspond by place; ids only confirm it.
	for i, child := range v.Children {
		stored := f.Children[i]
		if id := p.id(stored); id >= 0 && child.FieldID >= 0 && id != child.FieldID {
			return fmt.Errorf("%w: column %s: %s has field id %d, the schema says %d",
				ErrCorrupt, v.fullName(), child.Name, id, child.FieldID)
		}
		if err := p.match(append(path, step{child, stored})); err != nil {
			return err
		}
	}
	return nil
}

// variant projects metadata and value by name, as the variant encoding
// prescribes.
func (p *projector) variant(path []step) error {
	at := path[len(path)-1]
	shredded := slices.ContainsFunc(at.file.Children, func(n *Node) bool { return n.Name == "typed_value" })
	for _, v := range at.view.Children {
		if shredded && v.Name == "value" {
			if err := p.shredded(path, p.columns[at.view.Children[0].Leaf].Source); err != nil {
				return err
			}
			continue
		}
		i := slices.IndexFunc(at.file.Children, func(n *Node) bool { return n.Name == v.Name })
		if i < 0 {
			return fmt.Errorf("%w: column %s: variant without %q", ErrCorrupt, at.view.fullName(), v.Name)
		}
		if err := p.match(append(path, step{v, at.file.Children[i]})); err != nil {
			return err
		}
	}
	return nil
}

// leaf projects a stored leaf.
func (p *projector) leaf(path []step) error {
	at := path[len(path)-1]
	v, f := at.view, at.file
	p.used[f.Leaf] = true
	col := &p.columns[v.Leaf]
	col.Leaf, col.DefMap = v, levelMap(path, f.MaxDef)
	if f.Logical.Kind == LogicalUnknown && v.Logical.Kind != LogicalUnknown || v.Logical.Kind == LogicalUnknown {
		return p.unknown(col, f)
	}
	convert, err := conversionOf(v, f)
	if err != nil {
		return err
	}
	col.Source, col.Convert = f, convert
	col.SameLevels = v.MaxDef == f.MaxDef && v.MaxRep == f.MaxRep && isIdentity(col.DefMap)
	col.AddsOptional = v.MaxRep == 0 && f.MaxRep == 0 && f.MaxDef == 0 && v.MaxDef == 1
	return nil
}

// unknown projects a column of the null type, on either side: NULL wherever
// its parent is present, and a value is an error. It is read as a missing
// column because its stored form means nothing.
func (p *projector) unknown(col *Column, f *Node) error {
	if f.Logical.Kind != LogicalUnknown {
		return mismatch(col.Leaf, f)
	}
	col.Levels, col.RepKeep = f, f.MaxRep
	col.Constant = noValue(col.Leaf)
	col.DefMap[f.MaxDef] = LevelForbidden
	return nil
}

// levelMap maps the definition levels 0..maxDef of a file leaf to the view's,
// along path. A level means that everything up to some node is present and
// the next is not; where that next node is optional only in the file, the level
// is forbidden.
func levelMap(path []step, maxDef int) []uint8 {
	m := make([]uint8, maxDef+1)
	for d := range m {
		m[d] = mapLevel(path, d)
	}
	return m
}

func mapLevel(path []step, d int) uint8 {
	level := 0
	for _, s := range path {
		if s.file.Present > d {
			if s.file.Optional && !s.view.Optional {
				return LevelForbidden
			}
			break
		}
		level = s.view.Present
		if s.view.Kind == KindList || s.view.Kind == KindMap {
			if s.file.Entry > d {
				break
			}
			level = s.view.Entry
		}
	}
	return uint8(level)
}

func isIdentity(m []uint8) bool {
	for i, level := range m {
		if int(level) != i {
			return false
		}
	}
	return true
}

// mismatch is the error for a stored type that cannot be read as the view's.
func mismatch(v, f *Node) error {
	return fmt.Errorf("%w: column %s: cannot read %s as %s", ErrUnsupported, v.fullName(), f.typeName(), v.typeName())
}

// fullName is the dotted name of a view's node, for messages.
func (n *Node) fullName() string {
	var parts []string
	for ; n != nil && n.Parent != nil; n = n.Parent {
		parts = append(parts, n.Name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}
