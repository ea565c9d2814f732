package merge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

// storeOf makes a store's files objects of an object store, and notes what they
// are asked for.
type storeOf struct {
	source.Store

	mu    sync.Mutex
	asked []source.Range // by Prefetch
	last  context.Context
	late  int // extents that were read before they were asked for
	known map[extentOf]bool
}

type extentOf struct {
	location string
	source.Range
}

func (s *storeOf) InStore(string) bool { return true }

func (s *storeOf) Open(ctx context.Context, location string) (source.Object, error) {
	o, err := s.Store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	return &objectOf{o, s}, nil
}

type objectOf struct {
	source.Object
	store *storeOf
}

func (o *objectOf) Extent(ctx context.Context, off, n int64) ([]byte, error) {
	o.store.mu.Lock()
	if !o.store.known[extentOf{o.Location(), source.Range{Off: off, Len: n}}] {
		o.store.late++
	}
	o.store.mu.Unlock()
	p := make([]byte, n)
	_, err := o.ReadAt(ctx, p, off)
	return p, err
}

func (o *objectOf) Prefetch(ctx context.Context, extents []source.Range) {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	for _, r := range extents {
		if o.store.known == nil {
			o.store.known = make(map[extentOf]bool)
		}
		o.store.known[extentOf{o.Location(), r}] = true
	}
	o.store.asked, o.store.last = append(o.store.asked, extents...), ctx
}

// forget is taken before the part of a test that counts.
func (s *storeOf) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.late, s.known = nil, 0, nil
}

// aheadViews are a view of stored chunks, one of rewritten ones, and a part that
// is its file, over an object store.
func aheadViews(t *testing.T, opt Options, check func(t *testing.T, v *parquetView, s *storeOf, counters *Counters)) {
	opt.Statistics = StatisticsNone
	for name, gone := range map[string][]int64{"stored": nil, "rewritten": {5, 20_005, 40_000}} {
		t.Run(name, func(t *testing.T) {
			scan := currentScan(t, sortedTable(t, gone...))
			s := &storeOf{Store: scan.Store}
			scan.Store = s
			e, _, counters := workEngine(opt)
			check(t, e.Parquet(scan).(*parquetView), s, counters)
			if gone == nil {
				check(t, e.Part(scan, 0).(*parquetView), s, counters)
			}
		})
	}
}

// readThrough reads a view in steps through a handle.
func readThrough(t *testing.T, h Handle, step int, off, to int64) []byte {
	t.Helper()
	var all []byte
	for p := make([]byte, step); off < to; {
		n, err := h.ReadAt(t.Context(), p, off)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		all, off = append(all, p[:n]...), off+int64(n)
	}
	return all
}

// A sequential reader waits for the first chunks alone; each range is asked for
// once, and none any more when the view is closed.
func TestSequentialReaderIsAhead(t *testing.T) {
	aheadViews(t, Options{}, func(t *testing.T, v *parquetView, s *storeOf, counters *Counters) {
		size, err := v.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, size)
		if _, err := v.ReadAt(t.Context(), want, 0); err != nil {
			t.Fatal(err)
		}
		for _, step := range []int{4 << 10, 60_000, 1 << 20} {
			s.forget()
			v.engine.opt.Cache.(*mapCache).drop()
			before := counters.ExtentsAhead.Load()
			h := v.Open()
			if got := readThrough(t, h, step, 0, size); !bytes.Equal(got, want) {
				t.Fatalf("steps of %d: other bytes", step)
			}
			n := counters.ExtentsAhead.Load() - before
			if n < 5 || n != int64(len(s.asked)) && v.raw(t) || s.late > 12 {
				t.Errorf("steps of %d: %d ranges were asked for ahead (%d in all), %d waited for", step, n, len(s.asked), s.late)
			}
			seen := map[source.Range]int{}
			for _, r := range s.asked {
				if seen[r]++; v.raw(t) && seen[r] > 1 {
					t.Errorf("steps of %d: %v is asked for again", step, r)
				}
			}
			if v.engine.memory.sequential.Load() != 1 {
				t.Error("the reader does not count")
			}
			if err := h.Close(); err != nil || v.raw(t) && s.last.Err() == nil || v.engine.memory.sequential.Load() != 0 {
				t.Errorf("after the end: %v, %v, %d readers", err, s.last.Err(), v.engine.memory.sequential.Load())
			}
		}
	})
}

