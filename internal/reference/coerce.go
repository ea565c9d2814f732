package reference

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// coerce understands a stored Parquet value as a type, which it may have been
// promoted to since.
func coerce(typ iceberg.Type, s scalar) (any, error) {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		if v, ok := s.v.(bool); ok {
			return v, nil
		}
	case iceberg.Int32Type:
		if n, ok := s.integer(); ok && int64(int32(n)) == n {
			return int32(n), nil
		}
	case iceberg.Int64Type:
		if n, ok := s.integer(); ok {
			return n, nil
		}
	case iceberg.Float32Type:
		if v, ok := s.v.(float32); ok {
			return v, nil
		}
	case iceberg.Float64Type:
		switch v := s.v.(type) {
		case float32:
			return float64(v), nil
		case float64:
			return v, nil
		}
	case iceberg.DecimalType:
		return s.decimal(t)
	case iceberg.DateType:
		if v, ok := s.v.(int32); ok {
			return iceberg.Date(v), nil
		}
	case iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return s.temporal(typ)
	case iceberg.StringType:
		if v, ok := s.v.([]byte); ok {
			return string(v), nil
		}
	case iceberg.UUIDType:
		if v, ok := s.v.([]byte); ok && len(v) == 16 {
			return uuid.UUID(v), nil
		}
	case iceberg.FixedType:
		if v, ok := s.v.([]byte); ok && len(v) == t.Len() {
			return v, nil
		}
	case iceberg.BinaryType, iceberg.GeometryType, iceberg.GeographyType:
		if v, ok := s.v.([]byte); ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("stored %T of column %s as %s: %w", s.v, s.from.name, typ, ErrUnsupported)
}

func (s scalar) integer() (int64, bool) {
	switch v := s.v.(type) {
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// decimal reads the unscaled number of any stored form.
func (s scalar) decimal(t iceberg.DecimalType) (any, error) {
	if scale := int(s.from.stored.DecimalMetadata().Scale); scale != t.Scale() {
		return nil, fmt.Errorf("scale %d of column %s as %s: %w", scale, s.from.name, t, ErrUnsupported)
	}
	n := new(big.Int)
	if v, ok := s.integer(); ok {
		n.SetInt64(v)
	} else if b, ok := s.v.([]byte); ok {
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 { // two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	} else {
		return nil, fmt.Errorf("stored %T of column %s as %s: %w", s.v, s.from.name, t, ErrUnsupported)
	}
	if n.BitLen() > 127 {
		return nil, fmt.Errorf("decimal of column %s is too large: %w", s.from.name, ErrCorrupt)
	}
	return iceberg.Decimal{Val: decimal128.FromBigInt(n), Scale: t.Scale()}, nil
}

// temporal reads a time or timestamp in any unit, or a date as a timestamp.
func (s scalar) temporal(typ iceberg.Type) (any, error) {
	var nanos *big.Int
	if v, ok := s.v.(parquet.Int96); ok {
		const unixEpoch = 2_440_588 // its Julian day
		day := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - unixEpoch
		nanos = new(big.Int).Mul(big.NewInt(day), big.NewInt(86_400_000_000_000))
		nanos.Add(nanos, new(big.Int).SetUint64(binary.LittleEndian.Uint64(v[:8])))
	} else {
		n, ok := s.integer()
		if !ok {
			return nil, fmt.Errorf("stored %T of column %s as %s: %w", s.v, s.from.name, typ, ErrUnsupported)
		}
		nanos = new(big.Int).Mul(big.NewInt(n), big.NewInt(s.nanosPerUnit()))
	}
	micros := new(big.Int).Div(nanos, big.NewInt(1000)) // rounds down
	switch typ.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		if nanos.IsInt64() {
			return iceberg.TimestampNano(nanos.Int64()), nil
		}
	case iceberg.TimeType:
		if micros.IsInt64() {
			return iceberg.Time(micros.Int64()), nil
		}
	default:
		if micros.IsInt64() {
			return iceberg.Timestamp(micros.Int64()), nil
		}
	}
	return nil, fmt.Errorf("value of column %s does not fit %s: %w", s.from.name, typ, ErrCorrupt)
}

// nanosPerUnit is the length of the stored unit; microseconds if none is told.
func (s scalar) nanosPerUnit() int64 {
	unit := schema.TimeUnitMicros
	switch l := s.from.stored.LogicalType().(type) {
	case schema.TimestampLogicalType:
		unit = l.TimeUnit()
	case schema.TimeLogicalType:
		unit = l.TimeUnit()
	case schema.DateLogicalType:
		return 86_400_000_000_000
	}
	switch unit {
	case schema.TimeUnitMillis:
		return 1_000_000
	case schema.TimeUnitNanos:
		return 1
	}
	return 1000
}
