package deletes

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// A deletion-vector-v1 blob (Puffin spec):
//
//	0    4  length of magic and bitmap, big-endian
//	4    4  magic D1 D3 39 64
//	8    n  64-bit portable roaring bitmap (portable.go)
//	8+n  4  CRC-32 of magic and bitmap, big-endian
//
// The blob is found by the manifest's content_offset and content_size: writers
// exist whose Puffin footers are wrong or missing, and none is needed.
const (
	dvMagic = "\xD1\xD3\x39\x64"
	// dvFrame is what a blob has around its bitmap.
	dvFrame = 4 + len(dvMagic) + crc32.Size
)

// dv returns the positions of a deletion vector, through the cache.
func (r *Resolver) dv(ctx context.Context, store source.Store, f *snapshot.DataFile) (*Positions, error) {
	obj, err := store.Open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	// Several vectors share a Puffin file: offset and length belong to the key.
	// So does the cardinality, which the manifest vouches for.
	key := fmt.Sprintf("dv|%s|%d|%d|%d", obj.Version(), f.ContentOffset, f.ContentSize, f.Records)
	return r.cached(ctx, key, func(ctx context.Context) (*Positions, error) {
		for again := false; ; again = true {
			blob, err := readDV(ctx, obj, f, r.vectorLimit())
			if err != nil {
				return nil, err
			}
			p, err := decodeDV(blob, f.Records)
			if err == nil {
				return p, nil
			}
			if again || !source.Suspect(obj) { // that it was damaged on its way
				return nil, fmt.Errorf("deletion vector at offset %d of %s: %w: %w", f.ContentOffset, f.Path, ErrCorrupt, err)
			}
		}
	})
}

// leastVector is the length of a vector that is read whatever the budget is: the
// bitmap of 500 million rows.
const leastVector = 64 << 20

// vectorLimit is the length of a vector at most.
func (r *Resolver) vectorLimit() int64 { return max(r.opt.MemoryBytes/8, leastVector) }

// readDV reads a blob of at most limit bytes, after checking that it lies within
// the file.
func readDV(ctx context.Context, obj source.Object, f *snapshot.DataFile, limit int64) ([]byte, error) {
	off, size := f.ContentOffset, f.ContentSize
	if off < 0 || size < int64(dvFrame) || size > math.MaxInt32 || off > obj.Size()-size {
		return nil, fmt.Errorf("deletion vector at offset %d, %d bytes, of %s, which has %d bytes: %w",
			off, size, f.Path, obj.Size(), ErrCorrupt)
	}
	if size > limit {
		return nil, fmt.Errorf("deletion vector of %d bytes in %s: %w (a larger --memory allows more)", size, f.Path, ErrUnsupported)
	}
	blob := make([]byte, size)
	if _, err := obj.ReadAt(ctx, blob, off); err != nil {
		return nil, err
	}
	return blob, nil
}

// decodeDV checks a blob against its frame and the manifest's cardinality, and
// decodes it. The Positions keep the blob. An empty vector is nil.
func decodeDV(blob []byte, cardinality int64) (*Positions, error) {
	if len(blob) < dvFrame {
		return nil, errTruncated
	}
	if n := binary.BigEndian.Uint32(blob); int64(n) != int64(len(blob))-8 {
		return nil, fmt.Errorf("length %d in a blob of %d bytes", n, len(blob))
	}
	body := blob[4 : len(blob)-crc32.Size]
	if !bytes.HasPrefix(body, []byte(dvMagic)) {
		return nil, fmt.Errorf("magic %x", body[:len(dvMagic)])
	}
	want := binary.BigEndian.Uint32(blob[len(blob)-crc32.Size:])
	if got := crc32.ChecksumIEEE(body); got != want {
		return nil, fmt.Errorf("CRC %08x, stored %08x", got, want)
	}
	p, err := decodePortable(body[len(dvMagic):])
	if err != nil {
		return nil, err
	}
	if p.count != cardinality {
		return nil, fmt.Errorf("%d positions, the manifest says %d", p.count, cardinality)
	}
	return p.orNil(), nil
}
