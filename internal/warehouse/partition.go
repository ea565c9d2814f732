package warehouse

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// partitionOf decodes a partition record into the Go types that iceberg-go gives
// its values; days are the partition fields of a day transform, whose values
// old writers stored as plain ints. Fields without an id are left out.
func (s *manifestSchema) partitionOf(raw []byte, days map[int]bool) (map[int]any, error) {
	if len(s.partition) == 0 {
		return nil, nil
	}
	values := make(map[int]any, len(s.partition))
	c := cursor{buf: raw}
	for i := range s.partition {
		f := &s.partition[i]
		v, err := c.value(f.typ)
		if err != nil {
			return nil, fmt.Errorf("partition field %s: %w", f.name, err)
		}
		if day, ok := v.(int32); ok && days[f.id] {
			v = iceberg.Date(day)
		}
		if f.id >= 0 {
			values[f.id] = v
		}
	}
	return values, nil
}

// value reads a primitive value.
func (c *cursor) value(t *avroType) (any, error) {
	t = c.option(t)
	switch t.kind {
	case avroNull:
		return nil, nil
	case avroBool:
		b := c.take(1)
		return len(b) == 1 && b[0] != 0, nil
	case avroInt:
		v := c.long()
		if t.name == "int" && v != int64(int32(v)) { // cut off, it would be another partition's
			return nil, fmt.Errorf("int of %d", v)
		}
		return intValue(v, t), nil
	case avroFloat:
		if b := c.take(4); b != nil {
			return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
		}
		return nil, nil
	case avroDouble:
		if b := c.take(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
		}
		return nil, nil
	case avroBytes:
		return bytesValue(c.bytes(), t)
	case avroFixed:
		return bytesValue(c.take(t.size), t)
	}
	return nil, fmt.Errorf("type %s", t.name)
}

func intValue(v int64, t *avroType) any {
	switch t.logical {
	case "date":
		return iceberg.Date(v)
	case "time-millis":
		return iceberg.Time(v * 1000)
	case "time-micros":
		return iceberg.Time(v)
	case "timestamp-millis", "local-timestamp-millis":
		return iceberg.Timestamp(v * 1000)
	case "timestamp-micros", "local-timestamp-micros":
		return iceberg.Timestamp(v)
	case "timestamp-nanos", "local-timestamp-nanos":
		return iceberg.TimestampNano(v)
	}
	if t.name == "int" {
		return int32(v)
	}
	return v
}

func bytesValue(b []byte, t *avroType) (any, error) {
	switch {
	case t.logical == "decimal" && t.name != "string":
		if len(b) == 0 || len(b) > 16 {
			return nil, fmt.Errorf("decimal of %d bytes", len(b))
		}
		return iceberg.DecimalLiteral{Scale: t.scale, Val: bigEndian(b)}, nil
	case t.logical == "uuid" && len(b) == 16:
		return uuid.UUID(b), nil
	case t.name == "string":
		return string(b), nil
	}
	return append([]byte{}, b...), nil
}

// bigEndian reads a two's complement number of up to 16 bytes.
func bigEndian(b []byte) decimal128.Num {
	var wide [16]byte
	if b[0]&0x80 != 0 {
		for i := range wide {
			wide[i] = 0xff
		}
	}
	copy(wide[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(wide[:8])), binary.BigEndian.Uint64(wide[8:]))
}
