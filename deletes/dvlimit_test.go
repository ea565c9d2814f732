package deletes

import (
	"context"
	"errors"
	"testing"

	"github.com/icefs/icefs/snapshot"
)

// hole is an object of any length that nobody may read.
type hole struct {
	t    *testing.T
	size int64
}

func (h hole) Size() int64      { return h.size }
func (h hole) Version() string  { return "hole" }
func (h hole) Location() string { return "hole" }
func (h hole) ReadAt(_ context.Context, p []byte, _ int64) (int, error) {
	h.t.Errorf("%d bytes are read", len(p))
	return len(p), nil
}

// A vector that claims more than memory has room for is refused unread, though the
// file is that long: holes cost nothing.
func TestVectorLimit(t *testing.T) {
	for memory, want := range map[int64]int64{0: 128 << 20, 256 << 20: 64 << 20, 8 << 30: 1 << 30} {
		limit := NewResolver(Options{MemoryBytes: memory}).vectorLimit()
		if limit != want {
			t.Errorf("--memory %d: %d bytes", memory, limit)
		}
		f := &snapshot.DataFile{Path: "hole", ContentOffset: 4, ContentSize: limit + 1, Records: 1}
		if _, err := readDV(t.Context(), hole{t, 4 << 30}, f, limit); !errors.Is(err, ErrUnsupported) {
			t.Errorf("--memory %d: %v", memory, err)
		}
	}
}
