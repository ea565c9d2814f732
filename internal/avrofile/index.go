package avrofile

import (
	"context"
	"encoding/binary"

	"github.com/icefs/icefs/internal/source"
)

// Persist keeps block indexes across processes (package cache).
type Persist interface {
	Get(key string) ([]byte, bool)
	Put(key string, value []byte)
}

// OpenKept is Open, but takes the blocks' index from p if it is there, and keeps
// it there otherwise: then only the header is read. p may be nil.
func OpenKept(ctx context.Context, obj source.Object, p Persist) (*File, error) {
	if p == nil {
		return Open(ctx, obj)
	}
	key := "avro index|" + obj.Version()
	if kept, ok := p.Get(key); ok {
		f := &File{Object: obj}
		at, err := f.readHeader(ctx, &window{obj: obj})
		if err != nil {
			return nil, err
		}
		if f.decodeIndex(kept, at) {
			return f, nil
		}
	}
	f, err := Open(ctx, obj)
	if err == nil {
		p.Put(key, f.encodeIndex())
	}
	return f, err
}

// encodeIndex is, for each block, the distance from the end of the one before to
// its data, its size and its rows, as varints; then the distance from the last
// one's end to the file's. The first distance is from the file's start.
func (f *File) encodeIndex() []byte {
	var out []byte
	end := int64(0)
	for _, b := range f.Blocks {
		out = binary.AppendUvarint(out, uint64(b.Offset-end))
		out = binary.AppendUvarint(out, uint64(b.Size))
		out = binary.AppendUvarint(out, uint64(b.Rows))
		end = b.Offset + b.Size + syncSize
	}
	return binary.AppendUvarint(out, uint64(f.Object.Size()-end))
}

// decodeIndex reads what encodeIndex wrote for a file whose blocks begin at
// first; false if it cannot be that.
func (f *File) decodeIndex(kept []byte, first int64) bool {
	var blocks []Block
	rows, end, size := int64(0), int64(0), f.Object.Size()
	next := func(limit int64) (int64, bool) {
		v, n := binary.Uvarint(kept)
		if n <= 0 || v > uint64(limit) {
			return 0, false
		}
		kept = kept[n:]
		return int64(v), true
	}
	for {
		distance, ok := next(size - end)
		if len(kept) == 0 {
			f.Blocks, f.Rows = blocks, rows
			return ok && end+distance == size
		}
		length, okLength := next(maxBlock)
		n, okRows := next(maxRows)
		b := Block{Offset: end + distance, Size: length, FirstRow: rows, Rows: n}
		end = b.Offset + b.Size + syncSize
		if !ok || !okLength || !okRows || b.Offset < first || n == 0 || end > size {
			return false
		}
		rows += n
		blocks = append(blocks, b)
	}
}
