package merge

import (
	"slices"
	"testing"
	"time"
)

// What a handle has had made ahead counts as well, once it is there.
func TestTextAheadIsBounded(t *testing.T) {
	scans, want := bigTable(t)
	e := plainEngine(Options{Workers: 1, MemoryBytes: 64 << 20})
	v := e.CSV(scans[0])
	kept, most := int64(0), int64(0)
	var handles []*textHandle
	for i := range 40 {
		h := v.(Opener).Open().(*textHandle)
		handles = append(handles, h)
		p := make([]byte, 1<<20+64<<10)
		for range 2 { // the second read finds its block made, and has time to ask ahead
			if _, err := h.ReadAt(t.Context(), p, 0); err != nil || string(p) != want[0][:len(p)] {
				t.Fatalf("handle %d: %v", i, err)
			}
		}
		if _, err := h.ReadAt(t.Context(), p[:1], int64(len(p))); err != nil {
			t.Fatalf("handle %d: %v", i, err)
		}
	}
	for _, h := range handles {
		h.mu.Lock()
		blocks := slices.Clone(h.blocks)
		h.mu.Unlock()
		for _, b := range blocks {
			<-b.done
		}
	}
	bounded := func() bool {
		kept, most = 0, 0
		for _, h := range handles {
			kept, most = kept+h.bytes(), max(most, h.bytes())
		}
		return kept <= e.memory.held+most
	}
	for range 200 { // a block is noted soon after it is done
		if bounded() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !bounded() {
		t.Errorf("%d handles keep %d bytes of %d, one of them %d", len(handles), kept, e.memory.held, most)
	}
	for _, h := range handles {
		h.Close()
	}
	if s := &e.memory.holdings; s.total != 0 || len(s.at) != 0 {
		t.Errorf("%d bytes kept by no handle", s.total)
	}
}

// Workers are divided among the row groups that blocks are being made of; blocks
// that are made take none.
func TestTextWorkersAreShared(t *testing.T) {
	made := make(chan struct{})
	close(made)
	block := func(unit int, done chan struct{}) *textBlock { return &textBlock{id: blockID{unit: unit}, done: done} }
	waiting := make(chan struct{})
	for _, c := range []struct {
		workers int
		blocks  []*textBlock
		want    int
	}{
		{4, nil, 4},
		{4, []*textBlock{block(0, made), block(1, waiting), block(1, waiting)}, 4},
		{4, []*textBlock{block(1, waiting), block(2, waiting), block(2, waiting)}, 2},
		{2, []*textBlock{block(1, waiting), block(2, waiting), block(3, waiting)}, 1},
		{1, []*textBlock{block(1, waiting), block(2, waiting)}, 1},
	} {
		h := &textHandle{view: &textView{engine: plainEngine(Options{Workers: c.workers})}, blocks: c.blocks}
		if got := h.share(); got != c.want {
			t.Errorf("%d workers, %d blocks: %d", c.workers, len(c.blocks), got)
		}
	}
}
