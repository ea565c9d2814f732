package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/source"
)

// tailBytes is how much of an object's end is read with its version and size:
// most footers, and most metadata files and manifests as a whole.
const tailBytes = 64 << 10

// object is an object at one version.
type object struct {
	stores    *Stores
	bucket    *bucket
	key       string
	location  string
	version   string // source.Object's
	info      Info
	changed   atomic.Bool // another version was met
	missed    atomic.Bool // the store has said, again and again, that it is not there
	suspected suspected
}

var (
	_ source.Remote    = (*object)(nil)
	_ source.Suspected = (*object)(nil)
)

func (o *object) Size() int64      { return o.info.Size }
func (o *object) Version() string  { return o.version }
func (o *object) Location() string { return o.location }

// Open implements source.Store with one request.
func (f *folders) Open(ctx context.Context, location string) (source.Object, error) {
	b, key, err := f.reach(location)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, fmt.Errorf("%w: %s: a bucket is no object", source.ErrNotFound, location)
	}
	o := &object{stores: f.stores, bucket: b, key: key, location: location}
	if err := o.open(ctx); err != nil {
		return nil, classify(err, location)
	}
	return o, nil
}

// open finds the object's version and size. If it was seen before, what was
// fetched then may do; else the end is read as well, and kept.
func (o *object) open(ctx context.Context) error {
	from, err := o.bucket.get(ctx)
	if err != nil {
		return err
	}
	place := fmt.Sprintf("%s|%q|%q", from.Endpoint(), o.bucket.name, o.key)
	seen := "seen|" + place
	if o.wasSeen(seen) {
		doubt := o.doubt()
		err = o.stores.do(ctx, o.bucket, func(ctx context.Context, from Bucket, _ func()) (err error) {
			o.info, err = from.Head(ctx, o.key)
			return doubt(err)
		})
		o.identify(place)
		return err
	}
	end, err := o.readEnd(ctx)
	if err != nil {
		return err
	}
	o.identify(place)
	if at, n := o.tail(); int64(len(end)) == n && n > 0 {
		o.stores.ahead.add(o.extentKey(at, n), end)
	}
	o.see(seen)
	return nil
}

func (o *object) identify(place string) {
	o.version = fmt.Sprintf("%s|%s|%d", place, o.info.Version, o.info.Size)
}

// readEnd reads the object's last tailBytes, with its version and size. An empty
// object has no range that could be asked for.
func (o *object) readEnd(ctx context.Context) (end []byte, err error) {
	err = o.stores.do(ctx, o.bucket, func(ctx context.Context, from Bucket, progress func()) error {
		reply, err := from.Get(ctx, Request{Key: o.key, Off: -tailBytes})
		var status *StatusError
		if errors.As(err, &status) && status.Code == http.StatusRequestedRangeNotSatisfiable {
			o.info, err = from.Head(ctx, o.key)
			return err
		}
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		progress()
		o.info = reply.Info
		if at, n := o.tail(); reply.Off != at || reply.Len != n {
			return fmt.Errorf("%w: bytes %d+%d for the last %d of %d", source.ErrRead, reply.Off, reply.Len, tailBytes, o.info.Size)
		}
		end = make([]byte, reply.Len)
		return readBody(reply.Body, end, progress)
	})
	o.stores.opt.Stats.Bytes.Add(int64(len(end)))
	return end, err
}

// tail is the extent at the object's end.
func (o *object) tail() (off, n int64) {
	n = min(o.info.Size, tailBytes)
	return o.info.Size - n, n
}

// wasSeen and see keep on disk that an object was opened: most likely its
// extents are there, too.
func (o *object) wasSeen(key string) bool {
	return o.stores.opt.Disk != nil && o.stores.opt.Disk.Has(key)
}

func (o *object) see(key string) {
	if b, err := json.Marshal(o.info); err == nil {
		o.stores.write(key, b)
	}
}

