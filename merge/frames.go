package merge

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/icefs/icefs/internal/pqfile"
)

// Stored frames wrap bytes in a codec's format without compressing them, so
// that a rewritten page has the codec of its column and a size that arithmetic
// gives:
//
//	zstd    magic 28B52FFD, descriptor A0 (single segment, 4-byte size), size;
//	        then raw blocks of at most 128 KiB, each with a 3-byte header
//	snappy  varint length, then one literal
//	gzip    10-byte header; stored blocks of at most 65,535 bytes, each with a
//	        5-byte header; CRC-32 and length
const (
	zstdHeader    = 9
	zstdBlock     = 128 << 10
	zstdBlockHead = 3
	gzipFixed     = 18
	gzipBlock     = 65535
	gzipBlockHead = 5
)

// storable reports whether rewritten pages can be stored frames of a codec.
// Those of other codecs are written uncompressed.
func storable(c pqfile.Codec) bool {
	return c == pqfile.Uncompressed || c == pqfile.Zstd || c == pqfile.Snappy || c == pqfile.Gzip
}

// storedSize is the length of n bytes as a stored frame. It grows with n.
func storedSize(c pqfile.Codec, n int64) int64 {
	switch c {
	case pqfile.Zstd:
		return zstdHeader + n + zstdBlockHead*max((n+zstdBlock-1)/zstdBlock, 1)
	case pqfile.Snappy:
		return uvarintLen(uint64(n)) + n + snappyTagLen(n)
	case pqfile.Gzip:
		return gzipFixed + n + gzipBlockHead*max((n+gzipBlock-1)/gzipBlock, 1)
	default:
		return n
	}
}

// appendStored appends a body, which is in two pieces, to dst as a stored frame.
func appendStored(dst []byte, c pqfile.Codec, head, rest []byte) []byte {
	n := len(head) + len(rest)
	switch c {
	case pqfile.Zstd:
		return appendZstd(dst, head, rest)
	case pqfile.Snappy:
		dst = appendSnappyTag(binary.AppendUvarint(dst, uint64(n)), n)
	case pqfile.Gzip:
		return appendGzip(dst, head, rest)
	}
	return append(append(dst, head...), rest...)
}

// pieces is a body in two pieces.
type pieces struct{ head, rest []byte }

// appendNext appends the next n bytes of the body to dst.
func (p *pieces) appendNext(dst []byte, n int) []byte {
	k := min(n, len(p.head))
	dst = append(append(dst, p.head[:k]...), p.rest[:n-k]...)
	p.head, p.rest = p.head[k:], p.rest[n-k:]
	return dst
}

func appendZstd(dst, head, rest []byte) []byte {
	left := len(head) + len(rest)
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd, 0xa0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(left))
	for p := (pieces{head, rest}); ; {
		n := min(left, zstdBlock)
		h := uint32(n) << 3 // bits 1-2: block type 0, raw
		if n == left {
			h |= 1 // last block
		}
		dst = p.appendNext(append(dst, byte(h), byte(h>>8), byte(h>>16)), n)
		if left -= n; left == 0 {
			return dst
		}
	}
}

func appendGzip(dst, head, rest []byte) []byte {
	left := len(head) + len(rest)
	total, sum := left, crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, rest)
	dst = append(dst, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff)
	for p := (pieces{head, rest}); ; {
		n := min(left, gzipBlock)
		final := byte(0)
		if n == left {
			final = 1
		}
		dst = append(dst, final)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
		dst = binary.LittleEndian.AppendUint16(dst, ^uint16(n))
		dst = p.appendNext(dst, n)
		if left -= n; left == 0 {
			break
		}
	}
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return binary.LittleEndian.AppendUint32(dst, uint32(total))
}

// snappyTagLen is the length of a literal's tag: the length less one is in the
// tag if below 60, else in 1 to 4 bytes after it.
func snappyTagLen(n int64) int64 {
	switch {
	case n == 0:
		return 0
	case n <= 60:
		return 1
	default:
		return 1 + int64(bits.Len64(uint64(n-1))+7)/8
	}
}

func appendSnappyTag(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	if n <= 60 {
		return append(dst, byte(n-1)<<2)
	}
	m := int(snappyTagLen(int64(n))) - 1
	dst = append(dst, byte(59+m)<<2)
	for i := 0; i < m; i++ {
		dst = append(dst, byte((n-1)>>(8*i)))
	}
	return dst
}

func uvarintLen(v uint64) int64 { return int64(bits.Len64(v|1)+6) / 7 }
