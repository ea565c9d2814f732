package pqfile

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
)

// ViewOf builds the schema that icefs serves for an Iceberg schema: canonical
// three-level lists and maps, current types and names, field ids, optional
// unless the field is required. Levels and Path are set; Leaf counts up.
// Physical types are those that the Iceberg specification prescribes for
// Parquet; an `unknown` column is an OPTIONAL INT32 annotated UNKNOWN.
func ViewOf(s *iceberg.Schema) (*Schema, error) {
	view := &Schema{Root: &Node{Name: "table", FieldID: -1, Kind: KindStruct}}
	b := viewBuilder{}
	for _, field := range s.Fields() {
		if err := b.field(view.Root, field); err != nil {
			return nil, err
		}
	}
	view.HasIDs = len(view.Root.Children) > 0
	view.collectLeaves()
	view.Relevel()
	return view, nil
}

// viewBuilder builds a view's tree; path is the physical path of the node at
// hand.
type viewBuilder struct {
	path   []string
	leaves int
}

// field appends an Iceberg field to parent.
func (b *viewBuilder) field(parent *Node, f iceberg.NestedField) error {
	if len(b.path) > maxSchemaDepth {
		return fmt.Errorf("%w: schema is nested deeper than %d", ErrUnsupported, maxSchemaDepth)
	}
	n := &Node{Name: f.Name, FieldID: f.ID, Optional: !f.Required, Parent: parent}
	parent.Children = append(parent.Children, n)
	b.path = append(b.path, f.Name)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		n.Kind = KindStruct
		for _, child := range t.FieldList {
			if err := b.field(n, child); err != nil {
				return err
			}
		}
		return nil
	case *iceberg.ListType:
		n.Kind = KindList
		return b.below(n, "list", t.ElementField())
	case *iceberg.MapType:
		n.Kind = KindMap
		return b.below(n, "key_value", t.KeyField(), t.ValueField())
	case iceberg.VariantType:
		n.Kind = KindVariant
		n.Logical = LogicalType{Kind: LogicalVariant, SpecVersion: 1}
		b.leaf(n, &Node{Name: "metadata", FieldID: -1, Type: ByteArray, Parent: n})
		b.leaf(n, &Node{Name: "value", FieldID: -1, Type: ByteArray, Optional: true, Parent: n})
		return nil
	}
	form, err := formOf(f.Type)
	if err != nil {
		return fmt.Errorf("field %q: %w", f.Name, err)
	}
	n.Type, n.TypeLength, n.Logical = form.Type, form.TypeLength, form.Logical
	if form.Logical.Kind == LogicalUnknown {
		n.Optional = true
	}
	n.Leaf, n.Path = b.leaves, slices.Clone(b.path)
	b.leaves++
	return nil
}

// below appends the fields of a list or map under its repeated group.
func (b *viewBuilder) below(n *Node, group string, fields ...iceberg.NestedField) error {
	b.path = append(b.path, group)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	for _, f := range fields {
		if err := b.field(n, f); err != nil {
			return err
		}
	}
	return nil
}

// leaf appends a leaf that no Iceberg field stands for.
func (b *viewBuilder) leaf(parent, n *Node) {
	parent.Children = append(parent.Children, n)
	n.Leaf = b.leaves
	n.Path = append(slices.Clone(b.path), n.Name)
	b.leaves++
}

// physicalForm is how Parquet stores an Iceberg primitive.
type physicalForm struct {
	Type       Type
	TypeLength int
	Logical    LogicalType
}

