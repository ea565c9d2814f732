package reference

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/pierrec/lz4/v4"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// puffinBlob is an entry of a Puffin footer.
type puffinBlob struct {
	Type             string `json:"type"`
	Offset, Length   int64
	CompressionCodec string            `json:"compression-codec"`
	Properties       map[string]string `json:"properties"`
}

// maxFooter bounds a footer that is read, 64 MiB, as the Puffin library does.
const maxFooter = 64 << 20

// puffinMagic starts and ends Puffin files and footers.
const puffinMagic = "PFA1"

// errNoPuffin: a file does not end as a Puffin file. Some writers stored bare
// vectors, which are read by the manifest alone.
var errNoPuffin = errors.New("not a Puffin file")

// vectors compares the Puffin footers of the plan's vectors with the manifest.
func (r *Report) vectors(ctx context.Context, m *Merge) error {
	footers := map[string][]puffinBlob{}
	for i := range m.Plan.Files {
		dv := m.Plan.Files[i].DV
		if dv == nil {
			continue
		}
		blobs, known := footers[dv.Path]
		if !known {
			var err error
			blobs, err = puffinFooter(ctx, m.Store, dv.Path)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, errNoPuffin):
				r.Unverified = append(r.Unverified, Problem{dv.Path, err})
			case err != nil:
				r.Problems = append(r.Problems, Problem{dv.Path, err})
			}
			if err != nil {
				continue
			}
			footers[dv.Path] = blobs
		}
		if err := checkBlob(blobs, dv); err != nil {
			r.Problems = append(r.Problems, Problem{dv.Path, err})
			continue
		}
		r.Vectors++
	}
	return nil
}

// checkBlob finds the blob that a manifest entry names and compares them.
func checkBlob(blobs []puffinBlob, dv *snapshot.DataFile) error {
	for _, b := range blobs {
		if b.Offset != dv.ContentOffset {
			continue
		}
		switch {
		case b.Length != dv.ContentSize:
			return different("vector at %d: length %d in the footer, %d in the manifest", b.Offset, b.Length, dv.ContentSize)
		case b.Type != "deletion-vector-v1" || b.CompressionCodec != "":
			return different("vector at %d: the footer says %q %q", b.Offset, b.Type, b.CompressionCodec)
		case b.Properties["referenced-data-file"] != dv.Referenced:
			return different("vector at %d: of %q in the footer, of %q in the manifest", b.Offset, b.Properties["referenced-data-file"], dv.Referenced)
		case b.Properties["cardinality"] != strconv.FormatInt(dv.Records, 10):
			return different("vector at %d: cardinality %q in the footer, %d in the manifest", b.Offset, b.Properties["cardinality"], dv.Records)
		}
		return nil
	}
	return different("no vector at %d in the footer", dv.ContentOffset)
}

// puffinFooter reads a file's footer:
//
//	magic, payload, payload size (uint32), flags (uint32), magic; little-endian
func puffinFooter(ctx context.Context, store source.Store, path string) ([]puffinBlob, error) {
	const tail = 12
	obj, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if obj.Size() < tail+8 {
		return nil, errNoPuffin
	}
	end := make([]byte, tail)
	if _, err := obj.ReadAt(ctx, end, obj.Size()-tail); err != nil {
		return nil, err
	}
	if string(end[8:]) != puffinMagic {
		return nil, errNoPuffin
	}
	size, flags := int64(binary.LittleEndian.Uint32(end)), binary.LittleEndian.Uint32(end[4:])
	if size > maxFooter || size > obj.Size()-tail-8 {
		return nil, fmt.Errorf("Puffin footer of %d bytes: %w", size, ErrCorrupt)
	}
	payload := make([]byte, size+4)
	if _, err := obj.ReadAt(ctx, payload, obj.Size()-tail-size-4); err != nil {
		return nil, err
	}
	if string(payload[:4]) != puffinMagic {
		return nil, fmt.Errorf("Puffin footer without magic: %w", ErrCorrupt)
	}
	payload = payload[4:]
	if flags&1 != 0 {
		if payload, err = io.ReadAll(io.LimitReader(lz4.NewReader(bytes.NewReader(payload)), maxFooter)); err != nil {
			return nil, fmt.Errorf("Puffin footer: %w: %w", ErrCorrupt, err)
		}
	}
	var footer struct{ Blobs []puffinBlob }
	if err := json.Unmarshal(payload, &footer); err != nil {
		return nil, fmt.Errorf("Puffin footer: %w: %w", ErrCorrupt, err)
	}
	return footer.Blobs, nil
}
