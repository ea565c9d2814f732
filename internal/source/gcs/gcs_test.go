//go:build !nogcs

package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/source/remote"
)

// serve answers as the store's two interfaces do, XML for reads and JSON for the
// rest, for one object.
func serve(w http.ResponseWriter, r *http.Request) {
	body := strings.Repeat("0123456789", 100)
	q := r.URL.Query()
	switch {
	case r.URL.Path == "/storage/v1/b/bucket/o" && q.Get("pageToken") == "more":
		io.WriteString(w, `{"items":[{"name":"wh/y"}]}`)
	case r.URL.Path == "/storage/v1/b/bucket/o" && q.Get("delimiter") == "/":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"prefixes": []string{"wh/t/"}, "items": []map[string]string{{"name": "wh/x"}}, "nextPageToken": "more",
		})
	case !strings.HasSuffix(r.URL.Path, "/wh/x"):
		http.Error(w, `{"error":{"code":404,"errors":[{"reason":"notFound"}]}}`, http.StatusNotFound)
	case r.Header.Get("X-Goog-If-Generation-Match") != "" && r.Header.Get("X-Goog-If-Generation-Match") != "7":
		http.Error(w, `{"error":{"code":412,"errors":[{"reason":"conditionNotMet"}]}}`, http.StatusPreconditionFailed)
	case r.URL.Path == "/bucket/wh/x":
		w.Header().Set("X-Goog-Generation", "7")
		w.Header().Set("X-Goog-Stored-Content-Length", "1000")
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			fmt.Sscanf(r.Header.Get("Range"), "bytes=-%d", &from)
			from, to = 1000-from, 999
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/1000", from, to))
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, body[from:to+1])
	default:
		io.WriteString(w, `{"name":"wh/x","size":"1000","generation":"7"}`)
	}
}

func TestBucket(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(serve))
	defer h.Close()
	ctx := context.Background()
	b, err := Scheme().Open(ctx, "bucket", map[string]string{"gcs.service.host": h.URL, "gcs.no-auth": "true"})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := b.Head(ctx, "wh/x"); err != nil || info != (remote.Info{Size: 1000, Version: "7"}) {
		t.Errorf("Head: %+v, %v", info, err)
	}
	for _, c := range []struct {
		r    remote.Request
		off  int64
		want string
	}{
		{remote.Request{Key: "wh/x", Off: 13, Len: 4, Match: "7"}, 13, "3456"},
		{remote.Request{Key: "wh/x", Off: -3}, 997, "789"},
	} {
		reply, err := b.Get(ctx, c.r)
		if err != nil {
			t.Errorf("%+v: %v", c.r, err)
			continue
		}
		got, err := io.ReadAll(reply.Body)
		if err != nil || string(got) != c.want || reply.Off != c.off || reply.Len != int64(len(c.want)) || reply.Size != 1000 || reply.Version != "7" {
			t.Errorf("%+v: %q, %+v, %v", c.r, got, reply, err)
		}
	}
	for code, r := range map[int]remote.Request{404: {Key: "none", Len: 1}, 412: {Key: "wh/x", Len: 1, Match: "6"}} {
		_, err := b.Get(ctx, r)
		var status *remote.StatusError
		if !errors.As(err, &status) || status.Code != code {
			t.Errorf("%+v: %v, want %d", r, err, code)
		}
	}
	page, err := b.List(ctx, "wh/", "")
	if err != nil || len(page.Folders) != 1 || page.Folders[0] != "t" || len(page.Objects) != 2 || page.Objects[1] != "y" || page.Next != "" {
		t.Errorf("List: %+v, %v", page, err)
	}
}

func TestServiceURL(t *testing.T) {
	for _, c := range []struct{ host, endpoint, want string }{
		{"", "", ""},
		{"http://127.0.0.1:4443", "", "http://127.0.0.1:4443/storage/v1/"},
		{"https://storage.example/", "http://other", "https://storage.example/storage/v1/"},
		{"", "https://storage.example/storage/v1/", "https://storage.example/storage/v1/"},
		{"", "https://proxy.example/gcs/v1/", "https://proxy.example/gcs/v1/"},
	} {
		if got := serviceURL(map[string]string{propHost: c.host, propEndpoint: c.endpoint}); got != c.want {
			t.Errorf("%q, %q: %s", c.host, c.endpoint, got)
		}
	}
}
