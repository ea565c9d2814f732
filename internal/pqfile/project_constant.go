package pqfile

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// constantOf converts an Iceberg value to one value in a leaf's physical form.
// The value is an initial default as iceberg-go decodes it from JSON (the
// single-value serialization of the specification's appendix D; numbers may
// also be json.Number), or a partition value as DataFile.Partition gives it, of
// the type when it was written: an int for a long, a date for a timestamp.
// What cannot be converted exactly is ErrUnsupported.
func constantOf(t iceberg.Type, leaf *Node, value any) (Values, error) {
	v, err := constant{leaf: leaf, value: plainValue(value)}.of(t)
	if err != nil {
		return Values{}, fmt.Errorf("constant %v (%T) as %s: %w", value, value, t, err)
	}
	return v, nil
}

// plainValue strips iceberg-go's named types (TimeLiteral, StringLiteral, …)
// down to bool, int64, float64, string, []byte. Days and timestamps become a
// time.Time, for their unit is not always that of the column; float32,
// json.Number and struct types stay.
func plainValue(value any) any {
	switch v := value.(type) {
	case json.Number, time.Time, uuid.UUID, float32:
		return value
	case iceberg.Date:
		return time.Unix(int64(v)*86400, 0)
	case iceberg.DateLiteral:
		return time.Unix(int64(v)*86400, 0)
	case iceberg.Timestamp:
		return time.UnixMicro(int64(v))
	case iceberg.TimestampLiteral:
		return time.UnixMicro(int64(v))
	case iceberg.TimestampNano:
		return time.Unix(0, int64(v))
	case iceberg.TimestampNsLiteral:
		return time.Unix(0, int64(v))
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Float32:
		return float32(v.Float())
	case reflect.Float64:
		return v.Float()
	case reflect.String:
		return v.String()
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Bytes()
		}
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			b := make([]byte, v.Len())
			reflect.Copy(reflect.ValueOf(b), v)
			return b
		}
	}
	return value
}

// constant is a value on its way into a leaf's form.
type constant struct {
	leaf  *Node
	value any
}

func (c constant) of(t iceberg.Type) (Values, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		if b, ok := c.value.(bool); ok && c.leaf.Type == Boolean {
			v := Values{Type: Boolean, N: 1, Bools: []byte{0}}
			if b {
				v.Bools[0] = 1
			}
			return v, nil
		}
		return Values{}, ErrUnsupported
	case iceberg.Int32Type, iceberg.Int64Type:
		n, err := c.integer()
		if err != nil {
			return Values{}, err
		}
		return c.putInt(n)
	case iceberg.Float32Type, iceberg.Float64Type:
		return c.putFloat()
	case iceberg.DecimalType:
		return c.putDecimal(t.Scale())
	case iceberg.DateType:
		n, err := c.temporal(int64(86400*time.Second), "2006-01-02")
		if err != nil {
			return Values{}, err
		}
		return c.putInt(n)
	case iceberg.TimeType:
		n, err := c.timeOfDay()
		if err != nil {
			return Values{}, err
		}
		return c.putScaled(n, int64(time.Microsecond))
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return c.putTimestamp(int64(time.Microsecond))
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return c.putTimestamp(1)
	case iceberg.StringType:
		switch s := c.value.(type) {
		case string:
			return c.putBytes([]byte(s))
		case []byte:
			return c.putBytes(s)
		}
	case iceberg.UUIDType:
		return c.putUUID()
	case iceberg.BinaryType, iceberg.FixedType:
		switch b := c.value.(type) {
		case []byte:
			return c.putBytes(b)
		case string:
			raw, err := hex.DecodeString(b)
			if err != nil {
				return Values{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
			}
			return c.putBytes(raw)
		}
	}
	return Values{}, ErrUnsupported
}

// integer reads a whole number. A float64 from 2^53 on may be another number
// than the JSON said, so it is refused.
func (c constant) integer() (int64, error) {
	switch n := c.value.(type) {
	case int64:
		return n, nil
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), nil
		}
	case json.Number:
		if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: not an exact integer", ErrUnsupported)
}

