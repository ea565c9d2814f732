package web

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/snapshot"
)

// refs are where the links of a page's table lead.
func refs(body string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`<td class="name"><a href="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		list = append(list, m[1])
	}
	return list
}

func TestPage(t *testing.T) {
	s := serve(t, pad)
	resp, body := s.ask(t, "GET", table+"current/")
	if resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v", resp.Header)
	}
	want := []string{"./parts/", "./data.csv", "./data.jsonl", "./data.parquet", "./files.csv", "./schema.json", "./snapshot.json"}
	if got := refs(body); !slices.Equal(got, want) {
		t.Errorf("the page leads to %v", got)
	}
	for _, text := range []string{"3.0 MiB", "2026-11-30 02:53:03", "wh &amp; co", "n%2F&lt;x&gt;",
		`Now <a href="../../../n%252F%3Cx%3E/a%20b/snapshots/3@schema-1/">/n%2F&lt;x&gt;/a b/snapshots/3@schema-1</a>. 90 rows; 10 deleted ones are left out.`, "the columns",
		"duckdb -c &#34;FROM &#39;" + s.URL + table + "snapshots/3@schema-1/data.parquet&#39; LIMIT 10&#34;"} {
		if !strings.Contains(body, text) {
			t.Errorf("%q is not on the page:\n%s", text, body)
		}
	}
	for _, bad := range []string{"<x>", "<script", "http://www", "ZgotmplZ"} {
		if strings.Contains(body, bad) {
			t.Errorf("%q is on the page", bad)
		}
	}
	if resp, empty := s.ask(t, "HEAD", table+"current/"); empty != "" || resp.ContentLength != int64(len(body)) {
		t.Errorf("HEAD: %d bytes, said to be %d", len(empty), resp.ContentLength)
	}
	_, body = s.ask(t, "GET", table+"snapshots/")
	if got := refs(body); !slices.Equal(got, []string{"./3/", "./2/", "./1/"}) {
		t.Errorf("snapshots leads to %v: the newest comes first", got)
	}
	_, body = s.ask(t, "GET", table)
	if got := refs(body); !slices.Equal(got, []string{"./current/", "./at/", "./branches/", "./by-time/", "./snapshots/", "./tags/", "./metadata.json"}) ||
		!strings.Contains(body, "→ snapshots/3@schema-1") {
		t.Errorf("the table leads to %v", got)
	}
	if _, body = s.ask(t, "GET", table+"at/"); !strings.Contains(body, "add a date") {
		t.Error("at does not tell what to do with it")
	}
}

// TestEveryLinkLeadsSomewhere walks the whole tree as a browser does.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	s := serve(t, 0)
	seen := map[string]bool{}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		base, err := url.Parse(s.URL + todo[0])
		if err != nil {
			t.Fatal(err)
		}
		resp, body := s.ask(t, "GET", todo[0])
		if resp.StatusCode != 200 {
			t.Errorf("%s: %s", todo[0], resp.Status)
		}
		if !strings.HasSuffix(todo[0], "/") {
			continue
		}
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			ref, err := base.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
			if err != nil || ref.Host != base.Host {
				t.Fatalf("%s leads to %s (%v)", todo[0], m[1], err)
			}
			if to := ref.EscapedPath(); !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d pages and files: %v", len(seen), seen)
	}
}

// TestLongFolder: a folder of many files is shown a page at a time.
func TestLongFolder(t *testing.T) {
	s := serve(t, 0)
	var files []snapshot.File
	for i := range perPage + 5 {
		files = append(files, snapshot.File{DataFile: &snapshot.DataFile{Path: fmt.Sprintf("file:/wh/t/data/%05d.parquet", i)}})
	}
	s.table.Commit(&treetest.Loaded{Meta: s.table.Current().Meta, Files: files})
	_, body := s.ask(t, "GET", table+"current/parts/")
	if got := refs(body); len(got) != perPage || got[0] != "./00000.parquet" || !strings.Contains(body, `href="?from=1000" rel="next"`) || strings.Contains(body, `rel="prev"`) {
		t.Errorf("%d links", len(got))
	}
	_, body = s.ask(t, "GET", table+"current/parts/?from=1000")
	if got := refs(body); len(got) != 5 || got[4] != "./01004.parquet" || strings.Contains(body, `rel="next"`) || !strings.Contains(body, `href="?from=0" rel="prev"`) {
		t.Errorf("%d links: %v", len(got), got)
	}
	for _, from := range []string{"99999", "-5", "x"} {
		if resp, _ := s.ask(t, "GET", table+"current/parts/?from="+from); resp.StatusCode != 200 {
			t.Errorf("from=%s: %s", from, resp.Status)
		}
	}
}

// TestUnmeasured: a page does not wait for sizes that take long, and shows what
// cannot be served.
func TestUnmeasured(t *testing.T) {
	s := serve(t, 0)
	s.views.Block = make(chan struct{})
	_, body := s.ask(t, "GET", table+"current/")
	if n := strings.Count(body, "not measured yet"); n != 3 {
		t.Errorf("%d files are not measured", n)
	}
	close(s.views.Block)
	failure := errBroken
	s.views.Fail.Store(&failure)
	resp, body := s.ask(t, "GET", table+"current/")
	if n := strings.Count(body, "cannot be served"); n != 3 || resp.StatusCode != 200 || strings.Contains(body, "secret") {
		t.Errorf("%d files cannot be served: %s", n, resp.Status)
	}
}
