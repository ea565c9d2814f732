package merge

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestAdmission: work beyond the budget waits, honours its context, and what is
// larger than the budget still gets its turn, alone.
func TestAdmission(t *testing.T) {
	b := newBudget(64 << 20) // 16 MiB of work
	first, err := b.admit(t.Context(), 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.admit(short, 7<<20); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("7 MiB beside 10 of 16: %v", err)
	}
	second, err := b.admit(t.Context(), 6<<20)
	if err != nil {
		t.Fatal(err)
	}
	alone := make(chan error)
	go func() {
		release, err := b.admit(t.Context(), 1<<40)
		if err == nil {
			release()
		}
		alone <- err
	}()
	select {
	case err := <-alone:
		t.Errorf("a TiB beside other work: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	first()
	second()
	if err := <-alone; err != nil {
		t.Errorf("a TiB alone: %v", err)
	}
}

type fakeHolder struct{ dropped int }

func (h *fakeHolder) drop() { h.dropped++ }

// TestHoldings: readers past the limit give up what they keep, those read longest
// ago first; the last one never.
func TestHoldings(t *testing.T) {
	s := holdings{limit: 100}
	var h [4]fakeHolder
	s.use(&h[0], 40)
	s.use(&h[1], 40)
	s.use(&h[0], 50) // read again: now h[1] is the older one
	s.use(&h[2], 30)
	if h[0].dropped != 0 || h[1].dropped != 1 || h[2].dropped != 0 || s.total != 80 {
		t.Errorf("%v, %d bytes", h, s.total)
	}
	s.use(&h[3], 500)
	if h[0].dropped != 1 || h[2].dropped != 1 || h[3].dropped != 0 || s.total != 500 {
		t.Errorf("%v, %d bytes", h, s.total)
	}
	s.forget(&h[3])
	s.forget(&h[3])
	if s.total != 0 || s.order.Len() != 0 || len(s.at) != 0 {
		t.Errorf("%d bytes of %d closed readers", s.total, s.order.Len())
	}
}
