package pqfile

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Variant encoding, version 1 (parquet-format, VariantEncoding.md). A value is a
// header byte, whose two low bits are the basic type, and data:
//
//	primitive     header: type << 2          data: by type, little-endian
//	short string  header: length << 2 | 1    data: the string
//	object        header: large << 6 | (id bytes - 1) << 4 | (offset bytes - 1) << 2 | 2
//	              data: count (1 byte, large: 4), ids, count + 1 offsets, values
//	array         header: large << 4 | (offset bytes - 1) << 2 | 3
//	              data: count (1 byte, large: 4), count + 1 offsets, values
//
// Metadata is the dictionary of field names:
//
//	version (4 bits) | sorted (1) | - | offset bytes - 1 (2), count, count + 1 offsets, names
const (
	variantBasicShort  = 1
	variantBasicObject = 2
	variantBasicArray  = 3
	maxShortString     = 63
)

// Primitive types of a variant.
const (
	variantTrue          = 1
	variantFalse         = 2
	variantInt8          = 3
	variantInt16         = 4
	variantInt32         = 5
	variantInt64         = 6
	variantDouble        = 7
	variantDecimal4      = 8
	variantDecimal8      = 9
	variantDecimal16     = 10
	variantDate          = 11
	variantTimestampTz   = 12
	variantTimestamp     = 13
	variantFloat         = 14
	variantBinary        = 15
	variantString        = 16
	variantTime          = 17
	variantTimestampTzNs = 18
	variantTimestampNs   = 19
	variantUUID          = 20
)

// variantEncode appends the variant of a value as Parquet stores it: the PLAIN
// bytes, one byte for a boolean, and no length before a byte array.
type variantEncode func(dst, value []byte) ([]byte, error)

// variantEncoding tells how values of a shredded leaf are encoded.
func variantEncoding(n *Node) (variantEncode, error) {
	plain := func(kind byte) (variantEncode, error) {
		return func(dst, v []byte) ([]byte, error) { return append(append(dst, kind<<2), v...), nil }, nil
	}
	switch l := n.Logical; {
	case l.Kind == LogicalDecimal:
		return decimalEncoding(n)
	case l.Kind == LogicalNone || l.Kind == LogicalInteger && l.Signed:
		switch {
		case n.Type == Boolean:
			return encodeBool, nil
		case n.Type == Int32 && l.BitWidth == 8:
			return func(dst, v []byte) ([]byte, error) { return append(dst, variantInt8<<2, v[0]), nil }, nil
		case n.Type == Int32 && l.BitWidth == 16:
			return func(dst, v []byte) ([]byte, error) { return append(dst, variantInt16<<2, v[0], v[1]), nil }, nil
		case n.Type == Int32:
			return plain(variantInt32)
		case n.Type == Int64:
			return plain(variantInt64)
		case n.Type == Float:
			return plain(variantFloat)
		case n.Type == Double:
			return plain(variantDouble)
		case n.Type == ByteArray:
			return func(dst, v []byte) ([]byte, error) { return appendLong(dst, variantBinary, v), nil }, nil
		}
	case l.Kind == LogicalString && n.Type == ByteArray:
		return encodeString, nil
	case l.Kind == LogicalDate && n.Type == Int32:
		return plain(variantDate)
	case l.Kind == LogicalTime && n.Type == Int64 && l.Unit == Micros:
		return plain(variantTime)
	case l.Kind == LogicalTimestamp && n.Type == Int64 && l.Unit != Millis:
		return plain(timestampKind(l))
	case l.Kind == LogicalUUID && n.Type == FixedLenByteArray && n.TypeLength == 16:
		return plain(variantUUID)
	}
	return nil, fmt.Errorf("%w: variant stored as %s", ErrUnsupported, n.typeName())
}

func timestampKind(l LogicalType) byte {
	switch {
	case l.Unit == Nanos && l.UTC:
		return variantTimestampTzNs
	case l.Unit == Nanos:
		return variantTimestampNs
	case l.UTC:
		return variantTimestampTz
	}
	return variantTimestamp
}

