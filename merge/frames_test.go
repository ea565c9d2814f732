package merge

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/icefs/icefs/internal/pqfile"
)

func TestStoredFramesDecodeAndHaveTheirSize(t *testing.T) {
	zr, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	decode := map[pqfile.Codec]func([]byte) ([]byte, error){
		pqfile.Uncompressed: func(b []byte) ([]byte, error) { return b, nil },
		pqfile.Zstd:         func(b []byte) ([]byte, error) { return zr.DecodeAll(b, nil) },
		pqfile.Snappy:       func(b []byte) ([]byte, error) { return snappy.Decode(nil, b) },
		pqfile.Gzip: func(b []byte) ([]byte, error) {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		},
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 59, 60, 61, 255, 256, 257, 65534, 65535, 65536, 65537, 131070, 131071, 131072, 131073, 262144, 1 << 20, 1<<24 + 1}
	for codec, dec := range decode {
		for _, n := range sizes {
			body := make([]byte, n)
			for i := range body {
				body[i] = byte(rnd.Uint32())
			}
			got := appendStored([]byte{1, 2}, codec, body[:len(body)/3], body[len(body)/3:])
			if int64(len(got)-2) != storedSize(codec, int64(n)) {
				t.Errorf("codec %d, %d bytes: frame of %d, storedSize says %d", codec, n, len(got)-2, storedSize(codec, int64(n)))
			}
			back, err := dec(got[2:])
			if err != nil || !bytes.Equal(back, body) {
				t.Errorf("codec %d, %d bytes: decoded %d bytes, err %v", codec, n, len(back), err)
			}
		}
	}
}

// pagesLength adds frames up by pages and bytes; it must bound the frames of
// any division.
func TestPagesLengthBoundsFrames(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	leaf := &pqfile.Node{Type: pqfile.Int64}
	for _, codec := range []pqfile.Codec{pqfile.Uncompressed, pqfile.Zstd, pqfile.Snappy, pqfile.Gzip} {
		for range 200 {
			f := pageForm{leaf: leaf, codec: codec, rows: 100}
			pages := 1 + rnd.Int64N(5)
			total, frames := int64(0), int64(0)
			for range pages {
				n := rnd.Int64N(400_000)
				total += n
				frames += storedSize(codec, n) + 1 // some header
			}
			if bound := f.pagesLength(100*pages, pages, total); frames > bound {
				t.Errorf("codec %d: %d pages of %d bytes take %d, bound %d", codec, pages, total, frames, bound)
			}
		}
	}
}
