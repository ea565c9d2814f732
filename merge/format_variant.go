package merge

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Variant values, after Parquet's variant encoding (version 1).
//
//	metadata: header | dictionary size | offsets (size+1) | names
//	          header = version (4 bits), sorted (1), -, offset size - 1 (2)
//	value:    header | data;  header = basic type (2 bits), type header (6)
const (
	variantVersion = 1
	// maxVariantDepth bounds the nesting of a value; deeper is refused.
	maxVariantDepth = 500
)

// Basic types of a variant value.
const (
	variantPrimitive = iota
	variantShortString
	variantObject
	variantArray
)

// variantReader writes one variant value as JSON. Every value is visited once
// in valid data and takes at least one byte, so visits are bounded by the
// value's length: offsets that point at one child many times cannot blow up.
type variantReader struct {
	names  []byte // the dictionary's strings
	ends   []byte // its offsets, (size+1) of width bytes
	size   int
	width  int
	visits int
}

// appendVariant appends the JSON text of a variant, the same forms as for
// columns: binary in hex, timestamps as text, NaN as a string.
func appendVariant(dst, metadata, value []byte) ([]byte, error) {
	var r variantReader
	if len(metadata) == 0 || metadata[0]&15 != variantVersion {
		return dst, fmt.Errorf("variant metadata: %w", ErrCorrupt)
	}
	r.width = int(metadata[0]>>6) + 1
	size, rest, ok := variantCount(metadata[1:], r.width)
	if !ok || size > len(rest)/r.width || (size+1)*r.width > len(rest) {
		return dst, fmt.Errorf("variant dictionary: %w", ErrCorrupt)
	}
	r.size, r.ends, r.names = size, rest[:(size+1)*r.width], rest[(size+1)*r.width:]
	r.visits = len(value)
	return r.append(dst, value, 0)
}

// variantCount reads a little-endian number of width bytes.
func variantCount(b []byte, width int) (n int, rest []byte, ok bool) {
	if len(b) < width {
		return 0, nil, false
	}
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | int(b[i])
	}
	return n, b[width:], true
}

// name returns string id of the dictionary.
func (r *variantReader) name(id int) ([]byte, error) {
	if id < r.size {
		from, _, _ := variantCount(r.ends[id*r.width:], r.width)
		to, _, _ := variantCount(r.ends[(id+1)*r.width:], r.width)
		if from <= to && to <= len(r.names) {
			return r.names[from:to], nil
		}
	}
	return nil, fmt.Errorf("variant field name %d: %w", id, ErrCorrupt)
}

// append appends the value at the start of b, which may go on after it.
func (r *variantReader) append(dst, b []byte, depth int) ([]byte, error) {
	if r.visits--; r.visits < 0 || len(b) == 0 || depth > maxVariantDepth {
		return dst, fmt.Errorf("variant value: %w", ErrCorrupt)
	}
	header := int(b[0] >> 2)
	switch b[0] & 3 {
	case variantShortString:
		if len(b)-1 < header {
			return dst, fmt.Errorf("variant string: %w", ErrCorrupt)
		}
		return appendJSONString(dst, b[1:1+header]), nil
	case variantObject:
		return r.object(dst, b[1:], header, depth)
	case variantArray:
		return r.array(dst, b[1:], header, depth)
	}
	return appendVariantPrimitive(dst, b[1:], header)
}

// count reads the number of entries of an object or array.
func (r *variantReader) count(b []byte, large bool) (int, []byte, error) {
	width := 1
	if large {
		width = 4
	}
	n, rest, ok := variantCount(b, width)
	if !ok || n > len(rest) {
		return 0, nil, fmt.Errorf("variant size: %w", ErrCorrupt)
	}
	return n, rest, nil
}

