package pqfile

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// PageData is a data page after decompression, levels still encoded.
type PageData struct {
	NumValues int // entries, NULLs included
	NumRows   int // V2, or a flat column; -1 for a repeated V1 page
	Encoding  Encoding
	// RepBytes and DefBytes are RLE/bit-packed runs without a length prefix;
	// empty where the column has no such level.
	RepBytes, DefBytes []byte
	// LevelEncoding of V1 pages may be BIT_PACKED (old writers).
	RepEncoding, DefEncoding Encoding
	Values                   []byte // encoded values
}

// PageDecoder decompresses and decodes the pages of one chunk with buffers of
// its own. Not safe for concurrent use.
//
// What Uncompress, Levels and Values return is valid until the next call of the
// same method, and no longer than the RawPage it came from.
type PageDecoder struct {
	chunk    *Chunk
	dict     *Values
	counted  bool  // the chunk is counted in Stats
	page     int64 // offset of the page that was uncompressed last
	next     int64 // where the page that follows it starts
	prefixAt int64 // buffers.prefix is the last value before this offset; 0: none
	*buffers
}

// buffers is what decoders take turns to use.
type buffers struct {
	window   []byte   // stored pages
	body     []byte   // uncompressed page
	rep, def []uint8  // levels
	fixed    []byte   // fixed-width values
	bools    []byte   // booleans
	data     []byte   // byte arrays
	offsets  []uint32 // byte arrays
	index    []uint32 // dictionary indexes
	lengths  []uint32 // prefix lengths
	deltas   []int64  // a miniblock
	prefix   []byte   // last value of a DELTA_BYTE_ARRAY page
}

// maxKeptBuffer is the size above which a buffer is not kept for other chunks.
const maxKeptBuffer = 16 << 20

// NewDecoder returns a decoder for the pages of c.
func (c *Chunk) NewDecoder() *PageDecoder {
	b, _ := c.File.pools.buffers.Get().(*buffers)
	if b == nil {
		b = &buffers{}
	}
	return &PageDecoder{chunk: c, buffers: b}
}

// Release returns the decoder's buffers; nothing it gave may be used after.
func (d *PageDecoder) Release() {
	b := d.buffers
	if b == nil {
		return
	}
	d.buffers = nil
	total := cap(b.window) + cap(b.body) + cap(b.rep) + cap(b.def) + cap(b.fixed) + cap(b.bools) + cap(b.data) +
		4*(cap(b.offsets)+cap(b.index)+cap(b.lengths)) + 8*cap(b.deltas) + cap(b.prefix)
	if total <= maxKeptBuffer {
		d.chunk.File.pools.buffers.Put(b)
	}
}

// guard turns a decoder's panic into ErrCorrupt, and says where an error arose.
func (d *PageDecoder) guard(offset int64, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, r)
	}
	if *err != nil {
		*err = d.chunk.wrap(fmt.Errorf("page at %d: %w", offset, *err))
	}
}

// SetDictionary decodes a dictionary page, for the pages that follow.
func (d *PageDecoder) SetDictionary(p *RawPage) (err error) {
	defer d.guard(p.Offset, &err)
	if d.dict != nil {
		return fmt.Errorf("%w: second dictionary in a chunk", ErrCorrupt)
	}
	var own buffers // a dictionary keeps its memory
	body, err := d.dictionaryBody(p, nil)
	if err != nil {
		return err
	}
	if d.chunk.Meta.Codec == Uncompressed {
		body = append([]byte(nil), body...)
	}
	v, err := own.plain(d.chunk.Node, body, int(p.Header.Dictionary.NumValues))
	if err != nil {
		return err
	}
	d.dict = &v
	return nil
}

// Dict returns the decoded dictionary, or nil. It is not reused: it may be kept.
func (d *PageDecoder) Dict() *Values { return d.dict }

// DictionaryBody returns the uncompressed PLAIN body of a dictionary page.
func (d *PageDecoder) DictionaryBody(p *RawPage) (body []byte, err error) {
	defer d.guard(p.Offset, &err)
	body, err = d.dictionaryBody(p, d.body)
	if err == nil && d.chunk.Meta.Codec != Uncompressed {
		d.body = body
	}
	return body, err
}

func (d *PageDecoder) dictionaryBody(p *RawPage, buf []byte) ([]byte, error) {
	h := p.Header.Dictionary
	if p.Header.Type != DictionaryPage || h.Encoding != Plain && h.Encoding != PlainDictionary {
		return nil, fmt.Errorf("%w: page of type %d is no PLAIN dictionary", ErrCorrupt, p.Header.Type)
	}
	d.chunk.File.stats.Dictionaries.Add(1)
	return d.chunk.File.pools.uncompress(d.chunk.Meta.Codec, buf, p.Body, int(p.Header.UncompressedSize))
}

// Uncompress splits a data page into encoded levels and encoded values.
func (d *PageDecoder) Uncompress(p *RawPage) (pd PageData, err error) {
	defer d.guard(p.Offset, &err)
	d.chunk.File.stats.DataPages.Add(1)
	if !d.counted {
		d.counted = true
		d.chunk.File.stats.Chunks.Add(1)
	}
	d.page, d.next = p.Offset, p.Offset+int64(p.HeaderLen)+int64(len(p.Body))
	switch p.Header.Type {
	case DataPage:
		return d.uncompressV1(p)
	case DataPageV2:
		return d.uncompressV2(p)
	}
	return PageData{}, fmt.Errorf("%w: page of type %d among data pages", ErrCorrupt, p.Header.Type)
}

