package viewtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sound is a view without fault; the broken ones below embed it.
type sound struct{ data []byte }

func (s sound) Size(context.Context) (int64, error) { return int64(len(s.data)), nil }

func (s sound) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, off)
}

// broken overrides one method of a sound view.
type broken struct {
	sound
	size   func() (int64, error)
	readAt func(p []byte, off int64) (int, error)
}

func (b *broken) Size(ctx context.Context) (int64, error) {
	if b.size != nil {
		return b.size()
	}
	return b.sound.Size(ctx)
}

func (b *broken) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if b.readAt != nil {
		return b.readAt(p, off)
	}
	return b.sound.ReadAt(ctx, p, off)
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func TestCheckPassesSoundViews(t *testing.T) {
	for _, n := range []int{0, 1, 7, sequentialStep - 1, sequentialStep, sequentialStep + 1, 2 * sequentialStep, 300_000} {
		v := sound{content(n)}
		if err := check(t.Context(), v, []func() View{func() View { return sound{content(n)} }}); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if got := Bytes(t, v); !bytes.Equal(got, v.data) {
			t.Errorf("%d bytes: Bytes differ", n)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	const n = 200_000
	data := content(n)
	read := func(p []byte, off int64) (int, error) { return sound{data}.ReadAt(t.Context(), p, off) }
	boom := errors.New("boom")

	for _, c := range []struct {
		name, want string
		view       func() *broken
		reopen     func() View
	}{
		{name: "size fails", want: "size: boom", view: func() *broken {
			return &broken{size: func() (int64, error) { return 0, boom }}
		}},
		{name: "size negative", want: "negative", view: func() *broken {
			return &broken{size: func() (int64, error) { return -1, nil }}
		}},
		{name: "size too large", want: "size is 200001", view: func() *broken {
			return &broken{size: func() (int64, error) { return n + 1, nil }}
		}},
		{name: "size too small", want: "size is 199999", view: func() *broken {
			return &broken{size: func() (int64, error) { return n - 1, nil }}
		}},
		{name: "size changes", want: "after reading", view: func() *broken {
			var calls atomic.Int64
			return &broken{size: func() (int64, error) {
				if calls.Add(1) > 1 {
					return n + 5, nil
				}
				return n, nil
			}}
		}},
		{name: "size fails later", want: "size after reading: boom", view: func() *broken {
			var calls atomic.Int64
			return &broken{size: func() (int64, error) {
				if calls.Add(1) > 1 {
					return 0, boom
				}
				return n, nil
			}}
		}},
		{name: "read fails", want: "boom", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				if off > n/2 {
					return 0, boom
				}
				return read(p, off)
			}}
		}},
		{name: "n out of range", want: "returned n", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) { return len(p) + 1, nil }}
		}},
		{name: "short read without error", want: "without an error", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p[:(len(p)+1)/2], off)
				return k, err
			}}
		}},
		{name: "EOF lost across the end", want: "want io.EOF", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if len(p) == 100 {
					err = nil
				}
				return k, err
			}}
		}},
		{name: "foreign error at the end", want: "want io.EOF", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if off > n {
					err = boom
				}
				return k, err
			}}
		}},
		{name: "EOF too early", want: "full read with err EOF", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if off == n/2 {
					err = io.EOF
				}
				return k, err
			}}
		}},
		{name: "bytes behind the end", want: "n = 1, want 0", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				if off > n {
					return 1, io.EOF
				}
				return read(p, off)
			}}
		}},
		{name: "whole read differs", want: "bytes differ", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if k == n {
					p[n/3]++
				}
				return k, err
			}}
		}},
		{name: "one byte reads differ", want: "1 bytes at 0", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if len(p) == 1 && k == 1 {
					p[0] ^= 1
				}
				return k, err
			}}
		}},
		{name: "random reads differ", want: "random read", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if off%sequentialStep != 0 && k > 2 && k < n-1 && off+int64(len(p)) <= n-9 {
					p[k/2] ^= 1
				}
				return k, err
			}}
		}},
		{name: "writes behind the buffer", want: "behind the buffer", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				k, err := read(p, off)
				if cap(p) > len(p) {
					p[:len(p)+1][len(p)] = 0
				}
				return k, err
			}}
		}},
		{name: "empty read fails", want: "empty read", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				if len(p) == 0 {
					return 0, boom
				}
				return read(p, off)
			}}
		}},
		{name: "negative offset read", want: "negative offset", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) { return read(p, max(off, 0)) }}
		}},
		{name: "negative offset is EOF", want: "negative offset", view: func() *broken {
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				if off < 0 {
					return 0, io.EOF
				}
				return read(p, off)
			}}
		}},
		{name: "not safe for parallel readers", want: "parallel reader", view: func() *broken {
			var inside atomic.Int64
			return &broken{readAt: func(p []byte, off int64) (int, error) {
				others := inside.Add(1) > 1
				k, err := read(p, off)
				time.Sleep(time.Millisecond) // long enough to meet the others
				others = others || inside.Load() > 1
				if others && k > 0 {
					p[0]++
				}
				inside.Add(-1)
				return k, err
			}}
		}},
		{name: "other bytes when reopened", want: "reopened", reopen: func() View {
			other := content(n)
			other[n-1]++
			return sound{other}
		}},
		{name: "other size when reopened", want: "reopened: size is", reopen: func() View {
			return &broken{sound: sound{data}, size: func() (int64, error) { return n + 1, nil }}
		}},
		{name: "longer when reopened", want: "reopened", reopen: func() View {
			return sound{append(content(n), 1)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v View = sound{data}
			if c.view != nil {
				b := c.view()
				b.sound = sound{data}
				v = b
			}
			var reopen []func() View
			if c.reopen != nil {
				reopen = append(reopen, c.reopen)
			}
			err := check(t.Context(), v, reopen)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// afterCancel is sound until a cancelled read: then it breaks in the given way.
type afterCancel struct {
	sound
	lies      bool // wrong bytes under the cancelled context, without an error
	cancelled atomic.Bool
}

func (a *afterCancel) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := a.sound.ReadAt(ctx, p, off)
	if ctx.Err() != nil {
		a.cancelled.Store(true)
		if a.lies {
			p[0]++
			return n, nil
		}
		return 0, ctx.Err()
	}
	if a.cancelled.Load() && !a.lies {
		return 0, context.Canceled // a failed load that was kept
	}
	return n, err
}

func TestCheckFindsCancelledFaults(t *testing.T) {
	for want, v := range map[string]View{
		"wrong bytes without an error": &afterCancel{sound: sound{content(9000)}, lies: true},
		"after a cancelled read":       &afterCancel{sound: sound{content(9000)}},
	} {
		if err := check(t.Context(), v, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// fatal records that a test was failed.
type fatal struct {
	testing.TB
	message string
}

func (f *fatal) Helper()                           {}
func (f *fatal) Fatalf(format string, args ...any) { f.message = format }

func TestCheckFailsTheTest(t *testing.T) {
	f := &fatal{TB: t}
	Check(f, &broken{sound: sound{content(3)}, size: func() (int64, error) { return 4, nil }})
	if f.message == "" {
		t.Error("Check did not fail a test with a broken view")
	}
	f.message = ""
	Check(f, sound{content(3)})
	if f.message != "" {
		t.Error("Check failed a test with a sound view")
	}
}
