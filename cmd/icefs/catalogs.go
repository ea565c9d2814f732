package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// catalogConfigs is where a user's catalogs are configured: pyiceberg's file and
// environment, then iceberg-go's file.
type catalogConfigs struct {
	pyiceberg []string // folders, in the order of search; the first that has the file counts
	icebergGo []string
	environ   []string // KEY=VALUE
}

const (
	pyicebergFile = ".pyiceberg.yaml"
	icebergGoFile = ".iceberg-go.yaml"
	pyicebergEnv  = "pyiceberg_"
	keyCatalog    = "catalog"
)

// userCatalogs is the configuration of the user who runs icefs.
func userCatalogs() catalogConfigs {
	c := catalogConfigs{environ: os.Environ()}
	home, _ := os.UserHomeDir() // a service has none
	cwd, _ := os.Getwd()
	c.pyiceberg = []string{os.Getenv("PYICEBERG_HOME"), home, cwd}
	c.icebergGo = []string{os.Getenv("GOICEBERG_HOME"), home}
	return c
}

// errNoCatalog: there is no catalog of that name.
var errNoCatalog = errors.New("there is no such path, and no catalog of that name")

// find returns a catalog's properties. Names and keys are told apart without
// regard to case, as pyiceberg does.
func (c catalogConfigs) find(name string) (map[string]string, error) {
	name = strings.ToLower(name)
	configured, where, err := readCatalogs(pyicebergFile, c.pyiceberg)
	if err != nil {
		return nil, err
	}
	for other, props := range c.fromEnvironment() {
		merged := maps.Clone(configured[other])
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, props)
		configured[other] = merged
	}
	if props, ok := configured[name]; ok {
		return props, nil
	}
	more, also, err := readCatalogs(icebergGoFile, c.icebergGo)
	if err != nil {
		return nil, err
	}
	if props, ok := more[name]; ok {
		return fromIcebergGo(props), nil
	}
	maps.Copy(configured, more)
	known := "none is configured"
	if len(configured) > 0 {
		known = "configured are " + strings.Join(slices.Sorted(maps.Keys(configured)), ", ")
	}
	return nil, fmt.Errorf("%w (%s; looked at %s, %s and PYICEBERG_CATALOG__…)", errNoCatalog, known, where, also)
}

// readCatalogs reads the catalogs of the first folder that has a file: by name,
// the properties of each.
func readCatalogs(file string, dirs []string) (catalogs map[string]map[string]string, where string, err error) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, path, fmt.Errorf("catalogs: %w", err)
		}
		catalogs, err = parseCatalogs(text)
		if err != nil {
			return nil, path, fmt.Errorf("catalogs: %s: %w", path, err)
		}
		return catalogs, path, nil
	}
	return map[string]map[string]string{}, "no " + file, nil
}

// parseCatalogs reads the YAML that both files consist of: catalog: NAME: KEY:
// VALUE. A key of keys is one with dots. Every value is a text, as it is written.
func parseCatalogs(text []byte) (map[string]map[string]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, errors.New("not valid YAML") // the parser's words quote the file
	}
	found := map[string]map[string]string{}
	if len(doc.Content) == 0 {
		return found, nil
	}
	for key, value := range pairs(doc.Content[0]) {
		if key != keyCatalog {
			continue
		}
		for name, config := range pairs(value) {
			if config.Kind != yaml.MappingNode {
				return nil, fmt.Errorf("catalog %s is no mapping", name)
			}
			found[name] = map[string]string{}
			flatten("", config, found[name])
		}
	}
	return found, nil
}

// pairs yields the keys of a mapping, in lower case, with their values.
func pairs(n *yaml.Node) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			value := n.Content[i+1]
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			if !yield(strings.ToLower(n.Content[i].Value), value) {
				return
			}
		}
	}
}

// maxKeyDepth bounds how deep a configuration is nested.
const maxKeyDepth = 8

func flatten(prefix string, n *yaml.Node, into map[string]string) {
	if strings.Count(prefix, ".") > maxKeyDepth {
		return
	}
	for key, value := range pairs(n) {
		switch value.Kind {
		case yaml.MappingNode:
			flatten(prefix+key+".", value, into)
		case yaml.ScalarNode:
			if value.Tag != "!!null" {
				into[prefix+key] = value.Value
			}
		}
	}
}

// fromEnvironment reads PYICEBERG_CATALOG__NAME__KEY: in KEY a double underscore
// is a dot, in both a single one is a dash.
func (c catalogConfigs) fromEnvironment() map[string]map[string]string {
	found := map[string]map[string]string{}
	for _, entry := range c.environ {
		name, value, _ := strings.Cut(entry, "=")
		rest, ok := strings.CutPrefix(strings.ToLower(name), pyicebergEnv)
		if !ok || value == "" {
			continue
		}
		parts := strings.SplitN(rest, "__", 3)
		if len(parts) != 3 || parts[0] != keyCatalog {
			continue
		}
		catalog := strings.ReplaceAll(parts[1], "_", "-")
		key := strings.ReplaceAll(strings.ReplaceAll(parts[2], "__", "."), "_", "-")
		if found[catalog] == nil {
			found[catalog] = map[string]string{}
		}
		found[catalog][key] = value
	}
	return found
}

// fromIcebergGo gives iceberg-go's own keys the names that catalogs know.
func fromIcebergGo(props map[string]string) map[string]string {
	props = maps.Clone(props)
	if profile := props["aws-profile"]; profile != "" {
		props["client.profile-name"] = profile
	}
	return props
}
