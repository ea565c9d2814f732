package pqfile

// Pools lends page buffers and decompressors.
type Pools struct{ _ int }

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
type PageDecoder struct{ _ int }

// NewDecoder returns a decoder for the pages of c.
func (c *Chunk) NewDecoder() *PageDecoder { panic("skeleton") }

// Release returns the decoder's buffers; nothing it gave may be used after.
func (d *PageDecoder) Release() { panic("skeleton") }

// SetDictionary decodes a dictionary page, for the pages that follow.
func (d *PageDecoder) SetDictionary(p *RawPage) error { panic("skeleton") }

// Dict returns the decoded dictionary, or nil. It is not reused: it may be kept.
func (d *PageDecoder) Dict() *Values { panic("skeleton") }

// Uncompress splits a data page into encoded levels and encoded values.
func (d *PageDecoder) Uncompress(p *RawPage) (PageData, error) { panic("skeleton") }

// DictionaryBody returns the uncompressed PLAIN body of a dictionary page.
func (d *PageDecoder) DictionaryBody(p *RawPage) ([]byte, error) { panic("skeleton") }

// Levels decodes levels into dst (one byte per entry): repetition, definition.
// A column without such levels gives nil.
func (d *PageDecoder) Levels(pd *PageData) (rep, def []uint8, err error) { panic("skeleton") }

// Values decodes n values (the entries at MaxDef) of a page, dictionary-coded
// pages as Dict and Index.
func (d *PageDecoder) Values(pd *PageData, n int) (Values, error) { panic("skeleton") }
