// Package resttest is a catalog behind Iceberg's REST API, in memory, for tests:
// namespaces of any depth, tables with the metadata they are given, pages,
// credentials, and faults.
package resttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running catalog. Its fields may be set before the first request;
// its methods are safe at any time.
type Server struct {
	URL string // of the catalog, as its property uri has it

	Prefix     string            // of paths, told by the configuration
	Separator  string            // of namespace levels, percent-encoded; empty = %1F and not told
	Defaults   map[string]string // of the configuration
	Overrides  map[string]string
	Token      string        // that requests have to bear; empty = none
	Credential string        // id:secret for which a token is given; needs Token
	TokenLife  time.Duration // told with it; 0 = an hour
	PageDelay  time.Duration // before each page of tables but the first
	Pages      bool          // whether listings come in pages
	// Config and Credentials are sent with every table.
	Config      map[string]string
	Credentials []Credential

	http *httptest.Server

	mu       sync.Mutex // guards below
	spaces   map[string][]string
	tables   map[string]map[string]table // by joined namespace, and name
	fault    int                         // status of every answer; 0 = none, -1 = no answer
	requests map[string]int              // by kind
	refused  int                         // how many tokens are refused yet
}

// Credential is lent for what lies below a prefix.
type Credential struct {
	Prefix string            `json:"prefix"`
	Config map[string]string `json:"config"`
}

type table struct {
	location string
	metadata []byte
	tag      string
}

// New starts a catalog that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{spaces: map[string][]string{}, tables: map[string]map[string]table{}, requests: map[string]int{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	t.Cleanup(s.http.Close)
	return s
}

func joined(levels []string) string { return strings.Join(levels, "\x1f") }

// AddNamespace adds a namespace, and those above it.
func (s *Server) AddNamespace(levels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range levels {
		s.spaces[joined(levels[:i+1])] = slices.Clone(levels[:i+1])
	}
}

// Put adds or replaces a table.
func (s *Server) Put(namespace []string, name, location string, metadata []byte) {
	s.AddNamespace(namespace...)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := joined(namespace)
	if s.tables[key] == nil {
		s.tables[key] = map[string]table{}
	}
	s.tables[key][name] = table{location, metadata, fmt.Sprintf("%q", fmt.Sprint(time.Now().UnixNano()))}
}

// Drop removes a table.
func (s *Server) Drop(namespace []string, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables[joined(namespace)], name)
}

// Fail makes every answer one of an HTTP status; 0 ends it, and -1 closes
// connections instead of answering.
func (s *Server) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = status
}

// RefuseTokens refuses the token of the next n requests.
func (s *Server) RefuseTokens(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = n
}

// Requests returns how many requests of a kind there were: config, token,
// namespaces, tables (pages of listings), table, unchanged (a table that had not
// changed).
func (s *Server) Requests(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[kind]
}

func (s *Server) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[kind]++
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	refuse := s.refused > 0 && r.URL.Path != "/v1/oauth/tokens"
	if refuse {
		s.refused--
	}
	s.mu.Unlock()
	switch {
	case fault < 0:
		panic(http.ErrAbortHandler)
	case fault > 0:
		fail(w, fault, "a fault")
	case r.URL.Path == "/v1/oauth/tokens":
		s.token(w, r)
	case s.Token != "" && (refuse || r.Header.Get("Authorization") != "Bearer "+s.Token):
		fail(w, http.StatusUnauthorized, "who are you?")
	case r.URL.Path == "/v1/config":
		s.config(w)
	default:
		s.route(w, r)
	}
}

func fail(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"Fault","code":%d}}`, text, status)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.count("token")
	if id := r.FormValue("client_id"); r.FormValue("grant_type") != "client_credentials" ||
		id+":"+r.FormValue("client_secret") != s.Credential || r.FormValue("scope") == "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":"no such client","echo":%q}`, r.FormValue("client_secret"))
		return
	}
	answer(w, map[string]any{"access_token": s.Token, "token_type": "bearer", "expires_in": int(cmp.Or(s.TokenLife, time.Hour).Seconds())})
}

