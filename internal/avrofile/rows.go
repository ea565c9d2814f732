package avrofile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/pqfile"
)

// RowReader reads a file's rows as vectors, all columns of a projection at
// once. It holds one decompressed block.
type RowReader struct {
	file    *File
	codec   ocf.Codec
	plan    *plan
	columns []*column // of the view's leaves
	vectors []pqfile.Vector
	out     []*pqfile.Vector

	block  int   // next block to load
	left   int64 // rows left in the loaded block
	row    int64 // rows passed
	d      decoder
	stored []byte
}

// RowReader starts reading at the first row.
func (f *File) RowReader(p *pqfile.Projection) (*RowReader, error) {
	codec, err := newCodec(f.Codec)
	if err != nil {
		return nil, f.unsupported("codec %q", f.Codec)
	}
	r := &RowReader{file: f, codec: codec, vectors: make([]pqfile.Vector, len(p.Columns)), out: make([]*pqfile.Vector, len(p.Columns))}
	byLeaf := make([][]*column, len(f.Schema.Leaves))
	for i := range p.Columns {
		c := newColumn(&p.Columns[i])
		r.columns = append(r.columns, c)
		if c.from != nil {
			byLeaf[c.from.Leaf] = append(byLeaf[c.from.Leaf], c)
		}
		r.out[i] = &r.vectors[i]
	}
	r.plan = newPlan(f.root, byLeaf)
	return r, nil
}

// Close releases the reader's buffers.
func (r *RowReader) Close() {
	if r.codec != nil {
		r.codec.Close()
		r.codec = nil
	}
	r.d, r.stored = decoder{}, nil
}

