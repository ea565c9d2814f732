package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func openDisk(t *testing.T, dir string, opt DiskOptions) *Disk {
	t.Helper()
	d, err := OpenDisk(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// noise returns n bytes that differ for each seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(b)
	return b
}

func TestDiskRoundTrip(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	sizes := []int{0, 1, 100, blockLen - 1, blockLen, blockLen + 1, 3 * blockLen, 40*blockLen + 17}
	for i, n := range sizes {
		d.Put(fmt.Sprint("key", n), noise(uint64(i), n))
	}
	again := openDisk(t, dir, DiskOptions{}) // as another process would
	for i, n := range sizes {
		v, ok := again.Get(fmt.Sprint("key", n))
		if !ok || !bytes.Equal(v, noise(uint64(i), n)) {
			t.Errorf("value of %d bytes: ok %v, %d bytes back", n, ok, len(v))
		}
	}
	if _, ok := again.Get("key"); ok {
		t.Error("a key that was never put was found")
	}
	d.Put("key1", []byte("new"))
	if v, ok := again.Get("key1"); !ok || string(v) != "new" {
		t.Errorf("overwritten value = %q, %v", v, ok)
	}
	v, _ := d.Get("key1")
	v[0] = 'X'
	if v, _ := d.Get("key1"); string(v) != "new" {
		t.Error("Get gave out shared memory")
	}
}

func TestDiskModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d := openDisk(t, dir, DiskOptions{})
	d.Put("k", []byte("v"))
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// An empty directory that others may enter is closed to them.
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	openDisk(t, open, DiskOptions{})
	if fi, err := os.Stat(open); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

func TestDiskRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDisk(file, DiskOptions{}); err == nil {
		t.Error("a file was taken for a directory")
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDisk(home, DiskOptions{}); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("directory with other files: %v", err)
	}
	// Someone else's directory: made so where the test may, or the root folder.
	foreign := t.TempDir()
	if err := os.Chown(foreign, 12345, 12345); err != nil {
		foreign = "/"
	}
	if _, err := OpenDisk(foreign, DiskOptions{}); !errors.Is(err, ErrForeign) {
		t.Errorf("foreign directory: %v", err)
	}
	if os.Geteuid() == 0 {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(t.TempDir(), link); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(link, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDisk(link, DiskOptions{}); !errors.Is(err, ErrForeign) {
			t.Errorf("another user's link: %v", err)
		}
	}
}

// entryFile returns the only entry's file.
func entryFile(t *testing.T, dir string) string {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil || len(m) != 1 {
		t.Fatalf("entries: %v, %v", m, err)
	}
	return m[0]
}

func TestDiskDetectsEveryDamagedByte(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	value := noise(1, 300)
	d.Put("k", value)
	name := entryFile(t, dir)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, bad []byte) {
		t.Helper()
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if v, ok := d.Get("k"); ok {
			t.Fatalf("%s: damage not found, %d bytes given", what, len(v))
		}
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: damaged entry is still there: %v", what, err)
		}
	}
	for i := range good {
		for _, flip := range []byte{1, 0x80, 0xFF} {
			bad := bytes.Clone(good)
			bad[i] ^= flip
			check(fmt.Sprintf("byte %d xor %#x", i, flip), bad)
		}
		check(fmt.Sprintf("cut to %d bytes", i), good[:i])
		torn := bytes.Clone(good)
		clear(torn[i:])
		check(fmt.Sprintf("zeros from %d", i), torn)
	}
	check("a byte appended", append(bytes.Clone(good), 0))
	if err := os.WriteFile(name, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, ok := d.Get("k"); !ok || !bytes.Equal(v, value) {
		t.Error("the good bytes are refused")
	}
}

func TestDiskDetectsMisplacedBlocks(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	d.Put("k", noise(2, 3*blockLen))
	name := entryFile(t, dir)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first, second := b[:blockLen], b[blockLen:2*blockLen]
	swap := func(first, second []byte) {
		kept := bytes.Clone(first)
		copy(first, second)
		copy(second, kept)
	}
	swap(first, second)
	swap(b[3*blockLen:3*blockLen+4], b[3*blockLen+4:3*blockLen+8]) // with their checksums
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Get("k"); ok {
		t.Error("swapped blocks were not noticed")
	}
	// An entry under another key's name.
	d.Put("a", []byte("value of a"))
	from := entryFile(t, dir)
	to := filepath.Join(dir, fileOf(hashOf("b")))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if v, ok := d.Get("b"); ok {
		t.Errorf("b gives %q", v)
	}
}

