package avrofile

import (
	"encoding/binary"
	"io"
)

// decoder reads Avro's binary encoding. The first read past the end, or of a
// malformed number, sets err, and all later ones give zero values.
type decoder struct {
	buf []byte
	pos int
	err error
}

// fail sets err and moves to the end.
func (d *decoder) fail() {
	d.err = io.ErrUnexpectedEOF
	d.pos = len(d.buf)
}

// long reads a zigzag varint of up to 64 bits.
func (d *decoder) long() int64 {
	v, n := binary.Uvarint(d.buf[d.pos:])
	if n <= 0 {
		d.fail()
		return 0
	}
	d.pos += n
	return int64(v>>1) ^ -int64(v&1)
}

// take returns the next n bytes.
func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.buf)-d.pos {
		d.fail()
		return nil
	}
	b := d.buf[d.pos : d.pos+n]
	d.pos += n
	return b
}

// bytes reads a length and so many bytes.
func (d *decoder) bytes() []byte {
	n := d.long()
	if n < 0 || n > int64(len(d.buf)-d.pos) {
		d.fail()
		return nil
	}
	return d.take(int(n))
}

// blockCount reads the head of a block of array items or map entries: 0 ends
// them; a negative count is followed by the block's size. Every item of data
// that icefs reads takes at least a byte, so more items than bytes are refused.
func (d *decoder) blockCount() int {
	n := d.long()
	if n < 0 {
		n = -n
		d.long()
	}
	if n < 0 || n > int64(len(d.buf)-d.pos) {
		d.fail()
		return 0
	}
	return int(n)
}
