package pqfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// The compact protocol, as far as Parquet's metadata needs it. A struct is a
// run of fields and a stop byte:
//
//	field   delta<<4 | type                id = previous id + delta (1..15)
//	        type, zigzag varint id         otherwise
//	bool    none: the type says which      (1 true, 2 false); in a list one byte
//	i8      one byte                       i16, i32, i64: zigzag varint
//	binary  varint length, bytes
//	list    size<<4 | element type         15<<4 | type, varint size: from 15 on
//	map     varint size, key<<4 | value    no second byte if empty
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftI8     = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxSkipDepth bounds the nesting of unknown fields.
const maxSkipDepth = 32

// arenaSize is how much the reader allocates at a time for binary values.
const arenaSize = 4096

// thriftReader decodes a buffer. The first error sticks, and makes every later
// read return zero: io.ErrUnexpectedEOF where the buffer ends too early, else
// one that wraps ErrCorrupt.
type thriftReader struct {
	b     []byte
	pos   int
	err   error
	arena []byte // what binary values are carved from
}

// thriftField is the current field of a struct, and the ids seen so far in it.
type thriftField struct {
	id   int16
	typ  byte
	seen uint32 // bit i: id i (0..31)
}

// has reports whether every listed id was seen.
func (f *thriftField) has(ids ...int) bool {
	for _, id := range ids {
		if f.seen&(1<<id) == 0 {
			return false
		}
	}
	return true
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.b)
}

func (r *thriftReader) corrupt(format string, args ...any) {
	r.fail(fmt.Errorf("%w: thrift: %s", ErrCorrupt, fmt.Sprintf(format, args...)))
}

// require fails unless every listed id of the struct was there.
func (r *thriftReader) require(what string, f *thriftField, ids ...int) {
	if r.err == nil && !f.has(ids...) {
		r.corrupt("%s lacks a required field", what)
	}
}

func (r *thriftReader) byte() byte {
	if r.pos >= len(r.b) {
		r.fail(io.ErrUnexpectedEOF)
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *thriftReader) uvarint() uint64 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 {
		r.pos++
		return uint64(r.b[r.pos-1])
	}
	v, n := binary.Uvarint(r.b[r.pos:])
	switch {
	case n > 0:
		r.pos += n
	case n == 0:
		r.fail(io.ErrUnexpectedEOF)
	default:
		r.corrupt("number too long")
	}
	return v
}

func (r *thriftReader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// next reads the next field's header into f and reports whether there is one.
func (r *thriftReader) next(f *thriftField) bool {
	h := r.byte()
	if r.err != nil || h == thriftStop {
		return false
	}
	f.typ = h & 15
	if delta := int16(h >> 4); delta != 0 {
		f.id += delta
	} else {
		f.id = int16(r.varint())
	}
	if f.typ == thriftStop || f.typ > thriftUUID {
		r.corrupt("field %d has type %d", f.id, f.typ)
		return false
	}
	if f.id >= 0 && f.id < 32 {
		f.seen |= 1 << f.id
	}
	return r.err == nil
}

// expect fails unless the field is of type typ.
func (r *thriftReader) expect(f *thriftField, typ byte) bool {
	if f.typ != typ {
		r.corrupt("field %d has type %d, not %d", f.id, f.typ, typ)
		return false
	}
	return true
}

// integer reads a field of any integer type.
func (r *thriftReader) integer(f *thriftField) int64 {
	switch f.typ {
	case thriftI8:
		return int64(int8(r.byte()))
	case thriftI16, thriftI32, thriftI64:
		return r.varint()
	}
	r.corrupt("field %d has type %d, not a number", f.id, f.typ)
	return 0
}

func (r *thriftReader) i64(f *thriftField) int64 { return r.integer(f) }

func (r *thriftReader) i32(f *thriftField) int32 {
	v := r.integer(f)
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.corrupt("field %d is out of range", f.id)
		return 0
	}
	return int32(v)
}