func TestEntryReadAt(t *testing.T) {
	d := openDisk(t, t.TempDir(), DiskOptions{})
	value := noise(3, 20*blockLen+77)
	w := d.Create("k")
	for rest := value; len(rest) > 0; {
		n := min(len(rest), 10_007)
		if k, err := w.Write(rest[:n]); k != n || err != nil {
			t.Fatal(k, err)
		}
		rest = rest[n:]
	}
	if _, ok := d.Open("k"); ok {
		t.Error("visible before Commit")
	}
	if !w.Commit() {
		t.Fatal("not committed")
	}
	w.Close()
	e, ok := d.Open("k")
	if !ok || e.Size() != int64(len(value)) {
		t.Fatalf("Open: %v", ok)
	}
	defer e.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		off := r.IntN(len(value) + 10)
		p := make([]byte, r.IntN(3*blockLen))
		n, err := e.ReadAt(p, int64(off))
		want := value[min(off, len(value)):min(off+len(p), len(value))]
		if !bytes.Equal(p[:n], want) || (n < len(p)) != (err == io.EOF) || (n == len(p) && err != nil) {
			t.Fatalf("ReadAt(%d bytes, %d) = %d, %v", len(p), off, n, err)
		}
	}
	if all, err := io.ReadAll(io.NewSectionReader(e, 0, e.Size())); err != nil || !bytes.Equal(all, value) {
		t.Errorf("whole value: %v", err)
	}
	if _, err := e.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("negative offset accepted")
	}
}

func TestEntryDamageIsLocal(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	value := noise(4, 5*blockLen)
	d.Put("k", value)
	e, ok := d.Open("k")
	if !ok {
		t.Fatal("not found")
	}
	defer e.Close()
	f, err := os.OpenFile(entryFile(t, dir), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{value[3*blockLen] ^ 1}, 3*blockLen); err != nil {
		t.Fatal(err)
	}
	f.Close()
	p := make([]byte, 100)
	if _, err := e.ReadAt(p, 3*blockLen-100); err != nil || !bytes.Equal(p, value[3*blockLen-100:3*blockLen]) {
		t.Errorf("before the damage: %v", err)
	}
	if n, err := e.ReadAt(p, 3*blockLen-50); !errors.Is(err, errDamaged) || n > 50 {
		t.Errorf("across the damage: %d, %v", n, err)
	}
	if _, ok := d.Get("k"); ok {
		t.Error("the damaged entry is still served")
	}
}

func TestWriterAborted(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	w := d.Create("k")
	w.Write(noise(5, 2*blockLen))
	w.Close()
	if w.Commit() {
		t.Error("committed after Close")
	}
	if _, ok := d.Get("k"); ok {
		t.Error("an aborted value is visible")
	}
	if m, _ := filepath.Glob(filepath.Join(dir, tempDir, "*")); len(m) != 0 {
		t.Errorf("left behind: %v", m)
	}
}

// diskBytes is what the entries of a store take.
func diskBytes(t *testing.T, dir string) (bytes int64, files int) {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range m {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		bytes += charged(fi.Size())
	}
	return bytes, len(m)
}

func TestDiskSizeBound(t *testing.T) {
	const bound = 1 << 20
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{MaxBytes: bound})
	for i := range 300 {
		d.Put(fmt.Sprint(i), noise(uint64(i), 1000+i*50))
		if n, _ := diskBytes(t, dir); n > bound {
			t.Fatalf("after %d values: %d bytes", i+1, n)
		}
	}
	if n, _ := diskBytes(t, dir); n < bound/2 {
		t.Errorf("only %d bytes kept", n)
	}
	// A store opened on what others left counts it.
	small := openDisk(t, dir, DiskOptions{MaxBytes: bound / 4})
	small.Put("new", []byte("v"))
	if n, files := diskBytes(t, dir); n > bound/4 || files == 0 {
		t.Errorf("%d bytes in %d files", n, files)
	}
	if _, ok := small.Get("new"); !ok {
		t.Error("the newest value was evicted")
	}
	small.Put("huge", noise(9, bound))
	if _, ok := small.Get("huge"); ok {
		t.Error("a value larger than the store was kept")
	}
	if _, ok := small.Get("new"); !ok {
		t.Error("a value that could not be kept evicted another")
	}
}

