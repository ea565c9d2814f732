package merge

import (
	"testing"

	"github.com/icefs/icefs/internal/source"
)

// fakeObject is an object of a size, of which nothing is read.
type fakeObject struct {
	source.Object
	name string
}

// TestLayoutStored: a range is found in a file if one raw segment has all of it.
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
		object *fakeObject
		at     int64
	}{
		{4, 100, a, 10},
		{4, 101, nil, 0}, // into b
		{50, 20, a, 56},  // over what was two segments
		{103, 1, a, 109},
		{104, 20, b, 7},
		{110, 14, b, 13},
		{0, 10, nil, 0},    // the magic
		{3, 2, nil, 0},     // into a
		{120, 10, nil, 0},  // into the footer
		{124, 6, nil, 0},   // the footer
		{104, 100, nil, 0}, // past the end
		{130, 1, nil, 0},
		{-1, 5, nil, 0},
		{4, 0, nil, 0},
	} {
		s, at := l.stored(c.off, c.n)
		if (s == nil) != (c.object == nil) || s != nil && (s.object != source.Object(c.object) || at != c.at) {
			t.Errorf("%d bytes at %d: %+v at %d, want %v at %d", c.n, c.off, s, at, c.object, c.at)
		}
	}
}
