package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/resttest"
)

// served is a mount in a process of its own, and what it has said.
type served struct {
	dir string
	pid int

	mu  sync.Mutex
	log strings.Builder
}

func (s *served) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *served) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// mountNamed mounts a catalog of a configuration file as "prod".
func mountNamed(t *testing.T, config string, args ...string) *served {
	t.Helper()
	home := t.TempDir()
	writeFile(t, home, pyicebergFile, config)
	s := &served{dir: t.TempDir()}
	all := append([]string{"mount", "--cache-dir", filepath.Join(home, "cache"), "--log-level", "debug"}, args...)
	cmd := exec.Command(icefsBinary(t), append(all, "prod", s.dir)...)
	cmd.Env = append(os.Environ(), "PYICEBERG_HOME="+home)
	cmd.Stderr = s
	serveMount(t, cmd, s.dir, s.said)
	s.pid = cmd.Process.Pid
	return s
}

// restTable is a table on the local file system behind a REST catalog.
type restTable struct {
	t      *testing.T
	server *resttest.Server
	table  *fixture.Table
	name   string
}

func newRestTable(t *testing.T, s *resttest.Server, dir, name string) *restTable {
	return &restTable{t, s, fixture.New(filepath.Join(dir, name), fixture.Options{
		Schema: iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}),
	}), name}
}

// commit replaces all rows by some, and tells the catalog.
func (r *restTable) commit(ids ...int) {
	r.t.Helper()
	tx := r.table.Begin()
	tx.RemoveAll()
	var rows []fixture.Row
	for _, id := range ids {
		rows = append(rows, fixture.Row{"id": id})
	}
	tx.Append(rows...)
	tx.Commit()
	r.publish()
}

// publish tells the catalog of the newest metadata file.
func (r *restTable) publish() {
	r.t.Helper()
	names, err := filepath.Glob(filepath.Join(r.table.Dir(), "metadata", "*.metadata.json"))
	if err != nil || len(names) == 0 {
		r.t.Fatalf("no metadata file: %v", err)
	}
	newest := slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	raw, err := os.ReadFile(newest)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server.Put([]string{"db"}, r.name, newest, raw)
}

// eventually waits for a condition, as long as a refresh may take.
func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > within {
			t.Errorf("%s: not within %v", what, within)
			return
		}
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Errorf("%v", err)
	}
	return string(b)
}

