package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// DefaultRequests bounds the requests under way: what a store's bandwidth over a
// usual line is filled by, and few enough not to be told to slow down.
const DefaultRequests = 32

// Memory keeps extents (package cache). load returns the value and its bytes;
// concurrent loads of one key are one, on a context that ends when nobody waits.
type Memory interface {
	Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error)
	// Has reports whether a value is kept, or is being loaded.
	Has(key string) bool
}

// Disk keeps extents for other mounts (package cache).
type Disk interface {
	Get(key string) ([]byte, bool)
	Put(key string, value []byte)
	Has(key string) bool
}

// Options of New. Memory and Schemes are required.
type Options struct {
	Schemes  []Scheme
	Memory   Memory
	Disk     Disk          // nil = none
	Timeout  time.Duration // of one read or listing, with all its requests; 0 = forever
	Stall    time.Duration // 0 = DefaultStall
	Requests int           // under way at most; 0 = DefaultRequests
	// AheadBytes bounds what is fetched before it is asked for; 0 =
	// DefaultAheadBytes.
	AheadBytes int64
	Log        *slog.Logger // nil = discard
	Stats      *Stats       // may be nil
}

// Stats count the work done. All only grow.
type Stats struct {
	Requests   atomic.Int64 // made, those made again included
	Retries    atomic.Int64 // requests that failed and were made again
	Bytes      atomic.Int64 // of objects, fetched
	FromDisk   atomic.Int64 // extents found on disk
	Prefetched atomic.Int64 // extents fetched ahead of their use
}

// Stores opens object stores.
type Stores struct {
	opt     Options
	schemes map[string]*Scheme
	turns   chan struct{}
	writes  chan struct{}
	pending sync.WaitGroup // extents being written to disk
	ahead   ahead

	mu      sync.Mutex
	buckets map[string]*bucket
}

var _ source.Remotes = (*Stores)(nil)

// New returns the stores of opt's schemes.
func New(opt Options) *Stores {
	if opt.Stall <= 0 {
		opt.Stall = DefaultStall
	}
	if opt.Requests <= 0 {
		opt.Requests = DefaultRequests
	}
	if opt.AheadBytes <= 0 {
		opt.AheadBytes = DefaultAheadBytes
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Stats == nil {
		opt.Stats = &Stats{}
	}
	s := &Stores{
		opt:     opt,
		schemes: make(map[string]*Scheme),
		turns:   make(chan struct{}, opt.Requests),
		writes:  make(chan struct{}, maxWrites),
		ahead:   ahead{limit: opt.AheadBytes},
		buckets: make(map[string]*bucket),
	}
	for i := range opt.Schemes {
		for _, name := range opt.Schemes[i].Names {
			s.schemes[name] = &opt.Schemes[i]
		}
	}
	return s
}

// Close waits until what was fetched is on disk.
func (s *Stores) Close() { s.pending.Wait() }

// Reads reports whether a location is one of a scheme that is known.
func (s *Stores) Reads(location string) bool {
	_, _, _, err := s.split(location)
	return err == nil
}

// bucket is a Bucket opened when it is first needed, and opened again when its
// credentials were renewed.
type bucket struct {
	scheme *Scheme
	name   string
	renew  func(context.Context) (map[string]string, error) // may be nil

	turn       chan struct{} // held while opening; guards all below
	properties map[string]string
	opened     Bucket
	at         time.Time // of the last renewal
}

// renewAgain is how soon credentials may be renewed again: a catalog is not
// asked for each read of a table that is forbidden.
const renewAgain = 10 * time.Second

// bucket returns the bucket of a name under an access. Those of equal properties
// are one.
func (s *Stores) bucket(scheme *Scheme, name string, a *source.Access) *bucket {
	b := &bucket{scheme: scheme, name: name, renew: a.Renew, properties: a.Properties, turn: make(chan struct{}, 1)}
	if a.Renew != nil {
		return b // a table's own
	}
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(a.Properties)) {
		fmt.Fprintf(h, "%q=%q,", key, a.Properties[key])
	}
	key := scheme.Names[0] + "|" + name + "|" + hex.EncodeToString(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.buckets[key]; have != nil {
		return have
	}
	s.buckets[key] = b
	return b
}

// get returns the opened Bucket.
func (b *bucket) get(ctx context.Context) (Bucket, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-b.turn }()
	if b.opened != nil {
		return b.opened, nil
	}
	if b.properties == nil && b.renew != nil {
		if err := b.reload(ctx); err != nil {
			return nil, err
		}
	}
	opened, err := b.scheme.Open(ctx, b.name, b.properties)
	if err != nil {
		return nil, err
	}
	b.opened = opened
	return opened, nil
}

