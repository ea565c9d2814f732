package merge

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
)

func TestConcatenatedCRC(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 8, 255, 4096, 1 << 20} {
		for _, m := range []int{0, 1, 3, 5} {
			b := make([]byte, m+n)
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			got := concatenatedCRC(crc32.ChecksumIEEE(b[:m]), crc32.ChecksumIEEE(b[m:]), int32(n))
			if want := crc32.ChecksumIEEE(b); got != want {
				t.Errorf("%d and %d bytes: %08x, want %08x", m, n, got, want)
			}
		}
	}
}

// TestLeveledPageKeepsItsChecksum: what guarded the stored values guards the page
// that they are served in.
func TestLeveledPageKeepsItsChecksum(t *testing.T) {
	values := []byte("eight values, compressed or not")
	sum := int32(crc32.ChecksumIEEE(values))
	for _, stored := range []pqfile.PageHeader{
		{Type: pqfile.DataPage, Data: &pqfile.DataPageHeader{NumValues: 8}},
		{Type: pqfile.DataPageV2, DataV2: &pqfile.DataPageHeaderV2{NumValues: 8, NumRows: 8}},
	} {
		stored.UncompressedSize, stored.CompressedSize, stored.CRC = 99, int32(len(values)), &sum
		head, _, err := leveledHeader(&stored)
		if err != nil {
			t.Fatal(err)
		}
		var served pqfile.PageHeader
		n, err := pqfile.UnmarshalPageHeader(head, &served)
		if err != nil {
			t.Fatal(err)
		}
		page := append(head[n:], values...)
		if served.CRC == nil || uint32(*served.CRC) != crc32.ChecksumIEEE(page) || int(served.CompressedSize) != len(page) {
			t.Errorf("type %d: %+v of %d bytes", stored.Type, served, len(page))
		}
		stored.CRC = nil
		if head, _, err = leveledHeader(&stored); err != nil {
			t.Fatal(err)
		}
		if _, err := pqfile.UnmarshalPageHeader(head, &served); err != nil || served.CRC != nil {
			t.Errorf("type %d: a checksum that was not there: %v, %v", stored.Type, served.CRC, err)
		}
	}
}
