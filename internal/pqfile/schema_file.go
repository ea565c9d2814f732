package pqfile

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a file's schema. Levels have to fit a byte, and a path is kept per
// leaf, so a deep and wide schema costs the product.
const (
	maxSchemaDepth   = 200
	maxSchemaStrings = 4 << 20 // path parts of all leaves together: 64 MiB
)

// SchemaOf builds the logical schema of a file: the footer's depth-first list
// as a tree, with the wrappers of lists and maps, old and new, folded in.
// A list that does not have the shape its annotation promises is ErrCorrupt.
func SchemaOf(elems []SchemaElement) (*Schema, error) {
	if len(elems) == 0 {
		return nil, fmt.Errorf("%w: schema without a root", ErrCorrupt)
	}
	b := schemaBuilder{elems: elems}
	phys, err := b.group(0)
	if err != nil {
		return nil, err
	}
	if b.next != len(elems) {
		return nil, fmt.Errorf("%w: schema has %d elements, its tree %d", ErrCorrupt, len(elems), b.next)
	}
	s := &Schema{Root: &Node{Name: phys.elem.Name, FieldID: -1, Kind: KindStruct}}
	for _, child := range phys.children {
		b.attach(s.Root, child)
	}
	s.collectLeaves()
	for _, leaf := range s.Leaves {
		if leaf.Type == FixedLenByteArray && leaf.TypeLength <= 0 {
			return nil, fmt.Errorf("%w: column %s: fixed length %d", ErrCorrupt, strings.Join(leaf.Path, "."), leaf.TypeLength)
		}
	}
	s.HasIDs = b.hasIDs
	s.Relevel()
	return s, nil
}

// physical is a node as the footer lists it.
type physical struct {
	elem     *SchemaElement
	children []*physical
}

func (p *physical) leaf() bool     { return p.children == nil && p.elem.Type != nil }
func (p *physical) repeated() bool { return p.repetition() == Repeated }
func (p *physical) repetition() Repetition {
	if p.elem.Repetition == nil {
		return Required
	}
	return *p.elem.Repetition
}

// schemaBuilder turns the list into a physical tree, then that into Nodes.
type schemaBuilder struct {
	elems   []SchemaElement
	next    int
	leaves  int
	strings int
	path    []string
	hasIDs  bool
}

// group reads the element at next and all below it.
func (b *schemaBuilder) group(depth int) (*physical, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("%w: schema is nested deeper than %d", ErrCorrupt, maxSchemaDepth)
	}
	if b.next >= len(b.elems) {
		return nil, fmt.Errorf("%w: schema ends inside a group", ErrCorrupt)
	}
	e := &b.elems[b.next]
	b.next++
	p := &physical{elem: e}
	if err := checkElement(e, depth); err != nil {
		return nil, err
	}
	n := 0
	if e.NumChildren != nil {
		n = int(*e.NumChildren)
	}
	if n < 0 || n > len(b.elems)-b.next {
		return nil, fmt.Errorf("%w: schema group %q claims %d children", ErrCorrupt, e.Name, n)
	}
	if n == 0 {
		if e.Type != nil {
			b.strings += depth
		}
		if b.strings > maxSchemaStrings {
			return nil, fmt.Errorf("%w: schema is too large", ErrCorrupt)
		}
		return p, nil
	}
	p.children = make([]*physical, n)
	for i := range p.children {
		child, err := b.group(depth + 1)
		if err != nil {
			return nil, err
		}
		p.children[i] = child
	}
	return p, nil
}

// checkElement refuses values outside the format's enumerations.
func checkElement(e *SchemaElement, depth int) error {
	if e.Type != nil && (*e.Type < Boolean || *e.Type > FixedLenByteArray) {
		return fmt.Errorf("%w: schema element %q has physical type %d", ErrCorrupt, e.Name, *e.Type)
	}
	if depth > 0 && e.Repetition != nil && (*e.Repetition < Required || *e.Repetition > Repeated) {
		return fmt.Errorf("%w: schema element %q has repetition %d", ErrCorrupt, e.Name, *e.Repetition)
	}
	return nil
}

// attach appends p to parent as what it means where it stands: a repeated
// field outside a list is a required list of required elements.
func (b *schemaBuilder) attach(parent *Node, p *physical) *Node {
	if !p.repeated() {
		return b.node(parent, p, p.repetition() == Optional)
	}
	list := b.add(parent, p, KindList)
	list.Legacy = true
	element := b.node(list, p, false)
	element.FieldID = -1
	return list
}

// add appends a node for p to parent.
func (b *schemaBuilder) add(parent *Node, p *physical, kind Kind) *Node {
	n := &Node{Name: p.elem.Name, FieldID: b.fieldID(p), Kind: kind, Parent: parent}
	parent.Children = append(parent.Children, n)
	return n
}

func (b *schemaBuilder) fieldID(p *physical) int {
	if p.elem.FieldID == nil || *p.elem.FieldID < 0 {
		return -1
	}
	b.hasIDs = true
	return int(*p.elem.FieldID)
}

// node appends p, whatever its repetition, as one node with all below it.
func (b *schemaBuilder) node(parent *Node, p *physical, optional bool) *Node {
	b.path = append(b.path, p.elem.Name)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	var n *Node
	switch {
	case p.leaf():
		n = b.leaf(parent, p)
	case isListGroup(p):
		n = b.list(parent, p)
	case isMapGroup(p):
		n = b.mapNode(parent, p)
	default:
		kind := KindStruct
		if l := p.elem.LogicalType; l != nil && l.Kind == LogicalVariant {
			kind = KindVariant
		}
		n = b.add(parent, p, kind)
		if kind == KindVariant {
			n.Logical = *p.elem.LogicalType
		}
		for _, child := range p.children {
			b.attach(n, child)
		}
	}
	n.Optional = optional
	return n
}

