package faulty_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/faulty"
)

func open(t *testing.T, opt faulty.Options) (*faulty.Store, source.Object) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := source.NewLocal(source.NewPool(0), filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if opt.Damage != nil {
		opt.Damage = faulty.FlipBit(path, 4, 0)
	}
	s := faulty.New(l, opt)
	o, err := s.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	read := func(o source.Object) (string, error) {
		p := make([]byte, 6)
		n, err := o.ReadAt(ctx, p, 2)
		return string(p[:n]), err
	}
	for _, c := range []struct {
		name   string
		opt    faulty.Options
		second string
		err    error
	}{
		{"none", faulty.Options{}, "234567", nil},
		{"fail", faulty.Options{FailRead: 2}, "", source.ErrRead},
		{"short", faulty.Options{ShortRead: 2}, "234", source.ErrTruncated},
		{"other", faulty.Options{FailRead: 2, Match: func(string) bool { return false }}, "234567", nil},
		{"flip", faulty.Options{Damage: faulty.FlipBit("", 0, 0)}, "235567", nil},
	} {
		s, o := open(t, c.opt)
		if _, err := read(o); err != nil {
			t.Errorf("%s: first read: %v", c.name, err)
		}
		got, err := read(o)
		if got != c.second || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: second read %q, %v; want %q, %v", c.name, got, err, c.second, c.err)
		}
		if c.err != nil && !errors.Is(err, faulty.ErrInjected) {
			t.Errorf("%s: %v is not ErrInjected", c.name, err)
		}
		if got, err := read(o); err != nil || c.err != nil && got != "234567" {
			t.Errorf("%s: third read %q, %v", c.name, got, err)
		}
		if c.opt.Match == nil && s.Reads() != 3 {
			t.Errorf("%s: %d reads counted", c.name, s.Reads())
		}
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	_, o := open(t, faulty.Options{Delay: time.Hour})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := o.ReadAt(ctx, make([]byte, 1), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want DeadlineExceeded", err)
	}
}

func TestFailOpen(t *testing.T) {
	s := faulty.New(nil, faulty.Options{FailOpen: 1})
	if _, err := s.Open(context.Background(), "/x"); !errors.Is(err, faulty.ErrInjected) {
		t.Error(err)
	}
}
