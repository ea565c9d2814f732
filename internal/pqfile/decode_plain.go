package pqfile

import (
	"encoding/binary"
	"fmt"
)

// fixedWidth is the bytes of one value, 0 for booleans and byte arrays.
func fixedWidth(n *Node) int {
	switch n.Type {
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedLenByteArray:
		return n.TypeLength
	}
	return 0
}

// plain decodes n PLAIN values. Fixed values alias src.
func (b *buffers) plain(node *Node, src []byte, n int) (Values, error) {
	v := Values{Type: node.Type, N: n}
	switch node.Type {
	case Boolean:
		if len(src) < (n+7)/8 {
			return Values{}, errShort(n)
		}
		b.bools = grow(b.bools, n)
		unpackBits(b.bools, src)
		v.Bools = b.bools
	case ByteArray:
		if err := b.plainByteArrays(src, n); err != nil {
			return Values{}, err
		}
		v.Data, v.Offsets = b.data, b.offsets
	case Int32, Int64, Int96, Float, Double, FixedLenByteArray:
		v.Width = fixedWidth(node)
		size := int64(n) * int64(v.Width)
		if v.Width <= 0 && n > 0 || size > int64(len(src)) {
			return Values{}, errShort(n)
		}
		v.Fixed = src[:size:size]
	default:
		return Values{}, fmt.Errorf("%w: physical type %d", ErrUnsupported, node.Type)
	}
	return v, nil
}

// shortString is the length up to which a value is copied as 16 bytes, longString
// that up to which it is copied as 64.
const (
	shortString = 16
	longString  = 64
)

// plainByteArrays moves values, each with its length (4 bytes) in front, close
// together into b.data.
func (b *buffers) plainByteArrays(src []byte, n int) error {
	if n > len(src)/4 {
		return errShort(n)
	}
	b.data = grow(b.data, len(src)+longString)
	b.offsets = grow(b.offsets, n+1)
	data, offsets := b.data, b.offsets
	offsets[0] = 0
	end := 0
	for i := 1; i < len(offsets); i++ {
		if len(src) < 4 {
			return errShort(n)
		}
		size := int(binary.LittleEndian.Uint32(src))
		src = src[4:]
		switch {
		case size <= shortString && len(src) >= shortString:
			*(*[shortString]byte)(data[end:]) = [shortString]byte(src)
		case size <= longString && len(src) >= longString:
			d, s := (*[longString]byte)(data[end:]), (*[longString]byte)(src)
			*(*[16]byte)(d[:]) = [16]byte(s[:])
			*(*[16]byte)(d[16:]) = [16]byte(s[16:])
			*(*[16]byte)(d[32:]) = [16]byte(s[32:])
			*(*[16]byte)(d[48:]) = [16]byte(s[48:])
		case size <= len(src):
			copy(data[end:], src[:size])
		default:
			return errShort(n)
		}
		src = src[size:]
		end += size
		offsets[i] = uint32(end)
	}
	b.data = data[:end]
	return nil
}
