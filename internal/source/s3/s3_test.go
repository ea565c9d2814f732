package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/remote"
	"github.com/icefs/icefs/internal/source/s3"
	"github.com/icefs/icefs/internal/source/storetest"
)

// memory is a remote.Memory that keeps what it is told to.
type memory struct {
	mu   sync.Mutex
	kept map[string]any // nil = keeps nothing
}

func (m *memory) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	m.mu.Lock()
	v, ok := m.kept[key]
	m.mu.Unlock()
	if ok {
		return v, nil
	}
	v, _, err := load(ctx)
	if err == nil && m.kept != nil {
		m.mu.Lock()
		m.kept[key] = v
		m.mu.Unlock()
	}
	return v, err
}

func (m *memory) Has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.kept[key]
	return ok
}

// disk is a remote.Disk.
type disk struct{ sync.Map }

func (d *disk) Get(key string) ([]byte, bool) {
	v, ok := d.Load(key)
	if !ok {
		return nil, false
	}
	return v.([]byte), true
}
func (d *disk) Put(key string, value []byte) { d.Store(key, value) }
func (d *disk) Has(key string) bool          { _, ok := d.Load(key); return ok }

const keyID, secret = "AKIAEXAMPLE", "s3cr3t-never-shown"

func access(endpoint string, roots ...string) source.Access {
	return source.Access{Roots: roots, Properties: map[string]string{
		"s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": keyID, "s3.secret-access-key": secret,
	}}
}

