package warehouse

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// counted opens objects that know nothing, but for one location.
type counted struct{ opens int }

type nothing struct{ source.Object }

var errGone = errors.New("gone")

func (c *counted) Open(_ context.Context, location string) (source.Object, error) {
	c.opens++
	if location == "gone" {
		return nil, errGone
	}
	return &nothing{}, nil
}

// Within a while a location is opened once, after it again; what cannot be opened
// is tried each time.
func TestRecentlyOpened(t *testing.T) {
	var store counted
	var r recent
	open := func(location string, opens int, want error) source.Object {
		t.Helper()
		o, err := r.open(t.Context(), &store, location)
		if !errors.Is(err, want) || store.opens != opens {
			t.Errorf("%s: %v after %d opens, want %v after %d", location, err, store.opens, want, opens)
		}
		return o
	}
	first := open("a", 1, nil)
	r.since = time.Now().Add(time.Minute) // no slow machine ends it
	open("b", 2, nil)
	if open("a", 2, nil) != first {
		t.Error("another object")
	}
	open("gone", 3, errGone)
	open("gone", 4, errGone)
	r.since = time.Now().Add(-lookAgain)
	open("a", 5, nil)
	if len(r.objects) != 1 {
		t.Errorf("%d objects are held on to", len(r.objects))
	}
}
