package pqfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Pools lends decompressors and page buffers to decoders. The zero value is
// ready; it is safe for concurrent use, and holds nothing that the garbage
// collector may not take back.
type Pools struct {
	zstd, gzip, brotli, buffers sync.Pool
}

// No page can expand by more than this, so that a size that lies is found
// before it is allocated.
const (
	maxSnappyRatio = 64       // a copy of 64 bytes takes at least 2
	maxLZ4Ratio    = 256      // a length byte stands for at most 255 bytes
	maxGzipRatio   = 1040     // 258 bytes take at least 2 bits
	maxZstdRatio   = 44 << 10 // a block of 128 KiB has a header of 3 bytes
	// zstdRoom is the room behind an output with which the decoder copies 16 bytes at
	// a time to its end: half as fast again as without.
	zstdRoom = 16
	// streamedSize is the size up to which an output is allocated at once,
	// where no ratio bounds it.
	streamedSize = 16 << 20
)

// errSize means that a body is not as long as its header says.
var errSize = errors.New("uncompressed size differs from the header's")

// uncompress decodes src, which must give exactly size bytes. The result is src
// itself, or in buf if that is large enough, or new.
func (p *Pools) uncompress(codec Codec, buf, src []byte, size int) ([]byte, error) {
	if size == 0 {
		return buf[:0], nil // writers disagree on what an empty body compresses to
	}
	var err error
	switch codec {
	case Uncompressed:
		if len(src) != size {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, errSize)
		}
		return src, nil
	case Snappy:
		buf, err = uncompressBlock(snappyBlock, buf, src, size, maxSnappyRatio)
	case LZ4Raw:
		buf, err = uncompressBlock(lz4.UncompressBlock, buf, src, size, maxLZ4Ratio)
	case LZ4:
		if buf, err = uncompressBlock(hadoopLZ4, buf, src, size, maxLZ4Ratio); err != nil {
			buf, err = uncompressBlock(lz4.UncompressBlock, buf, src, size, maxLZ4Ratio)
		}
	case Zstd:
		buf, err = p.uncompressZstd(buf, src, size)
	case Gzip:
		if size/maxGzipRatio > len(src) {
			err = errSize
			break
		}
		r, _ := p.gzip.Get().(*gzip.Reader)
		if r == nil {
			r = new(gzip.Reader)
		}
		defer p.gzip.Put(r)
		if err = r.Reset(bytes.NewReader(src)); err == nil {
			buf, err = readExactly(r, buf, size)
		}
	case Brotli:
		r, _ := p.brotli.Get().(*brotli.Reader)
		if r == nil {
			r = new(brotli.Reader)
		}
		defer p.brotli.Put(r)
		if err = r.Reset(bytes.NewReader(src)); err == nil {
			buf, err = readExactly(r, buf, size)
		}
	default:
		return nil, fmt.Errorf("%w: compression codec %d", ErrUnsupported, codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: codec %d: %w", ErrCorrupt, codec, err)
	}
	return buf, nil
}

// grow returns a slice of length n, over b if that is large enough; its content
// is arbitrary.
func grow[T any](b []T, n int) []T {
	if cap(b) >= n {
		return b[:n]
	}
	return make([]T, n, n+n/8)
}

// uncompressBlock runs a decoder that fills dst and returns how much it wrote.
func uncompressBlock(decode func(src, dst []byte) (int, error), buf, src []byte, size, ratio int) ([]byte, error) {
	if size/ratio > len(src) {
		return buf, errSize
	}
	buf = grow(buf, size)
	n, err := decode(src, buf[:size:size])
	if err == nil && n != size {
		err = errSize
	}
	return buf, err
}

func snappyBlock(src, dst []byte) (int, error) {
	if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
		return 0, errors.Join(err, errSize)
	}
	out, err := snappy.Decode(dst, src)
	return len(out), err
}

// hadoopLZ4 decodes Hadoop's framing, of big-endian lengths:
//
//	block  uncompressed length (4), then chunks until that many bytes are there
//	chunk  compressed length (4), an LZ4 block
func hadoopLZ4(src, dst []byte) (n int, err error) {
	for len(src) > 0 {
		if len(src) < 8 {
			return n, io.ErrUnexpectedEOF
		}
		end := n + int(binary.BigEndian.Uint32(src))
		src = src[4:]
		if end > len(dst) {
			return n, errSize
		}
		for n < end {
			if len(src) < 4 {
				return n, io.ErrUnexpectedEOF
			}
			size := int(binary.BigEndian.Uint32(src))
			src = src[4:]
			if size == 0 || size > len(src) {
				return n, io.ErrUnexpectedEOF
			}
			k, err := lz4.UncompressBlock(src[:size], dst[n:end:end])
			if err != nil {
				return n, err
			}
			n, src = n+k, src[size:]
		}
	}
	return n, nil
}

func (p *Pools) uncompressZstd(buf, src []byte, size int) ([]byte, error) {
	if size/maxZstdRatio > len(src) {
		return buf, errSize
	}
	d, _ := p.zstd.Get().(*zstd.Decoder)
	if d == nil {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return buf, err
		}
	}
	defer p.zstd.Put(d)
	buf = grow(buf, size+zstdRoom)
	out, err := d.DecodeAll(src, buf[:0:size+zstdRoom])
	if err != nil || len(out) != size {
		return buf, errors.Join(err, errSize)
	}
	return buf[:size], nil // the limit to buf's capacity makes it decode in place
}

// readExactly reads size bytes from r, which must end there. Above streamedSize
// memory grows with what arrives.
func readExactly(r io.Reader, buf []byte, size int) ([]byte, error) {
	buf = grow(buf, min(size, max(cap(buf), streamedSize)))
	n := 0
	for {
		k, err := io.ReadFull(r, buf[n:])
		n += k
		if err != nil {
			return buf, err
		}
		if n == size {
			break
		}
		buf = append(buf, make([]byte, min(size-n, n))...)
	}
	var more [1]byte
	if k, err := io.ReadFull(r, more[:]); k != 0 || err != io.EOF {
		return buf, errSize
	}
	return buf, nil
}
