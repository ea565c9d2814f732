package merge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// A flat chunk that is REQUIRED in its file and OPTIONAL in the view needs no
// decoding: every data page becomes a V2 page whose levels, one run of ones,
// stand uncompressed before the stored values.
//
//	stored   [V1 or V2 header]            [values]
//	served   [V2 header] [n<<1 varint, 1] [values]
//
// Only page headers are read for it, with the layout. A page's checksum goes on
// to guard its values: that of levels and values follows from it.

// releveled is such a chunk as segments, headers from memory and values from
// the file.
type releveled struct {
	segments   []segment
	size       int64
	dictionary int64
}

// headerProbe is how much is read to find one page header; longer ones (with
// statistics of long strings) take a second read.
const (
	headerProbe    = 256
	maxHeaderProbe = 1 << 20
)

// relevel plans the chunk. It fails with errNotFlat if its pages are not as a
// flat REQUIRED column has them.
func relevel(ctx context.Context, c *pqfile.Chunk, raw func(from, n int64) segment) (*releveled, error) {
	out := &releveled{}
	add := func(s segment) {
		out.segments = append(out.segments, s)
		out.size += s.size()
	}
	left := c.Meta.NumValues
	for at, end := c.Start, c.Start+c.Length; at < end && left > 0; {
		var h pqfile.PageHeader
		n, err := readHeader(ctx, c.File.Object, at, end, &h)
		if err != nil {
			return nil, err
		}
		body := at + int64(n)
		next := body + int64(h.CompressedSize)
		if h.CompressedSize < 0 || next > end {
			return nil, fmt.Errorf("%w: %s: page at %d passes its chunk's end", ErrCorrupt, c.File.Object.Location(), at)
		}
		switch h.Type {
		case pqfile.DictionaryPage:
			if at != c.Start {
				return nil, errNotFlat
			}
			add(raw(at, next-at))
			out.dictionary = next - at
		case pqfile.DataPage, pqfile.DataPageV2:
			head, values, err := leveledHeader(&h)
			if err != nil {
				return nil, err
			}
			left -= int64(values)
			add(&memorySegment{data: head, what: "page header and levels"})
			if h.CompressedSize > 0 {
				add(raw(body, int64(h.CompressedSize)))
			}
		default: // an index page, which readers skip or stumble over
		}
		at = next
	}
	if left != 0 {
		return nil, fmt.Errorf("%w: %s: column %q: pages hold %d values more or fewer than the footer says",
			ErrCorrupt, c.File.Object.Location(), c.Node.Name, left)
	}
	return out, nil
}

// errNotFlat sends a chunk to be rewritten after all.
var errNotFlat = errors.New("pages of another form than expected")

// readHeader reads the page header at an offset and returns its length.
func readHeader(ctx context.Context, object source.Object, at, end int64, h *pqfile.PageHeader) (int, error) {
	for probe := int64(headerProbe); ; probe *= 16 {
		b := make([]byte, min(probe, end-at))
		if _, err := object.ReadAt(ctx, b, at); err != nil {
			return 0, err
		}
		n, err := pqfile.UnmarshalPageHeader(b, h)
		if err == nil {
			return n, nil
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || int64(len(b)) < probe || probe > maxHeaderProbe {
			return 0, fmt.Errorf("%w: %s: page header at %d: %w", ErrCorrupt, object.Location(), at, err)
		}
	}
}

// leveledHeader returns the V2 header and levels that replace a data page's
// header, and the page's number of values.
func leveledHeader(h *pqfile.PageHeader) ([]byte, int32, error) {
	v2 := pqfile.DataPageHeaderV2{}
	switch {
	case h.Type == pqfile.DataPage && h.Data != nil:
		v2.NumValues, v2.Encoding = h.Data.NumValues, h.Data.Encoding
	case h.Type == pqfile.DataPageV2 && h.DataV2 != nil:
		v2 = *h.DataV2
		if v2.DefinitionLength != 0 || v2.RepetitionLength != 0 || v2.NumNulls != 0 {
			return nil, 0, errNotFlat
		}
		v2.Statistics = nil
	default:
		return nil, 0, errNotFlat
	}
	if v2.NumValues <= 0 {
		return nil, 0, errNotFlat
	}
	if v2.Encoding == pqfile.PlainDictionary {
		v2.Encoding = pqfile.RLEDictionary
	}
	levels := append(binary.AppendUvarint(nil, uint64(v2.NumValues)<<1), 1)
	v2.NumRows, v2.DefinitionLength = v2.NumValues, int32(len(levels))
	served := pqfile.PageHeader{
		Type:             pqfile.DataPageV2,
		UncompressedSize: h.UncompressedSize + int32(len(levels)),
		CompressedSize:   h.CompressedSize + int32(len(levels)),
		DataV2:           &v2,
	}
	if served.UncompressedSize < 0 || served.CompressedSize < 0 {
		return nil, 0, errNotFlat
	}
	if h.CRC != nil {
		sum := int32(concatenatedCRC(crc32.ChecksumIEEE(levels), uint32(*h.CRC), h.CompressedSize))
		served.CRC = &sum
	}
	return append(served.Append(nil), levels...), v2.NumValues, nil
}

// concatenatedCRC is the CRC-32 of bytes put together of two runs, by that of
// each and the length of the second: a CRC is a polynomial over GF(2), and n
// bytes behind it multiply it by x^8n.
func concatenatedCRC(first, second uint32, n int32) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<(31-8) // x^0 and x^8: bit 31-k is x^k
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiplyCRC(power, square)
		}
		square = multiplyCRC(square, square)
	}
	return multiplyCRC(power, first) ^ second
}

// multiplyCRC multiplies two polynomials modulo that of CRC-32.
func multiplyCRC(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
