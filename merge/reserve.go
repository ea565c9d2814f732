package merge

import (
	"context"
	"math"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// The reserve of a rewritten chunk is an upper bound of its bytes that footers,
// dictionary page headers and delete counts prove; what the pages leave of it
// hides in their headers. Without such a bound, or where it would be mostly
// padding, the chunk is made once and its size kept.
const (
	// A byte-array chunk of more than sparseBytes with fewer than one visible
	// row in sparseRatio is measured: its reserve would be mostly padding.
	sparseBytes = 64 << 10
	sparseRatio = 8
	// reservedPage is how much of a byte-array reserve falls to one page: half
	// of what a header can hide.
	reservedPage = maxSlack / 2
	// longPage cuts pages of byte arrays that are far above average.
	longPage = 64 << 20
	// keptRatio is how much longer a chunk may be with its stored dictionary than
	// without: it has not to be decoded then.
	keptRatio = 2
	// maxDictionary bounds the dictionary of a rewritten chunk.
	maxDictionary = 256 << 20
)

// unknown marks a bound that cannot be given.
const unknown = int64(-1)

// bound is what one source adds to a chunk at most, in either encoding.
type bound struct {
	plain     int64 // PLAIN bytes of its visible values
	dictN     int   // dictionary entries; -1 = not dictionary-coded throughout
	dictBytes int64
	// dictStored is the length of the dictionary page as stored, 0 if there is
	// none, and dictPlain that of the same uncompressed.
	dictStored, dictPlain int64
}

// runBytes is how long a chunk gets before it is made in runs of its own: a
// reader's memory stays small, and a page deep inside costs no whole chunk.
const runBytes = 64 << 20

// plan fixes the encoding and the length of a rewritten chunk, and divides it
// into the runs that are made one by one.
func (r *rewrite) plan(ctx context.Context, c *chunk) error {
	estimate, err := r.choose(ctx)
	if err != nil {
		return err
	}
	if r.encoded != nil {
		return r.lay(ctx, c, estimate)
	}
	return r.layRuns(ctx, c, estimate)
}

// choose decides the encoding, how pages are cut, and whether the chunk has to
// be measured. It returns about how long the chunk will be.
func (r *rewrite) choose(ctx context.Context) (int64, error) {
	live, rows := r.rows()
	f := &r.form
	f.rows, f.bytes = pageRows, math.MaxInt
	if w := valueWidth(f.leaf); w > 0 {
		f.rows = fixedRows(w)
	}
	total, err := r.bound(ctx)
	if err != nil {
		return 0, err
	}
	if f.leaf.MaxRep > 0 {
		estimate := r.toMeasure()
		if r.dictionaryPays(total, estimate) {
			f.dict, f.dictN, f.dictBytes = true, total.dictN, total.dictBytes
		}
		return estimate, nil
	}
	r.plainBytes = total.plain
	plain := r.plainForm(live)
	stored := r.copyable()
	if total.dictN > 0 && total.dictBytes <= maxDictionary {
		d := *f
		d.dict, d.dictN, d.dictBytes = true, total.dictN, total.dictBytes
		d.rows = pageRows
		dear := int64(1)
		if stored != nil {
			// A dictionary that stays costs nothing to make.
			d.kept, d.keptPlain, dear = total.dictStored, total.dictPlain, keptRatio
		}
		if n := d.dictionaryChunk(live); plain == unknown || n <= dear*plain {
			*f, plain = d, n
			if d.kept > 0 {
				r.encoded, r.headless = stored, true
			}
		}
	}
	if plain == unknown {
		if n, ok, err := r.fallBack(ctx, live); ok || err != nil {
			return n, err
		}
		return r.toMeasure(), nil
	}
	if stored != nil && !f.dict {
		if _, plainOnly := dataEncodings(stored.Meta); plainOnly {
			r.encoded = stored
		}
	}
	sparse := plain > sparseBytes && live*sparseRatio < rows
	// A long reserve is that of the whole chunk, which is made in runs, or a lie.
	if long := plain > r.engine.limits.runBytes && !f.dict && r.encoded == nil; f.leaf.Type == pqfile.ByteArray && (sparse || long) {
		f.dict, f.dictN, f.dictBytes, f.kept = false, 0, 0, 0
		r.encoded, r.headless = nil, false
		return r.toMeasure(), nil
	}
	return plain, nil
}

// dictionaryPays reports whether a repeated leaf, whose number of values is not
// known, is likely to be shorter with its dictionary than without.
func (r *rewrite) dictionaryPays(total bound, estimate int64) bool {
	if total.dictN <= 0 || total.dictBytes > min(estimate, maxDictionary) {
		return false
	}
	w := int64(valueWidth(r.form.leaf))
	if w == 0 {
		return true
	}
	values := int64(0)
	for i := range r.sources {
		s := &r.sources[i]
		if m := s.meta(r.form.leaf.Leaf); m != nil {
			values += int64(float64(max(m.NumValues, 0)) * float64(s.live) / float64(s.rows))
		}
	}
	form := pageForm{dictN: total.dictN}
	return total.dictBytes+values/8*int64(form.indexWidth()) < values*w
}

// fixedRows is how many values of a width make a page.
func fixedRows(width int) int { return max(min(pageRows, pageBytes/width), 1) }

// rows counts the visible and the physical rows of the chunk.
func (r *rewrite) rows() (live, rows int64) {
	for _, s := range r.sources {
		live += s.live
		rows += s.rows
	}
	return live, rows
}

// toMeasure makes the chunk one that is measured, and estimates its length.
func (r *rewrite) toMeasure() (estimate int64) {
	r.measured = true
	r.form.rows, r.form.bytes = pageRows, reservedPage
	for i := range r.sources {
		s := &r.sources[i]
		estimate += s.storedBytes(r.form.leaf.Leaf)
		if m := s.meta(r.form.leaf.Leaf); m != nil && m.SizeStatistics != nil && m.SizeStatistics.UnencodedByteArrayBytes != nil {
			estimate += max(*m.SizeStatistics.UnencodedByteArrayBytes, 0)
		}
	}
	return estimate
}

// split divides a chunk of one source by physical rows into n runs, of which
// those without visible rows are left out.
func (r *rewrite) split(n int64) []*rewrite {
	s := r.sources[0]
	step := max((s.rows+n-1)/n, 1)
	var runs []*rewrite
	for from := int64(0); from < s.rows; from += step {
		part := s
		part.first, part.rows = s.first+from, min(step, s.rows-from)
		part.live = part.rows - s.in.deleted.CountRange(part.first, part.first+part.rows)
		if part.live == 0 {
			continue
		}
		run := *r
		run.sources, run.identity = []groupSource{part}, ""
		run.headless = len(runs) > 0
		runs = append(runs, &run)
	}
	return runs
}

// fix sets the run's length and number of entries.
func (r *rewrite) fix(ctx context.Context) error {
	if r.measured {
		return r.measure(ctx)
	}
	live, _ := r.rows()
	r.values = live
	f := &r.form
	switch {
	case f.fallback: // reserved when it was chosen
	case f.dict:
		r.length = f.dictionaryChunk(live)
		if r.headless {
			r.length -= f.dictionaryLength()
		}
	case f.leaf.Type == pqfile.ByteArray:
		r.length = r.plainForm(live)
	case f.leaf.Type == pqfile.Boolean:
		pages := max((live+int64(f.rows)-1)/int64(f.rows), 1)
		r.length = f.pagesLength(live, pages, live/8+pages) + minSlack
	default:
		pages := max((live+int64(f.rows)-1)/int64(f.rows), 1)
		r.length = f.pagesLength(live, pages, live*int64(valueWidth(f.leaf))) + minSlack
	}
	return nil
}

// plainForm reserves for PLAIN pages and sets how they are cut.
func (r *rewrite) plainForm(live int64) int64 {
	f, values := &r.form, r.plainBytes
	if values == unknown {
		return unknown
	}
	if f.leaf.Type != pqfile.ByteArray {
		pages := max((live+int64(f.rows)-1)/int64(f.rows), 1)
		return f.pagesLength(live, pages, values+pages) + minSlack
	}
	if values/live > reservedPage {
		return unknown // a page of one row could not hide what is left
	}
	f.rows = int(min(pageRows, max(live/(values/reservedPage+1), 1)))
	f.bytes = longPage
	pages := (live+int64(f.rows)-1)/int64(f.rows) + values/longPage
	return f.pagesLength(live, pages, values) + minSlack
}

// dictionaryChunk reserves for a dictionary page and pages of indexes.
func (f *pageForm) dictionaryChunk(live int64) int64 {
	pages := max((live+int64(f.rows)-1)/int64(f.rows), 1)
	// Per page: the width's byte, and a last group of eight of its own.
	indexes := pages*(1+hybridBound(8, f.indexWidth())) + (live+7)/8*int64(f.indexWidth())
	return f.dictionaryLength() + f.pagesLength(live, pages, indexes) + minSlack
}

// pagesLength bounds the pages of a flat leaf: headers, levels, frames, and
// values of so many bytes in all.
func (f *pageForm) pagesLength(live, pages, values int64) int64 {
	body := values
	if f.leaf.MaxDef > 0 {
		body += pages*(4+hybridBound(8, f.defWidth())) + (live+7)/8*int64(f.defWidth())
	}
	n := pages*headerBound + body
	switch f.codec {
	case pqfile.Zstd:
		n += pages*(zstdHeader+zstdBlockHead) + zstdBlockHead*(body/zstdBlock)
	case pqfile.Snappy:
		n += pages * 10 // varint and tag
	case pqfile.Gzip:
		n += pages*(gzipFixed+gzipBlockHead) + gzipBlockHead*(body/gzipBlock)
	}
	return n
}

// bound adds up what the sources give.
func (r *rewrite) bound(ctx context.Context) (bound, error) {
	var total bound
	for i := range r.sources {
		b, err := r.boundOf(ctx, &r.sources[i])
		if err != nil {
			return bound{}, err
		}
		if total.plain == unknown || b.plain == unknown {
			total.plain = unknown
		} else {
			total.plain += b.plain
		}
		if total.dictN < 0 || b.dictN < 0 {
			total.dictN = -1
		} else {
			total.dictN += b.dictN
			total.dictBytes += b.dictBytes
			total.dictStored += b.dictStored
			total.dictPlain += b.dictPlain
		}
	}
	return total, nil
}

// boundOf gives the bounds of one source's visible rows.
func (r *rewrite) boundOf(ctx context.Context, s *groupSource) (bound, error) {
	leaf := r.form.leaf
	col := &s.in.columns[leaf.Leaf]
	w := int64(valueWidth(leaf))
	if col.Fill != nil {
		return bound{plain: s.live * w, dictN: -1}, nil
	}
	if col.Shredding != nil {
		return bound{plain: unknown, dictN: -1}, nil
	}
	if col.Source == nil {
		return constantBound(leaf, &col.Constant, s.live), nil
	}
	c, err := s.in.pq.Chunk(s.rowGroup, col.Source)
	if err != nil {
		return bound{}, err
	}
	b := bound{plain: unknown, dictN: -1}
	dictOnly, plainOnly := dataEncodings(c.Meta)
	if col.Convert.Kind == pqfile.ConvertNone && leaf.Type != pqfile.Boolean && dictOnly {
		if s.in.remote {
			b.dictN, b.dictBytes = dictionaryBound(c, w)
		} else if d, err := c.Dictionary(ctx); err != nil {
			return bound{}, err
		} else if d.Present && d.NumValues == 0 { // all NULL
			return bound{}, nil
		} else if d.Present {
			b.dictN, b.dictBytes, b.dictStored = d.NumValues, int64(d.UncompressedSize), int64(d.HeaderLen+d.CompressedSize)
			b.dictPlain = int64(d.HeaderLen + d.UncompressedSize)
			if w > 0 {
				b.dictBytes = int64(d.NumValues) * w
			}
		}
	}
	switch from := int64(valueWidth(col.Source)); {
	case leaf.Type == pqfile.Boolean:
		b.plain = s.live / 8
	case w > 0:
		b.plain = s.live * w
	case from > 0: // fixed length to byte array
		b.plain = s.live * (4 + from)
	case statesBytes(c.Meta):
		b.plain = max(*c.Meta.SizeStatistics.UnencodedByteArrayBytes, 0) + 4*s.live
	case plainOnly:
		b.plain = max(c.Meta.TotalUncompressedSize, 0)
	}
	return b, nil
}

// statesBytes reports whether size statistics tell how many bytes the values
// have. Arrow C++ counts too few of DELTA_BYTE_ARRAY values: prefixes are left
// out.
func statesBytes(m *pqfile.ColumnMetaData) bool {
	return m.SizeStatistics != nil && m.SizeStatistics.UnencodedByteArrayBytes != nil &&
		!slices.Contains(m.Encodings, pqfile.DeltaByteArray)
}

// constantBound gives the bounds of a column that the file lacks.
func constantBound(leaf *pqfile.Node, v *pqfile.Values, live int64) bound {
	switch {
	case v.N == 0:
		return bound{}
	case leaf.Type == pqfile.Boolean:
		return bound{plain: live / 8, dictN: -1}
	}
	one := int64(len(appendPlain(nil, leaf.Type, v, 0, 1)))
	return bound{plain: live * one, dictN: 1, dictBytes: one}
}

// dataEncodings tells whether a chunk's data pages are all dictionary-coded, or
// all PLAIN, as far as the footer lets one be sure.
func dataEncodings(m *pqfile.ColumnMetaData) (dictOnly, plainOnly bool) {
	dict, plain, other := 0, 0, 0
	count := func(e pqfile.Encoding) {
		switch {
		case dictionaryCoded(e):
			dict++
		case e == pqfile.Plain:
			plain++
		default:
			other++
		}
	}
	if len(m.EncodingStats) > 0 {
		for _, s := range m.EncodingStats {
			if (s.PageType == pqfile.DataPage || s.PageType == pqfile.DataPageV2) && s.Count > 0 {
				count(s.Encoding)
			}
		}
		return dict > 0 && plain+other == 0, plain > 0 && dict+other == 0
	}
	for _, e := range m.Encodings {
		if e != pqfile.RLE && e != pqfile.BitPacked { // those of levels
			count(e)
		}
	}
	if slices.ContainsFunc(m.Encodings, dictionaryCoded) {
		return plain+other == 0, false
	}
	return false, plain > 0 && other == 0
}
