// Package avrofile reads Avro object container files (data files, and position
// and equality deletes) over a source.Object, by Iceberg field id.
//
// A File is the header and the index of its blocks; its schema is translated to
// a pqfile.Schema, so that package pqfile projects a table's schema onto it as
// onto a Parquet file, and a RowReader gives the same vectors in the view's
// terms as a pqfile.ColumnReader does. Avro stores rows, so a RowReader decodes
// all columns of the view at once, straight from a block's bytes into vectors;
// columns that the view does not show are passed over.
//
//	file:  "Obj" 1 | metadata map | sync (16) | block*
//	block: rows (varint) | size (varint) | size bytes, compressed | sync (16)
//
// Everything read from a file is untrusted: sizes are checked before they are
// allocated. A File is immutable and safe for concurrent use; a RowReader
// belongs to one goroutine.
package avrofile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// Sentinels; errors name the object's location once.
var (
	ErrCorrupt     = errors.New("corrupt Avro file")
	ErrUnsupported = errors.New("unsupported Avro feature")
)

// Bounds on what a file may make a reader allocate.
const (
	maxHeader  = 16 << 20  // metadata, schema included
	maxBlock   = 256 << 20 // a block, as stored
	maxDecoded = 64 << 20  // a block, decompressed: writers end one after some 64 KiB
	maxRows    = 1 << 31   // rows of a block
	syncSize   = 16
	windowSize = 64 << 10 // least bytes read at a time when blocks are indexed
)

// Block is one block of rows.
type Block struct {
	Offset   int64 // of its data, from the file's start
	Size     int64 // bytes of data as stored, without the sync marker
	FirstRow int64
	Rows     int64
}

// File is an Avro file with its header parsed and its blocks indexed.
type File struct {
	Object source.Object
	// Schema is the file's schema in Parquet's terms, with field ids.
	Schema *pqfile.Schema
	Codec  string
	Blocks []Block
	Rows   int64

	sync [syncSize]byte
	root *node
}

// Open reads the header and indexes the blocks, for which it reads the file
// once from start to end, or only the blocks' ends where blocks are large.
func Open(ctx context.Context, obj source.Object) (*File, error) {
	f := &File{Object: obj}
	w := &window{obj: obj}
	at, err := f.readHeader(ctx, w)
	if err == nil {
		err = f.index(ctx, w, at)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// CheckRows refuses a file with fewer rows than records, as a manifest counts
// them: blocks have no end mark, so that a file which was cut after one looks
// whole. More rows are left to those who read them.
func (f *File) CheckRows(records int64) error {
	if f.Rows < records {
		return f.corrupt("%d rows, the manifest says %d", f.Rows, records)
	}
	return nil
}

// FootprintBytes estimates the heap that f keeps, for a cache's budget.
func (f *File) FootprintBytes() int64 {
	return int64(1024 + 512*len(f.Schema.Leaves) + 32*len(f.Blocks))
}

// Project maps the target's view onto f, as for a Parquet file.
func (f *File) Project(t pqfile.Target) (*pqfile.Projection, error) {
	file := pqfile.File{Object: f.Object, Schema: f.Schema}
	p, err := file.Project(t)
	if err != nil {
		return nil, err
	}
	for i := range p.Columns {
		if p.Columns[i].Shredding != nil {
			return nil, f.unsupported("shredded variant")
		}
	}
	return p, nil
}

// corrupt returns an ErrCorrupt that names the file.
func (f *File) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", f.Object.Location(), ErrCorrupt, fmt.Sprintf(format, args...))
}

// unsupported returns an ErrUnsupported that names the file.
func (f *File) unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", f.Object.Location(), ErrUnsupported, fmt.Sprintf(format, args...))
}