func open(t *testing.T, opt remote.Options, a source.Access) source.Folders {
	t.Helper()
	if opt.Memory == nil {
		opt.Memory = &memory{}
	}
	opt.Schemes = []remote.Scheme{s3.Scheme()}
	if opt.Timeout == 0 {
		opt.Timeout = 20 * time.Second
	}
	stores := remote.New(opt)
	t.Cleanup(stores.Close)
	f, err := stores.Folders(a)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

func read(t *testing.T, o source.Object, off, n int64) ([]byte, error) {
	t.Helper()
	p := make([]byte, n)
	m, err := o.ReadAt(context.Background(), p, off)
	if err == nil && m != len(p) {
		t.Fatalf("a short read of %d bytes without an error", m)
	}
	return p[:m], err
}

func TestReads(t *testing.T) {
	server := storetest.NewServer(t)
	body := noise(20 << 20)
	odd := "b/wh/a b/%41+é=&?.parquet"
	server.Put(odd, body)
	server.Put("b/wh/small", body[:1000])
	server.Put("b/wh/empty", nil)
	for _, tags := range []bool{true, false} {
		server.NoTags = !tags
		f := open(t, remote.Options{}, access(server.URL, "s3://b/wh"))
		server.Requests()
		o, err := f.Open(context.Background(), "s3a://"+odd)
		if err != nil {
			t.Fatal(err)
		}
		if o.Size() != int64(len(body)) || o.Location() != "s3a://"+odd || !strings.Contains(o.Version(), server.URL) {
			t.Errorf("size %d, location %s, version %s", o.Size(), o.Location(), o.Version())
		}
		for _, r := range [][2]int64{{0, 1}, {5, 70_000}, {int64(len(body)) - 10, 10}, {int64(len(body)) - 70_000, 70_000}, {1, 18 << 20}, {7, 0}} {
			got, err := read(t, o, r[0], r[1])
			if err != nil || !bytes.Equal(got, body[r[0]:r[0]+r[1]]) {
				t.Errorf("bytes %d+%d: %v", r[0], r[1], err)
			}
		}
		if _, err := read(t, o, int64(len(body))-1, 2); !errors.Is(err, source.ErrTruncated) {
			t.Errorf("past the end: %v", err)
		}
		requests := server.Requests()
		if len(requests) != 1+3+3 { // the end with the size; one each; 18 MiB in three; the last bytes are there
			t.Errorf("%d requests: %+v", len(requests), requests)
		}
		for i, r := range requests {
			if tags && i > 0 && r.IfMatch == "" {
				t.Errorf("a read without a condition: %+v", r)
			}
		}
		for name, size := range map[string]int64{"s3://b/wh/small": 1000, "s3://b/wh/empty": 0} {
			o, err := f.Open(context.Background(), name)
			if err != nil || o.Size() != size {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := read(t, o, 0, size); err != nil || !bytes.Equal(got, body[:size]) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A replaced object is ErrChanged, whether the store honours conditions or not,
// and stays it, also for bytes that are known.
func TestReplaced(t *testing.T) {
	for _, tags := range []bool{true, false} {
		server := storetest.NewServer(t)
		server.NoTags = !tags
		body := noise(1 << 20)
		server.Put("b/x", body)
		f := open(t, remote.Options{Memory: &memory{kept: map[string]any{}}}, access(server.URL, "s3://b"))
		o, err := f.Open(context.Background(), "s3://b/x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, o, 10, 10); err != nil {
			t.Fatal(err)
		}
		server.Put("b/x", append([]byte{1}, body...)) // without tags, told by its size
		if got, err := read(t, o, 100, 10); !errors.Is(err, source.ErrChanged) || len(got) > 0 {
			t.Errorf("tags %t: %v", tags, err)
		}
		if _, err := read(t, o, 10, 10); !errors.Is(err, source.ErrChanged) {
			t.Errorf("tags %t: known bytes of a replaced object: %v", tags, err)
		}
	}
}

func TestOutside(t *testing.T) {
	server := storetest.NewServer(t)
	server.Put("b/wh/x", noise(10))
	server.Put("b/wh2/x", noise(10))
	server.Put("other/x", noise(10))
	f := open(t, remote.Options{}, access(server.URL, "s3://b/wh/"))
	for _, location := range []string{"s3://b/wh2/x", "s3://other/x", "s3://b/x", "s3://b/wh/../wh2/x", "s3://b/wh/./x", "s3://b"} {
		if _, err := f.Open(context.Background(), location); !errors.Is(err, source.ErrOutside) {
			t.Errorf("%s: %v", location, err)
		}
		if err := f.ReadDir(context.Background(), location, nil); !errors.Is(err, source.ErrOutside) {
			t.Errorf("listing %s: %v", location, err)
		}
	}
	for _, location := range []string{"gs://b/wh/x", "/b/wh/x", "s3:///x", "s3://user:password@b/x"} {
		if _, err := f.Open(context.Background(), location); !errors.Is(err, source.ErrUnsupported) {
			t.Errorf("%s: %v", location, err)
		}
	}
	if n := len(server.Requests()); n > 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestReadDir(t *testing.T) {
	server := storetest.NewServer(t)
	server.PageSize = 3
	for i := range 10 {
		server.Put(fmt.Sprintf("b/wh/t%d/metadata/v1.metadata.json", i), nil)
		server.Put(fmt.Sprintf("b/wh/file %%%d", i), nil)
	}
	server.Put("b/wh/", nil)
	f := open(t, remote.Options{}, access(server.URL, "s3://b"))
	var folders, files []string
	err := f.ReadDir(context.Background(), "s3://b/wh", func(e fs.DirEntry) bool {
		if e.IsDir() {
			folders = append(folders, e.Name())
		} else {
			files = append(files, e.Name())
		}
		return true
	})
	if err != nil || len(folders) != 10 || len(files) != 10 || !slices.Contains(files, "file %7") || folders[9] != "t9" {
		t.Errorf("%v: folders %q, files %q", err, folders, files)
	}
	server.Requests()
	if err := f.ReadDir(context.Background(), "s3://b/wh", func(fs.DirEntry) bool { return false }); err != nil {
		t.Error(err)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d pages for the first entry", n)
	}
	if err := f.ReadDir(context.Background(), "s3://b/none", func(fs.DirEntry) bool { return true }); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestMissing(t *testing.T) {
	server := storetest.NewServer(t)
	server.Put("b/x", noise(1<<20))
	f := open(t, remote.Options{}, access(server.URL, "s3://b"))
	if _, err := f.Open(context.Background(), "s3://b/y"); !errors.Is(err, source.ErrNotFound) {
		t.Error(err)
	}
	o, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	server.Delete("b/x")
	if _, err := read(t, o, 0, 10); !errors.Is(err, source.ErrNotFound) || !strings.Contains(err.Error(), "s3://b/x") {
		t.Error(err)
	}
}

// behind returns a front before a new server.
func behind(t *testing.T) (*storetest.Server, *storetest.Front, string) {
	t.Helper()
	server := storetest.NewServer(t)
	front, err := storetest.NewFront(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(front)
	t.Cleanup(h.Close)
	return server, front, h.URL
}

// With requests failing at random every read is right.
func TestFlaky(t *testing.T) {
	server, front, url := behind(t)
	body := noise(3 << 20)
	server.Put("b/x", body)
	f := open(t, remote.Options{}, access(url, "s3://b"))
	o, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	front.Set(storetest.Faults{Rate: 0.05, Kinds: []storetest.Fault{storetest.Answer503, storetest.Answer429, storetest.Cut}})
	each := func(check func(error)) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 3))
				for range 60 {
					off := r.Int64N(int64(len(body)))
					n := min(r.Int64N(200_000), int64(len(body))-off)
					p := make([]byte, n)
					_, err := o.ReadAt(context.Background(), p, off)
					if err == nil && !bytes.Equal(p, body[off:off+n]) {
						t.Errorf("bytes %d+%d are wrong", off, n)
					}
					check(err)
				}
			})
		}
		wg.Wait()
	}
	each(func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if n := front.Counts().Failed; n < 10 {
		t.Errorf("only %d requests failed", n)
	}
	front.Set(storetest.Faults{Rate: 0.05}) // 404 and 416 among them, which are doubted
	each(func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

// During an outage reads wait up to the timeout, then fail; afterwards they work.
func TestOutage(t *testing.T) {
	server, front, url := behind(t)
	body := noise(1 << 20)
	server.Put("b/x", body)
	f := open(t, remote.Options{Timeout: time.Second}, access(url, "s3://b"))
	o, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	front.Set(storetest.Faults{Down: true})
	began := time.Now()
	_, err = read(t, o, 0, 100)
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took < 900*time.Millisecond || took > 3*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	time.AfterFunc(300*time.Millisecond, func() { front.Set(storetest.Faults{}) })
	if got, err := read(t, o, 0, 100); err != nil || !bytes.Equal(got, body[:100]) {
		t.Errorf("a read that began in the outage: %v", err)
	}
	if _, err := read(t, o, 200, 100); err != nil {
		t.Error(err)
	}
}

// A context that ends ends the read, at once.
func TestInterrupted(t *testing.T) {
	server, front, url := behind(t)
	server.Put("b/x", noise(1<<20))
	f := open(t, remote.Options{}, access(url, "s3://b"))
	o, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	front.Set(storetest.Faults{Delay: 5 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	_, err = o.ReadAt(ctx, make([]byte, 10), 0)
	if took := time.Since(began); !errors.Is(err, context.Canceled) || took > time.Second {
		t.Errorf("after %v: %v", took, err)
	}
}

// A request that brings no byte for a while is made again.
func TestStall(t *testing.T) {
	server, front, url := behind(t)
	server.Put("b/x", noise(1<<20))
	var stats remote.Stats
	f := open(t, remote.Options{Stall: 200 * time.Millisecond, Stats: &stats}, access(url, "s3://b"))
	o, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	front.Set(storetest.Faults{Delay: time.Second})
	time.AfterFunc(100*time.Millisecond, func() { front.Set(storetest.Faults{}) })
	if _, err := read(t, o, 0, 10); err != nil || stats.Retries.Load() == 0 {
		t.Errorf("%v, %d retries", err, stats.Retries.Load())
	}
}

// What was fetched is found on disk by another mount, which only asks whether
// the object is the same.
func TestDisk(t *testing.T) {
	server := storetest.NewServer(t)
	body := noise(1 << 20)
	server.Put("b/x", body)
	d := &disk{}
	for i := range 3 {
		stores := remote.New(remote.Options{Schemes: []remote.Scheme{s3.Scheme()}, Memory: &memory{}, Disk: d, Timeout: time.Minute})
		f, err := stores.Folders(access(server.URL, "s3://b"))
		if err != nil {
			t.Fatal(err)
		}
		server.Requests()
		o, err := f.Open(context.Background(), "s3://b/x")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range [][2]int64{{10, 1000}, {int64(len(body)) - 8, 8}, {500_000, 100_000}} {
			if got, err := read(t, o, r[0], r[1]); err != nil || !bytes.Equal(got, body[r[0]:r[0]+r[1]]) {
				t.Fatalf("mount %d: %v", i, err)
			}
		}
		requests := server.Requests()
		if i == 1 && (len(requests) != 1 || requests[0].Method != http.MethodHead) {
			t.Errorf("a second mount asks %+v", requests)
		}
		if i == 2 && len(requests) != 4 {
			t.Errorf("a third mount, of another object, asks %+v", requests)
		}
		stores.Close()
		if i == 1 {
			body = noise(1<<20 + 1)
			server.Put("b/x", body)
		}
	}
}

// Extents that lie together come in one request, and each is asked for once.
func TestPrefetch(t *testing.T) {
	server := storetest.NewServer(t)
	body := noise(4 << 20)
	server.Put("b/x", body)
	f := open(t, remote.Options{}, access(server.URL, "s3://b"))
	opened, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	o := opened.(source.Remote)
	server.Requests()
	extents := []source.Range{{Off: 0, Len: 100_000}, {Off: 100_000, Len: 50}, {Off: 150_000, Len: 200_000}, {Off: 3 << 20, Len: 1000}}
	o.Prefetch(context.Background(), extents)
	for _, r := range extents {
		if b, err := o.Extent(context.Background(), r.Off, r.Len); err != nil || !bytes.Equal(b, body[r.Off:r.Off+r.Len]) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if requests := server.Requests(); len(requests) != 2 {
		t.Errorf("%d requests: %+v", len(requests), requests)
	}
}
