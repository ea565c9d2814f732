package merge

import (
	"context"

	"github.com/icefs/icefs/internal/pqfile"
)

// Many writers start a column of strings with a dictionary and go on with PLAIN
// pages once it has grown too long. A rewritten chunk of such a source does the
// same: its dictionary pages become pages of indexes, its PLAIN pages remain
// PLAIN, and page headers alone bound both.

// storedPages is what the page headers of such a chunk tell.
type storedPages struct {
	dictN     int
	dictBytes int64
	dictSize  int64 // the dictionary page as stored
	dictPlain int64 // the same uncompressed
	dictRows  int64 // rows of the pages of indexes, which come first
	plain     int64 // uncompressed bytes of the PLAIN pages, levels included
	bound     bool  // all are bounds: any of the rows may be on PLAIN pages
}

// maxHeaderReads bounds the headers that are read for a chunk's bound.
const maxHeaderReads = 4 << 10

// dictionaryThenPlain reads the page headers of a flat chunk; false if it is not
// a dictionary, pages of indexes, and PLAIN pages, in that order.
func dictionaryThenPlain(ctx context.Context, c *pqfile.Chunk) (storedPages, bool, error) {
	var out storedPages
	left, plain := c.Meta.NumValues, false
	at, end := c.Start, c.Start+c.Length
	for n := 0; at < end && left > 0; n++ {
		var h pqfile.PageHeader
		size, err := readHeader(ctx, c.File.Object, at, end, &h)
		if err != nil || n == maxHeaderReads {
			return out, false, err
		}
		at += int64(size) + int64(h.CompressedSize)
		if h.CompressedSize < 0 || h.UncompressedSize < 0 || at > end {
			return out, false, nil
		}
		if n == 0 {
			if h.Type != pqfile.DictionaryPage || h.Dictionary == nil || h.Dictionary.NumValues <= 0 {
				return out, false, nil
			}
			out.dictN, out.dictBytes = int(h.Dictionary.NumValues), int64(h.UncompressedSize)
			out.dictSize, out.dictPlain = at-c.Start, int64(size)+int64(h.UncompressedSize)
			continue
		}
		values, encoding, ok := dataPage(&h)
		switch coded := dictionaryCoded(encoding); {
		case !ok || values < 0, coded && plain, !coded && encoding != pqfile.Plain:
			return out, false, nil
		case coded:
			out.dictRows += values
		default:
			plain = true
			out.plain += int64(h.UncompressedSize)
		}
		left -= values
	}
	return out, left == 0, nil
}

// dataPage returns a data page's number of entries and its encoding.
func dataPage(h *pqfile.PageHeader) (values int64, encoding pqfile.Encoding, ok bool) {
	switch {
	case h.Type == pqfile.DataPage && h.Data != nil:
		return int64(h.Data.NumValues), h.Data.Encoding, true
	case h.Type == pqfile.DataPageV2 && h.DataV2 != nil:
		return int64(h.DataV2.NumValues), h.DataV2.Encoding, true
	}
	return 0, 0, false
}

// fallBack gives the chunk the form of its only source, if that starts with a
// dictionary and goes on PLAIN, and reserves its length. It reports whether it
// did.
func (r *rewrite) fallBack(ctx context.Context, live int64) (int64, bool, error) {
	leaf := r.form.leaf
	if len(r.sources) != 1 || leaf.Type != pqfile.ByteArray || leaf.MaxRep > 0 {
		return 0, false, nil
	}
	s := &r.sources[0]
	col := &s.in.columns[leaf.Leaf]
	whole := s.first == s.in.firstRow[s.rowGroup] && s.first+s.rows == s.in.firstRow[s.rowGroup+1]
	if col.Source == nil || col.Fill != nil || col.Shredding != nil || col.Convert.Kind != pqfile.ConvertNone || !whole {
		return 0, false, nil
	}
	c, err := s.in.pq.Chunk(s.rowGroup, col.Source)
	if err != nil || !c.TrustedWriter || !usesDictionary(c.Meta.Encodings) {
		return 0, false, err
	}
	var stored storedPages
	var ok bool
	if s.in.remote {
		stored, ok = storedBound(c)
	} else {
		stored, ok, err = dictionaryThenPlain(ctx, c)
	}
	if err != nil || !ok || stored.dictRows > s.rows || stored.dictBytes > maxDictionary {
		return 0, false, err
	}
	coded := stored.dictRows - s.in.deleted.CountRange(s.first, s.first+stored.dictRows)
	form, encoded := r.form, r.copyable()
	if encoded != nil {
		form.kept, form.keptPlain = stored.dictSize, stored.dictPlain
	}
	n, ok := form.fallBack(stored, live, coded)
	if !ok || n > r.engine.limits.runBytes || n > sparseBytes && live*sparseRatio < s.rows {
		return 0, false, nil
	}
	r.form, r.length = form, n-form.kept
	r.encoded, r.headless = encoded, encoded != nil
	return n, true, nil
}

// fallBack sets how pages are cut and bounds the chunk; coded of its live rows
// are on pages of indexes. All pages are cut alike, so that there are enough of
// them to hide what is left of the reserve whatever the rows hold.
func (f *pageForm) fallBack(stored storedPages, live, coded int64) (int64, bool) {
	values := stored.plain
	if live == coded && !stored.bound {
		values = 0
	}
	if values/live > reservedPage {
		return 0, false // a page of one row could not hide what is left
	}
	f.fallback, f.dict, f.dictN, f.dictBytes = true, true, stored.dictN, stored.dictBytes
	f.rows = int(min(pageRows, max(live/(values/reservedPage+1), 1)))
	f.bytes = longPage
	pages := (live+int64(f.rows)-1)/int64(f.rows) + 1 + values/longPage // 1: the last of indexes
	indexes := pages*(1+hybridBound(8, f.indexWidth())) + (coded+7)/8*int64(f.indexWidth())
	return f.dictionaryLength() + f.pagesLength(live, pages, indexes+values) + minSlack, true
}
