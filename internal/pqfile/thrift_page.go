package pqfile

import "fmt"

// Field 16 of a page header: one byte of field header, five of length, zeros.
const (
	slackField    = 16
	slackOverhead = 6
)

// maxPageValues bounds a page's entries: a few bytes can stand for any number of
// equal ones, which take up to 5 bytes each when decoded. Writers end a page
// after some ten thousand.
const maxPageValues = 1 << 27

// UnmarshalPageHeader decodes a header at the start of b and returns its
// length. io.ErrUnexpectedEOF means that b ends inside the header. Nothing of h
// aliases b. The header of the page's type is present and no count or size is
// negative.
func UnmarshalPageHeader(b []byte, h *PageHeader) (n int, err error) {
	*h = PageHeader{}
	r := thriftReader{b: b}
	var f thriftField
	for r.next(&f) {
		switch f.id {
		case 1:
			h.Type = PageType(r.i32(&f))
		case 2:
			h.UncompressedSize = r.i32(&f)
		case 3:
			h.CompressedSize = r.i32(&f)
		case 4:
			h.CRC = r.optI32(&f)
		case 5:
			h.Data = r.dataPageHeader(&f)
		case 7:
			h.Dictionary = r.dictionaryPageHeader(&f)
		case 8:
			h.DataV2 = r.dataPageHeaderV2(&f)
		default:
			r.skip(&f)
		}
	}
	r.require("PageHeader", &f, 1, 2, 3)
	if r.err != nil {
		return 0, r.err
	}
	if err := h.check(); err != nil {
		return 0, err
	}
	return r.pos, nil
}

// check reports whether the header says what its page type needs.
func (h *PageHeader) check() error {
	bad := h.UncompressedSize < 0 || h.CompressedSize < 0
	switch h.Type {
	case DataPage:
		bad = bad || h.Data == nil || h.Data.NumValues < 0
	case DictionaryPage:
		bad = bad || h.Dictionary == nil || h.Dictionary.NumValues < 0
	case DataPageV2:
		bad = bad || h.DataV2 == nil || !h.DataV2.sane(h)
	case IndexPage:
	default:
		return fmt.Errorf("%w: page type %d", ErrUnsupported, h.Type)
	}
	if bad {
		return fmt.Errorf("%w: page header contradicts itself", ErrCorrupt)
	}
	if n := h.entries(); n > maxPageValues {
		return fmt.Errorf("%w: page of %d values", ErrUnsupported, n)
	}
	return nil
}

func (v *DataPageHeaderV2) sane(h *PageHeader) bool {
	levels := int64(v.DefinitionLength) + int64(v.RepetitionLength)
	return v.DefinitionLength >= 0 && v.RepetitionLength >= 0 &&
		levels <= int64(h.CompressedSize) && levels <= int64(h.UncompressedSize) &&
		v.NumNulls >= 0 && v.NumRows >= 0 && v.NumValues >= v.NumNulls
}

func (r *thriftReader) dataPageHeader(f *thriftField) *DataPageHeader {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	h := &DataPageHeader{}
	var g thriftField
	for r.next(&g) {
		switch g.id {
		case 1:
			h.NumValues = r.i32(&g)
		case 2:
			h.Encoding = Encoding(r.i32(&g))
		case 3:
			h.DefinitionEncoding = Encoding(r.i32(&g))
		case 4:
			h.RepetitionEncoding = Encoding(r.i32(&g))
		case 5:
			h.Statistics = r.statistics(&g)
		default:
			r.skip(&g)
		}
	}
	r.require("DataPageHeader", &g, 1, 2, 3, 4)
	return h
}

func (r *thriftReader) dictionaryPageHeader(f *thriftField) *DictionaryPageHeader {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	h := &DictionaryPageHeader{}
	var g thriftField
	for r.next(&g) {
		switch g.id {
		case 1:
			h.NumValues = r.i32(&g)
		case 2:
			h.Encoding = Encoding(r.i32(&g))
		case 3:
			h.Sorted = r.optBool(&g)
		default:
			r.skip(&g)
		}
	}
	r.require("DictionaryPageHeader", &g, 1, 2)
	return h
}

func (r *thriftReader) dataPageHeaderV2(f *thriftField) *DataPageHeaderV2 {
	if !r.expect(f, thriftStruct) {
		return nil
	}
	h := &DataPageHeaderV2{}
	var g thriftField
	for r.next(&g) {
		switch g.id {
		case 1:
			h.NumValues = r.i32(&g)
		case 2:
			h.NumNulls = r.i32(&g)
		case 3:
			h.NumRows = r.i32(&g)
		case 4:
			h.Encoding = Encoding(r.i32(&g))
		case 5:
			h.DefinitionLength = r.i32(&g)
		case 6:
			h.RepetitionLength = r.i32(&g)
		case 7:
			h.IsCompressed = r.optBool(&g)
		case 8:
			h.Statistics = r.statistics(&g)
		default:
			r.skip(&g)
		}
	}
	r.require("DataPageHeaderV2", &g, 1, 2, 3, 4, 5, 6)
	return h
}

// Append encodes a page header, its slack included, onto b. Slack is one
// unknown field, last in the struct:
//
//	1 byte   delta<<4 | 8   id 16, binary; delta 11, 9 or 8 after field 5, 7 or 8
//	5 bytes  length         as a varint of full width
//	n bytes  zeros          n = Slack-6
func (h *PageHeader) Append(b []byte) []byte {
	w := thriftWriter{b: b}
	w.i32(1, int32(h.Type))
	w.i32(2, h.UncompressedSize)
	w.i32(3, h.CompressedSize)
	w.optI32(4, h.CRC)
	if h.Data != nil {
		outer := w.begin(5)
		w.i32(1, h.Data.NumValues)
		w.i32(2, int32(h.Data.Encoding))
		w.i32(3, int32(h.Data.DefinitionEncoding))
		w.i32(4, int32(h.Data.RepetitionEncoding))
		if h.Data.Statistics != nil {
			w.statistics(5, h.Data.Statistics)
		}
		w.end(outer)
	}
	if h.Dictionary != nil {
		outer := w.begin(7)
		w.i32(1, h.Dictionary.NumValues)
		w.i32(2, int32(h.Dictionary.Encoding))
		w.optBool(3, h.Dictionary.Sorted)
		w.end(outer)
	}
	if v := h.DataV2; v != nil {
		outer := w.begin(8)
		w.i32(1, v.NumValues)
		w.i32(2, v.NumNulls)
		w.i32(3, v.NumRows)
		w.i32(4, int32(v.Encoding))
		w.i32(5, v.DefinitionLength)
		w.i32(6, v.RepetitionLength)
		w.optBool(7, v.IsCompressed)
		if v.Statistics != nil {
			w.statistics(8, v.Statistics)
		}
		w.end(outer)
	}
	w.slack(h.Slack)
	return append(w.b, thriftStop)
}

func (w *thriftWriter) slack(total int) {
	if total == 0 {
		return
	}
	n := total - slackOverhead
	if n < 0 {
		panic(fmt.Sprintf("internal error: page header slack of %d bytes", total))
	}
	w.field(slackField, thriftBinary)
	w.b = append(w.b, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21)|0x80, byte(n>>28)&0x0f)
	w.b = append(w.b, make([]byte, n)...)
}
