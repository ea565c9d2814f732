package reference

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Variant is a variant value as JSON: its bytes are of no use for comparing,
// since a writer is free to encode one value in many ways.
type Variant string

// variantNull is the variant that looks like NULL in text.
const variantNull = Variant("null")

// groupKey holds a stored struct's node in its Record, which has no names.
const groupKey = -1 << 31

// variantValue reads a variant that is stored whole, not shredded into columns.
func variantValue(stored Record) (v any, err error) {
	defer recoverAs(&err)
	n, ok := stored[groupKey].(*pnode)
	if !ok {
		return nil, fmt.Errorf("variant that is no group: %w", ErrUnsupported)
	}
	var metadata, value []byte
	for i, c := range n.children {
		part, _ := stored[c.key(i)].(scalar)
		b, _ := part.v.([]byte)
		switch c.name {
		case "metadata":
			metadata = b
		case "value":
			value = b
		default:
			return nil, fmt.Errorf("shredded variant: %w", ErrUnsupported)
		}
	}
	decoded, err := variant.New(metadata, value)
	if err != nil {
		return nil, fmt.Errorf("variant: %w: %w", ErrCorrupt, err)
	}
	text, err := variantJSON(decoded)
	return Variant(text), err
}

// variantJSON is a variant as JSON, its values in the forms that columns have.
func variantJSON(v variant.Value) (string, error) {
	p := iceberg.PrimitiveTypes
	switch x := v.Value().(type) {
	case nil, bool, float32, float64, string, []byte, uuid.UUID:
		return JSON(nil, x), nil
	case int8, int16, int32, int64:
		return fmt.Sprint(x), nil
	case arrow.Date32:
		return JSON(p.Date, iceberg.Date(x)), nil
	case arrow.Time64:
		return JSON(p.Time, iceberg.Time(x)), nil
	case arrow.Timestamp:
		switch v.Type() {
		case variant.TimestampMicros:
			return JSON(p.TimestampTz, iceberg.Timestamp(x)), nil
		case variant.TimestampMicrosNTZ:
			return JSON(p.Timestamp, iceberg.Timestamp(x)), nil
		case variant.TimestampNanos:
			return JSON(p.TimestampTzNs, iceberg.TimestampNano(x)), nil
		}
		return JSON(p.TimestampNs, iceberg.TimestampNano(x)), nil
	case variant.DecimalValue[decimal.Decimal32]:
		return decimalText(iceberg.Decimal{Val: decimal128.FromI64(int64(x.Value.(decimal.Decimal32))), Scale: int(x.Scale)}), nil
	case variant.DecimalValue[decimal.Decimal64]:
		return decimalText(iceberg.Decimal{Val: decimal128.FromI64(int64(x.Value.(decimal.Decimal64))), Scale: int(x.Scale)}), nil
	case variant.DecimalValue[decimal.Decimal128]:
		return decimalText(iceberg.Decimal{Val: x.Value.(decimal.Decimal128), Scale: int(x.Scale)}), nil
	case variant.ArrayValue:
		var parts []string
		for e := range x.Values() {
			part, err := variantJSON(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	case variant.ObjectValue:
		var parts []string
		for name, e := range x.Values() {
			part, err := variantJSON(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, stringText(name)+":"+part)
		}
		return "{" + strings.Join(parts, ",") + "}", nil
	default:
		return "", fmt.Errorf("variant of type %T: %w", x, ErrUnsupported)
	}
}
