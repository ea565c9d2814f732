package pqfile

import (
	"fmt"
	"strings"
)

// Elements renders the schema as a footer's list, depth first: lists and maps
// in their canonical three levels, logical types, and the converted types that
// older readers know them by. Field ids stand on fields, elements, keys and
// values, never on a repeated group.
func (s *Schema) Elements() []SchemaElement {
	elems := make([]SchemaElement, 0, 1+2*len(s.Leaves))
	elems = append(elems, SchemaElement{Name: s.Root.Name, NumChildren: ptr(int32(len(s.Root.Children)))})
	for _, child := range s.Root.Children {
		elems = child.appendElements(elems, child.Name)
	}
	return elems
}

// appendElements appends n, under the name its place gives it, and all below.
func (n *Node) appendElements(dst []SchemaElement, name string) []SchemaElement {
	e := SchemaElement{Name: name, Repetition: ptr(Required)}
	if n.Optional {
		e.Repetition = ptr(Optional)
	}
	if n.FieldID >= 0 {
		e.FieldID = ptr(int32(n.FieldID))
	}
	switch n.Kind {
	case KindLeaf:
		e.Type = ptr(n.Type)
		if n.Type == FixedLenByteArray {
			e.TypeLength = ptr(int32(n.TypeLength))
		}
		e.annotate(n.Logical)
		return append(dst, e)
	case KindList:
		e.annotate(LogicalType{Kind: LogicalList})
		return n.appendRepeated(dst, e, "list", "element")
	case KindMap:
		e.annotate(LogicalType{Kind: LogicalMap})
		return n.appendRepeated(dst, e, "key_value", "key", "value")
	case KindVariant:
		l := n.Logical
		if l.Kind == LogicalNone {
			l = LogicalType{Kind: LogicalVariant, SpecVersion: 1}
		}
		e.annotate(l)
	}
	e.NumChildren = ptr(int32(len(n.Children)))
	dst = append(dst, e)
	for _, child := range n.Children {
		dst = child.appendElements(dst, child.Name)
	}
	return dst
}

// appendRepeated appends a list or map: e, its repeated group, its children by
// their canonical names.
func (n *Node) appendRepeated(dst []SchemaElement, e SchemaElement, group string, names ...string) []SchemaElement {
	e.NumChildren = ptr(int32(1))
	rep := SchemaElement{Name: group, Repetition: ptr(Repeated), NumChildren: ptr(int32(len(n.Children)))}
	dst = append(dst, e, rep)
	for i, child := range n.Children {
		dst = child.appendElements(dst, names[i])
	}
	return dst
}

// annotate sets a logical type and its converted counterpart, which exists
// only for what older readers understand alike: a local timestamp has none.
func (e *SchemaElement) annotate(l LogicalType) {
	if l.Kind == LogicalNone {
		return
	}
	e.LogicalType = &l
	switch l.Kind {
	case LogicalString:
		e.ConvertedType = ptr(ConvertedUTF8)
	case LogicalMap:
		e.ConvertedType = ptr(ConvertedMap)
	case LogicalList:
		e.ConvertedType = ptr(ConvertedList)
	case LogicalEnum:
		e.ConvertedType = ptr(ConvertedEnum)
	case LogicalDecimal:
		e.ConvertedType = ptr(ConvertedDecimal)
		e.Scale, e.Precision = ptr(l.Scale), ptr(l.Precision)
	case LogicalDate:
		e.ConvertedType = ptr(ConvertedDate)
	case LogicalTime:
		e.ConvertedType = l.convertedTime(ConvertedTimeMillis, ConvertedTimeMicros)
	case LogicalTimestamp:
		e.ConvertedType = l.convertedTime(ConvertedTimestampMillis, ConvertedTimestampMicros)
	case LogicalInteger:
		e.ConvertedType = l.convertedInteger()
	case LogicalJSON:
		e.ConvertedType = ptr(ConvertedJSON)
	case LogicalBSON:
		e.ConvertedType = ptr(ConvertedBSON)
	}
}

func (l LogicalType) convertedTime(millis, micros int32) *int32 {
	switch {
	case !l.UTC:
		return nil
	case l.Unit == Millis:
		return &millis
	case l.Unit == Micros:
		return &micros
	}
	return nil
}

func (l LogicalType) convertedInteger() *int32 {
	base := ConvertedUint8
	if l.Signed {
		base = ConvertedInt8
	}
	switch l.BitWidth {
	case 8:
	case 16:
		base++
	case 32:
		base += 2
	case 64:
		base += 3
	default:
		return nil
	}
	return &base
}

