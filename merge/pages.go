package merge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// Pages of rewritten chunks: V1 data pages, whose bodies are
//
//	[length, repetition levels] [length, definition levels] values
//
// as one stored frame, values PLAIN or a bit width and dictionary indexes.
const (
	// pageBytes and pageRows bound a page of fixed-width values: what it decodes
	// to fits a core's second-level cache.
	pageBytes = 256 << 10
	pageRows  = 32 << 10
	// headerBound is the longest header of such pages, without slack.
	headerBound = 40
	// minSlack is the shortest slack but none that a header can hold, and
	// maxSlack the longest that every reader takes. docs/virtual-parquet.md.
	minSlack = 6
	maxSlack = 2 << 20
)

// pageForm is how a rewritten chunk is encoded; it determines the bytes.
type pageForm struct {
	leaf  *pqfile.Node
	codec pqfile.Codec
	rows  int // of a page at most
	bytes int // values of a page are cut once they have so many bytes
	// Dictionary chunks: number of entries and length of their PLAIN bytes.
	dict      bool
	dictN     int
	dictBytes int64
	// fallback chunks go on with PLAIN pages where their source does.
	fallback bool
	// kept is the length of the dictionary page if it is served as stored: it is
	// no part of what is made then.
	kept      int64
	keptPlain int64 // the same uncompressed
}

func (f *pageForm) defWidth() int { return bits.Len(uint(f.leaf.MaxDef)) }
func (f *pageForm) repWidth() int { return bits.Len(uint(f.leaf.MaxRep)) }

// indexWidth is the bit width of dictionary indexes: at least 1, since a width
// of 0 is rare enough in the wild to be avoided.
func (f *pageForm) indexWidth() int { return max(bits.Len(uint(max(f.dictN-1, 0))), 1) }

// valueWidth is the length of one PLAIN value, 0 if it varies or is a bit.
func valueWidth(leaf *pqfile.Node) int {
	switch leaf.Type {
	case pqfile.Int32, pqfile.Float:
		return 4
	case pqfile.Int64, pqfile.Double:
		return 8
	case pqfile.Int96:
		return 12
	case pqfile.FixedLenByteArray:
		return leaf.TypeLength
	}
	return 0
}

// dictionaryPage returns the header of the chunk's dictionary page.
func (f *pageForm) dictionaryHeader() pqfile.PageHeader {
	return pqfile.PageHeader{
		Type:             pqfile.DictionaryPage,
		UncompressedSize: int32(f.dictBytes),
		CompressedSize:   int32(storedSize(f.codec, f.dictBytes)),
		Dictionary:       &pqfile.DictionaryPageHeader{NumValues: int32(f.dictN), Encoding: pqfile.Plain},
	}
}

// dictionaryLength is the whole dictionary page's length, 0 if there is none.
func (f *pageForm) dictionaryLength() int64 {
	if !f.dict || f.kept > 0 {
		return f.kept
	}
	h := f.dictionaryHeader()
	return int64(len(h.Append(nil))) + storedSize(f.codec, f.dictBytes)
}

// encoding of the data pages; fallen tells those that a fallback chunk ends with.
func (f *pageForm) encoding(fallen bool) pqfile.Encoding {
	if f.dict && !fallen {
		return pqfile.RLEDictionary
	}
	return pqfile.Plain
}

// encodings of the chunk, for the footer.
func (f *pageForm) encodings() []pqfile.Encoding {
	if f.dict {
		return []pqfile.Encoding{pqfile.Plain, pqfile.RLE, pqfile.RLEDictionary}
	}
	return []pqfile.Encoding{pqfile.Plain, pqfile.RLE}
}

// builtPage is a data page: where its levels and its encoded values are in the
// writer.
type builtPage struct {
	header           pqfile.PageHeader
	levels, from, to int // the levels end where the next page's begin
}

// pageWriter encodes runs of rows into pages. Not safe for concurrent use.
type pageWriter struct {
	form     pageForm
	headless bool // the dictionary page is not part of it
	discard  bool // pages are not made: only statistics are wanted
	fallen   bool // a fallback chunk has come to its PLAIN pages

	// The page in the making.
	rows, entries int
	rep           []uint8
	def           []uint8 // empty as long as all entries have a value
	from          int     // where its values start in plain
	bools         []uint8
	index         []uint32
	// packer has the indexes in place of index if encoded is set: they come as
	// they are encoded.
	packer  packer
	encoded bool

	dictionary []byte
	dictN      int
	plain      []byte // encoded values of all pages
	levels     []byte // encoded levels of all pages
	head       []byte // a page header, to measure it
	scratch    copyScratch
	pages      []builtPage
	total      int64 // entries of all pages
}

