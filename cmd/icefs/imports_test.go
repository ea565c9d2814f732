package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/icefs/icefs/"

// own is which packages of this module a package may import; "*" is all. Tests
// may import more.
func own() map[string][]string {
	return map[string][]string{
		"cmd/icefs":                 {"*"},
		"fs":                        {"internal/tree", "internal/activity"}, // and fs/errno.go those whose sentinels it maps
		"internal/tree":             {"merge", "snapshot"},
		"merge":                     {"snapshot", "deletes", "internal/source", "internal/pqfile", "internal/avrofile"},
		"deletes":                   {"snapshot", "internal/source", "internal/pqfile", "internal/avrofile"},
		"snapshot":                  {},
		"cache":                     {},
		"internal/activity":         {},
		"internal/web":              {"internal/tree", "internal/activity", "merge"},
		"internal/warehouse":        {"snapshot", "internal/source"},
		"internal/source":           {},
		"internal/pqfile":           {"internal/source"},
		"internal/avrofile":         {"internal/source", "internal/pqfile"}, // gives its columns as pqfile's vectors
		"internal/reference":        {"snapshot", "internal/source", "internal/pqfile", "internal/avrofile"},
		"internal/fixture":          {},
		"internal/fixture/random":   {"internal/fixture"},
		"internal/demo":             {"internal/fixture"},
		"internal/viewtest":         {},
		"internal/tree/treetest":    {"internal/tree", "merge", "snapshot"},
		"internal/source/faulty":    {"internal/source"},
		"internal/source/remote":    {"internal/source"},
		"internal/source/s3":        {"internal/source", "internal/source/remote"},
		"internal/source/gcs":       {"internal/source", "internal/source/remote"},
		"internal/source/azure":     {"internal/source", "internal/source/remote"},
		"internal/source/storetest": {},
		"bench/front":               {"internal/source/storetest"},
		"internal/cases":            {},
		"internal/resttest":         {},
		"bench/lineitem":            {"internal/fixture"},
		"bench/longchunk":           {"internal/fixture"},
		"bench/manyfiles":           {"internal/fixture"},
		"bench/scale":               {},
	}
}

// errnoMaps is what package fs imports in errno.go alone.
func errnoMaps() []string {
	return []string{"merge", "deletes", "internal/source", "internal/pqfile", "internal/avrofile", "internal/warehouse"}
}

// foreign is who alone may import a package of another module, and what is
// below it.
func foreign() map[string][]string {
	iceberg := "github.com/apache/iceberg-go"
	return map[string][]string{
		"github.com/hanwen/go-fuse":      {"fs"},
		"github.com/RoaringBitmap":       {"deletes"},
		"github.com/dgraph-io/ristretto": {"cache"},
		"github.com/aws":                 {"internal/source/s3", "internal/warehouse"},
		"cloud.google.com/go":            {"internal/source/gcs"},
		"github.com/Azure":               {"internal/source/azure"},
		iceberg + "/catalog":             {"internal/warehouse"},
		iceberg + "/table":               {"internal/warehouse", "internal/fixture"},
		iceberg + "/puffin":              {"internal/fixture"},
		iceberg + "/io":                  {"internal/warehouse"},
		iceberg: {"snapshot", "internal/warehouse", "merge", "deletes", "internal/pqfile", "internal/avrofile",
			"internal/tree", "internal/reference", "internal/fixture", "internal/fixture/random", "internal/demo",
			"internal/tree/treetest", "bench/lineitem", "bench/longchunk", "bench/manyfiles", "bench/scale"},
	}
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath string
	Imports    []string
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func TestImports(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 10 {
		t.Fatalf("only %d packages are listed", len(packages))
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := own()[name]
		if !known {
			t.Errorf("package %s is not in the rule: say what it may import", name)
			continue
		}
		if name == "fs" {
			allowed = append(allowed, errnoMaps()...)
		}
		for _, imported := range p.Imports {
			if of, ours := strings.CutPrefix(imported, module); ours {
				if !slices.Contains(allowed, "*") && !slices.Contains(allowed, of) {
					t.Errorf("%s may not import %s", name, of)
				}
			} else if only := onlyImporters(imported); only != nil && !slices.Contains(only, name) {
				t.Errorf("%s may not import %s: only %s", name, imported, strings.Join(only, ", "))
			}
		}
	}
}

// onlyImporters is who may import a package, by the longest rule that holds for
// it; nil if no rule does.
func onlyImporters(path string) []string {
	var only []string
	longest := 0
	for prefix, by := range foreign() {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > longest {
			only, longest = by, len(prefix)
		}
	}
	return only
}

// TestErrnoAloneMaps: the packages whose sentinels fs maps are imported by
// fs/errno.go and by no other file of fs.
func TestErrnoAloneMaps(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.Dir}} {{join .GoFiles " "}}`, module+"fs").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(out))
	for _, file := range words[1:] {
		imports := fileImports(t, words[0]+"/"+file)
		for _, of := range errnoMaps() {
			if file != "errno.go" && slices.Contains(imports, module+of) {
				t.Errorf("fs/%s may not import %s", file, of)
			}
		}
	}
}

func fileImports(t *testing.T, name string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(f.Imports))
	for i, spec := range f.Imports {
		paths[i] = strings.Trim(spec.Path.Value, `"`)
	}
	return paths
}