func (s *Server) config(w http.ResponseWriter) {
	s.count("config")
	overrides := map[string]string{}
	for key, value := range s.Overrides {
		overrides[key] = value
	}
	if s.Prefix != "" {
		overrides["prefix"] = s.Prefix
	}
	if s.Separator != "" {
		overrides["namespace-separator"] = s.Separator
	}
	answer(w, map[string]any{"defaults": s.Defaults, "overrides": overrides})
}

// route answers what lies below /v1/PREFIX/namespaces.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/v1/")
	if s.Prefix != "" {
		path = strings.TrimPrefix(path, s.Prefix+"/")
	}
	words := strings.Split(path, "/")
	if words[0] != "namespaces" {
		fail(w, http.StatusNotFound, "no such path")
		return
	}
	if len(words) == 1 {
		s.namespaces(w, r)
		return
	}
	var levels []string
	for _, level := range strings.Split(words[1], cmp.Or(s.Separator, "%1F")) {
		level, _ = url.PathUnescape(level)
		levels = append(levels, level)
	}
	if !s.has(levels) || len(words) < 3 || words[2] != "tables" {
		fail(w, http.StatusNotFound, "Namespace does not exist")
		return
	}
	if len(words) == 3 {
		s.list(w, r, levels)
		return
	}
	name, _ := url.PathUnescape(words[3])
	s.load(w, r, levels, name)
}

func (s *Server) has(levels []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spaces[joined(levels)] != nil
}

// page cuts one page out of a list.
func (s *Server) page(r *http.Request, n int) (from, to int, next string) {
	size, _ := strconv.Atoi(r.FormValue("pageSize"))
	if !s.Pages || size == 0 {
		return 0, n, ""
	}
	from, _ = strconv.Atoi(r.FormValue("pageToken"))
	to = min(from+size, n)
	if to < n {
		next = strconv.Itoa(to)
	}
	return from, to, next
}

func (s *Server) namespaces(w http.ResponseWriter, r *http.Request) {
	s.count("namespaces")
	separator, _ := url.PathUnescape(cmp.Or(s.Separator, "%1F"))
	var parent []string
	if text := r.FormValue("parent"); text != "" {
		parent = strings.Split(text, separator)
	}
	s.mu.Lock()
	var list [][]string
	for _, levels := range s.spaces {
		if len(levels) == len(parent)+1 && slices.Equal(levels[:len(parent)], parent) {
			list = append(list, levels)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, slices.Compare[[]string])
	from, to, next := s.page(r, len(list))
	answer(w, map[string]any{"namespaces": list[from:to], "next-page-token": next})
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, levels []string) {
	s.count("tables")
	s.mu.Lock()
	var names []string
	for name := range s.tables[joined(levels)] {
		names = append(names, name)
	}
	s.mu.Unlock()
	slices.Sort(names)
	from, to, next := s.page(r, len(names))
	if from > 0 {
		time.Sleep(s.PageDelay)
	}
	type identifier struct {
		Namespace []string `json:"namespace"`
		Name      string   `json:"name"`
	}
	list := []identifier{}
	for _, name := range names[from:to] {
		list = append(list, identifier{levels, name})
	}
	answer(w, map[string]any{"identifiers": list, "next-page-token": next})
}

func (s *Server) load(w http.ResponseWriter, r *http.Request, levels []string, name string) {
	s.mu.Lock()
	t, ok := s.tables[joined(levels)][name]
	config, credentials := s.Config, s.Credentials
	s.mu.Unlock()
	switch {
	case !ok:
		s.count("missing")
		fail(w, http.StatusNotFound, "Table does not exist")
		return
	case r.Header.Get("If-None-Match") == t.tag:
		s.count("unchanged")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.count("table")
	w.Header().Set("ETag", t.tag)
	out := map[string]any{"metadata-location": t.location, "metadata": json.RawMessage(t.metadata), "config": config}
	if len(credentials) > 0 {
		out["storage-credentials"] = credentials
	}
	answer(w, out)
}

// Lend replaces the credentials that are sent with every table.
func (s *Server) Lend(credentials ...Credential) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Credentials = credentials
}
