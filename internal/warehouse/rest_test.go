package warehouse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/resttest"
)

// openAt opens the catalog of a server, with further properties.
func openAt(t *testing.T, s *resttest.Server, opt Options, props ...string) *Catalog {
	t.Helper()
	c, err := OpenCatalog(context.Background(), "test", propertiesOf(s, props), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func propertiesOf(s *resttest.Server, props []string) map[string]string {
	all := map[string]string{"uri": s.URL}
	for i := 0; i < len(props); i += 2 {
		all[props[i]] = props[i+1]
	}
	return all
}

// tableAt follows a path of namespaces to a table.
func tableAt(t *testing.T, c *Catalog, path ...string) (*Table, error) {
	t.Helper()
	ctx := context.Background()
	n, _, err := c.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range path[:len(path)-1] {
		children, err := n.Namespaces(ctx)
		if err != nil {
			return nil, err
		}
		if n = maps.Collect(children)[level]; n == nil {
			t.Fatalf("no namespace %s", level)
		}
	}
	return n.Table(ctx, path[len(path)-1])
}

func TestRESTNamespacesAndTables(t *testing.T) {
	for _, server := range []struct {
		prefix, separator string
		pages             bool
	}{{"", "", false}, {"ws/prod", "", true}, {"p", "%7C", true}} {
		s := resttest.New(t)
		s.Prefix, s.Separator, s.Pages = server.prefix, server.separator, server.pages
		odd := []string{"sl/ash", "per%cent", "..", "ümlaut", "a b", "?q=1&r#f", "semi;colon"}
		for _, name := range append(odd, "plain") {
			s.Put([]string{"db"}, name, "s3://b/t/metadata/1.json", document(2))
			s.Put([]string{name, "in ner"}, "t", "s3://b/t/metadata/1.json", document(2))
		}
		s.AddNamespace("empty")
		c := openAt(t, s, Options{Remotes: &fakeRemotes{}}, "rest-page-size", "3")
		var want []string
		for _, name := range append(odd, "plain") {
			want = append(want, "db/"+name, name+"/in ner/t")
		}
		slices.Sort(want)
		tables := tablesOf(t, c)
		if got := sortedKeys(tables); !slices.Equal(got, want) {
			t.Errorf("%+v: tables %q, want %q", server, got, want)
		}
		for path, table := range tables {
			if l := load(t, table); l.Table().UUID != "u" {
				t.Errorf("%s: %+v", path, l.Table())
			}
		}
		if _, err := tableAt(t, c, "db", "none"); !errors.Is(err, ErrGone) {
			t.Errorf("a missing table: %v", err)
		}
		if _, err := tableAt(t, c, "root"); !errors.Is(err, ErrGone) {
			t.Errorf("a table without a namespace: %v", err)
		}
	}
}

// TestRESTLoadsWhatChanged: a table is read once as long as it is the same, a
// commit is seen, and one that is dropped is gone.
func TestRESTLoadsWhatChanged(t *testing.T) {
	s := resttest.New(t)
	s.Put([]string{"db"}, "t", "s3://b/t/metadata/1.json", document(2, twoSnapshots))
	var stats Stats
	c := openAt(t, s, Options{Refresh: -1, Stats: &stats, Remotes: &fakeRemotes{}})
	table, err := tableAt(t, c, "db", "t")
	if err != nil {
		t.Fatal(err)
	}
	first := load(t, table)
	if string(first.Table().Metadata) != string(compact(t, document(2, twoSnapshots))) {
		t.Errorf("metadata.json is %s", first.Table().Metadata)
	}
	for range 3 {
		if load(t, table) != first {
			t.Fatal("the table changed")
		}
	}
	if s.Requests("table") != 1 || s.Requests("unchanged") < 3 || stats.MetadataRead.Load() != 1 {
		t.Errorf("%d loads, %d without change, %d parsed", s.Requests("table"), s.Requests("unchanged"), stats.MetadataRead.Load())
	}
	s.Put([]string{"db"}, "t", "s3://b/t/metadata/2.json", document(2, twoSnapshots, `"current-snapshot-id":2`))
	if second := load(t, table); second == first || second.Table().Current != 2 {
		t.Errorf("after a commit: %+v", second.Table())
	}
	s.Drop([]string{"db"}, "t")
	if _, err := table.Load(context.Background()); !errors.Is(err, ErrGone) {
		t.Errorf("after a drop: %v", err)
	}
	s.Put([]string{"db"}, "t", "s3://b/t/metadata/3.json", document(2, twoSnapshots, `"current-snapshot-id":1`))
	if again, err := tableAt(t, c, "db", "t"); err != nil || load(t, again).Table().Current != 1 {
		t.Errorf("made again: %v", err)
	}
}

// TestRESTAuthentication: tokens, client credentials and passwords let in, and
// are in no error.
func TestRESTAuthentication(t *testing.T) {
	const secret = "hidden-4711"
	open := func(s *resttest.Server, props ...string) error {
		c, err := OpenCatalog(context.Background(), "test", propertiesOf(s, props), Options{Timeout: time.Second})
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("a secret is in %q", err)
			}
			return err
		}
		defer c.Close()
		root, _, _ := c.Root(context.Background())
		_, err = root.Namespaces(context.Background())
		return err
	}
	s := resttest.New(t)
	s.Token, s.Credential = "token-of-the-server", "id:"+secret
	for _, c := range []struct {
		props []string
		want  error
	}{
		{[]string{"token", "token-of-the-server"}, nil},
		{[]string{"token", secret}, ErrDenied},
		{[]string{"credential", "id:" + secret}, nil},
		{[]string{"credential", "id:" + secret, "scope", "PRINCIPAL_ROLE:ALL", "oauth2-server-uri", s.URL + "/v1/oauth/tokens"}, nil},
		{[]string{"credential", "other:" + secret}, ErrDenied},
		{[]string{"credential", secret}, ErrDenied},
		{[]string{"auth.type", "oauth2", "auth.oauth2.client_id", "id", "auth.oauth2.client_secret", secret, "auth.oauth2.token_url", s.URL + "/v1/oauth/tokens", "auth.oauth2.scope", "x"}, nil},
		{[]string{"header.Authorization", "Bearer token-of-the-server"}, nil},
		{[]string{"auth.type", "google"}, ErrUnsupportedSource},
		{nil, ErrDenied},
		{[]string{"uri", "http://user:" + secret + "@" + strings.TrimPrefix(s.URL, "http://")}, ErrUnsupportedSource},
	} {
		if err := open(s, c.props...); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%q: %v, want %v", c.props, err, c.want)
		}
	}
	basic := resttest.New(t)
	if err := open(basic, "auth.type", "basic", "auth.basic.username", "me", "auth.basic.password", secret); err != nil {
		t.Error(err)
	}
}

