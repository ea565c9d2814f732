package pqfile

import (
	"context"
	"fmt"
	"io"
	"math"
)

// shreddedReader reads the value column of a variant that is stored in pieces:
// it reads the same rows of all leaves and puts every value together.
type shreddedReader struct {
	file     *File
	col      *Column
	readers  []*ColumnReader
	cursors  []leafCursor
	names    variantNames
	builders []*variantBuilder // by depth
	depth    int
	out      batch
}

func newShreddedReader(f *File, rowGroup int, col *Column) (*shreddedReader, error) {
	s := &shreddedReader{file: f, col: col}
	for _, leaf := range col.Shredding.leaves {
		own := &Column{Leaf: leaf, Source: leaf, SameLevels: true, Convert: Conversion{From: leaf, Width: fixedWidth(leaf)}}
		for d := range leaf.MaxDef + 1 {
			own.DefMap = append(own.DefMap, uint8(d))
		}
		r, err := f.Column(rowGroup, own)
		if err != nil {
			s.close()
			return nil, err
		}
		s.readers = append(s.readers, r)
		s.cursors = append(s.cursors, leafCursor{node: leaf})
	}
	return s, nil
}

func (s *shreddedReader) close() {
	for _, r := range s.readers {
		r.Close()
	}
}

func (s *shreddedReader) skip(ctx context.Context, n int64) error {
	for _, r := range s.readers {
		if err := r.Skip(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// read fills v with the next n rows.
func (s *shreddedReader) read(ctx context.Context, n int, v *Vector) error {
	for i, r := range s.readers {
		got, err := r.Read(ctx, n)
		if err == nil && got.Rows != n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		s.cursors[i] = leafCursor{node: r.col.Leaf, v: got}
	}
	if err := s.assemble(); err != nil {
		return s.file.wrap(fmt.Errorf("column %s: %w", s.col.Leaf.fullName(), err))
	}
	v.Values = s.out.plain
	if s.col.Leaf.MaxRep > 0 {
		v.Rep, v.Def = s.out.rep, s.out.def
	} else if v.Values.N < n {
		v.Def = s.out.def
	}
	return nil
}

// assemble makes the entries of the batch that the cursors hold.
func (s *shreddedReader) assemble() error {
	s.out.reset()
	p := &s.out.plain
	p.Type, p.Offsets = ByteArray, append(p.Offsets[:0], 0)
	root := &s.col.Shredding.root
	metadata := &s.cursors[0]
	for metadata.entry < metadata.entries() {
		def, rep := metadata.def(), metadata.rep()
		for _, i := range root.all {
			if s.cursors[i].atEnd() || s.cursors[i].rep() != rep {
				return errPieces
			}
		}
		level := s.col.DefMap[def]
		if level == LevelForbidden {
			return fmt.Errorf("%w: NULL in a required column", ErrCorrupt)
		}
		s.out.def, s.out.rep = append(s.out.def, level), append(s.out.rep, rep)
		if int(def) < s.col.Shredding.variant.Present {
			if err := s.pass(root.all); err != nil {
				return err
			}
			continue
		}
		if err := s.entry(root, metadata); err != nil {
			return err
		}
	}
	for i := range s.cursors {
		if !s.cursors[i].atEnd() {
			return errPieces
		}
	}
	return nil
}

// errPieces: the columns of one variant do not agree on what is there.
var errPieces = fmt.Errorf("%w: the pieces of a variant do not fit together", ErrCorrupt)

// entry appends one variant value.
func (s *shreddedReader) entry(root *piece, metadata *leafCursor) error {
	m, ok := metadata.next()
	if !ok {
		return fmt.Errorf("%w: variant without metadata", ErrCorrupt)
	}
	if err := s.names.read(m); err != nil {
		return err
	}
	p := &s.out.plain
	s.depth = 0
	data, present, err := s.construct(p.Data, root)
	if err != nil {
		return err
	}
	if !present {
		data = append(data, 0) // variant null
	}
	if len(data) > math.MaxUint32 {
		return fmt.Errorf("%w: batch of more than 4 GiB", ErrUnsupported)
	}
	p.Data, p.N = data, p.N+1
	p.Offsets = append(p.Offsets, uint32(len(data)))
	return nil
}

// construct appends the value of the next entry of a piece whose parent is
// present, and reports whether there is one.
func (s *shreddedReader) construct(dst []byte, p *piece) (out []byte, present bool, err error) {
	var value []byte
	stored := false
	if p.value >= 0 {
		if s.cursors[p.value].atEnd() {
			return dst, false, errPieces
		}
		value, stored = s.cursors[p.value].next()
	}
	switch {
	case p.typed == nil:
	case p.leaf >= 0:
		if s.cursors[p.leaf].atEnd() {
			return dst, false, errPieces
		}
		if typed, ok := s.cursors[p.leaf].next(); ok {
			if stored {
				return dst, false, fmt.Errorf("%w: both value and typed_value", ErrCorrupt)
			}
			dst, err = p.encode(dst, typed)
			return dst, true, err
		}
	default:
		first := &s.cursors[p.below[0]]
		if first.atEnd() {
			return dst, false, errPieces
		}
		if int(first.def()) < p.typed.Present {
			err = s.pass(p.below)
			break
		}
		if p.element == nil {
			dst, err = s.object(dst, p, value, stored)
			return dst, true, err
		}
		if stored {
			return dst, false, fmt.Errorf("%w: both value and typed_value", ErrCorrupt)
		}
		dst, err = s.array(dst, p)
		return dst, true, err
	}
	if err != nil || !stored {
		return dst, false, err
	}
	if len(value) == 0 {
		return dst, false, fmt.Errorf("%w: empty variant value", ErrCorrupt)
	}
	return append(dst, value...), true, nil
}

// object appends an object of shredded fields and of those of value.
func (s *shreddedReader) object(dst []byte, p *piece, value []byte, stored bool) ([]byte, error) {
	b := s.builder()
	defer func() { s.depth-- }()
	for i := range p.fields {
		f := &p.fields[i]
		if s.cursors[f.all[0]].atEnd() {
			return dst, errPieces
		}
		if f.node.Optional && int(s.cursors[f.all[0]].def()) < f.node.Present {
			if err := s.pass(f.all); err != nil {
				return dst, err
			}
			continue
		}
		from := len(b.data)
		data, present, err := s.construct(b.data, &f.piece)
		if err != nil {
			return dst, err
		}
		b.data = data
		if !present {
			continue
		}
		id, ok := s.names.ids[f.name]
		if !ok {
			return dst, fmt.Errorf("%w: variant field %q is not in the metadata", ErrCorrupt, f.name)
		}
		b.fields = append(b.fields, variantField{id, f.name, from, len(data)})
	}
	if stored {
		own := len(b.fields)
		if err := s.names.addObject(b, value); err != nil {
			return dst, err
		}
		for _, f := range b.fields[own:] {
			if p.field(f.name) {
				return dst, fmt.Errorf("%w: variant field %q is both in value and in typed_value", ErrCorrupt, f.name)
			}
		}
	}
	return b.appendObject(dst)
}

// array appends a list of pieces; its first leaf is at or above the list's
// level.
func (s *shreddedReader) array(dst []byte, p *piece) ([]byte, error) {
	b := s.builder()
	defer func() { s.depth-- }()
	first := &s.cursors[p.below[0]]
	if int(first.def()) < p.typed.Entry {
		if err := s.pass(p.below); err != nil {
			return dst, err
		}
		return b.appendArray(dst), nil
	}
	for {
		from := len(b.data)
		data, present, err := s.construct(b.data, p.element)
		if err != nil {
			return dst, err
		}
		if !present {
			data = append(data, 0) // variant null
		}
		b.data = data
		b.fields = append(b.fields, variantField{from: from, to: len(data)})
		more := !first.atEnd() && int(first.rep()) == p.typed.Repeat
		for _, i := range p.below[1:] {
			if c := &s.cursors[i]; (!c.atEnd() && int(c.rep()) == p.typed.Repeat) != more {
				return dst, errPieces
			}
		}
		if !more {
			return b.appendArray(dst), nil
		}
	}
}

// builder returns the builder of the next depth.
func (s *shreddedReader) builder() *variantBuilder {
	if s.depth == len(s.builders) {
		s.builders = append(s.builders, &variantBuilder{})
	}
	b := s.builders[s.depth]
	s.depth++
	b.reset()
	return b
}

// pass passes over one entry, without a value, of each leaf.
func (s *shreddedReader) pass(leaves []int) error {
	for _, i := range leaves {
		c := &s.cursors[i]
		if c.atEnd() || int(c.def()) == c.node.MaxDef {
			return errPieces
		}
		c.entry++
	}
	return nil
}

// leafCursor walks the entries of one leaf's vector.
type leafCursor struct {
	node         *Node
	v            *Vector
	entry, value int
}

func (c *leafCursor) entries() int {
	if c.v.Def == nil && c.v.Rep == nil {
		return c.v.Rows
	}
	return max(len(c.v.Def), len(c.v.Rep))
}

func (c *leafCursor) atEnd() bool { return c.entry >= c.entries() }

func (c *leafCursor) def() uint8 {
	if c.v.Def == nil {
		return uint8(c.node.MaxDef)
	}
	return c.v.Def[c.entry]
}

func (c *leafCursor) rep() uint8 {
	if c.v.Rep == nil {
		return 0
	}
	return c.v.Rep[c.entry]
}

// next passes over an entry and returns its value's bytes, false if there is
// none.
func (c *leafCursor) next() ([]byte, bool) {
	def := c.def()
	c.entry++
	if int(def) != c.node.MaxDef {
		return nil, false
	}
	v, k := &c.v.Values, c.value
	c.value++
	if v.Dict != nil {
		v, k = v.Dict, int(v.Index[k])
	}
	switch {
	case v.Bools != nil:
		return v.Bools[k : k+1], true
	case v.Type == ByteArray:
		return v.Data[v.Offsets[k]:v.Offsets[k+1]], true
	}
	return v.Fixed[k*v.Width : (k+1)*v.Width], true
}