// TestCatalogIsFresh: what a REST catalog commits, adds and drops shows within
// the refresh interval; an open file stays on its snapshot; one of an expired
// snapshot whose files are gone is stale, and said to be.
func TestCatalogIsFresh(t *testing.T) {
	const refresh = 2 * time.Second
	const within = refresh + time.Second // and the time a busy machine takes
	s := resttest.New(t)
	warehouse := t.TempDir()
	table := newRestTable(t, s, warehouse, "t")
	table.commit(1)
	m := mountNamed(t, fmt.Sprintf("catalog: {prod: {uri: %q, warehouse: %q}}", s.URL, warehouse), "--refresh", refresh.String())
	current := filepath.Join(m.dir, "db", "t", "current")
	if got := text(t, current+"/data.csv"); got != "id\n1\n" {
		t.Fatalf("%q", got)
	}
	first, err := filepath.EvalSymlinks(current)
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(current + "/data.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	table.commit(1, 2)
	eventually(t, "a commit", within, func() bool { return text(t, current+"/data.csv") == "id\n1\n2\n" })
	b := make([]byte, 100)
	if n, err := open.ReadAt(b, 0); n != 5 || string(b[:n]) != "id\n1\n" {
		t.Errorf("the open file reads %q, %v", b[:n], err)
	}
	if got := text(t, first+"/data.csv"); got != "id\n1\n" {
		t.Errorf("the first snapshot reads %q", got)
	}
	branch, err := os.Readlink(filepath.Join(m.dir, "db", "t", "branches", "main"))
	if err != nil || !strings.HasPrefix(branch, "../snapshots/") || filepath.Base(branch) == filepath.Base(first) {
		t.Errorf("main leads to %q, %v", branch, err)
	}

	other := newRestTable(t, s, warehouse, "other")
	other.commit(7)
	list := func() []string {
		entries, err := os.ReadDir(filepath.Join(m.dir, "db"))
		if err != nil {
			t.Error(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	eventually(t, "a new table", within, func() bool { return slices.Equal(list(), []string{"other", "t"}) })
	if got := text(t, filepath.Join(m.dir, "db", "other", "current", "data.csv")); got != "id\n7\n" {
		t.Errorf("the new table reads %q", got)
	}
	s.Drop([]string{"db"}, "other")
	eventually(t, "a dropped table", within, func() bool {
		_, err := os.Stat(filepath.Join(m.dir, "db", "other"))
		return errors.Is(err, os.ErrNotExist) && slices.Equal(list(), []string{"t"})
	})

	held, err := os.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := os.Stat(first + "/data.jsonl"); err != nil {
		t.Fatal(err)
	}
	expireFirst(t, table)
	eventually(t, "an expired snapshot", within, func() bool {
		entries, err := os.ReadDir(filepath.Join(m.dir, "db", "t", "snapshots"))
		return err == nil && len(entries) == 1
	})
	// The kernel knows the folder yet, and what is in it: a path into it is stale.
	if _, err := held.Readdirnames(-1); err != nil {
		t.Errorf("an open folder of an expired snapshot: %v", err)
	}
	_, err = os.ReadFile(first + "/data.jsonl")
	if !errors.Is(err, syscall.ESTALE) {
		t.Errorf("a file of an expired snapshot: %v", err)
	}
	eventually(t, "a line in the log", time.Second, func() bool { return strings.Contains(m.said(), "no longer in the table's metadata") })
	if got := text(t, current+"/data.csv"); got != "id\n1\n2\n" {
		t.Errorf("the current snapshot reads %q", got)
	}
}

// expireFirst takes the first snapshot out of the metadata, and its files away.
func expireFirst(t *testing.T, r *restTable) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.table.Dir(), "metadata", "*.metadata.json"))
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	newest := slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	var meta map[string]any
	raw, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		t.Fatal(err)
	}
	list := meta["snapshots"].([]any)
	meta["snapshots"] = list[1:]
	if log, ok := meta["snapshot-log"].([]any); ok {
		meta["snapshot-log"] = log[1:]
	}
	if raw, err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.table.Snapshots()[0].Files() {
		if err := os.Remove(f.Local); err != nil {
			t.Fatal(err)
		}
	}
	r.server.Put([]string{"db"}, r.name, newest, raw)
}

// TestCatalogGoesDown: while the catalog does not answer, what was known of it
// can be read; a table never seen cannot, with ETIMEDOUT; and all works again
// afterwards.
func TestCatalogGoesDown(t *testing.T) {
	s := resttest.New(t)
	warehouse := t.TempDir()
	table := newRestTable(t, s, warehouse, "t")
	table.commit(1)
	newRestTable(t, s, warehouse, "unseen").commit(5)
	m := mountNamed(t, fmt.Sprintf("catalog: {prod: {uri: %q, warehouse: %q}}", s.URL, warehouse), "--refresh", "100ms", "--timeout", "1s")
	current := filepath.Join(m.dir, "db", "t", "current", "data.csv")
	if got := text(t, current); got != "id\n1\n" {
		t.Fatalf("%q", got)
	}
	s.Fail(-1)
	time.Sleep(200 * time.Millisecond)
	if got := text(t, current); got != "id\n1\n" {
		t.Errorf("a known table reads %q", got)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "db", "unseen")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a table never seen: %v", err)
	}
	if status := text(t, filepath.Join(m.dir, ".icefs", "status.json")); !strings.Contains(status, "catalog_down_since") {
		t.Errorf("the status is %s", status)
	}
	s.Fail(http.StatusForbidden)
	eventually(t, "a refusal", 3*time.Second, func() bool {
		_, err := os.ReadDir(filepath.Join(m.dir, "db"))
		return errors.Is(err, syscall.EACCES)
	})
	s.Fail(0)
	table.commit(1, 2)
	eventually(t, "afterwards", 3*time.Second, func() bool {
		b, err := os.ReadFile(current)
		return err == nil && string(b) == "id\n1\n2\n"
	})
	if got := text(t, filepath.Join(m.dir, "db", "unseen", "current", "data.csv")); got != "id\n5\n" {
		t.Errorf("the other table reads %q", got)
	}
	eventually(t, "lines in the log", time.Second, func() bool {
		log := m.said()
		return strings.Contains(log, "does not answer: what is known") && strings.Contains(log, "answers again")
	})
}