// raw reports whether the view is of stored chunks alone: making a rewritten one
// asks for its sources.
func (v *parquetView) raw(t *testing.T) bool {
	t.Helper()
	l, err := v.layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range l.segments {
		if _, ok := s.(*rewrite); ok {
			return false
		}
	}
	return true
}

// Random reads, reads of one column, and a look at the first bytes have nothing
// fetched ahead.
func TestOtherReadersAreNotAhead(t *testing.T) {
	aheadViews(t, Options{}, func(t *testing.T, v *parquetView, _ *storeOf, counters *Counters) {
		l, err := v.layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, read := range map[string]func(h Handle){
			"random": func(h Handle) {
				r := rand.New(rand.NewPCG(4, 2))
				for range 300 {
					off := r.Int64N(l.length)
					readThrough(t, h, 4<<10, off, min(off+4<<10, l.length))
				}
			},
			"one column": func(h Handle) {
				readThrough(t, h, 4<<10, l.length-4<<10, l.length)
				for g := range len(l.places.at) / l.places.leaves {
					at := l.places.at[g*l.places.leaves+3]
					readThrough(t, h, 4<<10, at.from&^4095, at.to)
				}
			},
			"the first bytes": func(h Handle) { readThrough(t, h, 4<<10, 0, 100_000) },
			"from within":     func(h Handle) { readThrough(t, h, 4<<10, 8<<10, l.length) },
		} {
			before := counters.ExtentsAhead.Load()
			h := v.Open()
			read(h)
			h.Close()
			if n := counters.ExtentsAhead.Load() - before; n != 0 && name != "from within" {
				t.Errorf("%s: %d ranges were fetched ahead", name, n)
			}
		}
	})
}

// A reader of some columns has those of the third row group on fetched together,
// and no other.
func TestColumnsAreFetchedTogether(t *testing.T) {
	aheadViews(t, Options{}, func(t *testing.T, v *parquetView, s *storeOf, counters *Counters) {
		l, err := v.layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		places := l.places
		h := v.Open()
		defer h.Close()
		readThrough(t, h, 4<<10, l.length-100, l.length)
		for g := range len(places.at) / places.leaves {
			before := counters.ExtentsAhead.Load()
			for _, leaf := range []int{0, 2, 4} { // those of more than a page
				at := places.at[g*places.leaves+leaf]
				readThrough(t, h, 4<<10, at.from&^4095, at.to)
			}
			want := int64(0)
			if g > 1 {
				want = 3
			}
			if n := counters.ExtentsAhead.Load() - before; n != want {
				t.Errorf("row group %d: %d ranges were fetched ahead, want %d", g, n, want)
			}
		}
	})
}

// What is ahead of a reader is bounded by the memory budget.
func TestAheadIsBounded(t *testing.T) {
	const budget = 32 * 200_000
	aheadViews(t, Options{MemoryBytes: budget}, func(t *testing.T, v *parquetView, _ *storeOf, _ *Counters) {
		l, err := v.layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		longest := int64(0)
		for _, p := range l.places.at {
			longest = max(longest, p.to-p.from)
		}
		h := v.Open().(*handle)
		defer h.Close()
		asked := false
		for off := int64(0); off < l.length; off += 4 << 10 {
			readThrough(t, h, 4<<10, off, min(off+4<<10, l.length))
			asked = asked || h.reads.asked > off
			if ahead := h.reads.asked - off; ahead > 200_000+longest+8<<10 {
				t.Fatalf("%d bytes are ahead at %d", ahead, off)
			}
		}
		if !asked {
			t.Error("nothing was fetched ahead")
		}
	})
}

func (c *mapCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.values {
		if len(key) > 5 && key[:5] == "chunk" {
			delete(c.values, key)
		}
	}
}
