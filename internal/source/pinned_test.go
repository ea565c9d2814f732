package source

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// answers is a store that answers each Open alike, and has URLs in an object store.
type answers struct {
	object Object
	err    error
}

func (a answers) Open(context.Context, string) (Object, error) { return a.object, a.err }
func (a answers) InStore(location string) bool                 { return IsURL(location) }

// remoteOf is a Remote of a version that cannot be read.
type remoteOf struct{ version string }

func (o remoteOf) Version() string                                      { return o.version }
func (o remoteOf) Size() int64                                          { return 1 }
func (o remoteOf) Location() string                                     { return "s3://b/x" }
func (o remoteOf) ReadAt(context.Context, []byte, int64) (int, error)   { return 0, ErrRead }
func (o remoteOf) Extent(context.Context, int64, int64) ([]byte, error) { return nil, ErrRead }
func (o remoteOf) Prefetch(ctx context.Context, extents []Range)        {}

// An object in a store that was opened once, and is said not to be there when it
// is opened again, stands for its location: its reads find out. Anything else that
// an Open says counts.
func TestPinnedRemote(t *testing.T) {
	first := remoteOf{"1"}
	missing := fmt.Errorf("%w: for a moment", ErrNotFound)
	for _, c := range []struct {
		what   string
		answer answers
		want   error
	}{
		{"not there", answers{err: missing}, nil},
		{"the same", answers{object: first}, nil},
		{"another", answers{object: remoteOf{"2"}}, ErrChanged},
		{"denied", answers{err: ErrRead}, ErrRead},
	} {
		p := Pinned(c.answer).(*pinned)
		p.seen[hashOf("s3://b/x")] = pin{hashOf("1"), &remotePin{first, time.Now().Add(-2 * openAgain)}}
		o, err := p.Open(t.Context(), "s3://b/x")
		if !errors.Is(err, c.want) || c.want == nil && o != Object(first) {
			t.Errorf("%s: %v, %v", c.what, o, err)
		}
		if _, err := p.Open(t.Context(), "s3://b/y"); c.what == "not there" && !errors.Is(err, ErrNotFound) {
			t.Errorf("what was never there: %v", err)
		}
	}
}

// Where a location leads is known without looking: by its first prefix.
func TestInStore(t *testing.T) {
	s := Mapped(Pinned(answers{}), []Prefix{{"s3://b/t", "/disk/t"}, {"/old", "s3://b/new"}, {"s3://b/t/data", "s3://b/t/data"}})
	for location, want := range map[string]bool{
		"s3://b/u/x": true, "/x": false, "file:///x": false, "s3://b/t/x": false, "/old/x": true, "file:/old/x": true, "s3://b/t/data/x": true,
	} {
		if got := InStore(s, location); got != want {
			t.Errorf("%s: %t", location, got)
		}
	}
	local, err := NewLocal(NewPool(0), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if InStore(NewFiles(local, nil), "s3://b/x") {
		t.Error("there is no store")
	}
}
