package pqfile

import (
	"bytes"
	"math"
	"slices"
)

// batch gathers the entries of several pages. Dictionary-coded values stay
// coded while all come from one dictionary.
type batch struct {
	def, rep []uint8
	plain    Values // when dict is nil
	dict     *Values
	index    []uint32
	filler   []uint8
}

// reset empties the batch and keeps its memory.
func (b *batch) reset() {
	b.def, b.rep = b.def[:0], b.rep[:0]
	b.resetPlain()
	b.dict, b.index = nil, b.index[:0]
}

func (b *batch) resetPlain() {
	p := &b.plain
	*p = Values{Type: p.Type, Width: p.Width, Fixed: p.Fixed[:0], Bools: p.Bools[:0], Data: p.Data[:0], Offsets: p.Offsets[:0]}
}

// differs reports that a page is coded by the dictionary and the batch's values
// are not, or the other way round.
func (b *batch) differs(p *PageData) bool {
	if p.Encoding == RLEDictionary || p.Encoding == PlainDictionary {
		return b.plain.N > 0
	}
	return b.dict != nil
}

// append copies values onto the batch; false if byte arrays pass 4 GiB.
func (b *batch) append(v *Values) bool {
	if v.N == 0 {
		return true
	}
	if v.Dict != nil && (b.dict == v.Dict || b.dict == nil && b.plain.N == 0) {
		b.dict = v.Dict
		b.index = append(b.index, v.Index...)
		return true
	}
	if b.dict != nil {
		coded := Values{Dict: b.dict, Index: b.index, N: len(b.index)}
		b.dict, b.index = nil, b.index[:0]
		if !appendPlain(&b.plain, &coded) {
			return false
		}
	}
	return appendPlain(&b.plain, v)
}

// values is what the batch holds, for a leaf.
func (b *batch) values(leaf *Node) Values {
	if b.dict != nil {
		return Values{Type: b.dict.Type, Width: b.dict.Width, N: len(b.index), Dict: b.dict, Index: b.index}
	}
	if b.plain.N == 0 {
		return noValue(leaf)
	}
	return b.plain
}

// constantLevels is n entries of one level.
func (b *batch) constantLevels(n int, level uint8) []uint8 {
	b.def = extend(b.def[:0], n)
	for i := range b.def {
		b.def[i] = level
	}
	return b.def
}

// zeros is n zero levels.
func (b *batch) zeros(n int) []uint8 {
	if len(b.filler) < n {
		b.filler = make([]uint8, max(n, 2*len(b.filler)))
	}
	return b.filler[:n]
}

// appendPlain appends values, decoding a dictionary's indexes; false if byte
// arrays pass 4 GiB.
func appendPlain(dst, v *Values) bool {
	src := v
	if v.Dict != nil {
		src = v.Dict
	}
	dst.Type, dst.Width = src.Type, src.Width
	switch {
	case src.Type == ByteArray:
		return appendByteArrays(dst, v)
	case src.Type == Boolean && v.Dict != nil:
		for _, i := range v.Index {
			dst.Bools = append(dst.Bools, src.Bools[i])
		}
	case src.Type == Boolean:
		dst.Bools = append(dst.Bools, v.Bools[:v.N]...)
	case v.Dict != nil:
		gatherFixed(dst, src, v.Index)
	default:
		dst.Fixed = append(dst.Fixed, v.Fixed[:v.N*v.Width]...)
	}
	dst.N += v.N
	return true
}

// gatherFixed appends the dictionary's values at index.
func gatherFixed(dst, dict *Values, index []uint32) {
	w := dict.Width
	base := len(dst.Fixed)
	dst.Fixed = extend(dst.Fixed, len(index)*w)
	out := dst.Fixed[base:]
	switch w {
	case 4:
		for i, x := range index {
			*(*[4]byte)(out[i*4:]) = *(*[4]byte)(dict.Fixed[int(x)*4:])
		}
	case 8:
		for i, x := range index {
			*(*[8]byte)(out[i*8:]) = *(*[8]byte)(dict.Fixed[int(x)*8:])
		}
	default:
		for i, x := range index {
			copy(out[i*w:(i+1)*w], dict.Fixed[int(x)*w:])
		}
	}
}

