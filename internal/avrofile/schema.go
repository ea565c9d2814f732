package avrofile

import (
	"fmt"

	"github.com/twmb/avro"

	"github.com/icefs/icefs/internal/pqfile"
)

// op is how a node is encoded.
type op uint8

const (
	opNull op = iota
	opBool
	opInt // int and long
	opFloat
	opDouble
	opBytes // bytes and string
	opFixed
	opRecord
	opArray
	opMap // a map, or an array of key-value records
)

// node is one node of a file's schema: its encoding, and its place in the
// logical tree, where a nullable union is an optional node.
type node struct {
	*pqfile.Node
	op       op
	union    bool // written with a branch number
	null     int  // number of the null branch, -1 if none
	size     int  // fixed
	children []*node
}

// maxDepth bounds the nesting of a schema.
const maxDepth = 64

// translate turns an Avro schema into nodes.
func translate(root *avro.SchemaNode) (*node, *pqfile.Schema, error) {
	t := &translator{named: map[string]*avro.SchemaNode{}}
	if root.Type != "record" {
		return nil, nil, fmt.Errorf("%w: a file of %s, not of records", ErrUnsupported, root.Type)
	}
	n, err := t.node("table", root, 0)
	if err != nil {
		return nil, nil, err
	}
	s := &pqfile.Schema{Root: n.Node, Leaves: t.leaves, HasIDs: t.ids}
	s.Relevel()
	return n, s, nil
}

// translator numbers leaves and resolves names of types.
type translator struct {
	named  map[string]*avro.SchemaNode
	leaves []*pqfile.Node
	ids    bool
}

// field returns the node of a record's field, array's item or map's side.
func (t *translator) field(parent *node, name string, id int, s *avro.SchemaNode, depth int) error {
	n, err := t.node(name, s, depth+1)
	if err != nil {
		return err
	}
	n.FieldID, n.Parent = id, parent.Node
	t.ids = t.ids || id >= 0
	parent.children = append(parent.children, n)
	parent.Children = append(parent.Children, n.Node)
	return nil
}

// node translates a schema; unions of null and one type are optional nodes.
func (t *translator) node(name string, s *avro.SchemaNode, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: schema nested deeper than %d, or recursive", ErrUnsupported, maxDepth)
	}
	if s.Type != "union" {
		return t.plain(name, s, depth)
	}
	null, other := -1, -1
	for i := range s.Branches {
		switch {
		case s.Branches[i].Type == "null" && null < 0:
			null = i
		case other < 0:
			other = i
		default:
			return nil, fmt.Errorf("%w: field %q is a union of several types", ErrUnsupported, name)
		}
	}
	if other < 0 {
		other, null = null, -1
	}
	if other < 0 {
		return nil, fmt.Errorf("%w: field %q is an empty union", ErrCorrupt, name)
	}
	n, err := t.node(name, &s.Branches[other], depth+1)
	if err != nil {
		return nil, err
	}
	if n.union {
		return nil, fmt.Errorf("%w: field %q is a union in a union", ErrCorrupt, name)
	}
	n.union, n.null, n.Optional = true, null, n.Optional || null >= 0
	return n, nil
}

// plain translates what is not a union.
func (t *translator) plain(name string, s *avro.SchemaNode, depth int) (*node, error) {
	n := &node{Node: &pqfile.Node{Name: name, FieldID: -1, Kind: pqfile.KindLeaf}, null: -1}
	switch s.Type {
	case "record", "error", "fixed":
		full := s.Name
		if s.Namespace != "" {
			full = s.Namespace + "." + s.Name
		}
		t.named[full] = s
	}
	switch s.Type {
	case "record", "error":
		return n, t.record(n, s, depth)
	case "array":
		return n, t.array(n, s, depth)
	case "map":
		n.op, n.Kind = opMap, pqfile.KindMap
		key := &avro.SchemaNode{Type: "string"}
		if err := t.field(n, "key", property(s, "key-id"), key, depth); err != nil {
			return nil, err
		}
		return n, t.field(n, "value", property(s, "value-id"), s.Values, depth)
	}
	if named := t.named[s.Type]; named != nil {
		return t.plain(name, named, depth+1)
	}
	if err := n.leaf(s); err != nil {
		return nil, err
	}
	n.Leaf, n.Path = len(t.leaves), []string{name}
	t.leaves = append(t.leaves, n.Node)
	return n, nil
}

// record translates a struct or a variant.
func (t *translator) record(n *node, s *avro.SchemaNode, depth int) error {
	n.op, n.Kind = opRecord, pqfile.KindStruct
	if logical(s) == "variant" {
		n.Kind = pqfile.KindVariant
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		name := f.Name
		if original, ok := f.Props["iceberg-field-name"].(string); ok {
			name = original
		}
		if err := t.field(n, name, number(f.Props["field-id"]), &f.Type, depth); err != nil {
			return err
		}
	}
	return nil
}

