package pqfile

import (
	"fmt"
	"math/bits"
)

// maxLevels: levels are bytes.
const maxLevels = 255

// Levels decodes levels into dst (one byte per entry): repetition, definition.
// A column without such levels gives nil.
func (d *PageDecoder) Levels(pd *PageData) (rep, def []uint8, err error) {
	defer d.guard(d.page, &err)
	node := d.chunk.Node
	if node.MaxRep > 0 {
		d.rep = grow(d.rep, pd.NumValues)
		rep = d.rep
		if err := decodeLevels(rep, pd.RepBytes, pd.RepEncoding, node.MaxRep); err != nil {
			return nil, nil, err
		}
	}
	if node.MaxDef > 0 {
		d.def = grow(d.def, pd.NumValues)
		def = d.def
		if err := decodeLevels(def, pd.DefBytes, pd.DefEncoding, node.MaxDef); err != nil {
			return nil, nil, err
		}
	}
	return rep, def, nil
}

func decodeLevels(dst []uint8, src []byte, e Encoding, maxLevel int) error {
	if maxLevel > maxLevels {
		return fmt.Errorf("%w: %d levels", ErrUnsupported, maxLevel)
	}
	width := uint(bits.Len(uint(maxLevel)))
	if e == BitPacked {
		unpackBigEndian(dst, src, width)
	} else if err := decodeHybrid8(dst, src, width); err != nil {
		return err
	}
	if maxLevel != 1<<width-1 {
		top := uint8(0)
		for _, l := range dst {
			top = max(top, l)
		}
		if int(top) > maxLevel {
			return fmt.Errorf("%w: level %d of at most %d", ErrCorrupt, top, maxLevel)
		}
	}
	return nil
}

// unpackBigEndian decodes the deprecated BIT_PACKED encoding: the first value
// is in the highest bits. src is long enough.
func unpackBigEndian(dst []uint8, src []byte, width uint) {
	var acc uint32 // the low have bits are yet to be used
	var have uint
	for i := range dst {
		if have < width {
			acc = acc<<8 | uint32(src[0])
			src = src[1:]
			have += 8
		}
		have -= width
		dst[i] = uint8(acc>>have) & (1<<width - 1)
	}
}
