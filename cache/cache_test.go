package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func newCache(t *testing.T, maxBytes int64) *Cache {
	t.Helper()
	c, err := New(Options{MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// value returns a load of a constant.
func value(v any, size int64) func(context.Context) (any, int64, error) {
	return func(context.Context) (any, int64, error) { return v, size, nil }
}

// forbidden is a load that must not run.
func forbidden(t *testing.T) func(context.Context) (any, int64, error) {
	return func(context.Context) (any, int64, error) {
		t.Error("loaded although the value is known")
		return nil, 0, nil
	}
}

func TestGetKeeps(t *testing.T) {
	c := newCache(t, 1<<20)
	ctx := context.Background()
	for i := range 50 {
		key := fmt.Sprint("k", i)
		if v, err := c.Get(ctx, key, value(i, 100)); v != i || err != nil {
			t.Fatalf("first Get(%s) = %v, %v", key, v, err)
		}
		// Without a pause: a Set that is not applied yet must not cause a load.
		if v, err := c.Get(ctx, key, forbidden(t)); v != i || err != nil {
			t.Fatalf("second Get(%s) = %v, %v", key, v, err)
		}
	}
	settle(t, c)
	s := c.Stats()
	if s.Loads != 50 || s.Misses != 50 || s.Hits != 50 || s.Rejected != 0 {
		t.Errorf("stats = %+v", s)
	}
	if s.Bytes < 50*100 || s.Bytes > 50*(100+200) || s.MaxBytes != 1<<20 {
		t.Errorf("bytes = %+v", s)
	}
}

func TestHitNeedsNoLiveContext(t *testing.T) {
	c := newCache(t, 1<<20)
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := c.Get(ctx, "k", value(1, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	for deadline := time.Now().Add(5 * time.Second); ; {
		if _, ok := c.mem.Get("k"); ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("value was not kept")
		}
		runtime.Gosched()
	}
	if v, err := c.Get(ctx, "k", forbidden(t)); v != 1 || err != nil {
		t.Errorf("Get = %v, %v", v, err)
	}
	if _, err := c.Get(ctx, "other", forbidden(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("miss with a dead context: %v", err)
	}
}

func TestSingleFlight(t *testing.T) {
	c := newCache(t, 1<<20)
	var loads atomic.Int64
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			v, err := c.Get(context.Background(), "k", func(context.Context) (any, int64, error) {
				loads.Add(1)
				<-release
				return "v", 1, nil
			})
			if v != "v" || err != nil {
				t.Errorf("Get = %v, %v", v, err)
			}
		})
	}
	waitFor(t, func() bool { return waiters(c, "k") == 100 })
	close(release)
	wg.Wait()
	if n := loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

func waiters(c *Cache, key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		return f.waiters
	}
	return 0
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out")
		}
	}
}

func TestOneWaiterLeaves(t *testing.T) {
	c := newCache(t, 1<<20)
	release := make(chan struct{})
	load := func(ctx context.Context) (any, int64, error) {
		select {
		case <-release:
			return "v", 1, nil
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	leaving, cancel := context.WithCancel(context.Background())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Get(leaving, "k", load); left <- err }()
	waitFor(t, func() bool { return waiters(c, "k") == 1 })
	go func() {
		v, err := c.Get(context.Background(), "k", forbidden(t))
		if v != "v" {
			t.Errorf("value = %v", v)
		}
		stayed <- err
	}()
	waitFor(t, func() bool { return waiters(c, "k") == 2 })
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter that left got %v", err)
	}
	close(release)
	if err := <-stayed; err != nil {
		t.Errorf("the waiter that stayed got %v", err)
	}
}

func TestLastWaiterCancelsLoad(t *testing.T) {
	c := newCache(t, 1<<20)
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := make(chan struct{})
	hold := make(chan struct{})
	got := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.Get(ctx, "k", func(ctx context.Context) (any, int64, error) {
				<-ctx.Done()
				close(cancelled)
				<-hold // a load that is slow to notice
				return nil, 0, ctx.Err()
			})
			got <- err
		}()
	}
	waitFor(t, func() bool { return waiters(c, "k") == 2 })
	cancel()
	for range 2 {
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	<-cancelled
	// The dying load must not be joined.
	if v, err := c.Get(context.Background(), "k", value("fresh", 1)); v != "fresh" || err != nil {
		t.Errorf("Get = %v, %v", v, err)
	}
	close(hold)
}