// ReadAt implements source.Object. It reads the extent of just these bytes, or
// that at the object's end.
func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n := int64(len(p))
	if off < 0 || off > o.info.Size || n > o.info.Size-off {
		return 0, fmt.Errorf("%w: %s: no bytes %d+%d in %d", source.ErrTruncated, o.location, off, n, o.info.Size)
	}
	if n == 0 {
		return 0, ctx.Err()
	}
	if n <= source.MaxExtent {
		b, err := o.Extent(ctx, off, n)
		return copy(p, b), err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, r := range source.Extents(source.Range{Off: off, Len: n}) {
		g.Go(func() error {
			b, err := o.Extent(ctx, r.Off, r.Len)
			copy(p[r.Off-off:], b)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Extent implements source.Remote.
func (o *object) Extent(ctx context.Context, off, n int64) ([]byte, error) {
	switch {
	case o.changed.Load():
		return nil, fmt.Errorf("%w: %s", source.ErrChanged, o.location)
	case n > source.MaxExtent:
		return nil, fmt.Errorf("internal error: an extent of %d bytes", n)
	case off < 0 || n < 0 || off > o.info.Size || n > o.info.Size-off:
		return nil, fmt.Errorf("%w: %s: no bytes %d+%d in %d", source.ErrTruncated, o.location, off, n, o.info.Size)
	case n == 0:
		return nil, ctx.Err()
	}
	at, length := o.tail()
	if off < at {
		at, length = off, n
	}
	key := o.extentKey(at, length)
	kept := key
	round := o.suspected.round.Load()
	if round > 0 {
		kept = fmt.Sprintf("%s|%d", key, round)
	}
	v, err := o.stores.opt.Memory.Get(ctx, kept, func(ctx context.Context) (any, int64, error) {
		b, err := o.load(ctx, key, at, length, round > 0)
		return b, int64(len(b)), err
	})
	if err != nil {
		return nil, o.failed(err)
	}
	b := v.([]byte)[off-at:]
	return b[:n:n], nil
}

// failed remembers that the object was replaced.
func (o *object) failed(err error) error {
	err = classify(err, o.location)
	if errors.Is(err, source.ErrChanged) {
		o.changed.Store(true)
	}
	return err
}

func (o *object) extentKey(off, n int64) string {
	return fmt.Sprintf("extent|%s|%d+%d", o.version, off, n)
}

// load finds an extent among those fetched ahead or, if not anew, on disk, or
// fetches it.
func (o *object) load(ctx context.Context, key string, off, n int64, anew bool) ([]byte, error) {
	s := o.stores
	if s.opt.Timeout > 0 { // also of waiting for what is fetched ahead
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opt.Timeout)
		defer cancel()
	}
	if b, ok := s.ahead.take(ctx, key); ok {
		s.write(key, b)
		return b, nil
	}
	if d := s.opt.Disk; d != nil && !anew {
		if b, ok := d.Get(key); ok && int64(len(b)) == n {
			s.opt.Stats.FromDisk.Add(1)
			return b, nil
		}
	}
	b, err := o.fetch(ctx, off, n)
	if err != nil {
		return nil, err
	}
	s.write(key, b)
	return b, nil
}

// fetch gets a range of the object's version from the store.
func (o *object) fetch(ctx context.Context, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	doubt := o.doubt()
	err := o.stores.do(ctx, o.bucket, func(ctx context.Context, from Bucket, progress func()) error {
		reply, err := from.Get(ctx, Request{Key: o.key, Off: off, Len: n, Match: o.info.Version})
		if err != nil {
			return doubt(err)
		}
		defer reply.Body.Close()
		progress()
		switch {
		case reply.Version != o.info.Version, reply.Size != o.info.Size:
			return source.ErrChanged
		case reply.Off != off || reply.Len != n:
			return fmt.Errorf("%w: bytes %d+%d for %d+%d", source.ErrRead, reply.Off, reply.Len, off, n)
		}
		return readBody(reply.Body, b, progress)
	})
	if err != nil {
		return nil, err
	}
	o.missed.Store(false)
	o.stores.opt.Stats.Bytes.Add(n)
	return b, nil
}

// maxWrites is how many extents may be on their way to the disk; a reader that
// is faster than the disk writes itself.
const maxWrites = 16

// write keeps an extent on disk, behind the back of its reader.
func (s *Stores) write(key string, b []byte) {
	if s.opt.Disk == nil {
		return
	}
	select {
	case s.writes <- struct{}{}:
	default:
		s.opt.Disk.Put(key, b)
		return
	}
	s.pending.Go(func() {
		s.opt.Disk.Put(key, b)
		<-s.writes
	})
}