// temporal reads a count of units (in nanoseconds) since the epoch, or text in
// a layout of package time.
func (c constant) temporal(unit int64, layout string) (int64, error) {
	var at time.Time
	switch v := c.value.(type) {
	case time.Time:
		at = v
	case string:
		parsed, err := time.Parse(layout, v)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		at = parsed
	default:
		return c.integer()
	}
	perSecond := int64(time.Second) / unit
	if perSecond == 0 {
		return floorDiv(at.Unix(), unit/int64(time.Second)), nil
	}
	n, ok := mulAdd(at.Unix(), perSecond, int64(at.Nanosecond())/unit)
	if !ok {
		return 0, fmt.Errorf("%w: out of range", ErrUnsupported)
	}
	return n, nil
}

// timeOfDay reads microseconds since midnight.
func (c constant) timeOfDay() (int64, error) {
	s, ok := c.value.(string)
	if !ok {
		return c.integer()
	}
	at, err := time.Parse("15:04:05", s)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return int64(at.Hour()*3600+at.Minute()*60+at.Second())*1e6 + int64(at.Nanosecond())/1e3, nil
}

// putTimestamp writes a timestamp whose Iceberg type counts units. A partition
// value made before a date column was promoted is a day.
func (c constant) putTimestamp(unit int64) (Values, error) {
	layout := "2006-01-02T15:04:05"
	if s, ok := c.value.(string); ok && strings.ContainsAny(s[min(len(s), len(layout)):], "+-Z") {
		layout += "Z07:00"
	}
	n, err := c.temporal(unit, layout)
	if err != nil {
		return Values{}, err
	}
	return c.putScaled(n, unit)
}

// putScaled writes a count of units in the leaf's own unit.
func (c constant) putScaled(n, unit int64) (Values, error) {
	own := unitNanos(c.leaf.Logical.Unit)
	switch {
	case own == 0 || c.leaf.Logical.Kind != LogicalTimestamp && c.leaf.Logical.Kind != LogicalTime:
		return Values{}, ErrUnsupported
	case own > unit:
		n = floorDiv(n, own/unit)
	case own < unit:
		var ok bool
		if n, ok = mulAdd(n, unit/own, 0); !ok {
			return Values{}, fmt.Errorf("%w: out of range", ErrUnsupported)
		}
	}
	return c.putInt(n)
}

func (c constant) putInt(n int64) (Values, error) {
	v := Values{Type: c.leaf.Type, Width: fixedWidth(c.leaf), N: 1}
	switch {
	case c.leaf.Type == Int32 && n == int64(int32(n)):
		v.Fixed = binary.LittleEndian.AppendUint32(nil, uint32(n))
	case c.leaf.Type == Int64:
		v.Fixed = binary.LittleEndian.AppendUint64(nil, uint64(n))
	default:
		return Values{}, fmt.Errorf("%w: out of range", ErrUnsupported)
	}
	return v, nil
}