// Read returns the next n rows, one vector for each leaf of the view: fewer
// only at the file's end, and io.EOF after it. The vectors are valid until the
// next call.
func (r *RowReader) Read(ctx context.Context, n int) ([]*pqfile.Vector, error) {
	for _, c := range r.columns {
		c.reset()
	}
	rows := 0
	for rows < n {
		if r.left == 0 {
			err := r.load(ctx)
			if err == io.EOF && rows > 0 {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		k := int(min(int64(n-rows), r.left))
		for range k {
			r.plan.decode(&r.d, 0)
			if r.d.err != nil {
				return nil, r.failed()
			}
		}
		rows += k
		if err := r.passed(int64(k)); err != nil {
			return nil, err
		}
	}
	for i, c := range r.columns {
		if err := c.vector(&r.vectors[i], rows, r.row-int64(rows)); err != nil {
			return nil, fmt.Errorf("%s: column %q: %w", r.file.Object.Location(), c.leaf.Name, err)
		}
	}
	return r.out, nil
}

// Skip passes over n rows; blocks that are passed over as a whole are not read.
func (r *RowReader) Skip(ctx context.Context, n int64) error {
	for n > 0 {
		if r.left == 0 {
			if r.block < len(r.file.Blocks) && r.file.Blocks[r.block].Rows <= n {
				n -= r.file.Blocks[r.block].Rows
				r.row += r.file.Blocks[r.block].Rows
				r.block++
				continue
			}
			if err := r.load(ctx); err != nil {
				return err
			}
		}
		k := min(n, r.left)
		if k < r.left {
			for range k {
				r.plan.skip(&r.d)
				if r.d.err != nil {
					return r.failed()
				}
			}
		} else {
			r.d.pos = len(r.d.buf)
		}
		n -= k
		if err := r.passed(k); err != nil {
			return err
		}
	}
	return nil
}

// passed counts rows off the loaded block and checks that it ends with its last.
func (r *RowReader) passed(rows int64) error {
	r.left -= rows
	r.row += rows
	if r.left == 0 && r.d.pos != len(r.d.buf) {
		return r.file.corrupt("block %d goes on after its rows", r.block-1)
	}
	return nil
}

// failed describes the decoder's error.
func (r *RowReader) failed() error {
	if r.d.err == io.ErrUnexpectedEOF {
		return r.file.corrupt("block %d is malformed", r.block-1)
	}
	return fmt.Errorf("%s: %w", r.file.Object.Location(), r.d.err)
}

// load reads and decompresses the next block; io.EOF after the last.
func (r *RowReader) load(ctx context.Context) error {
	if r.block >= len(r.file.Blocks) {
		return io.EOF
	}
	b := &r.file.Blocks[r.block]
	r.block++
	if n := b.Size + syncSize; int64(cap(r.stored)) < n {
		r.stored = make([]byte, n)
	} else {
		r.stored = r.stored[:n]
	}
	if _, err := r.file.Object.ReadAt(ctx, r.stored, b.Offset); err != nil {
		return err
	}
	if !bytes.Equal(r.stored[b.Size:], r.file.sync[:]) {
		return r.file.corrupt("no sync marker after block %d", r.block-1)
	}
	data := r.stored[:b.Size]
	if r.codec != nil {
		var err error
		if data, err = r.codec.(ocf.BoundedDecompressor).DecompressBounded(data, maxDecoded); err != nil {
			return r.file.corrupt("block %d: %v", r.block-1, err)
		}
	}
	r.d, r.left = decoder{buf: data}, b.Rows
	return nil
}

// plan is a node with the columns that are read from it, for one reader.
type plan struct {
	*node
	children []*plan
	columns  []*column // of a leaf
	leaves   []*plan   // below, that have columns
}

// newPlan joins a node's tree with the columns of its leaves.
func newPlan(n *node, byLeaf [][]*column) *plan {
	p := &plan{node: n}
	if n.Kind == pqfile.KindLeaf {
		if p.columns = byLeaf[n.Leaf]; len(p.columns) > 0 {
			p.leaves = []*plan{p}
		}
		return p
	}
	for _, child := range n.children {
		c := newPlan(child, byLeaf)
		p.children = append(p.children, c)
		p.leaves = append(p.leaves, c.leaves...)
	}
	return p
}

// level gives each leaf below an entry without a value.
func (p *plan) level(d *decoder, rep, def int) {
	for _, leaf := range p.leaves {
		for _, c := range leaf.columns {
			c.level(d, rep, def)
		}
	}
}

// decode decodes the node's next value, which stands at repetition level rep.
func (p *plan) decode(d *decoder, rep int) {
	if len(p.leaves) == 0 {
		p.skip(d)
		return
	}
	if p.union && p.branch(d) {
		p.level(d, rep, p.Present-1)
		return
	}
	switch p.op {
	case opRecord:
		for _, c := range p.children {
			c.decode(d, rep)
		}
	case opArray, opMap:
		first := true
		for n := d.blockCount(); n > 0; n = d.blockCount() {
			for range n {
				for _, c := range p.children {
					c.decode(d, rep)
				}
				if d.err != nil {
					return
				}
				first, rep = false, p.Repeat
			}
		}
		if first {
			p.level(d, rep, p.Entry-1)
		}
	case opNull:
		p.level(d, rep, p.MaxDef-1)
	default:
		p.level(d, rep, p.MaxDef)
		p.value(d)
	}
}

// branch reads a union's branch and reports whether it is null.
func (p *plan) branch(d *decoder) bool {
	b := d.long()
	if b == int64(p.null) {
		return true
	}
	if b != 0 && (b != 1 || p.null != 0) {
		d.fail()
	}
	return false
}

// value decodes a primitive into the columns read from it.
func (p *plan) value(d *decoder) {
	switch p.op {
	case opBool:
		b := d.take(1)
		for _, c := range p.columns {
			if b != nil {
				c.putBool(d, b[0])
			}
		}
	case opInt:
		v := d.long()
		if p.Type == pqfile.Int32 && int64(int32(v)) != v {
			d.fail()
		}
		for _, c := range p.columns {
			c.putInt(d, v)
		}
	case opFloat, opDouble:
		b := d.take(4 << (p.op - opFloat))
		for _, c := range p.columns {
			c.putFloat(b)
		}
	case opBytes, opFixed:
		var b []byte
		if p.op == opFixed {
			b = d.take(p.size)
		} else {
			b = d.bytes()
		}
		if d.err != nil {
			return
		}
		for _, c := range p.columns {
			c.putBytes(d, b)
		}
	}
}

// skip passes over the node's next value.
func (p *plan) skip(d *decoder) {
	if p.union && p.branch(d) {
		return
	}
	switch p.op {
	case opRecord:
		for _, c := range p.children {
			c.skip(d)
		}
	case opArray, opMap:
		p.skipItems(d)
	case opBool:
		d.take(1)
	case opInt:
		d.long()
	case opFloat:
		d.take(4)
	case opDouble:
		d.take(8)
	case opBytes:
		d.bytes()
	case opFixed:
		d.take(p.size)
	}
}

// skipItems passes over an array or map, by its blocks' sizes if they have any.
func (p *plan) skipItems(d *decoder) {
	for d.err == nil {
		n := d.long()
		switch {
		case n == 0:
			return
		case n < 0:
			size := d.long()
			d.take(int(max(-1, min(size, math.MaxInt32))))
		case n > int64(len(d.buf)-d.pos):
			d.fail()
		default:
			for range n {
				for _, c := range p.children {
					c.skip(d)
				}
			}
		}
	}
}
