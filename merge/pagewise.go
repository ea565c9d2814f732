package merge

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// A chunk that is compacted as it is encoded is laid out page by page where that
// pays: pages without deleted rows stay as stored, those without live ones
// vanish, and what is between is made in runs that stand alone. Where the pages
// are is told by the offset index, or by their headers.
const (
	// keptRows is how many rows in a row must be live before a page is looked for
	// that could stay: pages of fewer rows are rare.
	keptRows = 4 << 10
	// pieceBytes is about how long a run of rewritten pages is: a reader that runs
	// into it by reading ahead has little made.
	pieceBytes = 1 << 20
)

// storedPage is a data page of a chunk.
type storedPage struct {
	offset, size int64 // header included
	first, rows  int64 // first is a file position
	// By its header, if that was read:
	plain int64 // uncompressed bytes of a page that is not dictionary-coded
	coded bool
}

// lay lays the chunk out as segments; estimate is about how long it will be.
func (r *rewrite) lay(ctx context.Context, c *chunk, estimate int64) error {
	r.to = r.encoded.Start + r.encoded.Length
	r.from = r.encoded.Start + r.form.kept
	if r.form.kept > 0 {
		c.segments = append(c.segments, r.engine.raw(r.encoded.File.Object, r.encoded.Start, r.form.kept))
	}
	pages, err := r.listPages(ctx, estimate)
	if err != nil {
		return err
	}
	if len(pages) > 1 && (estimate > r.engine.limits.pieceBytes || r.anyClean(pages)) {
		ok, err := r.layPages(ctx, c, pages)
		if ok || err != nil {
			return err
		}
	}
	if limit := r.engine.limits.runBytes; estimate > limit && r.form.leaf.Type == pqfile.ByteArray && !r.form.dict && len(pages) == 0 {
		// What the footer says of its length may be a lie.
		r.encoded = nil
		return r.layRuns(ctx, c, r.toMeasure())
	}
	if err := r.fix(ctx); err != nil {
		return err
	}
	c.add(r)
	return nil
}

// layRuns lays out a chunk whose rows are decoded.
func (r *rewrite) layRuns(ctx context.Context, c *chunk, estimate int64) error {
	runs := []*rewrite{r}
	if limit := r.engine.limits.runBytes; estimate > limit && len(r.sources) == 1 {
		runs = r.split(estimate/limit + 1)
	}
	for _, run := range runs {
		if err := run.fix(ctx); err != nil {
			return err
		}
		c.add(run)
	}
	return nil
}

// listPages returns the chunk's data pages if knowing them may pay, and they can
// be known.
func (r *rewrite) listPages(ctx context.Context, estimate int64) ([]storedPage, error) {
	if r.engine.opt.NoPages {
		return nil, nil
	}
	s := &r.sources[0]
	kept := r.sameLevels() && s.liveRun
	if !kept && estimate <= r.engine.limits.pieceBytes {
		return nil, nil
	}
	// The sizes of strings are in the headers only.
	if r.form.dict && !r.form.fallback || r.form.leaf.Type != pqfile.ByteArray {
		index, err := r.encoded.OffsetIndex(ctx)
		if err != nil {
			return nil, err
		}
		if pages := r.indexed(index); pages != nil {
			return pages, nil
		}
	}
	if !kept && estimate <= r.engine.limits.runBytes {
		return nil, nil
	}
	return r.walkPages(ctx)
}

// hasLiveRun reports whether so many rows in a row are live, or nearly so many.
func hasLiveRun(deleted *deletes.Positions, from, to, rows int64) bool {
	step := (rows + 1) / 2
	for ; to-from >= step; from += step {
		if deleted.CountRange(from, from+step) == 0 {
			return true
		}
	}
	return false
}

// indexed returns the pages of an offset index, if they lie one after another and
// fill the chunk.
func (r *rewrite) indexed(index *pqfile.OffsetIndex) []storedPage {
	if index == nil {
		return nil
	}
	s := &r.sources[0]
	pages, at := make([]storedPage, len(index.Pages)), r.from
	for i, p := range index.Pages {
		end := s.rows
		if i+1 < len(pages) {
			end = index.Pages[i+1].FirstRow
		}
		pages[i] = storedPage{offset: p.Offset, size: int64(p.CompressedSize), first: s.first + p.FirstRow, rows: end - p.FirstRow, coded: r.form.dict}
		if p.Offset != at || pages[i].rows <= 0 {
			return nil
		}
		at += pages[i].size
	}
	if at != r.to {
		return nil
	}
	return pages
}