func (c constant) putFloat() (Values, error) {
	v := Values{Type: c.leaf.Type, Width: fixedWidth(c.leaf), N: 1}
	var f float64
	switch n := c.value.(type) {
	case float32:
		f = float64(n)
	case float64:
		f = n
	case int64:
		f = float64(n)
	case json.Number:
		bits := 64
		if c.leaf.Type == Float {
			bits = 32
		}
		parsed, err := strconv.ParseFloat(n.String(), bits)
		if err != nil {
			return Values{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		f = parsed
	case string:
		switch n {
		case "NaN":
			f = math.NaN()
		case "Infinity":
			f = math.Inf(1)
		case "-Infinity":
			f = math.Inf(-1)
		default:
			return Values{}, ErrUnsupported
		}
	default:
		return Values{}, ErrUnsupported
	}
	switch c.leaf.Type {
	case Float:
		v.Fixed = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
	case Double:
		v.Fixed = binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	default:
		return Values{}, ErrUnsupported
	}
	return v, nil
}

func (c constant) putUUID() (Values, error) {
	switch u := c.value.(type) {
	case uuid.UUID:
		return c.putBytes(u[:])
	case []byte:
		return c.putBytes(u)
	case string:
		parsed, err := uuid.Parse(u)
		if err != nil {
			return Values{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		return c.putBytes(parsed[:])
	}
	return Values{}, ErrUnsupported
}

func (c constant) putBytes(b []byte) (Values, error) {
	v := Values{Type: c.leaf.Type, Width: fixedWidth(c.leaf), N: 1}
	switch {
	case c.leaf.Type == ByteArray && len(b) <= math.MaxInt32:
		v.Data, v.Offsets = append([]byte{}, b...), []uint32{0, uint32(len(b))}
	case c.leaf.Type == FixedLenByteArray && len(b) == c.leaf.TypeLength:
		v.Fixed = append([]byte{}, b...)
	default:
		return Values{}, fmt.Errorf("%w: %d bytes", ErrUnsupported, len(b))
	}
	return v, nil
}

// putDecimal writes the unscaled number in the leaf's form.
func (c constant) putDecimal(scale int) (Values, error) {
	n, err := c.unscaled(scale)
	if err != nil {
		return Values{}, err
	}
	switch c.leaf.Type {
	case Int32, Int64:
		if !n.IsInt64() {
			return Values{}, fmt.Errorf("%w: out of range", ErrUnsupported)
		}
		return c.putInt(n.Int64())
	case FixedLenByteArray:
		raw, ok := twosComplement(n, c.leaf.TypeLength)
		if !ok {
			return Values{}, fmt.Errorf("%w: out of range", ErrUnsupported)
		}
		return c.putBytes(raw)
	case ByteArray:
		raw, _ := twosComplement(n, n.BitLen()/8+1)
		return c.putBytes(raw)
	}
	return Values{}, ErrUnsupported
}

// unscaled reads a decimal as its digits without the point.
func (c constant) unscaled(scale int) (*big.Int, error) {
	switch d := c.value.(type) {
	case iceberg.Decimal:
		return rescale(new(big.Rat).SetInt(d.Val.BigInt()), scale-d.Scale)
	case iceberg.DecimalLiteral:
		return rescale(new(big.Rat).SetInt(d.Val.BigInt()), scale-d.Scale)
	case *big.Rat:
		return rescale(d, scale)
	case []byte:
		return fromTwosComplement(d), nil
	case string:
		return parseDecimal(d, scale)
	case json.Number:
		return parseDecimal(d.String(), scale)
	}
	return nil, ErrUnsupported
}

// parseDecimal reads plain or scientific text. Length and exponent are bounded
// before big.Rat expands them.
func parseDecimal(s string, scale int) (*big.Int, error) {
	if len(s) > 100 || strings.ContainsAny(s, "/xXpPbBoO_") {
		return nil, ErrUnsupported
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp < -100 || exp > 100 {
			return nil, ErrUnsupported
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, ErrUnsupported
	}
	return rescale(r, scale)
}

// rescale returns r * 10^scale if that is whole.
func rescale(r *big.Rat, scale int) (*big.Int, error) {
	if scale < -100 || scale > 100 {
		return nil, ErrUnsupported
	}
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil))
	if scale < 0 {
		power.Inv(power)
	}
	n := new(big.Rat).Mul(r, power)
	if !n.IsInt() {
		return nil, fmt.Errorf("%w: more digits than the scale", ErrUnsupported)
	}
	return n.Num(), nil
}

// twosComplement writes n big-endian in exactly width bytes.
func twosComplement(n *big.Int, width int) ([]byte, bool) {
	bits := n.BitLen()
	if n.Sign() < 0 {
		bits = new(big.Int).Not(n).BitLen()
	}
	if bits >= width*8 {
		return nil, false
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(width)*8))
	}
	return n.FillBytes(make([]byte, width)), true
}

func fromTwosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}
