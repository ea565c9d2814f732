package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// shown is what a reader gets of one path of a mount.
type shown struct {
	mode   os.FileMode // type bits
	target string      // of a link
	data   []byte      // of a file
	err    error       // why there is no more of it
	wrong  string      // what no failure explains
}

// wholeTree is a whole mount, but for .icefs, by path below it.
type wholeTree map[string]shown

// readTree reads everything below a folder.
func readTree(dir string) wholeTree {
	t := wholeTree{}
	t.walk(dir, "")
	return t
}

func (t wholeTree) walk(root, path string) {
	entries, err := os.ReadDir(filepath.Join(root, path))
	t[path] = shown{mode: os.ModeDir, err: err}
	for _, e := range entries {
		if e.Name() == ".icefs" {
			continue
		}
		p := filepath.Join(path, e.Name())
		if e.IsDir() {
			t.walk(root, p)
			continue
		}
		t[p] = readShown(filepath.Join(root, p), e.Type())
	}
}

// readShown reads a link or a file.
func readShown(name string, mode os.FileMode) shown {
	s := shown{mode: mode}
	if mode&os.ModeSymlink != 0 {
		s.target, s.err = os.Readlink(name)
		return s
	}
	var f *os.File
	if f, s.err = os.Open(name); s.err != nil {
		return s
	}
	defer f.Close()
	var info os.FileInfo
	if info, s.err = f.Stat(); s.err != nil {
		return s
	}
	s.data, s.err = io.ReadAll(f)
	if s.err == nil && int64(len(s.data)) != info.Size() {
		s.wrong = fmt.Sprintf("%d bytes, and stat says %d", len(s.data), info.Size())
	}
	return s
}

// failed returns the paths that cannot be read as a whole, in order.
func (t wholeTree) failed() (paths []string) {
	for p, s := range t {
		if s.err != nil {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// difference is a path that neither fails nor is as it should be.
type difference struct{ path, what string }

func (d difference) String() string { return d.path + ": " + d.what }

// differences compares a mount with a clean one. What is below a folder that
// cannot be listed, or in that of a table that cannot be loaded, may be missing.
func (t wholeTree) differences(clean wholeTree) (list []difference) {
	add := func(path, format string, args ...any) {
		list = append(list, difference{path, fmt.Sprintf(format, args...)})
	}
	for p, want := range clean {
		got, ok := t[p]
		switch {
		case !ok && !t.excused(p):
			add(p, "is gone")
		case !ok || got.err != nil:
		case got.wrong != "":
			add(p, "%s", got.wrong)
		case got.mode != want.mode:
			add(p, "is %v, not %v", got.mode, want.mode)
		case got.target != want.target:
			add(p, "leads to %s, not %s", got.target, want.target)
		case !bytes.Equal(got.data, want.data):
			add(p, "has other bytes, from %d of %d on", firstDifference(got.data, want.data), len(want.data))
		}
	}
	for p := range t {
		if _, ok := clean[p]; !ok && filepath.Base(p) != "error.txt" {
			add(p, "is new")
		}
	}
	slices.SortFunc(list, func(a, b difference) int { return strings.Compare(a.path, b.path) })
	return list
}

// excused reports whether a folder above a path says why it is not there.
func (t wholeTree) excused(path string) bool {
	for p := path; p != ""; {
		if p = filepath.Dir(p); p == "." {
			p = ""
		}
		if s, ok := t[p]; ok && s.err != nil {
			return true
		}
		if _, ok := t[filepath.Join(p, "error.txt")]; ok {
			return true
		}
	}
	return false
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// errnoOf is the errno of a failure.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return 0
	}
	return errno
}

// memory is an object in memory.
type memory []byte

var _ source.Object = memory(nil)

func (m memory) Size() int64      { return int64(len(m)) }
func (m memory) Version() string  { return "" }
func (m memory) Location() string { return "memory" }

func (m memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(m)) {
		return 0, source.ErrTruncated
	}
	return copy(p, m[off:]), nil
}

// eachPage calls visit with every page of a Parquet file, as a reader meets them
// that verifies checksums.
func eachPage(file []byte, visit func(p *pqfile.RawPage)) error {
	ctx := context.Background()
	f, err := pqfile.Open(ctx, memory(file), pqfile.Options{})
	if err != nil {
		return err
	}
	for g := range f.Metadata.RowGroups {
		for _, leaf := range f.Schema.Leaves {
			c, err := f.Chunk(g, leaf)
			if err != nil {
				return err
			}
			for scan := c.Scan(c.Start, c.Start+c.Length); ; {
				p, err := scan.Next(ctx)
				if err == io.EOF {
					break
				}
				if err != nil {
					return err
				}
				visit(p)
			}
		}
	}
	return nil
}

// span is a range of bytes.
type span struct{ from, to int64 }

// guarded returns the ranges of a source file whose damage something tells: the
// pages of Parquet files with checksums, and Puffin files, of which nothing but
// deletion vectors is read. unguarded are the pages without checksums.
func guarded(t *testing.T, name string) (guarded, unguarded []span) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	switch filepath.Ext(name) {
	case ".puffin":
		return []span{{0, int64(len(b))}}, nil
	case ".parquet":
		err := eachPage(b, func(p *pqfile.RawPage) {
			s := span{p.Offset + int64(p.HeaderLen), p.Offset + int64(p.HeaderLen) + int64(len(p.Body))}
			if p.Header.CRC != nil {
				guarded = append(guarded, s)
			} else {
				unguarded = append(unguarded, s)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return guarded, unguarded
}

func within64(spans []span, at int64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return at >= s.from && at < s.to })
}
