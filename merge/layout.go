package merge

import (
	"context"
	"fmt"
	"io"
	"sort"
	"sync/atomic"

	"github.com/icefs/icefs/internal/source"
)

// segment is a run of a Parquet view's bytes. Segments are immutable and safe
// for concurrent use.
type segment interface {
	// size is the segment's length, fixed when the layout was made.
	size() int64
	// readAt fills p, which lies within the segment, from off.
	readAt(ctx context.Context, h *handle, p []byte, off int64) error
	// describe tells, in one line, where the bytes come from, and why.
	describe() string
}

// layout is a whole view as segments that follow one another without gaps.
type layout struct {
	segments []segment
	starts   []int64 // starts[i] is where segments[i] begins
	length   int64
	raw      int64 // bytes of raw segments
	heap     int64 // estimate of the memory kept, for the cache's budget
	summary  Summary
	// objects are the view's data files, and footer its footer, unless the layout
	// was kept: then nothing is known of what it was made of.
	objects []source.Object
	footer  *footer
	kept    bool
	// whole is set if the view is a data file as it is.
	whole  source.Object
	remote bool // any of the view comes from an object store
	// places are set if it does and the layout was made, not found as it was kept.
	places *chunkPlaces
}

// add appends a segment and returns where it begins. Raw segments that continue
// one another become one.
func (l *layout) add(s segment) int64 {
	at := l.length
	if s.size() == 0 {
		return at
	}
	l.length += s.size()
	r, ok := s.(*rawSegment)
	if ok {
		l.raw += r.n
	}
	if ok && len(l.segments) > 0 {
		if last, ok := l.segments[len(l.segments)-1].(*rawSegment); ok && last.object == r.object && last.from+last.n == r.from {
			last.n += r.n
			return at
		}
	}
	l.segments = append(l.segments, s)
	l.starts = append(l.starts, at)
	return at
}

// readAt fills p from off; io.EOF if the layout ends before p does.
func (l *layout) readAt(ctx context.Context, h *handle, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%w: negative offset %d", ErrCorrupt, off)
	}
	if off >= l.length {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	short := int64(len(p)) > l.length-off
	if short {
		p = p[:l.length-off]
	}
	i := l.segmentAt(off)
	n := 0
	for n < len(p) {
		s := l.segments[i]
		in := off + int64(n) - l.starts[i]
		part := p[n:]
		if left := s.size() - in; int64(len(part)) > left {
			part = part[:left]
		}
		if err := s.readAt(ctx, h, part, in); err != nil {
			return n, err
		}
		n += len(part)
		i++
	}
	if short {
		return n, io.EOF
	}
	return n, nil
}

// made returns the rewritten run that alone has the n bytes at off, and where they
// begin in it; nil if there is none.
func (l *layout) made(off, n int64) (*rewrite, int64) {
	if off < 0 || n <= 0 || n > l.length-off {
		return nil, 0
	}
	i := l.segmentAt(off)
	r, ok := l.segments[i].(*rewrite)
	if at := off - l.starts[i]; ok && n <= r.length-at {
		return r, at
	}
	return nil, 0
}

// segmentAt is the segment that has the byte at off, which the layout has.
func (l *layout) segmentAt(off int64) int {
	return sort.Search(len(l.starts), func(i int) bool { return l.starts[i] > off }) - 1
}

// stored returns the segments that have the n bytes at off as they are in local
// files, and where in the first of them they begin; nil if others have a part.
func (l *layout) stored(off, n int64) ([]*rawSegment, int64) {
	if off < 0 || n <= 0 || n > l.length-off {
		return nil, 0
	}
	first := l.segmentAt(off)
	var out []*rawSegment
	for i := first; i < len(l.segments) && l.starts[i] < off+n; i++ {
		s, ok := l.segments[i].(*rawSegment)
		if !ok {
			return nil, 0
		}
		out = append(out, s)
	}
	return out, off - l.starts[first]
}

// memorySegment is a few bytes made with the layout.
type memorySegment struct {
	data []byte
	what string
}

func (s *memorySegment) size() int64 { return int64(len(s.data)) }

func (s *memorySegment) readAt(_ context.Context, _ *handle, p []byte, off int64) error {
	copy(p, s.data[off:])
	return nil
}

func (s *memorySegment) describe() string { return s.what }

// rawSegment is a range of a data file as it is.
type rawSegment struct {
	object source.Object
	from   int64
	n      int64
	served *atomic.Int64 // counter of bytes served; may be nil
}

func (s *rawSegment) size() int64 { return s.n }

func (s *rawSegment) readAt(ctx context.Context, _ *handle, p []byte, off int64) error {
	if _, err := s.object.ReadAt(ctx, p, s.from+off); err != nil {
		return err
	}
	if s.served != nil {
		s.served.Add(int64(len(p)))
	}
	return nil
}

func (s *rawSegment) describe() string {
	return fmt.Sprintf("raw %s [%d, %d)", s.object.Location(), s.from, s.from+s.n)
}
