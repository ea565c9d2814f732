package warehouse

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const testdata = "../../testdata"

// logBuffer is a log that tests look into.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(strings.Lines(b.text.String()))
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyOf copies a folder of testdata to a new place.
func copyOf(t *testing.T, from, to string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(filepath.Join(testdata, from))); err != nil {
		t.Fatal(err)
	}
	return to
}

func open(t *testing.T, src string, opt Options) *Catalog {
	t.Helper()
	c, err := Open(context.Background(), src, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// tablesOf returns all tables of a catalog by path, "" for a single one.
func tablesOf(t *testing.T, c *Catalog) map[string]*Table {
	t.Helper()
	root, table, err := c.Root(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if table != nil {
		return map[string]*Table{"": table}
	}
	found := map[string]*Table{}
	walk(t, root, "", found)
	return found
}

func walk(t *testing.T, n *Namespace, prefix string, found map[string]*Table) {
	t.Helper()
	for name, err := range n.Tables(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		table, err := n.Table(context.Background(), name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found[prefix+name] = table
	}
	namespaces, err := n.Namespaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, child := range namespaces {
		walk(t, child, prefix+name+"/", found)
	}
}

func load(t *testing.T, table *Table) *Loaded {
	t.Helper()
	l, err := table.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openTable opens a source that is one table.
func openTable(t *testing.T, src string, opt Options) *Table {
	t.Helper()
	_, table, err := open(t, src, opt).Root(context.Background())
	if err != nil || table == nil {
		t.Fatalf("%s is no table: %v", src, err)
	}
	return table
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// compact is JSON without its spaces, as a server sends it.
func compact(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