// formOf returns the form that Iceberg's specification prescribes (appendix A,
// Parquet).
func formOf(t iceberg.Type) (physicalForm, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return physicalForm{Type: Boolean}, nil
	case iceberg.Int32Type:
		return physicalForm{Type: Int32}, nil
	case iceberg.Int64Type:
		return physicalForm{Type: Int64}, nil
	case iceberg.Float32Type:
		return physicalForm{Type: Float}, nil
	case iceberg.Float64Type:
		return physicalForm{Type: Double}, nil
	case iceberg.DateType:
		return physicalForm{Type: Int32, Logical: LogicalType{Kind: LogicalDate}}, nil
	case iceberg.TimeType:
		return physicalForm{Type: Int64, Logical: LogicalType{Kind: LogicalTime, Unit: Micros}}, nil
	case iceberg.TimestampType:
		return timestampForm(Micros, false), nil
	case iceberg.TimestampTzType:
		return timestampForm(Micros, true), nil
	case iceberg.TimestampNsType:
		return timestampForm(Nanos, false), nil
	case iceberg.TimestampTzNsType:
		return timestampForm(Nanos, true), nil
	case iceberg.StringType:
		return physicalForm{Type: ByteArray, Logical: LogicalType{Kind: LogicalString}}, nil
	case iceberg.BinaryType:
		return physicalForm{Type: ByteArray}, nil
	case iceberg.UUIDType:
		return physicalForm{Type: FixedLenByteArray, TypeLength: 16, Logical: LogicalType{Kind: LogicalUUID}}, nil
	case iceberg.UnknownType:
		return physicalForm{Type: Int32, Logical: LogicalType{Kind: LogicalUnknown}}, nil
	case iceberg.FixedType:
		if t.Len() <= 0 {
			return physicalForm{}, fmt.Errorf("%w: %s", ErrUnsupported, t)
		}
		return physicalForm{Type: FixedLenByteArray, TypeLength: t.Len()}, nil
	case iceberg.DecimalType:
		return decimalForm(t)
	case iceberg.GeometryType:
		return physicalForm{Type: ByteArray, Logical: LogicalType{Kind: LogicalGeometry, CRS: storedCRS(t.CRS())}}, nil
	case iceberg.GeographyType:
		l := LogicalType{Kind: LogicalGeography, CRS: storedCRS(t.CRS()), Algorithm: storedAlgorithm(t.Algorithm())}
		return physicalForm{Type: ByteArray, Logical: l}, nil
	}
	return physicalForm{}, fmt.Errorf("%w: type %s", ErrUnsupported, t)
}

func timestampForm(unit TimeUnit, utc bool) physicalForm {
	return physicalForm{Type: Int64, Logical: LogicalType{Kind: LogicalTimestamp, Unit: unit, UTC: utc}}
}

// decimalForm is INT32 up to 9 digits, INT64 up to 18, else the fewest bytes
// that hold the precision.
func decimalForm(t iceberg.DecimalType) (physicalForm, error) {
	p, s := t.Precision(), t.Scale()
	if p < 1 || p > 38 || s < 0 || s > p {
		return physicalForm{}, fmt.Errorf("%w: %s", ErrUnsupported, t)
	}
	f := physicalForm{Type: FixedLenByteArray, Logical: LogicalType{Kind: LogicalDecimal, Precision: int32(p), Scale: int32(s)}}
	switch {
	case p <= 9:
		f.Type = Int32
	case p <= 18:
		f.Type = Int64
	default:
		f.TypeLength = decimalBytes(p)
	}
	return f, nil
}

// decimalBytes is the fewest bytes of two's complement that hold every number
// of p decimal digits: p*log2(10)+1 bits.
func decimalBytes(p int) int {
	// 3322/1000 exceeds log2(10) by less than a bit for 38 digits.
	return (p*3322/1000 + 2 + 7) / 8
}

// storedCRS is the CRS as Parquet writes it: empty for the default.
func storedCRS(crs string) string {
	if crs == iceberg.DefaultGeoCRS {
		return ""
	}
	return crs
}

// storedAlgorithm is the thrift enum EdgeInterpolationAlgorithm, nil for the
// default (spherical).
func storedAlgorithm(name string) *int32 {
	i := int32(slices.Index([]string{"spherical", "vincenty", "thomas", "andoyer", "karney"}, name))
	if i <= 0 {
		return nil
	}
	return &i
}