// walkPages reads the page headers; nil if they are not as the form expects.
func (r *rewrite) walkPages(ctx context.Context) ([]storedPage, error) {
	s := &r.sources[0]
	var pages []storedPage
	row, end := s.first, s.first+s.rows
	for at := r.from; row < end; {
		var h pqfile.PageHeader
		if at >= r.to || len(pages) == maxHeaderReads {
			return nil, nil
		}
		n, err := readHeader(ctx, r.encoded.File.Object, at, r.to, &h)
		if err != nil {
			return nil, err
		}
		rows, encoding, ok := dataPage(&h)
		p := storedPage{offset: at, size: int64(n) + int64(h.CompressedSize), first: row, rows: rows, coded: dictionaryCoded(encoding)}
		if !p.coded {
			p.plain = int64(h.UncompressedSize)
		}
		if !ok || rows <= 0 || rows > end-row || h.CompressedSize < 0 || h.UncompressedSize < 0 || p.size > r.to-at || !r.expects(p.coded, encoding) {
			return nil, nil
		}
		pages = append(pages, p)
		at, row = at+p.size, row+rows
	}
	return pages, nil
}

// expects reports whether the form provides for a page's encoding.
func (r *rewrite) expects(coded bool, e pqfile.Encoding) bool {
	if coded {
		return r.form.dict
	}
	return e == pqfile.Plain && (!r.form.dict || r.form.fallback)
}

// live counts the visible rows of a page.
func (p *storedPage) live(deleted *deletes.Positions) int64 {
	return p.rows - deleted.CountRange(p.first, p.first+p.rows)
}

// sameLevels reports whether the chunk's levels are those of the view: pages of
// others cannot stay.
func (r *rewrite) sameLevels() bool {
	return r.sources[0].in.columns[r.form.leaf.Leaf].SameLevels
}

// fate is what becomes of a stored page.
type fate int

const (
	remade   fate = iota // its live rows are part of a run
	stays                // as it is stored
	vanishes             // it has no live row
)

func (r *rewrite) fate(p *storedPage) fate {
	switch p.live(r.sources[0].in.deleted) {
	case 0:
		return vanishes
	case p.rows:
		if r.sameLevels() {
			return stays
		}
	}
	return remade
}

func (r *rewrite) anyClean(pages []storedPage) bool {
	for i := range pages {
		if r.fate(&pages[i]) != remade {
			return true
		}
	}
	return false
}

// layPages lays out kept pages and runs of rewritten ones; false if a run's
// length has no bound.
func (r *rewrite) layPages(ctx context.Context, c *chunk, pages []storedPage) (bool, error) {
	laid := chunk{}
	for i := 0; i < len(pages); {
		from := i
		switch r.fate(&pages[i]) {
		case vanishes:
			i++
			continue
		case stays:
			for ; i < len(pages) && r.fate(&pages[i]) == stays; i++ {
				laid.values += pages[i].rows
			}
			kept := r.engine.keptPages(r.encoded.File.Object, r.form.leaf.Name, r.form.dict, pages[from:i])
			laid.segments = append(laid.segments, kept)
			laid.size += kept.size()
			laid.uncompressed = r.encoded.Meta.TotalUncompressedSize // no page may be longer than all
			continue
		}
		for bytes := int64(0); i < len(pages) && bytes < r.engine.limits.pieceBytes && r.fate(&pages[i]) == remade; i++ {
			bytes += max(pages[i].size, pages[i].plain)
		}
		run := r.run(pages[from:i])
		if run == nil {
			return false, nil
		}
		if err := run.fix(ctx); err != nil {
			return false, err
		}
		laid.add(run)
	}
	// The statistics are of the kept rows too, and the dictionary is decoded once.
	form := pageForm{leaf: r.form.leaf, rows: pageRows, bytes: pageBytes}
	c.runs = []*rewrite{{engine: r.engine, sources: r.sources, form: form, discard: true, statistics: true}}
	c.segments = append(c.segments, laid.segments...)
	c.values, c.size, c.uncompressed = c.values+laid.values, c.size+laid.size, c.uncompressed+laid.uncompressed
	return true, nil
}

