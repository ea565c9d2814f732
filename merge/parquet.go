package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Parquet returns the view of all rows as one Parquet file.
func (e *Engine) Parquet(s Scan) View {
	return &parquetView{engine: e, scan: e.withMetadata(s), files: s.Plan.Files}
}

// Part returns the view of one data file's visible rows, s.Plan.Files[i]. It is
// the file itself, byte for byte, if that is what the view would say. It holds on
// to no other file of the plan.
func (e *Engine) Part(s Scan, i int) View {
	files := []snapshot.File{s.Plan.Files[i].Alone()}
	s.Plan = nil
	return &parquetView{engine: e, scan: e.withMetadata(s), files: files, part: true}
}

// parquetView is a Parquet file over data files. Its layout is built on first
// use and kept in the engine's cache. Safe for concurrent use.
type parquetView struct {
	engine *Engine
	scan   Scan
	files  []snapshot.File
	part   bool

	once     sync.Once
	identity string
	idErr    error
}

var (
	_ View      = (*parquetView)(nil)
	_ Opener    = (*parquetView)(nil)
	_ Explainer = (*parquetView)(nil)
)

// Size implements View.
func (v *parquetView) Size(ctx context.Context) (int64, error) {
	l, err := v.layout(ctx)
	if err != nil {
		return 0, err
	}
	return l.length, nil
}

// ReadAt implements View.
func (v *parquetView) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	l, err := v.layout(ctx)
	if err != nil {
		return 0, err
	}
	return l.readAt(ctx, nil, p, off)
}

