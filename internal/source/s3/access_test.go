package s3_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source/remote"
	"github.com/icefs/icefs/internal/source/s3"
	"github.com/icefs/icefs/internal/source/storetest"
)

// Credentials that a catalog vends for a time are renewed when they are refused.
func TestRenew(t *testing.T) {
	server := storetest.NewServer(t)
	server.Put("b/x", noise(1<<20))
	good := false
	var mu sync.Mutex
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(r.Header.Get("Authorization"), "NEW") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		good = true
		server.Config.Handler.ServeHTTP(w, r)
	}))
	defer h.Close()
	a := access(h.URL, "s3://b")
	renewals := 0
	a.Renew = func(context.Context) (map[string]string, error) {
		renewals++
		next := access(h.URL).Properties
		next["s3.access-key-id"] = "NEW"
		return next, nil
	}
	f := open(t, remote.Options{}, a)
	if _, err := f.Open(context.Background(), "s3://b/x"); err != nil || renewals != 1 || !good {
		t.Errorf("%v after %d renewals", err, renewals)
	}
}

// No error tells a secret.
func TestSecrets(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%s</Message></Error>", r.Header.Get("Authorization"))
	}))
	defer refusing.Close()
	for _, endpoint := range []string{refusing.URL, "http://user:pa55word@127.0.0.1:1"} {
		f := open(t, remote.Options{Timeout: 300 * time.Millisecond}, access(endpoint, "s3://b"))
		_, err := f.Open(context.Background(), "s3://b/x")
		if err == nil {
			t.Fatal("opened")
		}
		for _, hidden := range []string{secret, keyID, "pa55word", "Signature="} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("%s is told: %v", hidden, err)
			}
		}
	}
}

func TestProperties(t *testing.T) {
	for _, c := range []struct {
		properties map[string]string
		wrong      string
	}{
		{map[string]string{"s3.access-key-id": "a"}, "come together"},
		{map[string]string{"s3.anonymous": "perhaps"}, "true or false"},
		{map[string]string{"s3.anonymous": "true", "s3.path-style-access": "yes?"}, "true or false"},
		{map[string]string{"s3.anonymous": "true", "s3.connect-timeout": "soon"}, "seconds"},
		{map[string]string{"s3.anonymous": "true", "s3.proxy-uri": "::"}, "no URL"},
		{map[string]string{"s3.remote-signing-enabled": "true"}, "not supported"},
	} {
		c.properties["s3.region"] = "x"
		_, err := s3.Scheme().Open(context.Background(), "b", c.properties)
		if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v: %v", c.properties, err)
		}
	}
}
