package source

import "context"

// MaxExtent is the longest extent: long enough that a request's latency is
// small beside it, short enough to hold a few in memory for each reader.
const MaxExtent = 8 << 20

// Range is a range of bytes.
type Range struct{ Off, Len int64 }

// Remote is an Object in an object store, where a request costs as much as a
// megabyte: its reader says what it will want as a whole, in the same ranges
// each time, so that each of them is fetched once and can be kept.
type Remote interface {
	Object
	// Extent returns the bytes [off, off+n), n at most MaxExtent, fetched in one
	// request or found in a cache. They are shared: nobody may change them.
	Extent(ctx context.Context, off, n int64) ([]byte, error)
	// Prefetch starts to fetch extents that will be asked for next, those that
	// lie close together in one request. It does not wait, and may do nothing.
	// What has not been asked for when ctx ends is dropped.
	Prefetch(ctx context.Context, extents []Range)
}

// Suspected is an Object that keeps bytes which it has fetched.
type Suspected interface {
	Object
	// Suspect tells that a checksum has found bytes of the object damaged. It
	// reports whether they may be others when they are read again: that what was
	// kept of the object is fetched anew.
	Suspect() bool
}

// Suspect tells an object that bytes of it were found damaged, and reports
// whether to read them again.
func Suspect(o Object) bool {
	s, ok := o.(Suspected)
	return ok && s.Suspect()
}

// Extents cuts a range into extents: all of MaxExtent but the last.
func Extents(r Range) []Range {
	var out []Range
	for r.Len > 0 {
		n := min(r.Len, MaxExtent)
		out = append(out, Range{r.Off, n})
		r.Off, r.Len = r.Off+n, r.Len-n
	}
	return out
}

// renamedRemote is a Remote under another location.
type renamedRemote struct {
	Remote
	location string
}

func (o *renamedRemote) Location() string { return o.location }

// Suspect implements Suspected.
func (o *renamedRemote) Suspect() bool { return Suspect(o.Remote) }