func ptr[T any](v T) *T { return &v }

// String renders the tree, a node a line: repetition, kind or type, name, field
// id, levels, and for leaves the physical path.
func (s *Schema) String() string {
	var b strings.Builder
	for _, child := range s.Root.Children {
		child.print(&b, 0)
	}
	return b.String()
}

func (n *Node) print(b *strings.Builder, depth int) {
	b.WriteString(strings.Repeat("  ", depth))
	if n.Optional {
		b.WriteString("optional ")
	} else {
		b.WriteString("required ")
	}
	fmt.Fprintf(b, "%s %q", n.typeName(), n.Name)
	if n.FieldID >= 0 {
		fmt.Fprintf(b, " id=%d", n.FieldID)
	}
	fmt.Fprintf(b, " present=%d", n.Present)
	if n.Kind == KindList || n.Kind == KindMap {
		fmt.Fprintf(b, " entry=%d repeat=%d", n.Entry, n.Repeat)
	}
	if n.Legacy {
		b.WriteString(" legacy")
	}
	if n.Kind == KindLeaf {
		fmt.Fprintf(b, " leaf=%d max=%d/%d path=%s", n.Leaf, n.MaxDef, n.MaxRep, strings.Join(n.Path, "."))
	}
	b.WriteByte('\n')
	for _, child := range n.Children {
		child.print(b, depth+1)
	}
}

// typeName names a node's kind, or a leaf's physical and logical type, for
// messages: "INT64 TIMESTAMP(MICROS,utc)".
func (n *Node) typeName() string {
	switch n.Kind {
	case KindStruct:
		return "struct"
	case KindList:
		return "list"
	case KindMap:
		return "map"
	case KindVariant:
		return "variant"
	}
	name := n.Type.String()
	if n.Type == FixedLenByteArray {
		name = fmt.Sprintf("%s(%d)", name, n.TypeLength)
	}
	if l := n.Logical.String(); l != "" {
		name += " " + l
	}
	return name
}

// String is the physical type's name in parquet.thrift.
func (t Type) String() string {
	switch t {
	case Boolean:
		return "BOOLEAN"
	case Int32:
		return "INT32"
	case Int64:
		return "INT64"
	case Int96:
		return "INT96"
	case Float:
		return "FLOAT"
	case Double:
		return "DOUBLE"
	case ByteArray:
		return "BYTE_ARRAY"
	case FixedLenByteArray:
		return "FIXED_LEN_BYTE_ARRAY"
	}
	return fmt.Sprintf("Type(%d)", int32(t))
}

// String names the unit.
func (u TimeUnit) String() string {
	switch u {
	case Millis:
		return "MILLIS"
	case Micros:
		return "MICROS"
	case Nanos:
		return "NANOS"
	}
	return fmt.Sprintf("TimeUnit(%d)", int16(u))
}

// String is the annotation with its parameters, empty for none.
func (l LogicalType) String() string {
	names := map[LogicalKind]string{
		LogicalString: "STRING", LogicalMap: "MAP", LogicalList: "LIST", LogicalEnum: "ENUM", LogicalDate: "DATE",
		LogicalUnknown: "UNKNOWN", LogicalJSON: "JSON", LogicalBSON: "BSON", LogicalUUID: "UUID",
		LogicalFloat16: "FLOAT16", LogicalVariant: "VARIANT",
	}
	utc := "local"
	if l.UTC {
		utc = "utc"
	}
	switch l.Kind {
	case LogicalNone:
		return ""
	case LogicalDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", l.Precision, l.Scale)
	case LogicalTime:
		return fmt.Sprintf("TIME(%s,%s)", l.Unit, utc)
	case LogicalTimestamp:
		return fmt.Sprintf("TIMESTAMP(%s,%s)", l.Unit, utc)
	case LogicalInteger:
		return fmt.Sprintf("INTEGER(%d,signed=%t)", l.BitWidth, l.Signed)
	case LogicalGeometry:
		return fmt.Sprintf("GEOMETRY(%s)", l.CRS)
	case LogicalGeography:
		if l.Algorithm != nil {
			return fmt.Sprintf("GEOGRAPHY(%s,%d)", l.CRS, *l.Algorithm)
		}
		return fmt.Sprintf("GEOGRAPHY(%s)", l.CRS)
	}
	if name, ok := names[l.Kind]; ok {
		return name
	}
	return fmt.Sprintf("LogicalKind(%d)", l.Kind)
}