// reset prepares for another chunk and keeps the memory.
func (w *pageWriter) reset(form pageForm, headless, encoded bool) {
	w.form, w.headless, w.encoded, w.fallen = form, headless, encoded, false
	w.dictN, w.total = 0, 0
	w.dictionary, w.plain, w.levels, w.pages = w.dictionary[:0], w.plain[:0], w.levels[:0], w.pages[:0]
	w.clearPage()
}

// full reports whether the page in the making is long enough.
func (w *pageWriter) full() bool {
	return w.rows >= w.form.rows || len(w.plain)-w.from >= w.form.bytes || w.entries >= maxEntries
}

// coded reports whether the page in the making is one of dictionary indexes.
func (w *pageWriter) coded() bool { return w.form.dict && !w.fallen }

// fall ends the pages of indexes of a fallback chunk.
func (w *pageWriter) fall() error {
	if w.fallen {
		return nil
	}
	err := w.endPage()
	w.fallen = true
	return err
}

// addLevels appends levels of n entries; def nil means all present.
func (w *pageWriter) addLevels(rep, def []uint8, n int) {
	w.entries += n
	if w.form.leaf.MaxRep > 0 {
		w.rep = append(w.rep, rep...)
	}
	if w.form.leaf.MaxDef == 0 {
		return
	}
	if def == nil && len(w.def) == 0 {
		return // all present so far
	}
	w.addPresent(w.entries - n - len(w.def))
	if def != nil {
		w.def = append(w.def, def...)
	} else {
		w.addPresent(n)
	}
}

// addPresent appends definition levels of n entries that have a value.
func (w *pageWriter) addPresent(n int) {
	from := len(w.def)
	w.def = slices.Grow(w.def, n)[:from+n]
	for i := from; i < len(w.def); i++ {
		w.def[i] = uint8(w.form.leaf.MaxDef)
	}
}

// endPage closes the page in the making, if it has any row.
func (w *pageWriter) endPage() error {
	if w.entries == 0 {
		return nil
	}
	f := &w.form
	start := len(w.levels)
	if f.leaf.MaxRep > 0 {
		w.levels = appendLevels(w.levels, w.rep, f.repWidth())
	}
	switch {
	case f.leaf.MaxDef > 0 && len(w.def) > 0:
		w.levels = appendLevels(w.levels, w.def, f.defWidth())
	case f.leaf.MaxDef > 0: // as appendHybrid writes it
		w.levels = appendOneRun(w.levels, int64(w.entries), uint8(f.leaf.MaxDef))
	}
	switch {
	case w.coded() && w.encoded:
		w.plain = w.packer.finish(append(w.plain, byte(f.indexWidth())))
	case w.coded():
		w.plain = appendHybrid(append(w.plain, byte(f.indexWidth())), w.index, f.indexWidth())
	case f.leaf.Type == pqfile.Boolean:
		w.plain = appendBits(w.plain, w.bools)
	}
	n := int64(len(w.levels) - start + len(w.plain) - w.from)
	if n > math.MaxInt32-(1<<20) {
		return fmt.Errorf("%w: column %q: a page of %d bytes", ErrUnsupported, f.leaf.Name, n)
	}
	w.pages = append(w.pages, builtPage{
		header: pqfile.PageHeader{
			Type:             pqfile.DataPage,
			UncompressedSize: int32(n),
			CompressedSize:   int32(storedSize(f.codec, n)),
			Data: &pqfile.DataPageHeader{
				NumValues:          int32(w.entries),
				Encoding:           f.encoding(w.fallen),
				DefinitionEncoding: pqfile.RLE,
				RepetitionEncoding: pqfile.RLE,
			},
		},
		levels: start, from: w.from, to: len(w.plain),
	})
	w.total += int64(w.entries)
	w.clearPage()
	return nil
}

// clearPage starts a new page.
func (w *pageWriter) clearPage() {
	w.rows, w.entries, w.from = 0, 0, len(w.plain)
	w.rep, w.def, w.bools, w.index = w.rep[:0], w.def[:0], w.bools[:0], w.index[:0]
	w.packer.reset(w.form.indexWidth())
}

