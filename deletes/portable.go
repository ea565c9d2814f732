package deletes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// The 64-bit portable roaring format, integers little-endian:
//
//	8        number of bitmaps
//	per bitmap, keys ascending:
//	  4      key: the upper 32 bits of its positions
//	  ...    a 32-bit portable bitmap:
//	         4      cookie: 12346, then 4 bytes of container count; or
//	                12347 | (containers-1)<<16, then one bit per container, set for runs
//	         4 each container: key (upper 16 bits), cardinality-1
//	         4 each offset of the container (with cookie 12347 only from 4 containers on)
//	         ...    payloads in order: array, dense words, or run count and runs
//
// The decoder below accepts a bitmap only whole: ascending keys, sorted arrays,
// dense words whose popcount is the cardinality, runs that are sorted, apart and
// add up to it. That is what the library's Validate asks too, which is quadratic
// in the runs of a container.
const (
	cookieNoRuns     = 12346
	cookieRuns       = 12347
	offsetsFromCount = 4 // with runs, smaller bitmaps carry no offsets
	// maxHigh bounds the upper 32 bits of a position: positions are signed.
	maxHigh = math.MaxInt32
	// minBitmapBytes is the least that a bitmap takes with its key.
	minBitmapBytes = 4 + 8
)

var errTruncated = errors.New("bitmap ends early")

// decodePortable reads a 64-bit portable bitmap that fills b. The Positions
// keep b: it must not change afterwards. Memory is bounded by len(b).
func decodePortable(b []byte) (*Positions, error) {
	if len(b) < 8 {
		return nil, errTruncated
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > uint64(len(b)/minBitmapBytes) {
		return nil, fmt.Errorf("%d bitmaps claimed in %d bytes", n, len(b))
	}
	p := &Positions{bitmaps: make([]bitmap, 0, n)}
	for range n {
		if len(b) < 4 {
			return nil, errTruncated
		}
		high := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if high > maxHigh {
			return nil, fmt.Errorf("bitmap key %d is not below 2^31", high)
		}
		if k := len(p.bitmaps); k > 0 && p.bitmaps[k-1].high >= high {
			return nil, fmt.Errorf("bitmap key %d follows %d", high, p.bitmaps[k-1].high)
		}
		size, err := p.index(high, b)
		if err != nil {
			return nil, err
		}
		p.bitmaps = append(p.bitmaps, bitmap{high, b[:size:size]})
		b = b[size:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes after the last bitmap", len(b))
	}
	return p, nil
}

// appendPortable is the reverse of decodePortable. A nil p has no bitmaps.
func appendPortable(b []byte, p *Positions) []byte {
	if p == nil {
		return binary.LittleEndian.AppendUint64(b, 0)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(p.bitmaps)))
	for _, m := range p.bitmaps {
		b = binary.LittleEndian.AppendUint32(b, m.high)
		b = append(b, m.data...)
	}
	return b
}

// portableHeader is a 32-bit bitmap's header.
type portableHeader struct {
	containers int
	runs       []byte // one bit per container, or nil
	keyCards   []byte // 4 bytes per container
	size       int    // of the whole header
}

func parseHeader(b []byte) (h portableHeader, err error) {
	if len(b) < 8 {
		return h, errTruncated
	}
	cookie := binary.LittleEndian.Uint32(b)
	h.size = 4
	offsets := true
	switch {
	case cookie == cookieNoRuns:
		n := binary.LittleEndian.Uint32(b[4:])
		if n > containerRows {
			return h, fmt.Errorf("%d containers in a bitmap", n)
		}
		h.containers = int(n)
		h.size = 8
	case cookie&0xFFFF == cookieRuns:
		h.containers = int(cookie>>16) + 1
		n := (h.containers + 7) / 8
		if len(b) < 4+n {
			return h, errTruncated
		}
		h.runs = b[4 : 4+n]
		h.size += n
		offsets = h.containers >= offsetsFromCount
	default:
		return h, fmt.Errorf("bitmap cookie %#x", cookie)
	}
	at := h.size
	h.size += 4 * h.containers
	if offsets {
		h.size += 4 * h.containers
	}
	if len(b) < h.size {
		return h, errTruncated
	}
	h.keyCards = b[at : at+4*h.containers]
	return h, nil
}

// index checks the 32-bit bitmap at the start of b, adds its containers to p
// and returns its length.
func (p *Positions) index(high uint32, b []byte) (size int, err error) {
	h, err := parseHeader(b)
	if err != nil {
		return 0, err
	}
	rest := b[h.size:]
	p.containers = slices.Grow(p.containers, h.containers) // header and all: bounded by len(b)
	previous := -1
	for i := range h.containers {
		key := int(binary.LittleEndian.Uint16(h.keyCards[4*i:]))
		if key <= previous {
			return 0, fmt.Errorf("container key %d follows %d", key, previous)
		}
		previous = key
		c := container{
			key:    int64(high)<<16 | int64(key),
			before: p.count,
			card:   int32(binary.LittleEndian.Uint16(h.keyCards[4*i+2:])) + 1,
		}
		isRun := h.runs != nil && h.runs[i/8]&(1<<(i%8)) != 0
		if rest, err = c.parse(rest, isRun); err != nil {
			return 0, fmt.Errorf("container %d of bitmap %d: %w", key, high, err)
		}
		p.containers = append(p.containers, c)
		p.count += int64(c.card)
	}
	return len(b) - len(rest), nil
}

// parse takes the payload of a container, whose cardinality is set, off b and
// checks it.
func (c *container) parse(b []byte, isRun bool) (rest []byte, err error) {
	size := 0
	switch {
	case isRun:
		if len(b) < 2 {
			return nil, errTruncated
		}
		c.kind = runKind
		size = 4 * int(binary.LittleEndian.Uint16(b))
		b = b[2:]
	case c.card > arrayMax:
		c.kind = denseKind
		size = denseBytes
	default:
		c.kind = arrayKind
		size = 2 * int(c.card)
	}
	if len(b) < size {
		return nil, errTruncated
	}
	c.data = b[:size:size]
	return b[size:], c.check()
}

// check verifies the payload against the format and the cardinality.
func (c *container) check() error {
	switch c.kind {
	case arrayKind:
		for i, previous := 0, -1; i < int(c.card); i++ {
			v := c.value(i)
			if v <= previous {
				return errors.New("array is not ascending")
			}
			previous = v
		}
	case denseKind:
		n := 0
		for i := range denseBytes / 8 {
			n += bits.OnesCount64(c.word(i))
		}
		if n != int(c.card) {
			return fmt.Errorf("%d bits set, %d claimed", n, c.card)
		}
	case runKind:
		n := 0
		for i, previous := 0, -1; i < len(c.data)/4; i++ {
			from, to := c.run(i)
			if from <= previous || to > containerRows {
				return errors.New("runs overlap, touch or leave the container")
			}
			previous = to
			n += to - from
		}
		if n != int(c.card) {
			return fmt.Errorf("runs of %d, %d claimed", n, c.card)
		}
	}
	return nil
}
