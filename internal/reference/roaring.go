package reference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// errTooMany ends the decoding of a vector with more positions than it should
// have: a few bytes can stand for billions.
var errTooMany = errors.New("more positions than the manifest says")

// vectorPositions decodes a deletion vector's blob of at most limit positions:
//
//	length, big-endian uint32, of magic and bitmap
//	magic  D1 D3 39 64
//	bitmap little-endian uint64 count of (uint32 key, 32-bit bitmap)
//	CRC-32 of magic and bitmap, big-endian
func vectorPositions(blob []byte, limit int64) (map[int64]bool, error) {
	if len(blob) < 20 || int64(binary.BigEndian.Uint32(blob)) != int64(len(blob)-8) {
		return nil, errors.New("length does not match")
	}
	body := blob[4 : len(blob)-4]
	if binary.LittleEndian.Uint32(body) != 0x6439D3D1 {
		return nil, errors.New("wrong magic")
	}
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(blob[len(blob)-4:]) {
		return nil, errors.New("wrong checksum")
	}
	r := &littleEndian{b: body[4:]}
	positions := map[int64]bool{}
	for count := r.uint64(); count > 0 && r.err == nil; count-- {
		key := r.uint32()
		if key > 1<<31-1 {
			return nil, fmt.Errorf("key %d is too large", key)
		}
		readBitmap(r, func(v uint32) {
			positions[int64(key)<<32|int64(v)] = true
			if int64(len(positions)) > limit {
				r.err = errTooMany
			}
		})
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errors.New("bytes left over")
	}
	return positions, r.err
}

// littleEndian reads numbers until the bytes end.
type littleEndian struct {
	b   []byte
	err error
}

func (r *littleEndian) take(n int) []byte {
	if len(r.b) < n {
		if r.err == nil {
			r.err = errors.New("bitmap is cut short")
		}
		r.b = nil
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *littleEndian) uint16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *littleEndian) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *littleEndian) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// readBitmap decodes one 32-bit bitmap of the portable roaring format.
func readBitmap(r *littleEndian, add func(uint32)) {
	const (
		withoutRuns = 12346
		withRuns    = 12347
		arrayLimit  = 4096 // values; more are a bitmap
	)
	cookie := r.uint32()
	var containers int
	var runs []byte
	switch {
	case cookie == withoutRuns:
		containers = int(r.uint32())
	case cookie&0xFFFF == withRuns:
		containers = int(cookie>>16) + 1
		runs = r.take((containers + 7) / 8)
	case r.err == nil:
		r.err = errors.New("wrong cookie")
	}
	if r.err != nil || containers > 1<<16 {
		if r.err == nil {
			r.err = errors.New("too many containers")
		}
		return
	}
	header := r.take(4 * containers)
	if runs == nil || containers >= 4 {
		r.take(4 * containers) // offsets: containers follow in order anyway
	}
	for i := 0; i < containers && r.err == nil; i++ {
		high := uint32(binary.LittleEndian.Uint16(header[4*i:])) << 16
		cardinality := int(binary.LittleEndian.Uint16(header[4*i+2:])) + 1
		switch {
		case runs != nil && runs[i/8]>>(i%8)&1 == 1:
			for n := r.uint16(); n > 0 && r.err == nil; n-- {
				start, length := uint32(r.uint16()), uint32(r.uint16())
				if start+length > 0xFFFF {
					r.err = errors.New("run past its container")
					return
				}
				for v := start; v <= start+length && r.err == nil; v++ {
					add(high | v)
				}
			}
		case cardinality <= arrayLimit:
			for range cardinality {
				add(high | uint32(r.uint16()))
			}
		default:
			for word := range uint32(1024) {
				bits := r.uint64()
				for bit := range uint32(64) {
					if bits>>bit&1 == 1 {
						add(high | word*64 + bit)
					}
				}
			}
		}
	}
}