func (r *thriftReader) optI32(f *thriftField) *int32 { v := r.i32(f); return &v }
func (r *thriftReader) optI64(f *thriftField) *int64 { v := r.i64(f); return &v }
func (r *thriftReader) optBool(f *thriftField) *bool { v := r.bool(f); return &v }

func (r *thriftReader) bool(f *thriftField) bool {
	if f.typ != thriftTrue && f.typ != thriftFalse {
		r.corrupt("field %d has type %d, not a boolean", f.id, f.typ)
	}
	return f.typ == thriftTrue
}

// raw reads a length and that many bytes, which alias the buffer.
func (r *thriftReader) raw() []byte {
	n := r.uvarint()
	if r.err != nil {
		return nil
	}
	if n > math.MaxInt32 {
		r.corrupt("binary of %d bytes", n)
		return nil
	}
	if n > uint64(len(r.b)-r.pos) {
		r.fail(io.ErrUnexpectedEOF)
		return nil
	}
	s := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return s
}

func (r *thriftReader) string(f *thriftField) string {
	if !r.expect(f, thriftBinary) {
		return ""
	}
	return string(r.raw())
}

func (r *thriftReader) optString(f *thriftField) *string { s := r.string(f); return &s }

// bytes reads a binary field into memory of its own: never nil, unless it fails.
func (r *thriftReader) bytes(f *thriftField) []byte {
	if !r.expect(f, thriftBinary) {
		return nil
	}
	s := r.raw()
	if r.err != nil {
		return nil
	}
	if len(s) > arenaSize/8 {
		return append(make([]byte, 0, len(s)), s...)
	}
	if len(s) > len(r.arena) || r.arena == nil {
		r.arena = make([]byte, min(arenaSize, len(r.b)-r.pos+len(s))) // a small footer needs no more
	}
	own := r.arena[:len(s):len(s)]
	r.arena = r.arena[len(s):]
	copy(own, s)
	return own
}

// list reads a list's header and returns its length. An element takes at least
// min bytes, so that the length is bounded by what is left of the buffer.
func (r *thriftReader) list(f *thriftField, elem byte, min int) int {
	if !r.expect(f, thriftList) {
		return 0
	}
	n, typ := r.listHeader()
	if r.err != nil || n == 0 {
		return 0
	}
	if typ != elem && !(isInteger(typ) && isInteger(elem)) {
		r.corrupt("list of type %d, not %d", typ, elem)
		return 0
	}
	if n > (len(r.b)-r.pos)/min {
		r.fail(io.ErrUnexpectedEOF)
		return 0
	}
	return n
}

func isInteger(typ byte) bool { return typ == thriftI16 || typ == thriftI32 || typ == thriftI64 }

func (r *thriftReader) listHeader() (n int, typ byte) {
	h := r.byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = r.uvarint()
	}
	if size > math.MaxInt32 {
		r.corrupt("list of %d elements", size)
		return 0, 0
	}
	return int(size), h & 15
}

func (r *thriftReader) int64s(f *thriftField) []int64 {
	list := make([]int64, r.list(f, thriftI64, 1))
	for i := range list {
		list[i] = r.varint()
	}
	return list
}

// skip passes over the field's value.
func (r *thriftReader) skip(f *thriftField) {
	if f.typ != thriftTrue && f.typ != thriftFalse {
		r.skipValue(f.typ, maxSkipDepth)
	}
}

func (r *thriftReader) skipBytes(n int) {
	if n > len(r.b)-r.pos {
		r.fail(io.ErrUnexpectedEOF)
		return
	}
	r.pos += n
}