func TestDiskEvictsOldestAccess(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{MaxBytes: 40 * diskBlock})
	for i := range 30 {
		key := fmt.Sprint(i)
		d.Put(key, []byte(key))
		old := time.Now().Add(-time.Hour + time.Duration(i)*time.Second)
		if err := os.Chtimes(filepath.Join(dir, fileOf(hashOf(key))), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := d.Get("0"); !ok { // renews its access time
		t.Fatal("0 is gone")
	}
	d.Put("big", noise(1, 15*diskBlock))
	if _, ok := d.Get("0"); !ok {
		t.Error("an entry just read was evicted")
	}
	if _, ok := d.Get("1"); ok {
		t.Error("the entry of the oldest access was kept")
	}
	if _, ok := d.Get("29"); !ok {
		t.Error("the newest old entry was evicted")
	}
}

func TestDiskRemovesDeadTemporaries(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	if err := os.Mkdir(filepath.Join(dir, tempDir), 0o700); err != nil {
		t.Fatal(err)
	}
	dead, live := filepath.Join(dir, tempDir, "dead"), filepath.Join(dir, tempDir, "live")
	for _, name := range []string{dead, live} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * tempAge)
	if err := os.Chtimes(dead, old, old); err != nil {
		t.Fatal(err)
	}
	d.Put("k", []byte("v"))
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dead file: %v", err)
	}
	if _, err := os.Stat(live); err != nil {
		t.Errorf("live file: %v", err)
	}
}

func TestDiskConcurrent(t *testing.T) {
	dir := t.TempDir()
	const bound = 64 * diskBlock
	var wg sync.WaitGroup
	for g := range 8 {
		d := openDisk(t, dir, DiskOptions{MaxBytes: bound})
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			for range 200 {
				i := r.Uint64N(40)
				key, want := fmt.Sprint("k", i), noise(i, int(i)*300)
				if v, ok := d.Get(key); ok && !bytes.Equal(v, want) {
					t.Errorf("%s: wrong value", key)
				}
				d.Put(key, want)
			}
		})
	}
	wg.Wait()
	if n, _ := diskBytes(t, dir); n > 2*bound {
		t.Errorf("%d bytes of %d", n, bound)
	}
	if m, _ := filepath.Glob(filepath.Join(dir, tempDir, "*")); len(m) != 0 {
		t.Errorf("temporaries left: %v", m)
	}
}

func TestDiskDeletedUnderUs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d := openDisk(t, dir, DiskOptions{})
	d.Put("k", []byte("v"))
	e, ok := d.Open("k")
	if !ok {
		t.Fatal("not found")
	}
	defer e.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Get("k"); ok {
		t.Error("found after the directory was deleted")
	}
	p := make([]byte, 1)
	if _, err := e.ReadAt(p, 0); err != nil || p[0] != 'v' {
		t.Errorf("open entry: %v", err)
	}
	d.Put("k", []byte("again"))
	if v, ok := d.Get("k"); !ok || string(v) != "again" {
		t.Errorf("after deletion: %q, %v", v, ok)
	}
}

func TestDiskLogsOnceAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	d := openDisk(t, dir, DiskOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	// A file where a directory belongs fails every write, for root too.
	if err := os.WriteFile(filepath.Join(dir, tempDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		d.Put("k", []byte("v"))
	}
	if _, ok := d.Get("k"); ok {
		t.Error("kept")
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d log lines:\n%s", n, log.String())
	}
	d.warn("cannot write to the cache; going on without", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	d.warn("cannot write to the cache; going on without", &fs.PathError{Op: "write", Path: "y", Err: syscall.ENOSPC})
	if n := strings.Count(log.String(), "no space left"); n != 1 {
		t.Errorf("ENOSPC logged %d times", n)
	}
}

func TestNilDisk(t *testing.T) {
	var d *Disk
	d.Put("k", []byte("v"))
	if _, ok := d.Get("k"); ok {
		t.Error("a nil Disk keeps values")
	}
	w := d.Create("k")
	if n, err := w.Write([]byte("v")); n != 1 || err != nil || w.Commit() {
		t.Errorf("nil writer: %d, %v", n, err)
	}
	w.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
