// Package viewtest checks that a view behaves as one immutable file: that its
// size is exact and stable, and that every way of reading it gives the same
// bytes. Tests call Check on every view they open.
//
// The package imports nothing else of this module, so that any package's tests
// can use it.
package viewtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
)

// View is what is checked: immutable bytes of a fixed size.
type View interface {
	// Size returns the exact size in bytes.
	Size(ctx context.Context) (int64, error)
	// ReadAt fills p from off; n < len(p) only with an error, io.EOF past the end.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

// Work done by a check: enough to cross chunk, page and checkpoint borders of
// small test views many times, little enough to call on every view.
const (
	sequentialStep  = 61_441 // odd, so that reads fall on no border of the view
	randomReads     = 48
	parallelReaders = 8
	parallelReads   = 12
	maxRandomLength = 300_000
	canary          = 0xA5
)

// Check fails the test unless v behaves as an immutable file of its size. Each
// reopen returns a view of the same file made anew, which must have the same
// bytes however it is read.
func Check(t testing.TB, v View, reopen ...func() View) {
	t.Helper()
	if err := check(t.Context(), v, reopen); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// Bytes reads the whole of v, for tests that look at the content.
func Bytes(t testing.TB, v View) []byte {
	t.Helper()
	b, err := readAll(t.Context(), v, sequentialStep)
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	return b
}

// check returns the first fault found.
func check(ctx context.Context, v View, reopen []func() View) error {
	size, err := v.Size(ctx)
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	if size < 0 {
		return fmt.Errorf("size is negative: %d", size)
	}
	want, err := readAll(ctx, v, sequentialStep)
	if err != nil {
		return fmt.Errorf("sequential read: %w", err)
	}
	if int64(len(want)) != size {
		return fmt.Errorf("sequential read gave %d bytes, size is %d", len(want), size)
	}
	for _, step := range []func(context.Context, View, []byte) error{
		checkWhole, checkEdges, checkNothing, checkRandom, checkCancelled, checkParallel,
	} {
		if err := step(ctx, v, want); err != nil {
			return err
		}
	}
	if err := sameSize(ctx, v, size); err != nil {
		return err
	}
	for _, open := range reopen {
		if err := checkReopened(ctx, open(), want); err != nil {
			return fmt.Errorf("reopened: %w", err)
		}
	}
	return nil
}

// readAll reads v from its start to io.EOF in steps.
func readAll(ctx context.Context, v View, step int) ([]byte, error) {
	var all []byte
	for {
		p := make([]byte, step)
		n, err := v.ReadAt(ctx, p, int64(len(all)))
		if n < 0 || n > len(p) {
			return nil, fmt.Errorf("ReadAt returned n = %d for %d bytes", n, len(p))
		}
		all = append(all, p[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("at %d: %w", len(all), err)
		case n < len(p):
			return nil, fmt.Errorf("at %d: %d of %d bytes without an error", len(all), n, len(p))
		}
	}
}

// checkAt reads length bytes at off and compares them with want, the whole
// content: io.EOF exactly where the range passes the end (allowed where it
// touches it), and nothing written behind the buffer.
func checkAt(ctx context.Context, v View, want []byte, off int64, length int) error {
	buf := bytes.Repeat([]byte{canary}, length+16)
	n, err := v.ReadAt(ctx, buf[:length], off)
	expect := want[min(off, int64(len(want))):]
	expect = expect[:min(length, len(expect))]
	at := fmt.Sprintf("%d bytes at %d of %d", length, off, len(want))
	switch {
	case n != len(expect):
		return fmt.Errorf("%s: n = %d, want %d (err %v)", at, n, len(expect), err)
	case !bytes.Equal(buf[:n], expect):
		return fmt.Errorf("%s: bytes differ from the sequential read", at)
	case n < length && !errors.Is(err, io.EOF):
		return fmt.Errorf("%s: a read past the end gave err %v, want io.EOF", at, err)
	case n == length && err != nil && !(errors.Is(err, io.EOF) && off+int64(n) == int64(len(want))):
		return fmt.Errorf("%s: full read with err %v", at, err)
	}
	for _, b := range buf[length:] {
		if b != canary {
			return fmt.Errorf("%s: wrote behind the buffer", at)
		}
	}
	return nil
}

// checkWhole reads everything by one call.
func checkWhole(ctx context.Context, v View, want []byte) error {
	return checkAt(ctx, v, want, 0, len(want))
}

// checkEdges reads single bytes and ranges around both ends.
func checkEdges(ctx context.Context, v View, want []byte) error {
	size := int64(len(want))
	for _, r := range []struct {
		off    int64
		length int
	}{
		{0, 1}, {size / 2, 1}, {size - 1, 1}, {size - 8, 8}, // short buffers
		{size - 1, 2}, {size - 7, 100}, {0, len(want) + 1}, {0, len(want) + 5000}, // across the end
		{size, 1}, {size, 4096}, {size + 1, 1}, {size + 1<<40, 10}, // past it
	} {
		if r.off < 0 {
			continue
		}
		if err := checkAt(ctx, v, want, r.off, r.length); err != nil {
			return err
		}
	}
	return nil
}

// checkNothing reads nothing, and at negative offsets.
func checkNothing(ctx context.Context, v View, want []byte) error {
	for _, off := range []int64{0, int64(len(want)) / 2, int64(len(want))} {
		n, err := v.ReadAt(ctx, nil, off)
		if n != 0 || (err != nil && !(errors.Is(err, io.EOF) && off == int64(len(want)))) {
			return fmt.Errorf("empty read at %d of %d: n = %d, err %v", off, len(want), n, err)
		}
	}
	for _, off := range []int64{-1, -1 << 62} {
		n, err := v.ReadAt(ctx, make([]byte, 4), off)
		if n != 0 || err == nil || errors.Is(err, io.EOF) {
			return fmt.Errorf("read at negative offset %d: n = %d, err %v, want an error that is not io.EOF", off, n, err)
		}
	}
	return nil
}

// ranges returns a reader's random ranges, the same in every run.
func ranges(seed uint64, size int64) func() (int64, int) {
	rnd := rand.New(rand.NewPCG(seed, uint64(size)))
	return func() (int64, int) {
		off := rnd.Int64N(size + 1)
		longest := int64(1) << (1 + rnd.IntN(18)) // short and long ones alike
		return off, 1 + int(rnd.Int64N(min(longest, maxRandomLength)))
	}
}

// checkRandom compares random ranges with the sequential read.
func checkRandom(ctx context.Context, v View, want []byte) error {
	next := ranges(1, int64(len(want)))
	for range randomReads {
		off, length := next()
		if err := checkAt(ctx, v, want, off, length); err != nil {
			return fmt.Errorf("random read: %w", err)
		}
	}
	return nil
}

// checkCancelled reads with a context that has ended: an error or the right
// bytes, and no trace of it in the reads that follow.
func checkCancelled(ctx context.Context, v View, want []byte) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	p := make([]byte, min(len(want), 4096))
	if n, err := v.ReadAt(ended, p, 0); err == nil && (n != len(p) || !bytes.Equal(p, want[:n])) {
		return errors.New("read under a cancelled context: wrong bytes without an error")
	}
	if err := checkAt(ctx, v, want, 0, len(p)); err != nil {
		return fmt.Errorf("after a cancelled read: %w", err)
	}
	return nil
}

// checkParallel runs readers at the same time.
func checkParallel(ctx context.Context, v View, want []byte) error {
	faults := make([]error, parallelReaders)
	var readers sync.WaitGroup
	for i := range parallelReaders {
		readers.Go(func() {
			next := ranges(uint64(2+i), int64(len(want)))
			for range parallelReads {
				off, length := next()
				if err := checkAt(ctx, v, want, off, length); err != nil {
					faults[i] = fmt.Errorf("parallel reader %d: %w", i, err)
					return
				}
			}
		})
	}
	readers.Wait()
	return errors.Join(faults...)
}

// sameSize asks for the size again.
func sameSize(ctx context.Context, v View, want int64) error {
	size, err := v.Size(ctx)
	if err != nil {
		return fmt.Errorf("size after reading: %w", err)
	}
	if size != want {
		return fmt.Errorf("size is %d after reading, was %d", size, want)
	}
	return nil
}

// checkReopened reads a view made anew from its end to its start, so that
// nothing an earlier byte prepared can help, and only then asks for its size.
func checkReopened(ctx context.Context, v View, want []byte) error {
	const step = 70_001
	for end := len(want); end > 0; end -= step {
		start := max(end-step, 0)
		if err := checkAt(ctx, v, want, int64(start), end-start); err != nil {
			return err
		}
	}
	if err := checkAt(ctx, v, want, int64(len(want)), 1); err != nil {
		return err
	}
	return sameSize(ctx, v, int64(len(want)))
}