// skipValue passes over a value as it stands in a list, where a boolean is a byte.
func (r *thriftReader) skipValue(typ byte, depth int) {
	if depth == 0 {
		r.corrupt("fields are nested too deep")
		return
	}
	switch typ {
	case thriftTrue, thriftFalse, thriftI8:
		r.skipBytes(1)
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		r.skipBytes(8)
	case thriftUUID:
		r.skipBytes(16)
	case thriftBinary:
		r.raw()
	case thriftList, thriftSet:
		n, elem := r.listHeader()
		for ; n > 0 && r.err == nil; n-- {
			r.skipValue(elem, depth-1)
		}
	case thriftMap:
		r.skipMap(depth)
	case thriftStruct:
		for f := (thriftField{}); r.next(&f); {
			if f.typ != thriftTrue && f.typ != thriftFalse {
				r.skipValue(f.typ, depth-1)
			}
		}
	default:
		r.corrupt("type %d", typ)
	}
}

func (r *thriftReader) skipMap(depth int) {
	n := r.uvarint()
	if r.err != nil || n == 0 {
		return
	}
	types := r.byte()
	for ; n > 0 && r.err == nil; n-- {
		r.skipValue(types>>4, depth-1)
		r.skipValue(types&15, depth-1)
	}
}

// thriftWriter appends structs to a buffer.
type thriftWriter struct {
	b    []byte
	last int16 // id of the previous field in the current struct
}

func (w *thriftWriter) field(id int16, typ byte) {
	if delta := id - w.last; delta > 0 && delta <= 15 {
		w.b = append(w.b, byte(delta)<<4|typ)
	} else {
		w.b = append(w.b, typ)
		w.varint(int64(id))
	}
	w.last = id
}

func (w *thriftWriter) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *thriftWriter) varint(v int64)   { w.uvarint(uint64(v)<<1 ^ uint64(v>>63)) }

func (w *thriftWriter) i8(id int16, v int8) {
	w.field(id, thriftI8)
	w.b = append(w.b, byte(v))
}

func (w *thriftWriter) i16(id int16, v int16) {
	w.field(id, thriftI16)
	w.varint(int64(v))
}

func (w *thriftWriter) i32(id int16, v int32) {
	w.field(id, thriftI32)
	w.varint(int64(v))
}

func (w *thriftWriter) i64(id int16, v int64) {
	w.field(id, thriftI64)
	w.varint(v)
}

func (w *thriftWriter) optI32(id int16, v *int32) {
	if v != nil {
		w.i32(id, *v)
	}
}

func (w *thriftWriter) optI64(id int16, v *int64) {
	if v != nil {
		w.i64(id, *v)
	}
}

func (w *thriftWriter) bool(id int16, v bool) {
	if v {
		w.field(id, thriftTrue)
	} else {
		w.field(id, thriftFalse)
	}
}

func (w *thriftWriter) optBool(id int16, v *bool) {
	if v != nil {
		w.bool(id, *v)
	}
}

func (w *thriftWriter) string(id int16, s string) {
	w.field(id, thriftBinary)
	w.rawString(s)
}

func (w *thriftWriter) rawString(s string) {
	w.uvarint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *thriftWriter) optString(id int16, s *string) {
	if s != nil {
		w.string(id, *s)
	}
}

// optBytes writes a binary field unless v is nil; empty is written.
func (w *thriftWriter) optBytes(id int16, v []byte) {
	if v != nil {
		w.field(id, thriftBinary)
		w.uvarint(uint64(len(v)))
		w.b = append(w.b, v...)
	}
}

func (w *thriftWriter) list(id int16, elem byte, n int) {
	w.field(id, thriftList)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|elem)
	} else {
		w.b = append(w.b, 15<<4|elem)
		w.uvarint(uint64(n))
	}
}

func (w *thriftWriter) int64s(id int16, list []int64) {
	if list == nil {
		return
	}
	w.list(id, thriftI64, len(list))
	for _, v := range list {
		w.varint(v)
	}
}

// begin opens a struct field; end, given what begin returned, closes it.
func (w *thriftWriter) begin(id int16) (outer int16) {
	w.field(id, thriftStruct)
	return w.element()
}

// element opens a struct that is an element of a list.
func (w *thriftWriter) element() (outer int16) {
	outer, w.last = w.last, 0
	return outer
}

func (w *thriftWriter) end(outer int16) {
	w.b = append(w.b, thriftStop)
	w.last = outer
}