// appendLevels appends levels as a V1 page has them, after their length.
func appendLevels(dst []byte, levels []uint8, width int) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = appendHybrid(dst, levels, width)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// appendBits packs booleans, lowest bit first.
func appendBits(dst []byte, v []uint8) []byte {
	for ; len(v) >= 8; v = v[8:] {
		dst = append(dst, v[0]|v[1]<<1|v[2]<<2|v[3]<<3|v[4]<<4|v[5]<<5|v[6]<<6|v[7]<<7)
	}
	if len(v) > 0 {
		var b byte
		for i, x := range v {
			b |= x << i
		}
		dst = append(dst, b)
	}
	return dst
}

// assemble returns the chunk: its dictionary page and its data pages, with
// slack in their headers so that it has size bytes; -1 = without slack.
func (w *pageWriter) assemble(size int64) ([]byte, error) {
	f := &w.form
	head := f.dict && !w.headless
	used := int64(0)
	if head {
		used = f.dictionaryLength()
	}
	for i := range w.pages {
		p := &w.pages[i]
		w.head = p.header.Append(w.head[:0])
		used += int64(len(w.head)) + int64(p.header.CompressedSize)
	}
	slack := int64(0)
	if size >= 0 {
		slack = size - used
	}
	if slack < 0 || slack > 0 && slack < minSlack || slack > int64(len(w.pages))*maxSlack {
		return nil, fmt.Errorf("%w: column %q: %d bytes of pages for a reserve of %d (%d pages)",
			ErrCorrupt, f.leaf.Name, used, size, len(w.pages))
	}
	out := make([]byte, 0, used+slack)
	if head {
		h := f.dictionaryHeader()
		out = appendStored(h.Append(out), f.codec, nil, w.filledDictionary())
	}
	for i := range w.pages {
		p := &w.pages[i]
		p.header.Slack = int(min(slack, maxSlack))
		if left := slack - int64(p.header.Slack); left > 0 && left < minSlack {
			p.header.Slack -= minSlack
		}
		slack -= int64(p.header.Slack)
		levels := w.levels[p.levels:]
		if i+1 < len(w.pages) {
			levels = w.levels[p.levels:w.pages[i+1].levels]
		}
		out = appendStored(p.header.Append(out), f.codec, levels, w.plain[p.from:p.to])
	}
	return out, nil
}

// filledDictionary returns the dictionary with as many entries as the form
// says: entries of a source that no page needed stand as zeros, which no index
// refers to.
func (w *pageWriter) filledDictionary() []byte {
	missing, n := w.form.dictBytes-int64(len(w.dictionary)), w.form.dictN-w.dictN
	if missing == 0 {
		return w.dictionary
	}
	fill := make([]byte, missing)
	if w.form.leaf.Type == pqfile.ByteArray {
		binary.LittleEndian.PutUint32(fill[4*(n-1):], uint32(missing-4*int64(n)))
	}
	w.dictionary = append(w.dictionary, fill...)
	return w.dictionary
}

// addDictionary appends a source's dictionary and returns the index of its
// first value. It fails if the dictionary is not the one that was planned for.
func (w *pageWriter) addDictionary(d *pqfile.Values) (uint32, error) {
	base := uint32(w.dictN)
	w.dictionary = appendPlain(w.dictionary, w.form.leaf.Type, d, 0, d.N)
	w.dictN += d.N
	missing := w.form.dictBytes - int64(len(w.dictionary))
	if n := w.form.dictN - w.dictN; n < 0 || missing < 0 || n == 0 && missing > 0 ||
		w.form.leaf.Type == pqfile.ByteArray && missing < 4*int64(n) {
		return 0, fmt.Errorf("%w: column %q: dictionary differs from its page header", ErrCorrupt, w.form.leaf.Name)
	}
	return base, nil
}

// appendPlain appends values [s, e) of a type but BOOLEAN, which are not
// dictionary-coded, as PLAIN bytes.
func appendPlain(dst []byte, typ pqfile.Type, v *pqfile.Values, s, e int) []byte {
	if typ != pqfile.ByteArray {
		return append(dst, v.Fixed[s*v.Width:e*v.Width]...)
	}
	for i := s; i < e; i++ {
		x := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(x)))
		dst = append(dst, x...)
	}
	return dst
}

// countLevel counts the entries of a level.
func countLevel(levels []uint8, level uint8) int { return bytes.Count(levels, []byte{level}) }