// array translates a list, or a map that is stored as an array of records.
func (t *translator) array(n *node, s *avro.SchemaNode, depth int) error {
	if logical(s) != "map" {
		n.op, n.Kind = opArray, pqfile.KindList
		return t.field(n, "element", property(s, "element-id"), s.Items, depth)
	}
	n.op, n.Kind = opMap, pqfile.KindMap
	entry := s.Items
	if named := t.named[entry.Type]; named != nil {
		entry = named
	}
	if entry.Type != "record" || len(entry.Fields) != 2 {
		return fmt.Errorf("%w: field %q is a map of other than key-value records", ErrCorrupt, n.Name)
	}
	for i, name := range []string{"key", "value"} {
		f := &entry.Fields[i]
		if err := t.field(n, name, number(f.Props["field-id"]), &f.Type, depth); err != nil {
			return err
		}
	}
	return nil
}

// leaf sets the encoding and the physical and logical type of a primitive.
func (n *node) leaf(s *avro.SchemaNode) error {
	switch s.Type {
	case "null":
		n.op, n.Type, n.Optional = opNull, pqfile.Int32, true
		n.Logical.Kind = pqfile.LogicalUnknown
	case "boolean":
		n.op, n.Type = opBool, pqfile.Boolean
	case "int":
		n.op, n.Type = opInt, pqfile.Int32
	case "long":
		n.op, n.Type = opInt, pqfile.Int64
	case "float":
		n.op, n.Type = opFloat, pqfile.Float
	case "double":
		n.op, n.Type = opDouble, pqfile.Double
	case "bytes":
		n.op, n.Type = opBytes, pqfile.ByteArray
	case "string":
		n.op, n.Type = opBytes, pqfile.ByteArray
		n.Logical.Kind = pqfile.LogicalString
	case "fixed":
		if s.Size <= 0 || s.Size > maxBlock {
			return fmt.Errorf("%w: field %q is a fixed of %d bytes", ErrUnsupported, n.Name, s.Size)
		}
		n.op, n.Type, n.TypeLength, n.size = opFixed, pqfile.FixedLenByteArray, s.Size, s.Size
	default:
		return fmt.Errorf("%w: field %q is of type %s", ErrUnsupported, n.Name, s.Type)
	}
	n.annotate(s)
	return nil
}

// annotate sets the logical type; an unknown one is ignored, as Avro demands.
func (n *node) annotate(s *avro.SchemaNode) {
	time := func(kind pqfile.LogicalKind, unit pqfile.TimeUnit, utc bool) {
		n.Logical = pqfile.LogicalType{Kind: kind, Unit: unit, UTC: utc}
	}
	utc := true
	if v, ok := s.Props["adjust-to-utc"].(bool); ok {
		utc = v
	}
	switch l := logical(s); {
	case l == "decimal" && (s.Type == "bytes" || s.Type == "fixed"):
		n.Logical = pqfile.LogicalType{Kind: pqfile.LogicalDecimal, Precision: int32(s.Precision), Scale: int32(s.Scale)}
	case l == "uuid" && n.TypeLength == 16:
		n.Logical.Kind = pqfile.LogicalUUID
	case l == "date" && s.Type == "int":
		n.Logical.Kind = pqfile.LogicalDate
	case l == "time-millis" && s.Type == "int":
		time(pqfile.LogicalTime, pqfile.Millis, false)
	case s.Type != "long":
	case l == "time-micros":
		time(pqfile.LogicalTime, pqfile.Micros, false)
	case l == "timestamp-millis":
		time(pqfile.LogicalTimestamp, pqfile.Millis, utc)
	case l == "timestamp-micros":
		time(pqfile.LogicalTimestamp, pqfile.Micros, utc)
	case l == "timestamp-nanos":
		time(pqfile.LogicalTimestamp, pqfile.Nanos, utc)
	case l == "local-timestamp-millis":
		time(pqfile.LogicalTimestamp, pqfile.Millis, false)
	case l == "local-timestamp-micros":
		time(pqfile.LogicalTimestamp, pqfile.Micros, false)
	case l == "local-timestamp-nanos":
		time(pqfile.LogicalTimestamp, pqfile.Nanos, false)
	}
}

// logical returns a schema's logicalType, known to the library or not.
func logical(s *avro.SchemaNode) string {
	if s.LogicalType != "" {
		return s.LogicalType
	}
	l, _ := s.Props["logicalType"].(string)
	return l
}

// property returns an id among a schema's own properties, or -1.
func property(s *avro.SchemaNode, name string) int { return number(s.Props[name]) }

// number returns a field id, or -1.
func number(v any) int {
	if id, ok := v.(int64); ok && id >= 0 && id < 1<<31 {
		return int(id)
	}
	return -1
}
