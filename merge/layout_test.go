package merge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

// fakeObject is an object of a size, of which nothing is read.
type fakeObject struct {
	source.Object
	name string
}

func (o *fakeObject) Location() string { return o.name }

// TestLayoutStored: a range is found in files if raw segments have all of it.
func TestLayoutStored(t *testing.T) {
	a, b := &fakeObject{name: "a"}, &fakeObject{name: "b"}
	l := &layout{}
	l.add(&memorySegment{data: []byte(magic)})
	l.add(&rawSegment{object: a, from: 10, n: 50})
	l.add(&rawSegment{object: a, from: 60, n: 50}) // goes on where the one before ends
	l.add(&rawSegment{object: b, from: 7, n: 20})
	l.add(&memorySegment{data: []byte("footer")})
	if len(l.segments) != 4 || l.length != 130 || l.raw != 120 {
		t.Fatalf("%d segments, %d bytes, %d of them raw", len(l.segments), l.length, l.raw)
	}
	for _, c := range []struct {
		off, n int64
		want   []string
	}{
		{4, 100, []string{"100 of a at 10"}},
		{4, 101, []string{"100 of a at 10", "1 of b at 7"}},
		{50, 20, []string{"20 of a at 56"}}, // over what was two segments
		{103, 1, []string{"1 of a at 109"}},
		{103, 21, []string{"1 of a at 109", "20 of b at 7"}},
		{104, 20, []string{"20 of b at 7"}},
		{110, 14, []string{"14 of b at 13"}},
		{0, 10, nil},    // the magic
		{3, 2, nil},     // into a
		{120, 10, nil},  // into the footer
		{124, 6, nil},   // the footer
		{104, 100, nil}, // past the end
		{130, 1, nil},
		{-1, 5, nil},
		{4, 0, nil},
	} {
		all, at := l.stored(c.off, c.n)
		var got []string
		for left := c.n; len(all) > 0; all, at = all[1:], 0 {
			n := min(left, all[0].n-at)
			got = append(got, fmt.Sprintf("%d of %s at %d", n, all[0].object.Location(), all[0].from+at))
			left -= n
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d bytes at %d: %q, want %q", c.n, c.off, got, c.want)
		}
	}
}
