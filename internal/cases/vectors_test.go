package cases

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/icefs/icefs/internal/fixture"
)

// bucket is a 32-bit bitmap with its key.
type bucket struct {
	key  uint32
	bits *roaring.Bitmap
}

// vectorOf is the blob of a deletion vector of buckets.
func vectorOf(t *testing.T, buckets ...bucket) []byte {
	t.Helper()
	body := bytes.NewBufferString("\xD1\xD3\x39\x64")
	binary.Write(body, binary.LittleEndian, int64(len(buckets)))
	for _, b := range buckets {
		binary.Write(body, binary.LittleEndian, b.key)
		if _, err := b.bits.WriteTo(body); err != nil {
			t.Fatal(err)
		}
	}
	blob := binary.BigEndian.AppendUint32(nil, uint32(body.Len()))
	blob = append(blob, body.Bytes()...)
	return binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(body.Bytes()))
}

// A vector is found by the manifest's offset and size: the file around it need
// not be a Puffin file.
func TestBareVectors(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: 3})
	var a, b *fixture.File
	commit(tab, func(tx *fixture.Tx) { a, b = tx.Append(numbered(1, 5)...), tx.Append(numbered(11, 15)...) })
	commit(tab, func(tx *fixture.Tx) {
		tx.DeleteVectorFile(fixture.VectorOptions{Bare: true}, a, 1, 2)
		tx.DeleteVector(b, 4)
	})
	open(t, tab).rows("id,s", "1,", "4,", "5,", "11,", "12,", "13,", "14,")
}

// Vectors may have far buckets, and containers of every kind; a bucket's key
// with bit 31 is refused.
func TestVectorContainers(t *testing.T) {
	run := roaring.New()
	run.AddRange(10, 70_000)
	run.RunOptimize()
	dense := roaring.New()
	for i := uint32(1); i < 70_000; i += 2 {
		dense.Add(i)
	}
	far := roaring.BitmapOf(5, 1<<31)
	for name, c := range map[string]struct {
		blob []byte
		n    int64
		live func(pos int) bool
	}{
		"sparse keys": {vectorOf(t, bucket{0, roaring.BitmapOf(1, 3)}, bucket{1<<31 - 1, far}), 4, func(pos int) bool { return pos != 1 && pos != 3 }},
		"far alone":   {vectorOf(t, bucket{1, far}), 2, func(int) bool { return true }},
		"runs":        {vectorOf(t, bucket{0, run}), int64(run.GetCardinality()), func(pos int) bool { return pos < 10 }},
		"bitmap":      {vectorOf(t, bucket{0, dense}), int64(dense.GetCardinality()), func(pos int) bool { return pos%2 == 0 }},
		"bit 31":      {vectorOf(t, bucket{0, roaring.BitmapOf(1)}, bucket{1 << 31, far}), 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), FormatVersion: 3})
			var f *fixture.File
			rows, lines := words(0, 40)
			commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
			commit(tab, func(tx *fixture.Tx) {
				tx.DeleteVectorFile(fixture.VectorOptions{Blob: c.blob, Cardinality: c.n, Bare: c.live != nil}, f)
			})
			if c.live == nil {
				open(t, tab).refuses("deletes.puffin", 0)
				return
			}
			want := []string{"id,s"}
			for i, line := range lines {
				if c.live(i) {
					want = append(want, line)
				}
			}
			open(t, tab).rows(want...)
		})
	}
}