// uncompressV1: the body holds repetition levels, definition levels and values,
// compressed as one.
func (d *PageDecoder) uncompressV1(p *RawPage) (PageData, error) {
	h, node := p.Header.Data, d.chunk.Node
	body, err := d.uncompressBody(p.Body, int(p.Header.UncompressedSize))
	if err != nil {
		return PageData{}, err
	}
	pd := PageData{
		NumValues: int(h.NumValues), NumRows: int(h.NumValues), Encoding: h.Encoding,
		RepEncoding: h.RepetitionEncoding, DefEncoding: h.DefinitionEncoding,
	}
	if node.MaxRep > 0 {
		pd.NumRows = -1
		if pd.RepBytes, body, err = cutLevels(body, h.RepetitionEncoding, pd.NumValues, node.MaxRep); err != nil {
			return PageData{}, err
		}
	}
	if node.MaxDef > 0 {
		if pd.DefBytes, body, err = cutLevels(body, h.DefinitionEncoding, pd.NumValues, node.MaxDef); err != nil {
			return PageData{}, err
		}
	}
	pd.Values = body
	return pd, nil
}

// cutLevels splits the levels off a V1 body: RLE has a length in front, the
// BIT_PACKED of old writers has as many bytes as its entries need.
func cutLevels(body []byte, e Encoding, n, maxLevel int) (levels, rest []byte, err error) {
	var size uint64
	switch e {
	case RLE:
		if len(body) < 4 {
			return nil, nil, fmt.Errorf("%w: levels are cut", ErrCorrupt)
		}
		size = uint64(binary.LittleEndian.Uint32(body))
		body = body[4:]
	case BitPacked:
		size = (uint64(n)*uint64(bits.Len(uint(maxLevel))) + 7) / 8
	default:
		return nil, nil, fmt.Errorf("%w: levels in encoding %d", ErrUnsupported, e)
	}
	if size > uint64(len(body)) {
		return nil, nil, fmt.Errorf("%w: levels are cut", ErrCorrupt)
	}
	return body[:size:size], body[size:], nil
}

// uncompressV2: the levels stand before the values, never compressed.
func (d *PageDecoder) uncompressV2(p *RawPage) (PageData, error) {
	h := p.Header.DataV2
	rep, def := int(h.RepetitionLength), int(h.DefinitionLength)
	levels := rep + def
	if levels > len(p.Body) {
		return PageData{}, fmt.Errorf("%w: levels are cut", ErrCorrupt)
	}
	if d.chunk.Node.MaxRep == 0 && h.NumRows != h.NumValues {
		return PageData{}, fmt.Errorf("%w: %d values in %d rows of a flat column", ErrCorrupt, h.NumValues, h.NumRows)
	}
	pd := PageData{
		NumValues: int(h.NumValues), NumRows: int(h.NumRows), Encoding: h.Encoding,
		RepEncoding: RLE, DefEncoding: RLE,
		RepBytes: p.Body[:rep:rep], DefBytes: p.Body[rep:levels:levels],
	}
	stored, size := p.Body[levels:], int(p.Header.UncompressedSize)-levels
	compressed := h.IsCompressed == nil || *h.IsCompressed
	var err error
	switch {
	case compressed:
		pd.Values, err = d.uncompressBody(stored, size)
	case d.chunk.File.writer.lyingV2() && d.chunk.Meta.Codec != Uncompressed:
		// The header says "not compressed" whatever the body is. Bytes that
		// decompress to just the right length are compressed.
		if pd.Values, err = d.uncompressBody(stored, size); err != nil && len(stored) == size {
			pd.Values, err = stored, nil
		}
	case len(stored) != size:
		err = fmt.Errorf("%w: %w", ErrCorrupt, errSize)
	default:
		pd.Values = stored
	}
	return pd, err
}

func (d *PageDecoder) uncompressBody(stored []byte, size int) ([]byte, error) {
	body, err := d.chunk.File.pools.uncompress(d.chunk.Meta.Codec, d.body, stored, size)
	if err == nil && d.chunk.Meta.Codec != Uncompressed {
		d.body = body
	}
	return body, err
}

// Values decodes n values (the entries at MaxDef) of a page, dictionary-coded
// pages as Dict and Index.
func (d *PageDecoder) Values(pd *PageData, n int) (v Values, err error) {
	defer d.guard(d.page, &err)
	node := d.chunk.Node
	if n < 0 || n > pd.NumValues {
		return Values{}, fmt.Errorf("%w: %d values of %d entries", ErrCorrupt, n, pd.NumValues)
	}
	if n == 0 {
		if d.prefixAt == d.page {
			d.prefixAt = d.next // a page of NULLs does not end what writers carry over
		}
		return d.plain(node, nil, 0)
	}
	switch pd.Encoding {
	case Plain:
		return d.plain(node, pd.Values, n)
	case PlainDictionary, RLEDictionary:
		return d.indexes(pd.Values, n)
	case RLE:
		if node.Type == Boolean {
			return d.rleBooleans(pd.Values, n)
		}
	case DeltaBinaryPacked:
		if node.Type == Int32 || node.Type == Int64 {
			return d.deltaIntegers(node, pd.Values, n)
		}
	case DeltaLengthByteArray:
		if node.Type == ByteArray {
			return d.deltaLengths(pd.Values, n)
		}
	case DeltaByteArray:
		if node.Type == ByteArray || node.Type == FixedLenByteArray {
			return d.deltaStrings(node, pd.Values, n)
		}
	case ByteStreamSplit:
		switch node.Type {
		case Int32, Int64, Float, Double, FixedLenByteArray:
			return d.streamSplit(node, pd.Values, n)
		}
	}
	return Values{}, fmt.Errorf("%w: encoding %d of type %d", ErrUnsupported, pd.Encoding, node.Type)
}

// errShort means that a page holds fewer values than it should.
func errShort(n int) error { return fmt.Errorf("%w: page lacks some of its %d values", ErrCorrupt, n) }
