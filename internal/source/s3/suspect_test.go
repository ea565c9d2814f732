package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/remote"
	"github.com/icefs/icefs/internal/source/storetest"
)

// Bytes that were damaged on their way are fetched again when a checksum has told
// so, and take the place of those that were kept, for other mounts as well. A
// reader that goes on complaining is not answered by a request each time.
func TestSuspect(t *testing.T) {
	server := storetest.NewServer(t)
	body := noise(1 << 20)
	server.Put("b/x", body)
	var damage atomic.Bool
	var gets atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(answer, r)
		if r.Method == http.MethodGet {
			gets.Add(1)
		}
		if damage.Load() {
			answer.Body.Bytes()[0] ^= 1
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(h.Close)
	d := &disk{}
	mount := func() source.Object {
		stores := open(t, remote.Options{Disk: d, Memory: &memory{kept: map[string]any{}}}, access(h.URL, "s3://b"))
		o, err := source.Store(stores).Open(context.Background(), "s3://b/x")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := mount()
	damage.Store(true)
	for range 2 {
		if got, err := read(t, o, 100, 1000); err != nil || bytes.Equal(got, body[100:1100]) {
			t.Fatalf("nothing is damaged: %v", err)
		}
	}
	damage.Store(false)
	before := gets.Load()
	for range 3 {
		if !source.Suspect(o) {
			t.Fatal("an object of a store is not read again")
		}
		if got, err := read(t, o, 100, 1000); err != nil || !bytes.Equal(got, body[100:1100]) {
			t.Errorf("read again: %v", err)
		}
	}
	if n := gets.Load() - before; n != 1 {
		t.Errorf("%d requests", n)
	}
	if got, err := read(t, mount(), 100, 1000); err != nil || !bytes.Equal(got, body[100:1100]) || gets.Load() != before+1 {
		t.Errorf("another mount: %v, %d requests", err, gets.Load()-before)
	}
}

// A proxy on the way that answers with success, and with nothing, tells of no
// empty folder and of no empty object.
func TestEmptyAnswers(t *testing.T) {
	server := storetest.NewServer(t)
	body := noise(1 << 20)
	server.Put("b/wh/x", body)
	var empty atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if empty.Add(-1) < 0 {
			server.Config.Handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.Close)
	d := &disk{}
	for _, cache := range []string{"cold", "warm"} { // an object that was seen is asked for its version
		f := open(t, remote.Options{Disk: d}, access(h.URL, "s3://b"))
		empty.Store(1)
		var names []string
		err := f.ReadDir(context.Background(), "s3://b/wh", func(e fs.DirEntry) bool { names = append(names, e.Name()); return true })
		if err != nil || len(names) != 1 {
			t.Errorf("%s: a folder: %v, %v", cache, names, err)
		}
		empty.Store(1)
		o, err := f.Open(context.Background(), "s3://b/wh/x")
		if err != nil || o.Size() != int64(len(body)) {
			t.Fatalf("%s: an object: %v", cache, err)
		}
		empty.Store(1)
		if got, err := read(t, o, 7, 100); err != nil || !bytes.Equal(got, body[7:107]) {
			t.Errorf("%s: a range: %v", cache, err)
		}
	}
}

// A listing whose pages lead back to themselves is an error.
func TestEndlessListing(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`<ListBucketResult><Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken></ListBucketResult>`))
	}))
	t.Cleanup(h.Close)
	f := open(t, remote.Options{}, access(h.URL, "s3://b"))
	if err := f.ReadDir(context.Background(), "s3://b/wh", func(fs.DirEntry) bool { return true }); !errors.Is(err, source.ErrRead) {
		t.Errorf("%v", err)
	}
}
