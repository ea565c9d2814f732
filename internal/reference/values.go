package reference

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Record is a row or struct value by field id.
type Record map[int]any

// List is a list value.
type List []any

// Entry is an entry of a Map.
type Entry struct{ Key, Value any }

// Map is a map value in stored order.
type Map []Entry

// Equal compares two values: floats by bits but for NaNs, which are one; maps
// and lists in order.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case float32:
		b, ok := b.(float32)
		return ok && (a != a && b != b || math.Float32bits(a) == math.Float32bits(b))
	case float64:
		b, ok := b.(float64)
		return ok && (a != a && b != b || math.Float64bits(a) == math.Float64bits(b))
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	case Record:
		b, ok := b.(Record)
		if !ok || len(a) != len(b) {
			return false
		}
		for id, v := range a {
			w, ok := b[id]
			if !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, Equal)
	case Map:
		b, ok := b.(Map)
		return ok && slices.EqualFunc(a, b, func(x, y Entry) bool { return Equal(x.Key, y.Key) && Equal(x.Value, y.Value) })
	}
	return a == b
}

// widen brings int to long and float to double, so that values written before
// and after a promotion compare.
func widen(v any) any {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	}
	return v
}

// constant brings a partition value, as a DataFile holds it, to a value of a
// type, which may have been promoted since.
func constant(typ iceberg.Type, v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case iceberg.Literal:
		return constant(typ, v.Any())
	case [16]byte:
		return uuid.UUID(v), nil
	case int32:
		switch typ.(type) {
		case iceberg.Int32Type:
			return v, nil
		case iceberg.Int64Type:
			return int64(v), nil
		case iceberg.DateType:
			return iceberg.Date(v), nil
		}
	case int64:
		switch typ.(type) {
		case iceberg.Int64Type:
			return v, nil
		case iceberg.TimeType:
			return iceberg.Time(v), nil
		case iceberg.TimestampType, iceberg.TimestampTzType:
			return iceberg.Timestamp(v), nil
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return iceberg.TimestampNano(v), nil
		}
	case float32:
		if _, double := typ.(iceberg.Float64Type); double {
			return float64(v), nil
		}
		return v, nil
	case iceberg.Decimal:
		if t, ok := typ.(iceberg.DecimalType); ok && t.Scale() == v.Scale {
			return v, nil
		}
	case iceberg.Date:
		const day = 24 * 60 * 60
		switch typ.(type) {
		case iceberg.TimestampType:
			return iceberg.Timestamp(int64(v) * day * 1e6), nil
		case iceberg.TimestampNsType:
			return iceberg.TimestampNano(int64(v) * day * 1e9), nil
		}
		return v, nil
	case bool, float64, string, uuid.UUID, []byte, iceberg.Time, iceberg.Timestamp, iceberg.TimestampNano:
		return v, nil
	}
	return nil, fmt.Errorf("partition value %v (%T) of type %s: %w", v, v, typ, ErrUnsupported)
}
