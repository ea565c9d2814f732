package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCatalogsOfTheUser(t *testing.T) {
	home, cwd, other := t.TempDir(), t.TempDir(), t.TempDir()
	writeFile(t, home, pyicebergFile, `
default-catalog: prod
catalog:
  Prod:
    uri: https://rest.example/
    credential: id:secret
    s3.path-style-access: true
    s3: {endpoint: "http://s3", region: eu-1}
    ssl:
      client: {cert: /c, key: /k}
    port: 0123
    nothing: null
  plain: {uri: "sqlite:////x.db"}
`)
	writeFile(t, cwd, pyicebergFile, "catalog: {elsewhere: {uri: http://x}}")
	writeFile(t, home, icebergGoFile, `
catalog:
  golang: {type: glue, aws-profile: me, rest: {sigv4-enabled: true, signing-region: r}}
  plain: {uri: other}
`)
	user := catalogConfigs{
		pyiceberg: []string{"", home, cwd}, icebergGo: []string{"", home},
		environ: []string{"PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID=key", "pyiceberg_catalog__prod__uri=https://env", "PYICEBERG_CATALOG__MY_OWN__WAREHOUSE=w=1",
			"PYICEBERG_MAX_WORKERS=3", "PYICEBERG_CATALOG__PROD__CREDENTIAL=", "OTHER=1"},
	}
	for _, c := range []struct {
		name string
		want map[string]string
	}{
		{"prod", map[string]string{"uri": "https://env", "credential": "id:secret", "s3.path-style-access": "true", "s3.endpoint": "http://s3", "s3.region": "eu-1",
			"s3.access-key-id": "key", "ssl.client.cert": "/c", "ssl.client.key": "/k", "port": "0123"}},
		{"PLAIN", map[string]string{"uri": "sqlite:////x.db"}},
		{"my-own", map[string]string{"warehouse": "w=1"}},
		{"golang", map[string]string{"type": "glue", "aws-profile": "me", "client.profile-name": "me", "rest.sigv4-enabled": "true", "rest.signing-region": "r"}},
	} {
		if got, err := user.find(c.name); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
	if _, err := user.find("elsewhere"); !errors.Is(err, errNoCatalog) || !strings.Contains(err.Error(), "golang, my-own, plain, prod") {
		t.Errorf("of a file that does not count: %v", err)
	}
	for _, text := range []string{"catalog: {x: [secret}", "catalog: {x: secret}"} {
		writeFile(t, other, pyicebergFile, text)
		_, err := catalogConfigs{pyiceberg: []string{other}}.find("x")
		if err == nil || errors.Is(err, errNoCatalog) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	writeFile(t, other, pyicebergFile, "")
	if _, err := (catalogConfigs{pyiceberg: []string{other}}).find("x"); !errors.Is(err, errNoCatalog) {
		t.Errorf("an empty file: %v", err)
	}
}

func TestWhatSOURCENames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeFile(t, dir, pyicebergFile, "catalog: {prod: {uri: http://x}, there: {uri: http://x}, with.dot: {uri: http://y}}")
	user := catalogConfigs{pyiceberg: []string{dir}}
	if err := os.Mkdir("there", 0o755); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"uri": "http://flag", "token": "t"}
	for _, c := range []struct {
		src   string
		given map[string]string
		uri   string
		err   error
	}{
		{"prod", nil, "http://x", nil},
		{"prod", given, "http://flag", nil},
		{"new", given, "http://flag", nil},
		{"new", map[string]string{"token": "t"}, "", errNoCatalog},
		{"with.dot", nil, "http://y", nil},
		{"there", given, "", nil},
		{"./none", nil, "", nil},
		{"none.json", nil, "", nil},
		{"s3://b/k", given, "", nil},
	} {
		props, err := catalogOf(c.src, c.given, user)
		if !errors.Is(err, c.err) || c.err == nil && err != nil || props["uri"] != c.uri || (props == nil) != (c.uri == "") {
			t.Errorf("%s with %v: %v, %v", c.src, c.given, props, err)
		}
	}
}