// object appends an object: count, field ids, offsets (count+1), values.
func (r *variantReader) object(dst, b []byte, header, depth int) ([]byte, error) {
	offsetWidth, idWidth := header&3+1, header>>2&3+1
	n, b, err := r.count(b, header&16 != 0)
	if err != nil {
		return dst, err
	}
	if len(b) < n*idWidth+(n+1)*offsetWidth {
		return dst, fmt.Errorf("variant object: %w", ErrCorrupt)
	}
	ids, offsets, values := b[:n*idWidth], b[n*idWidth:], b[n*idWidth+(n+1)*offsetWidth:]
	dst = append(dst, '{')
	for i := range n {
		id, _, _ := variantCount(ids[i*idWidth:], idWidth)
		name, err := r.name(id)
		if err != nil {
			return dst, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, name), ':')
		if dst, err = r.child(dst, offsets[i*offsetWidth:], offsetWidth, values, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// array appends an array: count, offsets (count+1), values.
func (r *variantReader) array(dst, b []byte, header, depth int) ([]byte, error) {
	width := header&3 + 1
	n, b, err := r.count(b, header&4 != 0)
	if err != nil {
		return dst, err
	}
	if len(b) < (n+1)*width {
		return dst, fmt.Errorf("variant array: %w", ErrCorrupt)
	}
	offsets, values := b, b[(n+1)*width:]
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = r.child(dst, offsets[i*width:], width, values, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// child appends the value at the offset that offsets begins with.
func (r *variantReader) child(dst, offsets []byte, width int, values []byte, depth int) ([]byte, error) {
	at, _, _ := variantCount(offsets, width)
	if at >= len(values) {
		return dst, fmt.Errorf("variant offset: %w", ErrCorrupt)
	}
	return r.append(dst, values[at:], depth+1)
}

// Primitive types of a variant value.
const (
	variantNull = iota
	variantTrue
	variantFalse
	variantInt8
	variantInt16
	variantInt32
	variantInt64
	variantDouble
	variantDecimal4
	variantDecimal8
	variantDecimal16
	variantDate
	variantTimestampTZ
	variantTimestamp
	variantFloat
	variantBinary
	variantString
	variantTime
	variantTimestampTZNanos
	variantTimestampNanos
	variantUUID
)

// variantWidth returns the bytes of a primitive type (of the length alone for
// binary and string), or false for a type of a later version.
func variantWidth(kind int) (int, bool) {
	switch kind {
	case variantNull, variantTrue, variantFalse:
		return 0, true
	case variantInt8:
		return 1, true
	case variantInt16:
		return 2, true
	case variantInt32, variantDate, variantFloat, variantBinary, variantString:
		return 4, true
	case variantInt64, variantDouble, variantTimestampTZ, variantTimestamp, variantTime, variantTimestampTZNanos, variantTimestampNanos:
		return 8, true
	case variantDecimal4:
		return 5, true
	case variantDecimal8:
		return 9, true
	case variantDecimal16:
		return 17, true
	case variantUUID:
		return 16, true
	}
	return 0, false
}

// appendVariantPrimitive appends a primitive value.
func appendVariantPrimitive(dst, b []byte, kind int) ([]byte, error) {
	width, ok := variantWidth(kind)
	if !ok {
		return dst, fmt.Errorf("variant type %d: %w", kind, ErrUnsupported)
	}
	if len(b) < width {
		return dst, fmt.Errorf("variant value is cut short: %w", ErrCorrupt)
	}
	b, rest := b[:width], b[width:]
	switch kind {
	case variantNull:
		return append(dst, "null"...), nil
	case variantTrue:
		return append(dst, "true"...), nil
	case variantFalse:
		return append(dst, "false"...), nil
	case variantInt8:
		return appendInt(dst, int64(int8(b[0]))), nil
	case variantInt16:
		return appendInt(dst, int64(int16(binary.LittleEndian.Uint16(b)))), nil
	case variantInt32:
		return appendInt(dst, int64(int32(le32(b, 0)))), nil
	case variantInt64:
		return appendInt(dst, int64(le64(b, 0))), nil
	case variantDouble:
		return appendJSONDouble(dst, math.Float64frombits(le64(b, 0)), 64), nil
	case variantFloat:
		return appendJSONDouble(dst, float64(math.Float32frombits(le32(b, 0))), 32), nil
	case variantDecimal4, variantDecimal8, variantDecimal16:
		return appendVariantDecimal(dst, b)
	case variantBinary, variantString:
		n := int(le32(b, 0))
		if n > len(rest) {
			return dst, fmt.Errorf("variant string: %w", ErrCorrupt)
		}
		if kind == variantString {
			return appendJSONString(dst, rest[:n]), nil
		}
		dst = appendHex(append(dst, '"'), rest[:n])
	case variantDate:
		dst = appendDate(append(dst, '"'), int64(int32(le32(b, 0))))
	case variantTime:
		dst = appendClock(append(dst, '"'), int64(le64(b, 0)), 1e6)
	case variantTimestamp, variantTimestampTZ:
		dst = appendTimestamp(append(dst, '"'), int64(le64(b, 0)), 1e6, kind == variantTimestampTZ)
	case variantTimestampNanos, variantTimestampTZNanos:
		dst = appendTimestamp(append(dst, '"'), int64(le64(b, 0)), 1e9, kind == variantTimestampTZNanos)
	case variantUUID:
		dst = appendUUID(append(dst, '"'), b)
	}
	return append(dst, '"'), nil
}

// appendVariantDecimal appends a scale byte and a little-endian number.
func appendVariantDecimal(dst, b []byte) ([]byte, error) {
	scale := int(b[0])
	if scale > maxDecimalDigits {
		return dst, fmt.Errorf("variant decimal scale %d: %w", scale, ErrCorrupt)
	}
	var big [16]byte
	n := len(b) - 1
	for i := range n {
		big[n-1-i] = b[1+i]
	}
	return appendDecimalBytes(dst, big[:n], scale)
}