// reload takes new properties. The caller holds turn.
func (b *bucket) reload(ctx context.Context) error {
	properties, err := b.renew(ctx)
	if err != nil {
		return fmt.Errorf("renewing credentials: %w", err)
	}
	b.properties, b.opened, b.at = properties, nil, time.Now()
	return nil
}

// renewed reports whether a request that was refused over used may be made
// again, with other credentials.
func (b *bucket) renewed(ctx context.Context, used Bucket) (bool, error) {
	if b.renew == nil {
		return false, nil
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-b.turn }()
	if b.opened != used {
		return true, nil
	}
	if time.Since(b.at) < renewAgain {
		return false, nil
	}
	return true, b.reload(ctx)
}

// do makes a request of a bucket until it succeeds or fails for good.
func (s *Stores) do(ctx context.Context, b *bucket, request func(ctx context.Context, from Bucket, progress func()) error) error {
	return s.try(ctx, func(ctx context.Context, progress func()) error {
		for {
			from, err := b.get(ctx)
			if err != nil {
				return err
			}
			err = request(ctx, from, progress)
			if !refused(err) {
				return err
			}
			again, renewErr := b.renewed(ctx, from)
			if renewErr != nil {
				return fmt.Errorf("%w (%w)", err, renewErr)
			}
			if !again {
				return err
			}
			progress()
		}
	})
}

// folders reaches what lies below the roots of an access.
type folders struct {
	stores *Stores
	access source.Access
	roots  []string // as StoreURL spells them
}

// Folders implements source.Remotes.
func (s *Stores) Folders(a source.Access) (source.Folders, error) {
	f := &folders{stores: s, access: a}
	for _, root := range a.Roots {
		if _, _, _, err := s.split(root); err != nil {
			return nil, err
		}
		f.roots = append(f.roots, strings.TrimSuffix(source.StoreURL(root), "/"))
	}
	return f, nil
}

// split takes a location apart.
func (s *Stores) split(location string) (scheme *Scheme, bucket, key string, err error) {
	name, rest, ok := strings.Cut(location, "://")
	scheme = s.schemes[name]
	if !ok || scheme == nil {
		return nil, "", "", fmt.Errorf("%w: %s", source.ErrUnsupported, location)
	}
	bucket, key, err = scheme.Split(rest)
	if err != nil {
		return nil, "", "", fmt.Errorf("%w: %s: %w", source.ErrUnsupported, location, err)
	}
	return scheme, bucket, key, nil
}

// reach returns the bucket and the key of a location, if it lies below a root.
// Keys with a segment . or .. are nothing that a writer makes, and something else
// to a store that keeps them as paths.
func (f *folders) reach(location string) (*bucket, string, error) {
	scheme, name, key, err := f.stores.split(location)
	if err != nil {
		return nil, "", err
	}
	below := slices.ContainsFunc(f.roots, func(root string) bool {
		rest, ok := strings.CutPrefix(source.StoreURL(location), root)
		return ok && (rest == "" || rest[0] == '/')
	})
	odd := slices.ContainsFunc(strings.Split(key, "/"), func(s string) bool { return s == "." || s == ".." })
	if !below || odd {
		return nil, "", fmt.Errorf("%w: %s", source.ErrOutside, location)
	}
	return f.stores.bucket(scheme, name, &f.access), key, nil
}
