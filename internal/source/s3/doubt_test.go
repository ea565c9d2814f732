package s3_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/remote"
	"github.com/icefs/icefs/internal/source/storetest"
)

// A store that says for a moment that an object is not there, or has no such
// bytes, is asked again; where that is so, it is told soon, and sooner the next
// time.
func TestDoubt(t *testing.T) {
	server := storetest.NewServer(t)
	body := noise(1 << 20)
	server.Put("b/x", body)
	var wrong, code atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrong.Add(-1) >= 0 {
			w.WriteHeader(int(code.Load()))
			return
		}
		server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	f := source.Pinned(open(t, remote.Options{}, access(h.URL, "s3://b")))
	o, err := f.Open(context.Background(), "s3://b/x")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []int64{http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable, http.StatusGone} {
		code.Store(c)
		wrong.Store(3)
		if got, err := read(t, o, int64(i)*100, 100); err != nil || !bytes.Equal(got, body[i*100:i*100+100]) {
			t.Errorf("%d three times, then the bytes: %v", c, err)
		}
	}
	server.Delete("b/x")
	for i, want := range []int{4, 1} {
		server.Requests()
		began := time.Now()
		_, err := read(t, o, 1000, 100)
		if took, n := time.Since(began), len(server.Requests()); !errors.Is(err, source.ErrNotFound) || n != want || took > 2*time.Second {
			t.Errorf("read %d of a deleted object: %v after %v and %d requests", i+1, err, took, n)
		}
	}
	server.Put("b/x", body)
	if _, err := read(t, o, 2000, 100); err != nil {
		t.Errorf("an object that is there again: %v", err)
	}
	// Another version is told at once.
	server.Put("b/x", body[1:])
	server.Requests()
	if _, err := read(t, o, 3000, 100); !errors.Is(err, source.ErrChanged) || len(server.Requests()) != 1 {
		t.Errorf("a replaced object: %v", err)
	}
}