func (b *schemaBuilder) leaf(parent *Node, p *physical) *Node {
	n := b.add(parent, p, KindLeaf)
	n.Leaf = b.leaves
	b.leaves++
	n.Type = *p.elem.Type
	if p.elem.TypeLength != nil {
		n.TypeLength = int(*p.elem.TypeLength)
	}
	n.Logical = foldLogical(p.elem)
	n.Path = slices.Clone(b.path)
	return n
}

// list appends a LIST group; its only child repeats.
func (b *schemaBuilder) list(parent *Node, p *physical) *Node {
	n := b.add(parent, p, KindList)
	rep := p.children[0]
	if isElement(rep, p.elem.Name) {
		n.Legacy = true
		b.node(n, rep, false)
		return n
	}
	b.path = append(b.path, rep.elem.Name)
	element := b.attach(n, rep.children[0])
	b.path = b.path[:len(b.path)-1]
	n.Legacy = rep.elem.Name != "list" || rep.children[0].elem.Name != "element" ||
		element.Legacy && element.Kind == KindList && rep.children[0].repeated()
	return n
}

// isElement reports whether the repeated child of a LIST group is itself the
// element (two-level lists), by the format's backward-compatibility rules.
func isElement(rep *physical, listName string) bool {
	return len(rep.children) != 1 ||
		rep.children[0].repeated() ||
		rep.elem.Name == "array" || rep.elem.Name == listName+"_tuple"
}

// mapNode appends a MAP group: a repeated group of key and value.
func (b *schemaBuilder) mapNode(parent *Node, p *physical) *Node {
	n := b.add(parent, p, KindMap)
	rep := p.children[0]
	key, value := rep.children[0], rep.children[1]
	b.path = append(b.path, rep.elem.Name)
	b.attach(n, key)
	b.attach(n, value)
	b.path = b.path[:len(b.path)-1]
	n.Legacy = !annotated(p.elem, LogicalMap, ConvertedMap) || rep.elem.Name != "key_value" || key.elem.Name != "key" || value.elem.Name != "value" ||
		key.repetition() != Required || value.repeated()
	return n
}

// isListGroup reports a LIST annotation on a group with one repeated child;
// other shapes under that annotation are plain structs.
func isListGroup(p *physical) bool {
	return len(p.children) == 1 && p.children[0].repeated() &&
		annotated(p.elem, LogicalList, ConvertedList)
}

// isMapGroup reports a MAP (or the old MAP_KEY_VALUE) annotation on a group
// with one repeated group of two fields.
func isMapGroup(p *physical) bool {
	return len(p.children) == 1 && p.children[0].repeated() && len(p.children[0].children) == 2 &&
		annotated(p.elem, LogicalMap, ConvertedMap, ConvertedMapKeyValue)
}

// annotated reports whether e has the logical kind, or without a logical type
// one of the converted ones.
func annotated(e *SchemaElement, kind LogicalKind, converted ...int32) bool {
	if e.LogicalType != nil && e.LogicalType.Kind != LogicalNone {
		return e.LogicalType.Kind == kind
	}
	return e.ConvertedType != nil && slices.Contains(converted, *e.ConvertedType)
}

// foldLogical returns a leaf's logical type, from the converted type where the
// writer gave only that (an annotation of a later format version counts as
// none: the physical type still says how to decode).
func foldLogical(e *SchemaElement) LogicalType {
	if e.LogicalType != nil && e.LogicalType.Kind != LogicalNone {
		return *e.LogicalType
	}
	if e.ConvertedType == nil {
		return LogicalType{}
	}
	switch c := *e.ConvertedType; c {
	case ConvertedUTF8:
		return LogicalType{Kind: LogicalString}
	case ConvertedEnum:
		return LogicalType{Kind: LogicalEnum}
	case ConvertedDecimal:
		l := LogicalType{Kind: LogicalDecimal}
		if e.Scale != nil {
			l.Scale = *e.Scale
		}
		if e.Precision != nil {
			l.Precision = *e.Precision
		}
		return l
	case ConvertedDate:
		return LogicalType{Kind: LogicalDate}
	case ConvertedTimeMillis:
		return LogicalType{Kind: LogicalTime, UTC: true, Unit: Millis}
	case ConvertedTimeMicros:
		return LogicalType{Kind: LogicalTime, UTC: true, Unit: Micros}
	case ConvertedTimestampMillis:
		return LogicalType{Kind: LogicalTimestamp, UTC: true, Unit: Millis}
	case ConvertedTimestampMicros:
		return LogicalType{Kind: LogicalTimestamp, UTC: true, Unit: Micros}
	case ConvertedUint8, ConvertedUint16, ConvertedUint32, ConvertedUint64:
		return LogicalType{Kind: LogicalInteger, BitWidth: 8 << (c - ConvertedUint8)}
	case ConvertedInt8, ConvertedInt16, ConvertedInt32, ConvertedInt64:
		return LogicalType{Kind: LogicalInteger, Signed: true, BitWidth: 8 << (c - ConvertedInt8)}
	case ConvertedJSON:
		return LogicalType{Kind: LogicalJSON}
	case ConvertedBSON:
		return LogicalType{Kind: LogicalBSON}
	}
	return LogicalType{}
}
