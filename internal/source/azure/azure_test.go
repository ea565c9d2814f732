//go:build !noazure

package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/source/remote"
)

const listing = `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Prefix>wh/</Prefix><Delimiter>/</Delimiter>
<Blobs><BlobPrefix><Name>wh/t/</Name></BlobPrefix><Blob><Name>wh/x</Name><Properties/></Blob></Blobs><NextMarker>more</NextMarker></EnumerationResults>`

// serve answers as the store does, for one object.
func serve(w http.ResponseWriter, r *http.Request) {
	body := strings.Repeat("0123456789", 100)
	fail := func(status int, code string) {
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}
	w.Header().Set("ETag", `"7"`)
	switch match := r.Header.Get("If-Match"); {
	case r.URL.Query().Get("sig") != "s3cr3t":
		fail(http.StatusForbidden, "AuthenticationFailed")
	case r.URL.Query().Get("comp") == "list":
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, listing)
	case r.URL.Path != "/c/wh/x":
		fail(http.StatusNotFound, "BlobNotFound")
	case match != "" && match != `"7"`:
		fail(http.StatusPreconditionFailed, "ConditionNotMet")
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Length", "1000")
	default:
		var from, to int
		at := r.Header.Get("X-Ms-Range")
		if at == "" {
			at = r.Header.Get("Range")
		}
		fmt.Sscanf(at, "bytes=%d-%d", &from, &to)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/1000", from, to))
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, body[from:to+1])
	}
}

func TestBucket(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(serve))
	defer h.Close()
	ctx := context.Background()
	p := map[string]string{"adls.endpoint": h.URL, "adls.sas-token.acc.dfs.core.windows.net": "sig=s3cr3t"}
	b, err := Scheme().Open(ctx, "c@acc.dfs.core.windows.net", p)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := b.Head(ctx, "wh/x"); err != nil || info != (remote.Info{Size: 1000, Version: `"7"`}) {
		t.Errorf("Head: %+v, %v", info, err)
	}
	for _, c := range []struct {
		r    remote.Request
		off  int64
		want string
	}{
		{remote.Request{Key: "wh/x", Off: 13, Len: 4, Match: `"7"`}, 13, "3456"},
		{remote.Request{Key: "wh/x", Off: -3}, 997, "789"},
	} {
		reply, err := b.Get(ctx, c.r)
		if err != nil {
			t.Errorf("%+v: %v", c.r, err)
			continue
		}
		got, err := io.ReadAll(reply.Body)
		if err != nil || string(got) != c.want || reply.Off != c.off || reply.Len != int64(len(c.want)) || reply.Size != 1000 || reply.Version != `"7"` {
			t.Errorf("%+v: %q, %+v, %v", c.r, got, reply, err)
		}
	}
	for code, r := range map[int]remote.Request{404: {Key: "none", Len: 1}, 412: {Key: "wh/x", Len: 1, Match: `"6"`}} {
		_, err := b.Get(ctx, r)
		var status *remote.StatusError
		if !errors.As(err, &status) || status.Code != code {
			t.Errorf("%+v: %v, want %d", r, err, code)
		}
	}
	page, err := b.List(ctx, "wh/", "")
	if err != nil || len(page.Folders) != 1 || page.Folders[0] != "t" || len(page.Objects) != 1 || page.Objects[0] != "x" || page.Next != "more" {
		t.Errorf("List: %+v, %v", page, err)
	}
	p["adls.sas-token.acc.dfs.core.windows.net"] = "sig=wr0ng"
	if b, err = Scheme().Open(ctx, "c@acc.dfs.core.windows.net", p); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Head(ctx, "wh/x"); err == nil || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("a wrong token: %v", err)
	}
}

func TestServiceURL(t *testing.T) {
	for _, c := range []struct{ host, endpoint, want string }{
		{"acc.dfs.core.windows.net", "", "https://acc.blob.core.windows.net"},
		{"acc.blob.core.usgovcloudapi.net", "", "https://acc.blob.core.usgovcloudapi.net"},
		{"acc.dfs.core.windows.net", "example.com", "https://acc.example.com"},
		{"acc.dfs.core.windows.net", "http://127.0.0.1:10000/acc/", "http://127.0.0.1:10000/acc"},
	} {
		if got := serviceURL(c.host, map[string]string{propEndpoint: c.endpoint}); got != c.want {
			t.Errorf("%s, %s: %s", c.host, c.endpoint, got)
		}
	}
}

// What is kept of a store is by where it really is; no secret is in that.
func TestEndpoint(t *testing.T) {
	const key = "c2VjcmV0LWtleQ=="
	for _, c := range []struct {
		p    map[string]string
		want string
	}{
		{map[string]string{propAnonymous: "true"}, "azure:https://acc.blob.core.windows.net"},
		{map[string]string{propSAS + "acc": "sig=s3cr3t"}, "azure:https://acc.blob.core.windows.net"},
		{map[string]string{propEndpoint: "http://127.0.0.1:10000/acc", propAccount: "acc", propKey: key}, "azure:http://127.0.0.1:10000/acc"},
		{map[string]string{propConnection + "acc": "AccountName=acc;AccountKey=" + key + ";BlobEndpoint=http://127.0.0.1:10001/acc"}, "azure:http://127.0.0.1:10001/acc"},
		{map[string]string{propConnection + "acc": "BlobEndpoint=http://127.0.0.1:10001/acc;SharedAccessSignature=sig=s3cr3t"}, "azure:http://127.0.0.1:10001/acc"},
	} {
		b, err := Scheme().Open(context.Background(), "c@acc.dfs.core.windows.net", c.p)
		if err != nil {
			t.Errorf("%v: %v", c.p, err)
		} else if b.Endpoint() != c.want {
			t.Errorf("%v: %s", c.p, b.Endpoint())
		}
	}
}