// TestRESTTokenRunsOut: a token that is no longer accepted is replaced, once for
// each request.
func TestRESTTokenRunsOut(t *testing.T) {
	s := resttest.New(t)
	s.Token, s.Credential = "tok", "id:secret"
	s.AddNamespace("db")
	c := openAt(t, s, Options{Refresh: -1, Timeout: time.Second}, "credential", "id:secret")
	root, _, _ := c.Root(context.Background())
	if _, err := root.Namespaces(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := s.Requests("token")
	s.RefuseTokens(1)
	if _, err := root.Namespaces(context.Background()); err != nil || s.Requests("token") != before+1 {
		t.Errorf("%v after %d tokens more", err, s.Requests("token")-before)
	}
	s.RefuseTokens(2)
	if _, err := root.Namespaces(context.Background()); !errors.Is(err, ErrDenied) {
		t.Errorf("refused twice: %v", err)
	}
}

// TestRESTListsAsPagesCome: the first names are there before the last page is,
// asking for a table lists none, and readers share a listing.
func TestRESTListsAsPagesCome(t *testing.T) {
	const tables, size = 1000, 100
	s := resttest.New(t)
	s.Pages, s.PageDelay = true, 100*time.Millisecond
	for i := range tables {
		s.Put([]string{"db"}, fmt.Sprintf("t%04d", i), "s3://b/t/metadata/1.json", document(2))
	}
	c := openAt(t, s, Options{Remotes: &fakeRemotes{}}, "rest-page-size", fmt.Sprint(size))
	if _, err := tableAt(t, c, "db", "t0999"); err != nil || s.Requests("tables") != 0 {
		t.Errorf("%v; asking for a table made %d listings", err, s.Requests("tables"))
	}
	root, _, _ := c.Root(context.Background())
	children, _ := root.Namespaces(context.Background())
	db := maps.Collect(children)["db"]
	read := func(result chan<- int) {
		start, n := time.Now(), 0
		for _, err := range db.Tables(context.Background()) {
			if err != nil {
				t.Error(err)
			}
			if n++; n == 1 && time.Since(start) > time.Second/2 {
				t.Errorf("the first name after %v", time.Since(start))
			}
		}
		result <- n
	}
	counts := make(chan int)
	for range 3 {
		go read(counts)
	}
	for range 3 {
		if n := <-counts; n != tables {
			t.Errorf("%d names, want %d", n, tables)
		}
	}
	if n := s.Requests("tables"); n != tables/size {
		t.Errorf("%d pages for three readers, want %d", n, tables/size)
	}
	before := s.Requests("missing")
	if _, err := db.Table(context.Background(), "none"); !errors.Is(err, ErrGone) || s.Requests("missing") != before {
		t.Errorf("%v; a name that a fresh listing lacks was asked for", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range openAt(t, s, Options{}).root.Tables(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestRESTOutage: while the server does not answer, what is known stays, for a
// short wait; what is not known fails; and all works again afterwards. What the
// server refuses is not known any more.
func TestRESTOutage(t *testing.T) {
	for _, fault := range []int{-1, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusTooManyRequests} {
		s := resttest.New(t)
		s.Pages = true
		for _, name := range []string{"known", "other"} {
			s.Put([]string{"db"}, name, "s3://b/t/metadata/1.json", document(2, twoSnapshots))
		}
		var log logBuffer
		c := openAt(t, s, Options{Refresh: -1, Timeout: 300 * time.Millisecond, Log: log.logger(), Remotes: &fakeRemotes{}})
		known, err := tableAt(t, c, "db", "known")
		if err != nil {
			t.Fatal(err)
		}
		before := load(t, known)
		if got := sortedKeys(tablesOf(t, c)); len(got) != 2 {
			t.Fatal(got)
		}
		s.Fail(fault)
		if l, err := known.Load(context.Background()); err != nil || l != before {
			t.Errorf("status %d: a known table: %v", fault, err)
		}
		var names []string
		root, _, _ := c.Root(context.Background())
		children, err := root.Namespaces(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		db := maps.Collect(children)["db"]
		for name, err := range db.Tables(context.Background()) {
			if err != nil {
				t.Errorf("status %d: %v", fault, err)
			}
			names = append(names, name)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"known", "other"}) {
			t.Errorf("status %d: tables %q", fault, names)
		}
		if _, err := db.Table(context.Background(), "new"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("status %d: an unknown table: %v", fault, err)
		}
		if since, err := c.Outage(); since.IsZero() || err == nil {
			t.Errorf("status %d: no outage is told", fault)
		}
		s.Fail(0)
		s.Put([]string{"db"}, "new", "s3://b/t/metadata/1.json", document(2))
		s.Put([]string{"db"}, "known", "s3://b/t/metadata/2.json", document(2, twoSnapshots, `"current-snapshot-id":2`))
		if l := load(t, known); l.Table().Current != 2 {
			t.Errorf("status %d: afterwards: current %d", fault, l.Table().Current)
		}
		if _, err := db.Table(context.Background(), "new"); err != nil {
			t.Errorf("status %d: afterwards: %v", fault, err)
		}
		if since, _ := c.Outage(); !since.IsZero() {
			t.Errorf("status %d: the outage does not end", fault)
		}
		lines := strings.Join(log.lines(), "")
		if strings.Count(lines, "does not answer: what is known") != 1 || strings.Count(lines, "answers again") != 1 {
			t.Errorf("status %d: log %s", fault, lines)
		}
		s.Fail(http.StatusForbidden)
		if _, err := known.Load(context.Background()); !errors.Is(err, ErrDenied) {
			t.Errorf("forbidden: %v", err)
		}
	}
}

// TestRESTRetries: a short outage goes unnoticed.
func TestRESTRetries(t *testing.T) {
	s := resttest.New(t)
	s.AddNamespace("db")
	s.Fail(http.StatusServiceUnavailable)
	time.AfterFunc(300*time.Millisecond, func() { s.Fail(0) })
	c := openAt(t, s, Options{Timeout: 10 * time.Second})
	if root, _, _ := c.Root(context.Background()); root == nil {
		t.Error("no root")
	}
	s.Fail(http.StatusServiceUnavailable)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	root, _, _ := c.Root(ctx)
	if _, err := root.Namespaces(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) {
		t.Errorf("a caller who gives up: %v", err)
	}
}

// TestRESTHostile: what a server must not be able to do.
func TestRESTHostile(t *testing.T) {
	answers := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[strings.TrimPrefix(r.URL.Path, "/v1/")]
		if !ok {
			text = `{"defaults":{},"overrides":{}}`
		}
		fmt.Fprint(w, text)
	}))
	defer server.Close()
	ctx := context.Background()
	open := func() (*Catalog, error) {
		return OpenCatalog(ctx, "x", map[string]string{"uri": server.URL}, Options{Timeout: time.Second, Refresh: -1, Remotes: &fakeRemotes{}})
	}
	for _, config := range []string{"", "[]", "nonsense", `{"overrides":{"uri":"file:///etc"}}`, `{"overrides":{"oauth2-server-uri":"x","credential":"a:b"}}`} {
		answers["config"] = config
		if _, err := open(); err == nil {
			t.Errorf("configuration %q was taken", config)
		}
	}
	answers["config"] = `{"overrides":{"n":5,"b":true,"null":null}}`
	c, err := open()
	if err != nil {
		t.Fatal(err)
	}
	root, _, _ := c.Root(ctx)
	for _, namespaces := range []string{"[]", `{"namespaces":[["a"],[]]}`, `{"namespaces":[["a"]],"next-page-token":"same"}`} {
		answers["namespaces"] = namespaces
		if _, err := root.Namespaces(ctx); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", namespaces, err)
		}
	}
	answers["namespaces"] = `{"namespaces":[["db"]]}`
	for _, table := range []string{"", "[]", "{}", `{"metadata":7}`, `{"metadata-location":"s3://b/x","metadata":{"format-version":"x"}}`} {
		answers["namespaces/db/tables/t"] = table
		found, err := tableAt(t, c, "db", "t")
		if err == nil {
			_, err = found.Load(ctx)
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", table, err)
		}
	}
}

// fakeRemotes notes what is asked of object stores, and has none.
type fakeRemotes struct{ asked []source.Access }

func (f *fakeRemotes) Folders(a source.Access) (source.Folders, error) {
	f.asked = append(f.asked, a)
	return noFolders{}, nil
}

type noFolders struct{}

func (noFolders) Open(_ context.Context, location string) (source.Object, error) {
	return nil, fmt.Errorf("%w: %s", source.ErrNotFound, location)
}

func (noFolders) ReadDir(_ context.Context, location string, _ func(fs.DirEntry) bool) error {
	return fmt.Errorf("%w: %s", source.ErrNotFound, location)
}

// TestCatalogGrants: what a catalog lends, and what it does not.
func TestCatalogGrants(t *testing.T) {
	s := resttest.New(t)
	s.Overrides = map[string]string{"s3.endpoint": "http://store", "s3.region": "r"}
	s.Put([]string{"db"}, "lent", "s3://lent/wh/t/metadata/1.json", document(2))
	s.Put([]string{"db"}, "plain", "s3://plain/wh/t/metadata/1.json", document(2))
	s.Put([]string{"db"}, "plain2", "s3://plain/wh/t2/metadata/1.json", document(2))
	remotes := &fakeRemotes{}
	c := openAt(t, s, Options{Refresh: -1, Remotes: remotes, Properties: map[string]string{"s3.region": "mine"}}, "s3.access-key-id", "key")
	for _, name := range []string{"plain", "plain2"} {
		if _, err := tableAt(t, c, "db", name); err != nil {
			t.Fatal(err)
		}
	}
	if len(remotes.asked) != 1 || !slices.Equal(remotes.asked[0].Roots, []string{"s3://plain"}) || remotes.asked[0].Renew != nil {
		t.Errorf("%d stores for two tables of one bucket: %v", len(remotes.asked), remotes.asked)
	}
	p := remotes.asked[0].Properties
	if p["s3.endpoint"] != "http://store" || p["s3.region"] != "mine" || p["s3.access-key-id"] != "key" {
		t.Errorf("properties %v", p)
	}
	s.Lend(resttest.Credential{Prefix: "s3://", Config: map[string]string{"s3.access-key-id": "wide"}},
		resttest.Credential{Prefix: "s3://lent/wh/t", Config: map[string]string{"s3.access-key-id": "narrow", "s3.session-token": "1"}})
	table, err := tableAt(t, c, "db", "lent")
	if err != nil {
		t.Fatal(err)
	}
	a := remotes.asked[len(remotes.asked)-1]
	if a.Properties["s3.access-key-id"] != "narrow" || !slices.Contains(a.Roots, "s3://lent/wh/t") || a.Renew == nil {
		t.Fatalf("%v", a)
	}
	before := load(t, table)
	s.Lend(resttest.Credential{Prefix: "s3://lent/wh/t", Config: map[string]string{"s3.access-key-id": "newer"}})
	if renewed, err := a.Renew(context.Background()); err != nil || renewed["s3.access-key-id"] != "newer" || renewed["s3.region"] != "mine" {
		t.Errorf("%v, %v", renewed, err)
	}
	if load(t, table) != before {
		t.Error("new credentials made the table another one")
	}
}

// TestCatalogOverLocalFiles: what a catalog names on the local file system grants
// nothing; below the warehouse or an allowed path it is found, moved or not.
func TestCatalogOverLocalFiles(t *testing.T) {
	dir := t.TempDir()
	s := resttest.New(t)
	name := write(t, filepath.Join(dir, "wh", "db", "t", "metadata", "1.metadata.json"), string(document(2)))
	s.Put([]string{"db"}, "t", "file:"+name, document(2))
	s.Put([]string{"db"}, "moved", "file:/before/wh/db/t/metadata/1.metadata.json", document(2))
	c := openAt(t, s, Options{})
	for _, name := range []string{"t", "moved"} {
		table, err := tableAt(t, c, "db", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Load(context.Background()); !errors.Is(err, source.ErrOutside) || !strings.Contains(err.Error(), "--allow-path") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []*Catalog{openAt(t, s, Options{AllowPaths: []string{dir}}), openAt(t, s, Options{}, "warehouse", "file://"+dir+"/wh")} {
		for path, table := range tablesOf(t, c) {
			if _, err := table.Load(context.Background()); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