func encodeBool(dst, v []byte) ([]byte, error) {
	if v[0] != 0 {
		return append(dst, variantTrue<<2), nil
	}
	return append(dst, variantFalse<<2), nil
}

func encodeString(dst, v []byte) ([]byte, error) {
	if len(v) <= maxShortString {
		return append(append(dst, byte(len(v))<<2|variantBasicShort), v...), nil
	}
	return appendLong(dst, variantString, v), nil
}

func appendLong(dst []byte, kind byte, v []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, kind<<2), uint32(len(v)))
	return append(dst, v...)
}

// decimalEncoding writes scale and unscaled value in 4, 8 or 16 bytes, as wide
// as it is stored.
func decimalEncoding(n *Node) (variantEncode, error) {
	scale := byte(n.Logical.Scale)
	if n.Logical.Scale < 0 || n.Logical.Scale > 38 {
		return nil, fmt.Errorf("%w: variant stored as %s", ErrUnsupported, n.typeName())
	}
	switch n.Type {
	case Int32:
		return func(dst, v []byte) ([]byte, error) { return append(append(dst, variantDecimal4<<2, scale), v...), nil }, nil
	case Int64:
		return func(dst, v []byte) ([]byte, error) { return append(append(dst, variantDecimal8<<2, scale), v...), nil }, nil
	case ByteArray, FixedLenByteArray:
		return func(dst, v []byte) ([]byte, error) {
			fill := byte(0)
			if len(v) > 0 && v[0]&0x80 != 0 {
				fill = 0xff
			}
			for ; len(v) > 16; v = v[1:] {
				if v[0] != fill || (v[1]^fill)&0x80 != 0 {
					return dst, fmt.Errorf("%w: decimal of more than 16 bytes", ErrCorrupt)
				}
			}
			dst = append(dst, variantDecimal16<<2, scale)
			for i := range 16 {
				if i < len(v) {
					dst = append(dst, v[len(v)-1-i])
				} else {
					dst = append(dst, fill)
				}
			}
			return dst, nil
		}, nil
	}
	return nil, fmt.Errorf("%w: variant stored as %s", ErrUnsupported, n.typeName())
}

// variantField is a field of an object in the making: its id in the dictionary,
// its name, and its encoded value, data[from:to].
type variantField struct {
	id       int
	name     string
	from, to int
}

// variantBuilder gathers the children of one object or array.
type variantBuilder struct {
	fields []variantField
	data   []byte
}

func (b *variantBuilder) reset() { b.fields, b.data = b.fields[:0], b.data[:0] }

// appendObject appends the fields, which must have different names.
func (b *variantBuilder) appendObject(dst []byte) ([]byte, error) {
	slices.SortStableFunc(b.fields, func(x, y variantField) int { return strings.Compare(x.name, y.name) })
	largest := 0
	for i, f := range b.fields {
		if i > 0 && f.name == b.fields[i-1].name {
			return dst, fmt.Errorf("%w: variant object with two fields %q", ErrCorrupt, f.name)
		}
		largest = max(largest, f.id)
	}
	idBytes, offsetBytes := byteLength(largest), byteLength(len(b.data))
	large := byte(0)
	if len(b.fields) > 255 {
		large = 1
	}
	dst = append(dst, large<<6|byte(idBytes-1)<<4|byte(offsetBytes-1)<<2|variantBasicObject)
	dst = b.appendCount(dst, large)
	for _, f := range b.fields {
		dst = appendUint(dst, f.id, idBytes)
	}
	return b.appendValues(dst, offsetBytes), nil
}

// appendArray appends the elements in order.
func (b *variantBuilder) appendArray(dst []byte) []byte {
	offsetBytes := byteLength(len(b.data))
	large := byte(0)
	if len(b.fields) > 255 {
		large = 1
	}
	dst = append(dst, large<<4|byte(offsetBytes-1)<<2|variantBasicArray)
	return b.appendValues(b.appendCount(dst, large), offsetBytes)
}