func appendByteArrays(dst, v *Values) bool {
	if len(dst.Offsets) == 0 {
		dst.Offsets = append(dst.Offsets, 0)
	}
	size := uint64(len(dst.Data))
	if v.Dict == nil {
		from, to := v.Offsets[0], v.Offsets[v.N]
		if size+uint64(to-from) > math.MaxUint32 {
			return false
		}
		shift := uint32(size) - from // wraps; the sums below are in range
		dst.Data = append(dst.Data, v.Data[from:to]...)
		dst.Offsets = slices.Grow(dst.Offsets, v.N)
		for _, o := range v.Offsets[1 : v.N+1] {
			dst.Offsets = append(dst.Offsets, o+shift)
		}
		dst.N += v.N
		return true
	}
	d := v.Dict
	for _, i := range v.Index {
		size += uint64(d.Offsets[i+1] - d.Offsets[i])
	}
	if size > math.MaxUint32 {
		return false
	}
	dst.Data = slices.Grow(dst.Data, int(size)-len(dst.Data))
	dst.Offsets = slices.Grow(dst.Offsets, len(v.Index))
	for _, i := range v.Index {
		dst.Data = append(dst.Data, d.Data[d.Offsets[i]:d.Offsets[i+1]]...)
		dst.Offsets = append(dst.Offsets, uint32(len(dst.Data)))
	}
	dst.N += v.N
	return true
}

// slice is the values from i to j, sharing memory.
func slice(v *Values, i, j int) Values {
	s := Values{Type: v.Type, Width: v.Width, N: j - i}
	switch {
	case v.Dict != nil:
		s.Dict, s.Index = v.Dict, v.Index[i:j]
	case i == j && v.Type == ByteArray:
		s.Offsets = []uint32{0}
	case v.Type == ByteArray:
		s.Data, s.Offsets = v.Data, v.Offsets[i:j+1]
	case v.Type == Boolean:
		s.Bools = v.Bools[i:j]
	default:
		s.Fixed = v.Fixed[i*v.Width : j*v.Width]
	}
	return s
}

// countLevel counts the entries at a level.
func countLevel(levels []uint8, level int) int {
	return bytes.Count(levels, []byte{uint8(level)})
}

// converter turns pages into the view's form, a dictionary only once.
type converter struct {
	kind      *Conversion
	leaf      *Node
	out       Values // of the page at hand
	decoded   Values // a dictionary-coded page decoded, if its dictionary cannot be converted
	dict      *Values
	converted *Values // dict in the view's form; nil if some value of it does not fit
}

// page converts a page's values; the result is valid until the next page.
func (c *converter) page(v *Values) (Values, error) {
	if c.kind.Kind == ConvertNone {
		return *v, nil
	}
	if v.Dict != nil {
		if v.Dict != c.dict {
			c.dict, c.converted = v.Dict, &Values{}
			if err := c.kind.convert(c.converted, v.Dict, c.leaf); err != nil {
				c.converted = nil
			}
		}
		if c.converted != nil {
			return Values{Type: c.converted.Type, Width: c.converted.Width, N: v.N, Dict: c.converted, Index: v.Index}, nil
		}
		// Perhaps no row uses the value that does not fit.
		d := &c.decoded
		*d = Values{Fixed: d.Fixed[:0], Bools: d.Bools[:0], Data: d.Data[:0], Offsets: d.Offsets[:0]}
		appendPlain(d, v)
		v = d
	}
	o := &c.out
	*o = Values{Fixed: o.Fixed[:0], Data: o.Data[:0], Offsets: o.Offsets[:0]}
	err := c.kind.convert(o, v, c.leaf)
	return *o, err
}
