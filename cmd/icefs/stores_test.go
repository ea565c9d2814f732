package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/icefs/icefs/internal/source/storetest"
)

const (
	testKeyID  = "AKIAFORTESTS"
	testSecret = "a-secret-that-nobody-may-see"
)

// aStore is a store with the tables of testdata/object-store, behind a front, and
// the environment to reach it.
func aStore(t *testing.T) (front *storetest.Front, endpoint string) {
	t.Helper()
	server := storetest.NewServer(t)
	server.PutDir(t, "icefs-bucket", "../../testdata/object-store/icefs-bucket")
	front, err := storetest.NewFront(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(front)
	t.Cleanup(h.Close)
	aStoreLogin(t)
	return front, h.URL
}

// aStoreLogin is the environment to reach a store.
func aStoreLogin(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": testKeyID, "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_REGION": "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
}

func runIcefs(t *testing.T, args ...string) (string, string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

const s3Table = "sales/s3_v2"

// A bucket, a table in it and a metadata file give the same rows; so does the
// same table on a disk, where its paths are those of the store.
func TestObjectStore(t *testing.T) {
	_, endpoint := aStore(t)
	cat := func(args ...string) string {
		t.Helper()
		out, errs, code := runIcefs(t, append([]string{"cat", "--cache-dir", "", "--s3-endpoint", endpoint}, args...)...)
		if code != 0 {
			t.Fatalf("%v: %s", args, errs)
		}
		return out
	}
	want := cat("../../testdata/object-store/icefs-bucket", "wh/"+s3Table+"/current/data.jsonl")
	if len(want) < 1000 {
		t.Fatalf("only %d bytes", len(want))
	}
	metadata, err := filepath.Glob("../../testdata/object-store/icefs-bucket/wh/" + s3Table + "/metadata/*.metadata.json")
	if err != nil || len(metadata) == 0 {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"s3://icefs-bucket", "wh/" + s3Table + "/current/data.jsonl"},
		{"s3a://icefs-bucket/wh/", s3Table + "/current/data.jsonl"},
		{"s3://icefs-bucket/wh/" + s3Table, "current/data.jsonl"},
		{"s3://icefs-bucket/wh/" + s3Table + "/metadata/" + filepath.Base(metadata[len(metadata)-1]), "current/data.jsonl"},
	} {
		if got := cat(args...); got != want {
			t.Errorf("%v: %d bytes, want %d", args, len(got), len(want))
		}
	}
	if _, errs, code := runIcefs(t, "ls", "--cache-dir", "", "--s3-endpoint", endpoint, "s3://icefs-bucket/none"); code == 0 || !strings.Contains(errs, "s3://icefs-bucket/none") {
		t.Errorf("a folder that is not there: %d, %s", code, errs)
	}
	out, errs, code := runIcefs(t, "verify", "--cache-dir", "", "--s3-endpoint", endpoint, "s3://icefs-bucket/wh")
	if code != 0 {
		t.Errorf("verify: %s%s", out, errs)
	}
}

// A warehouse on a disk does not lead to a store, though its metadata names one.
func TestDiskDoesNotLeadToStore(t *testing.T) {
	front, endpoint := aStore(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/object-store/icefs-bucket/wh/sales")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "s3_v2", "data")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := runIcefs(t, "cat", "--cache-dir", "", "--s3-endpoint", endpoint, dir, "s3_v2/current/data.csv"); code == 0 {
		t.Error("rows of files that are not there")
	} else if n := front.Counts().Requests; n != 0 {
		t.Errorf("%d requests were made: %s", n, errs)
	}
	// An allowed path does.
	if out, errs, code := runIcefs(t, "cat", "--cache-dir", "", "--s3-endpoint", endpoint, "--allow-path", "s3://icefs-bucket/wh", dir, "s3_v2/current/data.csv"); code != 0 || len(out) < 100 {
		t.Errorf("with --allow-path: %s", errs)
	}
}

// Another mount finds what was read in the cache folder: it asks for names and
// versions alone. No secret is in the command line, the mount table, the log or
// the files about the mount.
func TestStoreMount(t *testing.T) {
	front, endpoint := aStore(t)
	cache, log := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "log")
	flags := []string{"--cache-dir", cache, "--log-file", log, "--log-level", "debug", "--s3-endpoint", endpoint, "--timeout", "2s"}
	var first []byte
	for i := range 2 {
		t.Run([]string{"cold", "warm"}[i], func(t *testing.T) {
			dir := startMount(t, "s3://icefs-bucket/wh", "256", flags...)
			before := front.Counts()
			var all []byte
			for _, name := range []string{"data.parquet", "data.csv"} {
				b, err := os.ReadFile(filepath.Join(dir, s3Table, "current", name))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, b...)
			}
			made := front.Counts().Since(before)
			if i == 0 {
				first = all
				if made.Gets == 0 {
					t.Error("nothing was fetched: the front does not count")
				}
			} else if made.Gets != 0 || !bytes.Equal(all, first) {
				t.Errorf("the second mount made %+v", made)
			}
			told, err := os.ReadFile(filepath.Join(dir, ".icefs", "status.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"/proc/self/mountinfo", log, filepath.Join(dir, ".icefs", "metrics")} {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				told = append(told, b...)
			}
			for _, args := range glob(t, "/proc/[0-9]*/cmdline") {
				b, _ := os.ReadFile(args) // of a process that has ended: empty
				told = append(told, b...)
			}
			for _, hidden := range []string{testKeyID, testSecret} {
				if bytes.Contains(told, []byte(hidden)) {
					t.Errorf("%s is told", hidden)
				}
			}
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return names
}

// In an outage a read waits up to the timeout and fails; afterwards the same
// mount serves again.
func TestStoreOutage(t *testing.T) {
	front, endpoint := aStore(t)
	dir := startMount(t, "s3://icefs-bucket/wh", "256", "--s3-endpoint", endpoint, "--timeout", "2s", "--refresh", "1h")
	name := filepath.Join(dir, s3Table, "current", "data.csv")
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		t.Fatal(err)
	}
	front.Set(storetest.Faults{Down: true})
	if _, err := os.ReadFile(name); err == nil || !strings.Contains(err.Error(), syscall.ETIMEDOUT.Error()) {
		t.Errorf("in the outage: %v", err)
	}
	front.Set(storetest.Faults{})
	if b, err := os.ReadFile(name); err != nil || len(b) < 100 {
		t.Errorf("after it: %v", err)
	}
}

func TestSecretProperties(t *testing.T) {
	for _, name := range []string{"s3.secret-access-key", "s3.session-token", "s3.access-key-id", "gcs.oauth2.token", "gcs.jsonkey",
		"adls.auth.shared-key.account.key", "adls.sas-token.acc", "adls.connection-string.acc", "client.secret-access-key"} {
		if _, errs, code := runIcefs(t, "ls", "--property", name+"=x", "."); code != exitUsage || !strings.Contains(errs, "--properties-file") {
			t.Errorf("%s: %d, %s", name, code, errs)
		}
	}
	for _, name := range []string{"s3.endpoint", "gcs.keypath", "gcs.no-auth", "adls.auth.shared-key.account.name"} {
		if isSecret(name) {
			t.Errorf("%s is taken for a secret", name)
		}
	}
}

func TestPropertiesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "properties")
	if err := os.WriteFile(file, []byte("# a comment\n\n s3.region = eu-west-1 \ns3.endpoint=http://file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := storeOptions{properties: map[string]string{"s3.endpoint": "http://flag"}, file: file}
	if _, err := o.read(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := o.read()
	if err != nil || p["s3.region"] != "eu-west-1" || p["s3.endpoint"] != "http://flag" || len(p) != 2 {
		t.Errorf("%v, %v", p, err)
	}
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.read(); err == nil || !strings.Contains(err.Error(), "line 1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a line without a value: %v", err)
	}
}
