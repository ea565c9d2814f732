package merge

import (
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
)

// The footer does not tell how long an encrypted chunk is: the view of other
// columns is laid out without it.
func TestLengthsBesideAnEncryptedChunk(t *testing.T) {
	file := &pqfile.File{Metadata: &pqfile.FileMetaData{RowGroups: []pqfile.RowGroup{{Columns: []pqfile.ColumnChunk{
		{Encrypted: true},
		{MetaData: &pqfile.ColumnMetaData{TotalUncompressedSize: 50, TotalCompressedSize: 70}},
		{MetaData: &pqfile.ColumnMetaData{TotalUncompressedSize: -1}},
	}}}}}
	in := &input{pq: file, columns: []pqfile.Column{{Source: &pqfile.Node{Leaf: 0}}, {Source: &pqfile.Node{Leaf: 1}}}}
	if n := in.bytes(0); n != 50 {
		t.Errorf("a row group of %d bytes, want 50", n)
	}
	s := &groupSource{in: in}
	for leaf, want := range []int64{0, 70} {
		if n := s.storedBytes(leaf); n != want {
			t.Errorf("leaf %d: %d bytes, want %d", leaf, n, want)
		}
	}
	if s.meta(0) != nil {
		t.Error("an encrypted chunk has metadata")
	}
}
