//go:build !noglue

package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeGlue answers as AWS Glue does: JSON by the header X-Amz-Target, two names a
// page.
func fakeGlue(t *testing.T, location string, fault *atomic.Int32) string {
	type table struct {
		Name       string
		Parameters map[string]string
	}
	ours := map[string]string{"table_type": "ICEBERG", "metadata_location": location}
	tables := []table{{"t", ours}, {"csv", map[string]string{"classification": "csv"}}, {"u", ours}, {"v", ours}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AK/") {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		var in struct{ CatalogId, DatabaseName, Name, NextToken string }
		body, _ := io.ReadAll(r.Body)
		json.Unmarshal(body, &in)
		if in.CatalogId != "123" {
			t.Errorf("catalog %q", in.CatalogId)
		}
		fail := func(status int, code string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"__type":%q,"Message":"no"}`, code)
		}
		switch fault.Load() {
		case 1:
			fail(500, "InternalServiceException")
			return
		case 2:
			fail(400, "AccessDeniedException")
			return
		}
		out := map[string]any{}
		switch strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AWSGlue.") {
		case "GetDatabases":
			out["DatabaseList"] = []map[string]string{{"Name": "db"}}
			if in.NextToken == "" {
				out["NextToken"] = "more"
			} else {
				out["DatabaseList"] = []map[string]string{{"Name": "empty"}}
			}
		case "GetTables":
			if in.DatabaseName == "db" && in.NextToken == "" {
				out["TableList"], out["NextToken"] = tables[:2], "more"
			} else if in.DatabaseName == "db" {
				out["TableList"] = tables[2:]
			}
		case "GetTable":
			i := slices.IndexFunc(tables, func(t table) bool { return t.Name == in.Name })
			if i < 0 || in.DatabaseName != "db" {
				fail(400, "EntityNotFoundException")
				return
			}
			out["Table"] = tables[i]
		}
		json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestGlue(t *testing.T) {
	dir := t.TempDir()
	location := write(t, filepath.Join(dir, "t", "metadata", "1.metadata.json"), string(document(2)))
	var fault atomic.Int32
	props := map[string]string{"type": "glue", "glue.endpoint": fakeGlue(t, location, &fault), "glue.region": "r", "glue.access-key-id": "AK",
		"glue.secret-access-key": "hidden", "glue.id": "123", "warehouse": dir}
	c, err := OpenCatalog(context.Background(), "g", props, Options{Refresh: -1, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tables := tablesOf(t, c)
	if got := sortedKeys(tables); !slices.Equal(got, []string{"db/t", "db/u", "db/v"}) {
		t.Errorf("tables %v", got)
	}
	load(t, tables["db/u"])
	for _, name := range []string{"none", "csv"} {
		if _, err := tableAt(t, c, "db", name); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := load(t, tables["db/t"])
	fault.Store(1)
	if load(t, tables["db/t"]) != before {
		t.Error("a table changed in an outage")
	}
	if _, err := tableAt(t, c, "db", "none"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an outage: %v", err)
	}
	fault.Store(2)
	if _, err := tables["db/t"].Load(context.Background()); !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a refusal: %v", err)
	}
}

// TestSignedREST: a REST catalog in AWS is sent signed requests.
func TestSignedREST(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth := r.Header.Get("Authorization"); !strings.Contains(auth, "Credential=AK/") || !strings.Contains(auth, "/r/s3tables/aws4_request") {
			t.Errorf("%s: authorization %q", r.URL, auth)
		}
		fmt.Fprint(w, `{"namespaces":[]}`)
	}))
	defer server.Close()
	c, err := OpenCatalog(context.Background(), "s", map[string]string{"uri": server.URL, "rest.sigv4-enabled": "true", "rest.signing-region": "r",
		"rest.signing-name": "s3tables", "client.access-key-id": "AK", "client.secret-access-key": "x"}, Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.root.Namespaces(context.Background()); err != nil {
		t.Error(err)
	}
}