func TestLoadContextIsDetached(t *testing.T) {
	type ctxKey struct{}
	c := newCache(t, 1<<20)
	parent := context.WithValue(context.Background(), ctxKey{}, "request")
	_, err := c.Get(parent, "k", func(ctx context.Context) (any, int64, error) {
		if ctx.Value(ctxKey{}) != nil {
			t.Error("the load sees the values of one of its waiters")
		}
		return 1, 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestErrorsAreNotKept(t *testing.T) {
	c := newCache(t, 1<<20)
	boom := errors.New("boom")
	for range 2 {
		v, err := c.Get(context.Background(), "k", func(context.Context) (any, int64, error) { return "half", 1, boom })
		if v != nil || !errors.Is(err, boom) {
			t.Errorf("Get = %v, %v", v, err)
		}
		waitFor(t, func() bool { return waiters(c, "k") == 0 && !flying(c, "k") })
	}
	if v, err := c.Get(context.Background(), "k", value(7, 1)); v != 7 || err != nil {
		t.Errorf("Get = %v, %v", v, err)
	}
	if s := c.Stats(); s.Loads != 3 {
		t.Errorf("loads = %d", s.Loads)
	}
}

// settle waits until every finished load's value was offered to ristretto.
func settle(t *testing.T, c *Cache) {
	t.Helper()
	waitFor(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.flights) == 0
	})
}

func flying(c *Cache, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flights[key] != nil
}

func TestPanicReachesEveryWaiter(t *testing.T) {
	c := newCache(t, 1<<20)
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			_, err := c.Get(context.Background(), "key-7", func(context.Context) (any, int64, error) {
				<-release
				panic("kaput")
			})
			var p *PanicError
			if !errors.As(err, &p) || !errors.Is(err, ErrLoad) || p.Value != "kaput" {
				t.Errorf("error = %v", err)
			} else if !strings.Contains(err.Error(), "key-7") || !strings.Contains(string(p.Stack), "TestPanicReachesEveryWaiter") {
				t.Errorf("error %q, stack %s", err, p.Stack)
			}
		})
	}
	waitFor(t, func() bool { return waiters(c, "key-7") == 10 })
	close(release)
	wg.Wait()
	waitFor(t, func() bool { return !flying(c, "key-7") })
	if v, err := c.Get(context.Background(), "key-7", value(1, 1)); v != 1 || err != nil {
		t.Errorf("after the panic: %v, %v", v, err)
	}
}

func TestGoexitIsAnError(t *testing.T) {
	c := newCache(t, 1<<20)
	_, err := c.Get(context.Background(), "k", func(context.Context) (any, int64, error) {
		runtime.Goexit()
		return 1, 1, nil
	})
	if !errors.Is(err, ErrLoad) {
		t.Errorf("error = %v", err)
	}
}

func TestTooLargeIsReturnedNotKept(t *testing.T) {
	c := newCache(t, 1<<16)
	for i := range 2 {
		if v, err := c.Get(context.Background(), "k", value(i, 1<<17)); v != i || err != nil {
			t.Fatalf("Get = %v, %v", v, err)
		}
		waitFor(t, func() bool { return !flying(c, "k") })
	}
	if s := c.Stats(); s.Loads != 2 || s.Rejected != 2 || s.Bytes != 0 {
		t.Errorf("stats = %+v", s)
	}
}

func TestEvictionBounds(t *testing.T) {
	const budget = 1 << 20
	c := newCache(t, budget)
	for i := range 2000 {
		if _, err := c.Get(context.Background(), fmt.Sprint(i), value(i, 10<<10)); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Bytes > budget {
			t.Fatalf("after %d values: %d bytes of %d", i+1, s.Bytes, budget)
		}
	}
	// Values without size are not free: their number is bounded too.
	for i := range 20_000 {
		if _, err := c.Get(context.Background(), fmt.Sprint("empty", i), value(i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, c)
	if s := c.Stats(); s.Bytes > budget || s.Bytes < budget/2 {
		t.Errorf("stats = %+v", s)
	}
}

// TestDroppedSet fills ristretto's queue behind its back: the value still
// reaches the waiter.
func TestDroppedSet(t *testing.T) {
	c := newCache(t, 1<<20)
	stop := make(chan struct{})
	var flood sync.WaitGroup
	for g := range 4 {
		flood.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					key := fmt.Sprint("flood", g, i)
					c.mem.Set(key, kept{key, nil}, 1)
				}
			}
		})
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				key := fmt.Sprint("k", g, "/", i)
				if v, err := c.Get(context.Background(), key, value(key, 10)); v != key || err != nil {
					t.Errorf("Get(%s) = %v, %v", key, v, err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	flood.Wait()
}

func TestNewRefusesNegativeBudget(t *testing.T) {
	if _, err := New(Options{MaxBytes: -1}); err == nil {
		t.Error("no error")
	}
}

func TestCloseCancelsLoads(t *testing.T) {
	c, err := New(Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	got := make(chan error, 1)
	go func() {
		_, err := c.Get(context.Background(), "k", func(ctx context.Context) (any, int64, error) {
			close(started)
			<-ctx.Done()
			return nil, 0, ctx.Err()
		})
		got <- err
	}()
	<-started
	c.Close()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}