// TestLargeCatalog: a catalog of 50,000 tables is mounted at once, and of a
// namespace of 10,000 the first name is there within a second, although all of
// them take longer.
func TestLargeCatalog(t *testing.T) {
	const tables, spaces = 10_000, 5
	s := resttest.New(t)
	s.Pages, s.PageDelay = true, 60*time.Millisecond
	for space := range spaces {
		for i := range tables {
			s.Put([]string{fmt.Sprint("n", space)}, fmt.Sprintf("table_%05d", i), "s3://b/m.json", []byte("{}"))
		}
	}
	start := time.Now()
	m := mountNamed(t, fmt.Sprintf("catalog: {prod: {uri: %q}}", s.URL))
	if took := time.Since(start); took > 5*time.Second || s.Requests("tables") > 0 {
		t.Errorf("mounted after %v and %d listings", took, s.Requests("tables"))
	}
	start = time.Now()
	dir, err := os.Open(filepath.Join(m.dir, "n3"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := dir.Readdirnames(1); err != nil {
		t.Fatal(err)
	}
	first := time.Since(start)
	rest, err := dir.Readdirnames(-1)
	all := time.Since(start)
	if err != nil || len(rest) != tables-1 {
		t.Errorf("%d names more, %v", len(rest), err)
	}
	slices.Sort(rest)
	if len(slices.Compact(rest)) != tables-1 {
		t.Error("a name came twice")
	}
	t.Logf("first entry after %v, all %d after %v", first, tables, all)
	if first > time.Second || all < 2*time.Second {
		t.Errorf("the first of %d names after %v, all after %v", tables, first, all)
	}
}

// TestSecretsAreNowhere: what a configuration file holds is in no argument, mount
// table, log or status.
func TestSecretsAreNowhere(t *testing.T) {
	const secret = "s3cr3t-4711"
	s := resttest.New(t)
	s.Token, s.Credential = secret+"-token", "id:"+secret
	s.Config = map[string]string{"s3.secret-access-key": secret, "s3.session-token": secret}
	warehouse := t.TempDir()
	newRestTable(t, s, warehouse, "t").commit(1)
	s.Put([]string{"db"}, "remote", "s3://bucket/t/metadata/1.json", []byte(`{"format-version":9}`))
	m := mountNamed(t, fmt.Sprintf("catalog: {prod: {uri: %q, warehouse: %q, credential: %q, s3.secret-access-key: %q, header.X-Key: %q}}",
		s.URL, warehouse, "id:"+secret, secret, secret), "--refresh", "100ms", "--timeout", "500ms")
	if got := text(t, filepath.Join(m.dir, "db", "t", "current", "data.csv")); got != "id\n1\n" {
		t.Fatalf("%q", got)
	}
	os.ReadDir(filepath.Join(m.dir, "db", "remote"))
	failure := text(t, filepath.Join(m.dir, "db", "remote", "error.txt"))
	s.RefuseTokens(1000)
	time.Sleep(200 * time.Millisecond)
	os.ReadDir(filepath.Join(m.dir, "db"))
	s.Fail(-1)
	os.ReadDir(filepath.Join(m.dir, "db"))
	for what, where := range map[string]string{
		"the arguments": text(t, fmt.Sprintf("/proc/%d/cmdline", m.pid)), "the mount table": text(t, "/proc/self/mountinfo"), "the log": m.said(),
		"the status": text(t, m.dir+"/.icefs/status.json"), "the metrics": text(t, m.dir+"/.icefs/metrics"), "error.txt": failure,
	} {
		if where == "" || strings.Contains(where, secret) {
			t.Errorf("in %s: %s", what, where)
		}
	}
}
