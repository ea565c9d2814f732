package merge

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/icefs/icefs/internal/source"
)

// A kept layout, numbers as unsigned varints, texts behind their lengths:
//
//	form, state (32 bytes)                       what it stands for
//	rows, deleted, raw, synthesized, rewritten   Summary
//	segments, and for each of them
//	  0 what, bytes                              made with the layout
//	  1 file, from, n                            of a data file
//	  2 n                                        gap
//	  3 n, identity (32 bytes)                   rewritten, kept
//	  4 n                                        rewritten, not kept
//	  5 file, from, column, coded, pages, and for each of them: size, rows, coded
//	  6 n                                        footer
//
// Files are numbered as the view has them.
const keptForm = "icefs layout 1"

const (
	keptMemory = iota
	keptRaw
	keptGap
	keptRun
	unkeptRun
	keptStays
	keptFooter
)

// layoutEncoder spells out a layout.
type layoutEncoder struct {
	b      []byte
	places map[source.Object]int
	failed bool
}

// layout returns the layout's bytes, or nil if it cannot be kept.
func (e *layoutEncoder) layout(l *layout, state [sha256.Size]byte) []byte {
	e.b = append(append(e.b, keptForm...), state[:]...)
	s := &l.summary
	e.numbers(s.Rows, s.Deleted, int64(s.Raw), int64(s.Synthesized), int64(s.Rewritten), int64(len(l.segments)))
	for _, s := range l.segments {
		e.segment(s)
		if e.failed || len(e.b) > maxKeptLayout {
			return nil
		}
	}
	return e.b
}

func (e *layoutEncoder) numbers(v ...int64) {
	for _, n := range v {
		e.b = binary.AppendUvarint(e.b, uint64(n))
	}
}

func (e *layoutEncoder) text(s string) {
	e.numbers(int64(len(s)))
	e.b = append(e.b, s...)
}

// file is the number of a data file.
func (e *layoutEncoder) file(o source.Object) int64 {
	i, ok := e.places[o]
	e.failed = e.failed || !ok
	return int64(i)
}

func (e *layoutEncoder) segment(s segment) {
	switch s := s.(type) {
	case *memorySegment:
		e.numbers(keptMemory)
		e.text(s.what)
		e.text(string(s.data))
	case *rawSegment:
		e.raw(s)
	case *remoteSegment:
		e.failed = e.failed || len(s.ranges) != 1 || s.ranges[0] != source.Range{Off: s.from, Len: s.n}
		e.raw(&s.rawSegment)
	case gapSegment:
		e.numbers(keptGap, s.n)
	case *rewrite:
		e.run(s)
	case *keptPages:
		e.numbers(keptStays, e.file(s.object), s.from)
		e.text(s.column)
		e.numbers(bit(s.coded), int64(len(s.pages)))
		for i := range s.pages {
			e.numbers(s.pages[i].size, s.pages[i].rows, bit(s.pages[i].coded))
		}
	case *footer:
		e.numbers(keptFooter, s.length)
	default:
		e.failed = true
	}
}

func (e *layoutEncoder) raw(s *rawSegment) { e.numbers(keptRaw, e.file(s.object), s.from, s.n) }

func (e *layoutEncoder) run(r *rewrite) {
	identity, err := hex.DecodeString(r.key())
	if !r.isKept() || err != nil || len(identity) != sha256.Size {
		e.numbers(unkeptRun, r.length)
		return
	}
	e.numbers(keptRun, r.length)
	e.b = append(e.b, identity...)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// layoutDecoder reads what layoutEncoder wrote.
type layoutDecoder struct {
	b         []byte
	view      *parquetView
	objects   []source.Object
	footerKey string
	failed    bool
}

// layout returns the layout; nil unless it was kept for this state, whole and
// possible.
func (d *layoutDecoder) layout(state [sha256.Size]byte) *layout {
	rest, ok := bytes.CutPrefix(d.b, append([]byte(keptForm), state[:]...))
	if !ok {
		return nil
	}
	d.b = rest
	l := &layout{kept: true}
	for i := range d.view.files {
		l.remote = l.remote || source.InStore(d.view.scan.Store, d.view.files[i].Path)
	}
	s := &l.summary
	s.Rows, s.Deleted = d.number(), d.number()
	s.Raw, s.Synthesized, s.Rewritten = int(d.number()), int(d.number()), int(d.number())
	n := d.number()
	if n > int64(len(d.b)) { // each takes two bytes and more
		return nil
	}
	l.segments, l.starts = make([]segment, 0, n), make([]int64, 0, n)
	for i := range int(n) {
		s := d.segment(l, i)
		if d.failed || s.size() <= 0 || s.size() > math.MaxInt64-l.length {
			return nil
		}
		if l.add(s); len(l.segments) != i+1 {
			return nil
		}
	}
	if len(d.b) > 0 || n == 0 {
		return nil
	}
	l.heap += 256*n + 64*int64(len(d.objects))
	return l
}

func (d *layoutDecoder) number() int64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > math.MaxInt64 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

// take returns the next n bytes.
func (d *layoutDecoder) take(n int64) []byte {
	if n > int64(len(d.b)) {
		d.failed, d.b = true, nil
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *layoutDecoder) text() []byte { return d.take(d.number()) }

// file returns a data file, if it has n bytes at from.
func (d *layoutDecoder) file(i, from, n int64) source.Object {
	if i >= int64(len(d.objects)) || from > d.objects[i].Size() || n > d.objects[i].Size()-from {
		d.failed = true
		return nil
	}
	return d.objects[i]
}

// segment reads segment number i of l.
func (d *layoutDecoder) segment(l *layout, i int) segment {
	e := d.view.engine
	switch d.number() {
	case keptMemory:
		what, data := string(d.text()), bytes.Clone(d.text())
		l.heap += int64(len(what) + len(data))
		return &memorySegment{data: data, what: what}
	case keptRaw:
		file, from, n := d.number(), d.number(), d.number()
		if o := d.file(file, from, n); o != nil {
			return e.raw(o, from, n)
		}
	case keptGap:
		return gapSegment{d.number()}
	case keptRun:
		n := d.number()
		return &keptSegment{view: d.view, layout: l, index: i, n: n, key: runKey(hex.EncodeToString(d.take(sha256.Size)))}
	case unkeptRun:
		return &keptSegment{view: d.view, layout: l, index: i, n: d.number()}
	case keptStays:
		return d.stays(l)
	case keptFooter:
		return &keptSegment{view: d.view, layout: l, index: i, n: d.number(), key: d.footerKey}
	}
	d.failed = true
	return nil
}

// stays reads pages that stay as stored.
func (d *layoutDecoder) stays(l *layout) segment {
	file, from := d.number(), d.number()
	column, coded, n := string(d.text()), d.number() == 1, d.number()
	if n == 0 || n > int64(len(d.b)) {
		d.failed = true
		return nil
	}
	pages := make([]storedPage, n)
	size := int64(0)
	for i := range pages {
		p := storedPage{offset: from + size, size: d.number(), rows: d.number(), coded: d.number() == 1}
		if size += p.size; size < 0 || d.failed {
			d.failed = true
			return nil
		}
		pages[i] = p
	}
	o := d.file(file, from, size)
	if o == nil {
		return nil
	}
	l.heap += 64 * n
	return d.view.engine.keptPages(o, column, coded, pages)
}