// readHeader parses the header and returns the offset of the first block.
func (f *File) readHeader(ctx context.Context, w *window) (int64, error) {
	for size := int64(windowSize); ; size *= 4 {
		b, err := w.at(ctx, 0, size)
		if err != nil {
			return 0, err
		}
		at, err := f.parseHeader(b)
		switch {
		case err == nil:
			return at, nil
		case !errors.Is(err, io.ErrUnexpectedEOF):
			return 0, err
		case int64(len(b)) >= f.Object.Size() || size > maxHeader:
			return 0, f.corrupt("header is cut short or longer than %d bytes", maxHeader)
		}
	}
}

// parseHeader parses the header at the start of b; io.ErrUnexpectedEOF means
// that b ends inside it.
func (f *File) parseHeader(b []byte) (int64, error) {
	if len(b) < 4 || !bytes.Equal(b[:4], []byte("Obj\x01")) {
		return 0, f.corrupt("no magic number")
	}
	d := decoder{buf: b, pos: 4}
	metadata := map[string][]byte{}
	for n := d.blockCount(); n > 0 && d.err == nil; n = d.blockCount() {
		for range n {
			key := d.bytes()
			if metadata[string(key)] = d.bytes(); d.err != nil {
				break
			}
		}
	}
	copy(f.sync[:], d.take(syncSize))
	if d.err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	f.Codec = "null"
	if codec := metadata["avro.codec"]; len(codec) > 0 {
		f.Codec = string(codec)
	}
	if _, err := newCodec(f.Codec); err != nil {
		return 0, f.unsupported("codec %q", f.Codec)
	}
	parsed, err := avro.Parse(string(metadata["avro.schema"]), avro.WithLaxNames(nil))
	if err != nil {
		return 0, f.corrupt("schema: %v", err)
	}
	if f.root, f.Schema, err = translate(parsed.Root()); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Object.Location(), err)
	}
	return int64(d.pos), nil
}

// newCodec returns a block codec by name.
func newCodec(name string) (ocf.Codec, error) {
	switch name {
	case "null":
		return nil, nil
	case "deflate":
		return ocf.DeflateCodec(flate.DefaultCompression), nil
	case "snappy":
		return ocf.SnappyCodec(), nil
	case "zstandard":
		return ocf.ZstdCodec(nil, nil)
	}
	return nil, ErrUnsupported
}

// index finds the blocks, the first at off.
func (f *File) index(ctx context.Context, w *window, off int64) error {
	size := f.Object.Size()
	for off < size {
		b, err := w.at(ctx, off, 2*10) // two varints
		if err != nil {
			return err
		}
		d := decoder{buf: b}
		rows, length := d.long(), d.long()
		off += int64(d.pos)
		switch {
		case d.err != nil:
			return f.corrupt("block header at %d", off)
		case rows < 0 || rows > maxRows || length < 0 || length > size-off-syncSize:
			return f.corrupt("block of %d rows and %d bytes at %d of %d", rows, length, off, size)
		case length > maxBlock:
			return f.unsupported("block of %d bytes", length)
		}
		marker, err := w.at(ctx, off+length, syncSize)
		if err != nil {
			return err
		}
		if !bytes.Equal(marker[:syncSize], f.sync[:]) {
			return f.corrupt("no sync marker after the block at %d", off)
		}
		if rows > 0 {
			f.Blocks = append(f.Blocks, Block{Offset: off, Size: length, FirstRow: f.Rows, Rows: rows})
			f.Rows += rows
		}
		off += length + syncSize
	}
	return nil
}

// window reads a file forward in pieces of at least windowSize.
type window struct {
	obj   source.Object
	start int64
	buf   []byte
}

// at returns the n bytes at off, and what has been read behind them: fewer only
// at the file's end.
func (w *window) at(ctx context.Context, off, n int64) ([]byte, error) {
	n = min(n, w.obj.Size()-off)
	if off < w.start || off+n > w.start+int64(len(w.buf)) {
		buf := make([]byte, min(max(n, windowSize), w.obj.Size()-off))
		if _, err := w.obj.ReadAt(ctx, buf, off); err != nil {
			return nil, err
		}
		w.start, w.buf = off, buf
	}
	return w.buf[off-w.start:], nil
}
