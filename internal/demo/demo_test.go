package demo

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCreateRefusesFullFolder(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "mine")
	if err := os.WriteFile(kept, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, io.Discard); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("got %v, want ErrNotEmpty", err)
	}
	if err := Create(kept, io.Discard); err == nil {
		t.Error("a file was taken for a folder")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder was written to: %v", entries)
	}
}

// TestCreateIsTheSameEveryTime compares all files of two demos but those that
// hold the folder's name.
func TestCreateIsTheSameEveryTime(t *testing.T) {
	sums := func() map[string][32]byte {
		dir := filepath.Join(t.TempDir(), "new")
		var out bytes.Buffer
		if err := Create(dir, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "icefs mount "+dir) {
			t.Error("the guide does not say how to mount the demo")
		}
		sums := map[string][32]byte{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			body, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			if bytes.Contains(body, []byte(dir)) || strings.Contains(rel, "metadata") || strings.Contains(rel, "deletes") {
				body = nil
			}
			sums[rel] = sha256.Sum256(body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return sums
	}
	a, b := sums(), sums()
	if len(a) < 50 {
		t.Fatalf("only %d files", len(a))
	}
	for path, sum := range a {
		if b[path] != sum {
			t.Errorf("%s differs", path)
		}
	}
}
