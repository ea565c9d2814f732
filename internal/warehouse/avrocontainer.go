package warehouse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Manifests are Avro object container files (Avro specification, "Object
// Container Files"):
//
//	file:  "Obj" 1 | metadata map | sync (16) | block*
//	block: rows (varint) | size (varint) | size bytes, compressed | sync (16)
//
// They are decoded here, straight from the bytes of a block into what is kept: a
// snapshot can have a hundred thousand entries, each with metrics of every
// column, of which next to nothing is used, and a history ten thousand manifests
// of one entry, whose schema would take longer to parse than the entry.

// maxBlock bounds a block of a manifest, decompressed. Writers begin a new one
// after some 64 KiB.
const maxBlock = 64 << 20

const syncSize = 16

// container is an Avro file in memory.
type container struct {
	metadata map[string][]byte
	codec    string
	sync     []byte
	rest     []byte // blocks to come

	block   bytes.Buffer // of the last block, decompressed
	inflate io.ReadCloser
	zstd    *zstd.Decoder
}

// openContainer parses the header.
func openContainer(raw []byte) (*container, error) {
	d := cursor{buf: raw}
	if string(d.take(4)) != "Obj\x01" {
		return nil, errors.New("no Avro file")
	}
	c := &container{metadata: map[string][]byte{}, codec: "null"}
	for n := d.items(); n > 0; n = d.items() {
		for range n {
			key := d.bytes()
			c.metadata[string(key)] = d.bytes()
		}
	}
	c.sync = d.take(syncSize)
	if d.failed {
		return nil, errors.New("the header ends early")
	}
	if codec := c.metadata["avro.codec"]; len(codec) > 0 {
		c.codec = string(codec)
	}
	c.rest = raw[d.at:]
	return c, nil
}

// next returns the rows of the next block, and their number; io.EOF at the end.
// The bytes are good until the next call.
func (c *container) next() (block []byte, rows int64, err error) {
	if len(c.rest) == 0 {
		return nil, 0, io.EOF
	}
	d := cursor{buf: c.rest}
	rows, size := d.long(), d.long()
	stored := d.take(int(min(max(size, -1), maxBlock+1)))
	marker := d.take(syncSize)
	switch {
	case size > maxBlock:
		return nil, 0, fmt.Errorf("block of %d bytes", size)
	case d.failed || rows < 0:
		return nil, 0, errors.New("a block ends early")
	case !bytes.Equal(marker, c.sync):
		return nil, 0, errors.New("no sync marker after a block")
	}
	c.rest = c.rest[d.at:]
	if block, err = c.decompress(stored); err != nil {
		return nil, 0, fmt.Errorf("block: %w", err)
	}
	if rows > int64(len(block)) { // no entry is of no bytes
		return nil, 0, fmt.Errorf("%d rows in %d bytes", rows, len(block))
	}
	return block, rows, nil
}

func (c *container) decompress(stored []byte) ([]byte, error) {
	switch c.codec {
	case "null":
		return stored, nil
	case "deflate":
		return c.inflateBlock(stored)
	case "snappy":
		return unsnap(stored)
	case "zstandard":
		if c.zstd == nil {
			var err error
			c.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
			if err != nil {
				return nil, err
			}
		}
		return c.zstd.DecodeAll(stored, nil)
	}
	return nil, fmt.Errorf("%w: codec %q of a manifest", ErrUnsupported, c.codec)
}

// unsnap decompresses a block that a CRC-32 of its content follows.
func unsnap(stored []byte) ([]byte, error) {
	if len(stored) < crc32.Size {
		return nil, io.ErrUnexpectedEOF
	}
	stored, sum := stored[:len(stored)-crc32.Size], stored[len(stored)-crc32.Size:]
	n, err := snappy.DecodedLen(stored)
	if err != nil {
		return nil, err
	}
	if n > maxBlock {
		return nil, fmt.Errorf("over %d bytes", maxBlock)
	}
	block, err := snappy.Decode(nil, stored)
	if err == nil && crc32.ChecksumIEEE(block) != binary.BigEndian.Uint32(sum) {
		err = errors.New("checksum differs")
	}
	return block, err
}

func (c *container) inflateBlock(stored []byte) ([]byte, error) {
	if c.inflate == nil {
		c.inflate = flate.NewReader(bytes.NewReader(stored))
	} else if err := c.inflate.(flate.Resetter).Reset(bytes.NewReader(stored), nil); err != nil {
		return nil, err
	}
	c.block.Reset()
	n, err := io.Copy(&c.block, io.LimitReader(c.inflate, maxBlock+1))
	if err == nil && n > maxBlock {
		err = fmt.Errorf("over %d bytes", maxBlock)
	}
	return c.block.Bytes(), err
}

func (c *container) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}