// run returns the part of the chunk that is made of pages, nil if nothing bounds
// its length.
func (r *rewrite) run(pages []storedPage) *rewrite {
	run, s := *r, r.sources[0]
	last := &pages[len(pages)-1]
	s.first, s.rows = pages[0].first, last.first+last.rows-pages[0].first
	s.live = s.rows - s.in.deleted.CountRange(s.first, s.first+s.rows)
	run.sources, run.headless, run.identity = []groupSource{s}, true, ""
	run.from, run.to = pages[0].offset, last.offset+last.size
	if r.form.leaf.Type != pqfile.ByteArray || r.form.dict && !r.form.fallback {
		return &run
	}
	stored := storedPages{dictN: r.form.dictN, dictBytes: r.form.dictBytes}
	for i := range pages {
		stored.plain += pages[i].plain
		if pages[i].coded {
			stored.dictRows += pages[i].rows
		}
	}
	if !r.form.fallback {
		run.plainBytes = stored.plain
		run.form.rows, run.form.bytes = pageRows, math.MaxInt
		if run.plainForm(s.live) == unknown {
			return nil
		}
		return &run
	}
	coded := stored.dictRows - s.in.deleted.CountRange(s.first, s.first+stored.dictRows)
	n, ok := run.form.fallBack(stored, s.live, coded)
	if run.length = n - run.form.dictionaryLength(); !ok {
		return nil
	}
	return &run
}

// add appends a run to the chunk's segments.
func (c *chunk) add(run *rewrite) {
	c.segments = append(c.segments, run)
	c.runs = append(c.runs, run)
	c.size += run.length
	c.values += run.values
}

// keptPages are stored pages of a chunk of which others are rewritten. What an
// offset index says of a page is compared with its header before it is served.
type keptPages struct {
	raw      segment
	from     int64 // where it is in the file
	object   source.Object
	column   string
	coded    bool // the chunk has a dictionary
	pages    []storedPage
	seen     []atomic.Bool
	counters *Counters // may be nil
}

// keptPages returns the segment of pages that follow one another in a file.
func (e *Engine) keptPages(object source.Object, column string, coded bool, pages []storedPage) *keptPages {
	from, last := pages[0].offset, &pages[len(pages)-1]
	return &keptPages{
		raw: e.raw(object, from, last.offset+last.size-from), from: from,
		object: object, column: column, coded: coded,
		pages: pages, seen: make([]atomic.Bool, len(pages)), counters: e.opt.Counters,
	}
}

var _ segment = (*keptPages)(nil)

func (k *keptPages) size() int64 { return k.raw.size() }

func (k *keptPages) readAt(ctx context.Context, h *handle, p []byte, off int64) error {
	from := k.from + off
	to := from + int64(len(p))
	for i := range k.pages {
		page := &k.pages[i]
		if page.offset >= to {
			break
		}
		if page.offset+page.size <= from || k.seen[i].Load() {
			continue
		}
		if err := k.check(ctx, page); err != nil {
			return err
		}
		if !k.seen[i].Swap(true) && k.counters != nil {
			k.counters.PagesCopied.Add(1)
		}
	}
	return k.raw.readAt(ctx, h, p, off)
}

// check compares a page with its header.
func (k *keptPages) check(ctx context.Context, page *storedPage) error {
	var h pqfile.PageHeader
	n, err := readHeader(ctx, k.object, page.offset, page.offset+page.size, &h)
	if err != nil {
		return err
	}
	rows, encoding, ok := dataPage(&h)
	coded := dictionaryCoded(encoding)
	if !ok || rows != page.rows || int64(n)+int64(h.CompressedSize) != page.size || coded && !k.coded || coded != page.coded {
		return fmt.Errorf("%w: %s: column %q: page at %d is not as the offset index says", ErrCorrupt,
			k.object.Location(), k.column, page.offset)
	}
	return nil
}

func (k *keptPages) describe() string {
	return fmt.Sprintf("%d pages of %s as stored", len(k.pages), k.column)
}