// Open implements Opener.
func (v *parquetView) Open() Handle {
	h := &handle{view: v}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// layout returns the view's layout from the cache, or builds it.
func (v *parquetView) layout(ctx context.Context) (*layout, error) {
	key, err := v.key()
	if err != nil {
		return nil, err
	}
	return v.cachedLayout(ctx, "layout|"+key, func(ctx context.Context) (*layout, error) {
		if l := v.load(ctx, key); l != nil {
			return l, nil
		}
		return v.build(ctx, key)
	})
}

// cachedLayout returns a layout from the cache, or what load gives. It holds on to
// the view, and thereby to the view's data files.
func (v *parquetView) cachedLayout(ctx context.Context, key string, load func(context.Context) (*layout, error)) (*layout, error) {
	held := int64(1 << 10)
	if !v.part {
		held = v.scan.Plan.Bytes
	}
	l, err := v.engine.cached(ctx, key, func(ctx context.Context) (any, int64, error) {
		l, err := load(ctx)
		if err != nil {
			return nil, 0, err
		}
		return l, l.heap + held, nil
	})
	if err != nil {
		return nil, err
	}
	return l.(*layout), nil
}

// build makes the layout, and has it kept once its footer is made.
func (v *parquetView) build(ctx context.Context, key string) (*layout, error) {
	l, err := v.engine.build(ctx, key, v.scan, v.files, v.part)
	if err == nil && l.footer != nil {
		l.footer.keep = func(ctx context.Context, footer []byte) { v.keep(ctx, key, l, footer) }
	}
	return l, err
}

// key identifies the view within one engine: the table and where its files are (a
// copy of a table has all else in common with it), the schema, the data files with
// their delete sets, and what kind of view it is.
func (v *parquetView) key() (string, error) {
	v.once.Do(func() {
		if v.idErr = v.scan.invalid; v.idErr != nil {
			return
		}
		schema, err := json.Marshal(v.scan.Schema)
		if err != nil {
			v.idErr = fmt.Errorf("schema of table %s: %w", v.scan.Table.UUID, err)
			return
		}
		mapping, err := json.Marshal(v.scan.Table.NameMapping)
		if err != nil {
			v.idErr = fmt.Errorf("name mapping of table %s: %w", v.scan.Table.UUID, err)
			return
		}
		h := sha256.New()
		fmt.Fprintf(h, "%d|%s|%q|%q|%s|%s|%v|%d|", LayoutFormat, v.scan.Table.UUID, v.scan.Table.Location, source.PlaceOf(v.scan.Store), schema, mapping, v.part, len(v.files))
		for i := range v.files {
			f := &v.files[i]
			fmt.Fprintf(h, "%q|%q|%t|", f.Path, f.DeleteKey(), source.InStore(v.scan.Store, f.Path))
			if v.scan.metadata {
				fmt.Fprintf(h, "%d|%d|%d|", f.SpecID, f.Sequence, f.FirstRowID)
			}
		}
		v.identity = hex.EncodeToString(h.Sum(nil))
	})
	return v.identity, v.idErr
}

// build makes the layout of files under the scan's schema; key is its cache
// identity.
func (e *Engine) build(ctx context.Context, key string, s Scan, files []snapshot.File, part bool) (*layout, error) {
	base, err := pqfile.ViewOf(s.Schema)
	if err != nil {
		return nil, err
	}
	inputs, err := e.openInputs(ctx, s, files)
	if err != nil {
		return nil, err
	}
	view, err := e.project(ctx, s, base, inputs)
	if err != nil {
		return nil, err
	}
	if part && identical(inputs[0], view, e.opt.NoSplice) {
		if object, ok := inputs[0].pq.Object.(source.Remote); ok {
			return e.wholeRemote(inputs[0], object), nil
		}
		return e.wholeFile(inputs[0]), nil
	}
	groups, err := e.plan(ctx, view, coalesce(sourcesOf(inputs), view, e.opt.NoCoalesce))
	if err != nil {
		return nil, err
	}
	l := e.arrange(groups)
	rows := int64(0)
	for _, in := range inputs {
		l.heap += in.heap()
		l.objects = append(l.objects, in.object)
		rows += in.firstRow[len(in.firstRow)-1]
	}
	l.summary = summaryOf(groups, rows)
	l.footer, err = e.newFooter(key, s, view, groups)
	if err != nil {
		return nil, err
	}
	l.add(l.footer)
	return l, nil
}

// project settles the view's schema and maps every input onto it, but for those
// without visible rows: they have no part in it, and need not fit it.
func (e *Engine) project(ctx context.Context, s Scan, base *pqfile.Schema, inputs []*input) (*pqfile.Schema, error) {
	onto := func(view *pqfile.Schema) error {
		g, _ := errgroup.WithContext(ctx)
		g.SetLimit(e.workers())
		for _, in := range inputs {
			if view != base && !in.hasLive() {
				continue
			}
			g.Go(func() error {
				return pqfile.Protect(func() error { return in.project(s, view) })
			})
		}
		return g.Wait()
	}
	if err := onto(base); err != nil {
		return nil, err
	}
	view := shape(base, inputs)
	return view, onto(view)
}

// plan decides for every chunk of the view what it is and how long.
func (e *Engine) plan(ctx context.Context, view *pqfile.Schema, parts [][]groupSource) ([]group, error) {
	groups := make([]group, len(parts))
	for i, sources := range parts {
		g := &groups[i]
		g.sources = sources
		for _, s := range sources {
			g.rows += s.live
		}
		g.chunks = make([]chunk, len(view.Leaves))
		for j, leaf := range view.Leaves {
			c, err := e.classify(sources, leaf)
			if err != nil {
				return nil, err
			}
			g.chunks[j] = c
		}
	}
	for j, leaf := range view.Leaves {
		codec, one := columnCodec(groups, leaf.Leaf)
		for i := range groups {
			c := &groups[i].chunks[j]
			if c.codec = codec; !one {
				own, _ := storedCodec(&groups[i], leaf.Leaf)
				c.codec = storableCodec(own)
			}
		}
	}
	w, ctx := errgroup.WithContext(ctx)
	w.SetLimit(e.workers())
	for i := range groups {
		w.Go(func() error {
			return pqfile.Protect(func() error { return e.planGroup(ctx, view, &groups[i]) })
		})
	}
	return groups, w.Wait()
}

// planGroup fixes the lengths of a group's chunks.
func (e *Engine) planGroup(ctx context.Context, view *pqfile.Schema, g *group) error {
	together := e.together(g)
	if len(g.sources) == 1 {
		s := &g.sources[0]
		s.liveRun = hasLiveRun(s.in.deleted, s.first, s.first+s.rows, e.limits.keptRows)
	}
	for j, leaf := range view.Leaves {
		c := &g.chunks[j]
		if together != nil && c.kind == rewrittenChunk {
			together.add(c, leaf)
		} else if err := e.planChunk(ctx, g, c, leaf); err != nil {
			return err
		}
	}
	if together == nil {
		return nil
	}
	return together.measure(ctx)
}

// planChunk fixes a chunk's length.
func (e *Engine) planChunk(ctx context.Context, g *group, c *chunk, leaf *pqfile.Node) error {
	switch c.kind {
	case rawChunk:
		return c.planRaw(ctx)
	case synthesizedChunk:
		return c.synthesize(g, leaf)
	case releveledChunk:
		if err := e.planReleveled(ctx, c); !errors.Is(err, errNotFlat) {
			return err
		}
		c.kind = rewrittenChunk
	}
	r := &rewrite{engine: e, sources: g.sources, form: pageForm{leaf: leaf, codec: c.codec}}
	if err := r.plan(ctx, c); err != nil {
		return err
	}
	c.describeForm(&r.form)
	return nil
}

// describeForm completes what the footer says of a rewritten chunk.
func (c *chunk) describeForm(form *pageForm) {
	c.uncompressed += c.size + form.keptPlain
	c.size += form.kept
	c.dictionary, c.encodings = form.dictionaryLength(), form.encodings()
}

// planRaw takes a stored chunk's extent and mends its description.
func (c *chunk) planRaw(ctx context.Context) error {
	m := c.stored.Meta
	c.codec = m.Codec
	c.size, c.uncompressed, c.values = c.stored.Length, m.TotalUncompressedSize, m.NumValues
	c.encodings = servedEncodings(m.Encodings)
	if n, known := c.stored.DictionaryLength(); known {
		c.dictionary = n
		return nil
	}
	// The offsets are those of a writer that got them wrong: look.
	d, err := c.stored.Dictionary(ctx)
	if err != nil {
		return err
	}
	if d.Present {
		c.dictionary = int64(d.HeaderLen + d.CompressedSize)
	}
	return nil
}

// planReleveled reads the chunk's page headers.
func (e *Engine) planReleveled(ctx context.Context, c *chunk) error {
	out, err := relevel(ctx, c.stored, func(from, n int64) segment { return e.raw(c.stored.File.Object, from, n) })
	if err != nil {
		return err
	}
	c.codec = c.stored.Meta.Codec
	c.segments, c.size, c.uncompressed = out.segments, out.size, c.stored.Meta.TotalUncompressedSize+out.size-c.stored.Length
	c.values, c.dictionary = c.stored.Meta.NumValues, out.dictionary
	c.encodings = servedEncodings(append([]pqfile.Encoding{pqfile.RLE}, c.stored.Meta.Encodings...))
	return nil
}

// raw returns a segment of a data file.
func (e *Engine) raw(object source.Object, from, n int64) segment {
	s := e.rawSegment(object, from, n)
	if remote, ok := object.(source.Remote); ok {
		return newRemoteSegment(s, remote)
	}
	return &s
}

func (e *Engine) rawSegment(object source.Object, from, n int64) rawSegment {
	s := rawSegment{object: object, from: from, n: n}
	if e.opt.Counters != nil {
		s.served = &e.opt.Counters.RawBytes
	}
	return s
}

func usesDictionary(encodings []pqfile.Encoding) bool {
	return slices.ContainsFunc(encodings, dictionaryCoded)
}

// dictionaryCoded reports whether an encoding's values are indexes, by either
// of its names.
func dictionaryCoded(e pqfile.Encoding) bool {
	return e == pqfile.PlainDictionary || e == pqfile.RLEDictionary
}

// servedEncodings lists a raw chunk's encodings for a footer without encoding
// statistics. Readers take PLAIN_DICTIONARY alone for "all pages are
// dictionary-coded", which only the statistics could say: the page encodings
// are spelled RLE_DICTIONARY beside the dictionary page's PLAIN.
func servedEncodings(encodings []pqfile.Encoding) []pqfile.Encoding {
	var out []pqfile.Encoding
	seen := make(map[pqfile.Encoding]bool)
	add := func(e pqfile.Encoding) {
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	for _, e := range encodings {
		if e == pqfile.PlainDictionary {
			add(pqfile.Plain)
			e = pqfile.RLEDictionary
		}
		add(e)
	}
	return out
}

// bandBytes is how many bytes of row groups are laid out column by column.
// Hadoop-like readers deal row groups out by where they start, in portions of
// twice that and more.
const bandBytes = 64 << 20

// arrange places the chunks one after another behind the magic, in bands in which
// the chunks of a column follow one another: what a kernel reads ahead past a
// chunk's end is then of a column that is being read. Over an object store it does
// not, and chunks lie as they do in the sources, to be fetched together.
func (e *Engine) arrange(groups []group) *layout {
	l := &layout{}
	l.add(&memorySegment{data: []byte(magic), what: "magic"})
	if l.remote = slices.ContainsFunc(groups, func(g group) bool { return anyRemote(g.sources) }); l.remote {
		l.places = newChunkPlaces(len(groups), len(groups[0].chunks))
	}
	for from := 0; from < len(groups); {
		to := from + 1
		for bytes := groups[from].length(); !l.remote && to < len(groups); to++ {
			if bytes += groups[to].length(); bytes > bandBytes {
				break
			}
		}
		for j := range groups[from].chunks {
			for i := from; i < to; i++ {
				remote := anyRemote(groups[i].sources)
				if remote {
					l.align()
				}
				e.place(l, &groups[i].chunks[j])
				if l.places != nil {
					l.places.at[i*l.places.leaves+j] = viewRange{groups[i].chunks[j].offset, l.length}
				}
				if remote {
					l.align()
				}
			}
		}
		for i := from; i < to; i++ {
			g := &groups[i]
			g.bytes = g.length()
			if len(g.chunks) > 0 {
				g.offset = g.chunks[0].offset
			}
			l.heap += 512 * int64(len(g.chunks))
		}
		from = to
	}
	if l.places != nil {
		l.places.sort()
	}
	return l
}

// place appends a chunk to the layout.
func (e *Engine) place(l *layout, c *chunk) {
	c.offset = l.length
	switch c.kind {
	case rawChunk:
		l.add(e.raw(c.stored.File.Object, c.stored.Start, c.stored.Length))
	case synthesizedChunk:
		l.add(&memorySegment{data: c.data, what: "synthesized"})
	default:
		for _, s := range c.segments {
			l.add(s)
		}
		l.heap += 192 * int64(len(c.segments))
	}
}

// length is the group's chunks together.
func (g *group) length() int64 {
	n := int64(0)
	for j := range g.chunks {
		n += g.chunks[j].size
	}
	return n
}

// magic starts and ends every Parquet file.
const magic = "PAR1"
