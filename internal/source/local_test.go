package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func newLocal(t *testing.T, max int, roots ...string) *Local {
	t.Helper()
	l, err := NewLocal(NewPool(max), roots...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLocalPath(t *testing.T) {
	for _, c := range []struct {
		location, path string
		ok             bool
	}{
		{"/a/b", "/a/b", true},
		{"file:/a/b", "/a/b", true},
		{"file:///a/b", "/a/b", true},
		{"/a//b/./c/../d", "/a/b/d", true},
		{"file:///a%20b/100%/x+y#z?q", "/a%20b/100%/x+y#z?q", true},
		{"/../../a", "/a", true},
		{"file:////a", "/a", true},
		{"a/b", "", false},
		{"file:a/b", "", false},
		{"file://host/a", "", false},
		{"file://", "", false},
		{"file:", "", false},
		{"", "", false},
		{"s3://bucket/key", "", false},
	} {
		path, ok := LocalPath(c.location)
		if path != c.path || ok != c.ok {
			t.Errorf("LocalPath(%q) = %q, %v; want %q, %v", c.location, path, ok, c.path, c.ok)
		}
	}
}

func TestLocalStaysBelowItsRoots(t *testing.T) {
	base := t.TempDir()
	inside := filepath.Join(base, "in")
	secret := write(t, filepath.Join(base, "secret"), []byte("secret"))
	write(t, filepath.Join(base, "in2", "x"), []byte("neighbour"))
	write(t, filepath.Join(inside, "d", "x"), []byte("hello"))
	for link, target := range map[string]string{
		"out":      secret,
		"up":       "..",
		"relative": "../secret",
		"ok":       "d/x",
	} {
		if err := os.Symlink(target, filepath.Join(inside, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(inside, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLocal(t, 0, inside)
	for _, c := range []struct {
		location string
		want     error
	}{
		{inside + "/d/x", nil},
		{"file:" + inside + "/d/x", nil},
		{"file://" + inside + "/d/x", nil},
		{inside + "/d/../d/x", nil},
		{inside + "/ok", nil},
		{inside + "/../secret", ErrOutside},
		{inside + "/d/../../secret", ErrOutside},
		{secret, ErrOutside},
		{base + "/in2/x", ErrOutside},
		{inside + "/out", ErrOutside},
		{inside + "/relative", ErrOutside},
		{inside + "/up/secret", ErrOutside},
		{inside + "/missing", ErrNotFound},
		{inside + "/d/x/below", ErrRead},
		{inside + "/d", ErrRead},
		{inside + "/fifo", ErrRead},
		{"s3://bucket/x", ErrUnsupported},
		{"d/x", ErrUnsupported},
		{inside + "/d/x\x00", ErrRead},
	} {
		o, err := l.Open(context.Background(), c.location)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("Open(%q): %v, want %v", c.location, err, c.want)
		}
		if err == nil && o.Location() != c.location {
			t.Errorf("Location() = %q, want %q", o.Location(), c.location)
		}
	}
}

func TestLocalKnowsARootByBothItsNames(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(base, "real")
	write(t, filepath.Join(real, "x"), []byte("x"))
	link := filepath.Join(base, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	l := newLocal(t, 0, link)
	for _, dir := range []string{link, real} {
		if _, err := l.Open(context.Background(), dir+"/x"); err != nil {
			t.Error(err)
		}
	}
	if got := l.Roots(); len(got) != 1 || got[0] != link {
		t.Errorf("Roots() = %v", got)
	}
	if _, err := l.Open(context.Background(), base+"/y"); !errors.Is(err, ErrOutside) {
		t.Error(err)
	}
	wider, err := l.With(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wider.Open(context.Background(), base+"/y"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestReadAt(t *testing.T) {
	ctx := context.Background()
	content := bytes.Repeat([]byte("0123456789"), 1000)
	path := write(t, filepath.Join(t.TempDir(), "x"), content)
	l := newLocal(t, 0, filepath.Dir(path))
	o, err := l.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if o.Size() != int64(len(content)) {
		t.Fatalf("Size() = %d", o.Size())
	}
	for _, c := range []struct{ off, length int64 }{{0, 10000}, {3, 5}, {9999, 1}, {10000, 0}, {0, 0}} {
		p := make([]byte, c.length)
		n, err := o.ReadAt(ctx, p, c.off)
		if err != nil || int64(n) != c.length || !bytes.Equal(p, content[c.off:c.off+c.length]) {
			t.Errorf("ReadAt(%d+%d): %d, %v", c.off, c.length, n, err)
		}
	}
	for _, c := range []struct{ off, length int64 }{{0, 10001}, {9999, 2}, {10001, 0}, {-1, 1}, {1 << 62, 1}} {
		if n, err := o.ReadAt(ctx, make([]byte, c.length), c.off); !errors.Is(err, ErrTruncated) || n != 0 {
			t.Errorf("ReadAt(%d+%d): %d, %v, want ErrTruncated", c.off, c.length, n, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := o.ReadAt(ended, make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadAt after cancel: %v", err)
	}
	if _, err := l.Open(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Open after cancel: %v", err)
	}
}

func TestFileCutShortInPlace(t *testing.T) {
	ctx := context.Background()
	path := write(t, filepath.Join(t.TempDir(), "x"), make([]byte, 100))
	o, err := newLocal(t, 0, filepath.Dir(path)).Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(ctx, make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 50); err != nil {
		t.Fatal(err)
	}
	if n, err := o.ReadAt(ctx, make([]byte, 20), 40); !errors.Is(err, ErrTruncated) || n != 10 {
		t.Errorf("read over the end: %d, %v", n, err)
	}
}

// TestFileWrittenToInPlace: what is read of a file that stayed open counts only
// while nobody has written to it, and nothing does after that.
func TestFileWrittenToInPlace(t *testing.T) {
	ctx := context.Background()
	path := write(t, filepath.Join(t.TempDir(), "x"), []byte("first"))
	stamp := time.Unix(1_700_000_000, 123456789)
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	o, err := newLocal(t, 0, filepath.Dir(path)).Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 5)
	if _, err := o.ReadAt(ctx, p, 0); err != nil || string(p) != "first" {
		t.Fatalf("%q, %v", p, err)
	}
	_, release, err := o.(Filer).Borrow()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := release(); !errors.Is(err, ErrChanged) {
		t.Errorf("a descriptor borrowed before: %v", err)
	}
	if n, err := o.ReadAt(ctx, p, 0); n != 0 || !errors.Is(err, ErrChanged) {
		t.Errorf("read again: %d, %v", n, err)
	}
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	if n, err := o.ReadAt(ctx, p, 0); n != 0 || !errors.Is(err, ErrChanged) {
		t.Errorf("with its time put back: %d, %v", n, err)
	}
	if _, _, err := o.(Filer).Borrow(); !errors.Is(err, ErrChanged) {
		t.Errorf("borrowed again: %v", err)
	}
}

func TestReplacedFileIsChangedForGood(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "x"), []byte("first"))
	stamp := time.Unix(1_700_000_000, 123456789)
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	l := newLocal(t, 0, dir)
	o, err := l.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 5)
	if _, err := o.ReadAt(ctx, p, 0); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "kept")
	if err := os.Rename(path, kept); err != nil {
		t.Fatal(err)
	}
	write(t, path, []byte("other"))
	if err := os.Chtimes(path, stamp, stamp); err != nil { // same size, same time, other inode
		t.Fatal(err)
	}
	if _, err := o.ReadAt(ctx, p, 0); err != nil || string(p) != "first" {
		t.Errorf("the open descriptor reads %q, %v", p, err)
	}
	l.pool.CloseIdle()
	if _, err := o.ReadAt(ctx, p, 0); !errors.Is(err, ErrChanged) {
		t.Errorf("after reopening: %v, want ErrChanged", err)
	}
	if _, err := o.(Filer).OpenFile(); !errors.Is(err, ErrChanged) {
		t.Errorf("OpenFile: %v, want ErrChanged", err)
	}
	if err := os.Rename(kept, path); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(ctx, p, 0); !errors.Is(err, ErrChanged) {
		t.Errorf("after the old file came back: %v, want ErrChanged still", err)
	}
	again, err := l.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.ReadAt(ctx, p, 0); err != nil || string(p) != "first" {
		t.Errorf("a new object reads %q, %v", p, err)
	}
	if again.Version() != o.Version() {
		t.Errorf("versions of one file differ: %q, %q", again.Version(), o.Version())
	}
}

func TestVersionTellsFilesApart(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "x"), []byte("first"))
	l := newLocal(t, 0, dir)
	first, err := l.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	second, err := l.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if first.Version() == second.Version() {
		t.Error("a touched file has the same version")
	}
	pinned := Pinned(l)
	if _, err := pinned.Open(ctx, path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("longer than before"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := pinned.Open(ctx, path); !errors.Is(err, ErrChanged) {
			t.Errorf("pinned Open of a replaced file: %v, want ErrChanged", err)
		}
	}
}

func TestPoolBoundsDescriptors(t *testing.T) {
	const files, objects, limit = 50, 250, 8
	ctx := context.Background()
	dir := t.TempDir()
	l := newLocal(t, limit, dir)
	var held []Object
	for i := range objects {
		path := filepath.Join(dir, fmt.Sprint(i%files))
		if i < files {
			write(t, path, fmt.Appendf(nil, "%04d", i))
		}
		o, err := l.Open(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, o)
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < objects*4; i += 3 {
				p := make([]byte, 4)
				o := held[i%objects]
				if _, err := o.ReadAt(ctx, p, 0); err != nil || string(p) != fmt.Sprintf("%04d", i%objects%files) {
					t.Errorf("object %d reads %q, %v", i%objects, p, err)
					return
				}
				if open := l.pool.Open(); open > limit+4 {
					t.Errorf("%d descriptors open", open)
					return
				}
			}
		})
	}
	wg.Wait()
	if open := l.pool.Open(); open > limit {
		t.Errorf("%d descriptors stay open, limit %d", open, limit)
	}
	l.pool.CloseIdle()
	if open := l.pool.Open(); open != 0 {
		t.Errorf("%d descriptors open after CloseIdle", open)
	}
}

func TestObjectsOfOneFileShareADescriptor(t *testing.T) {
	ctx := context.Background()
	path := write(t, filepath.Join(t.TempDir(), "x"), []byte("x"))
	l := newLocal(t, 0, filepath.Dir(path))
	for range 10 {
		o, err := l.Open(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.ReadAt(ctx, make([]byte, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	if open := l.pool.Open(); open != 1 {
		t.Errorf("%d descriptors open, want 1", open)
	}
}

func TestOpenFileIsTheCallers(t *testing.T) {
	ctx := context.Background()
	path := write(t, filepath.Join(t.TempDir(), "x"), []byte("hello"))
	l := newLocal(t, 0, filepath.Dir(path))
	o, err := l.Open(ctx, "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := o.(Filer).OpenFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if l.pool.Open() != 0 {
		t.Error("OpenFile took a descriptor of the pool")
	}
	p := make([]byte, 5)
	if _, err := f.ReadAt(p, 0); err != nil || string(p) != "hello" {
		t.Errorf("%q, %v", p, err)
	}
}

func TestReadDir(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	want := map[string]bool{}
	for i := range readDirBatch + 10 {
		name := fmt.Sprint("f", i)
		write(t, filepath.Join(dir, name), nil)
		want[name] = true
	}
	l := newLocal(t, 0, dir)
	if err := l.ReadDir(ctx, dir, func(d os.DirEntry) bool { delete(want, d.Name()); return true }); err != nil || len(want) != 0 {
		t.Errorf("%v, %d entries missing", err, len(want))
	}
	n := 0
	if err := l.ReadDir(ctx, dir, func(os.DirEntry) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("%v, %d entries after false", err, n)
	}
	if err := l.ReadDir(ctx, dir+"/f0", func(os.DirEntry) bool { return true }); !errors.Is(err, ErrRead) {
		t.Errorf("of a file: %v", err)
	}
	if err := l.ReadDir(ctx, dir+"/none", func(os.DirEntry) bool { return true }); !errors.Is(err, ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if !l.IsDir(dir) || l.IsDir(dir+"/f0") || l.IsDir("/") || !l.Exists(dir+"/f0") || l.Exists(dir) {
		t.Error("IsDir or Exists is wrong")
	}
}
