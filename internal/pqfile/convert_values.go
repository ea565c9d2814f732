package pqfile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// convert appends to dst the values of src, which are not dictionary-coded, in
// the view's form. to is the view's leaf.
func (c *Conversion) convert(dst, src *Values, to *Node) error {
	dst.Type, dst.Width = to.Type, c.Width
	ok := true
	switch c.Kind {
	case ConvertInt32ToInt64:
		dst.Fixed = extend(dst.Fixed, src.N*8)
		out := dst.Fixed[len(dst.Fixed)-src.N*8:]
		for i := range src.N {
			binary.LittleEndian.PutUint64(out[i*8:], uint64(int64(int32(binary.LittleEndian.Uint32(src.Fixed[i*4:])))))
		}
	case ConvertInt64ToInt32:
		dst.Fixed = extend(dst.Fixed, src.N*4)
		out := dst.Fixed[len(dst.Fixed)-src.N*4:]
		for i := range src.N {
			n := int64(binary.LittleEndian.Uint64(src.Fixed[i*8:]))
			ok = ok && n == int64(int32(n))
			binary.LittleEndian.PutUint32(out[i*4:], uint32(n))
		}
	case ConvertFloatToDouble:
		dst.Fixed = extend(dst.Fixed, src.N*8)
		out := dst.Fixed[len(dst.Fixed)-src.N*8:]
		for i := range src.N {
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(src.Fixed[i*4:])))
			binary.LittleEndian.PutUint64(out[i*8:], math.Float64bits(f))
		}
	case ConvertInt96ToMicros:
		ok = dst.appendInt96(src, 86400e6, 1000)
	case ConvertInt96ToNanos:
		ok = dst.appendInt96(src, 86400e9, 1)
	case ConvertScale:
		ok = c.scale(dst, src, to)
	case ConvertDecimal:
		ok = c.decimal(dst, src, to)
	case ConvertBytes:
		ok = dst.appendBytes(src)
	default:
		return fmt.Errorf("internal error: conversion %d", c.Kind)
	}
	if !ok {
		return fmt.Errorf("%w: a value of %s does not fit %s", ErrCorrupt, c.From.typeName(), to.typeName())
	}
	dst.N += src.N
	return nil
}

// extend lengthens b by n bytes, which are not cleared.
func extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, max(2*cap(b), len(b)+n)), b...)
	}
	return b[:len(b)+n]
}

// appendInt96 appends INT96 timestamps as whole units:
//
//	| nanoseconds of the day, int64 LE | Julian day, int32 LE |
func (dst *Values) appendInt96(src *Values, unitsPerDay, nanosPerUnit int64) bool {
	dst.Fixed = extend(dst.Fixed, src.N*8)
	out := dst.Fixed[len(dst.Fixed)-src.N*8:]
	all := true
	for i := range src.N {
		v := src.Fixed[i*12:]
		nanos := int64(binary.LittleEndian.Uint64(v))
		day := int64(int32(binary.LittleEndian.Uint32(v[8:])))
		n, ok := mulAdd(day-julianEpoch, unitsPerDay, floorDiv(nanos, nanosPerUnit))
		all = all && ok
		binary.LittleEndian.PutUint64(out[i*8:], uint64(n))
	}
	return all
}

// scale appends times in the unit of to, an INT64.
func (c *Conversion) scale(dst, src *Values, to *Node) bool {
	from, unit := unitNanos(c.From.Logical.Unit), unitNanos(to.Logical.Unit)
	if c.From.Logical.Kind == LogicalDate {
		from = 86400e9
	}
	dst.Fixed = extend(dst.Fixed, src.N*8)
	out := dst.Fixed[len(dst.Fixed)-src.N*8:]
	all := true
	for i := range src.N {
		var n int64
		if c.From.Type == Int32 {
			n = int64(int32(binary.LittleEndian.Uint32(src.Fixed[i*4:])))
		} else {
			n = int64(binary.LittleEndian.Uint64(src.Fixed[i*8:]))
		}
		if from < unit {
			n = floorDiv(n, unit/from)
		} else {
			var ok bool
			n, ok = mulAdd(n, from/unit, 0)
			all = all && ok
		}
		binary.LittleEndian.PutUint64(out[i*8:], uint64(n))
	}
	return all
}

// decimal appends unscaled numbers in the form of to: little-endian in INT32
// and INT64, else big-endian two's complement.
func (c *Conversion) decimal(dst, src *Values, to *Node) bool {
	if to.Type == ByteArray && len(dst.Offsets) == 0 {
		dst.Offsets = append(dst.Offsets, 0)
	}
	var scratch [8]byte
	all := true
	for i := range src.N {
		v := src.at(i)
		if src.Type == Int32 || src.Type == Int64 {
			n := int64(int32(binary.LittleEndian.Uint32(v)))
			if src.Type == Int64 {
				n = int64(binary.LittleEndian.Uint64(v))
			}
			binary.BigEndian.PutUint64(scratch[:], uint64(n))
			v = scratch[:]
		}
		if to.Type == ByteArray {
			dst.Data = append(dst.Data, v...)
			dst.Offsets = append(dst.Offsets, uint32(len(dst.Data)))
			all = all && len(dst.Data) <= math.MaxUint32
			continue
		}
		dst.Fixed = extend(dst.Fixed, c.Width)
		out := dst.Fixed[len(dst.Fixed)-c.Width:]
		all = signExtend(out, v) && all
		if to.Type != FixedLenByteArray {
			reverse(out)
		}
	}
	return all
}

// signExtend writes the big-endian number v in all of out, and reports whether
// it fits. An empty v is 0.
func signExtend(out, v []byte) bool {
	sign := byte(0)
	if len(v) > 0 && v[0]&0x80 != 0 {
		sign = 0xFF
	}
	ok := true
	if len(v) > len(out) {
		cut := len(v) - len(out)
		for _, b := range v[:cut] {
			ok = ok && b == sign
		}
		v = v[cut:]
		ok = ok && v[0]&0x80 == sign&0x80
	}
	pad := len(out) - len(v)
	for i := range out[:pad] {
		out[i] = sign
	}
	copy(out[pad:], v)
	return ok
}

func reverse(b []byte) {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
}

// at is the stored bytes of value i of a fixed-width or byte array run.
func (v *Values) at(i int) []byte {
	if v.Type == ByteArray {
		return v.Data[v.Offsets[i]:v.Offsets[i+1]]
	}
	return v.Fixed[i*v.Width : (i+1)*v.Width]
}

// appendBytes appends byte arrays to a fixed-length run (all of that length) or
// the reverse.
func (dst *Values) appendBytes(src *Values) bool {
	if dst.Type == ByteArray {
		if len(dst.Offsets) == 0 {
			dst.Offsets = append(dst.Offsets, 0)
		}
		dst.Data = append(dst.Data, src.Fixed[:src.N*src.Width]...)
		if len(dst.Data) > math.MaxUint32 {
			return false
		}
		for range src.N {
			dst.Offsets = append(dst.Offsets, dst.Offsets[len(dst.Offsets)-1]+uint32(src.Width))
		}
		return true
	}
	for i := range src.N {
		v := src.at(i)
		if len(v) != dst.Width {
			return false
		}
		dst.Fixed = append(dst.Fixed, v...)
	}
	return true
}