func (b *variantBuilder) appendCount(dst []byte, large byte) []byte {
	return appendUint(dst, len(b.fields), 1+3*int(large))
}

// appendValues appends offsets and values in the fields' order.
func (b *variantBuilder) appendValues(dst []byte, offsetBytes int) []byte {
	at := 0
	for _, f := range b.fields {
		dst = appendUint(dst, at, offsetBytes)
		at += f.to - f.from
	}
	dst = appendUint(dst, at, offsetBytes)
	for _, f := range b.fields {
		dst = append(dst, b.data[f.from:f.to]...)
	}
	return dst
}

// byteLength is how many bytes hold n, at least one.
func byteLength(n int) int { return max(1, (bits.Len(uint(n))+7)/8) }

func appendUint(dst []byte, n, width int) []byte {
	for range width {
		dst = append(dst, byte(n))
		n >>= 8
	}
	return dst
}

// takeUint reads a number of width bytes off b.
func takeUint(b []byte, width int) (n int, rest []byte, ok bool) {
	if len(b) < width {
		return 0, nil, false
	}
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | int(b[i])
	}
	return n, b[width:], true
}

// variantNames is a variant's dictionary.
type variantNames struct {
	metadata []byte // what it was read from
	names    []string
	ids      map[string]int
}

// read parses metadata unless it is the one read last.
func (d *variantNames) read(metadata []byte) error {
	if d.ids != nil && string(metadata) == string(d.metadata) {
		return nil
	}
	bad := fmt.Errorf("%w: variant metadata", ErrCorrupt)
	if len(metadata) == 0 || metadata[0]&15 != 1 {
		return bad
	}
	width := int(metadata[0]>>6) + 1
	n, rest, ok := takeUint(metadata[1:], width)
	if !ok || n > len(rest)/width || len(rest) < (n+1)*width {
		return bad
	}
	text := rest[(n+1)*width:]
	d.names, d.ids = d.names[:0], make(map[string]int, n)
	for i := range n {
		from, _, _ := takeUint(rest[i*width:], width)
		to, _, _ := takeUint(rest[(i+1)*width:], width)
		if from > to || to > len(text) {
			return bad
		}
		name := string(text[from:to])
		d.names = append(d.names, name)
		if _, twice := d.ids[name]; !twice {
			d.ids[name] = i
		}
	}
	d.metadata = append(d.metadata[:0], metadata...)
	return nil
}

// addObject adds the fields of an encoded object to b.
func (d *variantNames) addObject(b *variantBuilder, value []byte) error {
	bad := fmt.Errorf("%w: variant value beside an object's fields", ErrCorrupt)
	if len(value) == 0 || value[0]&3 != variantBasicObject {
		return bad
	}
	header := int(value[0] >> 2)
	offsetBytes, idBytes := header&3+1, header>>2&3+1
	n, rest, ok := takeUint(value[1:], 1+3*(header>>4&1))
	if !ok || n > len(rest) || len(rest) < n*idBytes+(n+1)*offsetBytes {
		return bad
	}
	ids, offsets, data := rest[:n*idBytes], rest[n*idBytes:], rest[n*idBytes+(n+1)*offsetBytes:]
	ends := make([]int, n+1)
	for i := range ends {
		if ends[i], _, _ = takeUint(offsets[i*offsetBytes:], offsetBytes); ends[i] > len(data) {
			return bad
		}
	}
	starts := slices.Clone(ends[:n])
	slices.Sort(ends)
	left := len(data) // values do not overlap, so that they are no longer than data
	for i, from := range starts {
		id, _, _ := takeUint(ids[i*idBytes:], idBytes)
		next, _ := slices.BinarySearch(ends, from+1)
		if next == len(ends) || id >= len(d.names) {
			return bad
		}
		if left -= ends[next] - from; left < 0 {
			return bad
		}
		b.fields = append(b.fields, variantField{id, d.names[id], len(b.data), len(b.data) + ends[next] - from})
		b.data = append(b.data, data[from:ends[next]]...)
	}
	return nil
}
