package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go"
	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/internal/fixture"
)

// kernelPasses tells whether the kernel can take a part's bytes from its source
// below dir: root, Linux 6.9, and no overlay, which is a stacked file system.
func kernelPasses(t *testing.T, dir string) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return os.Geteuid() == 0 && (major > 6 || major == 6 && minor >= 9) && st.Type != unix.OVERLAYFS_SUPER_MAGIC
}

// longTable has files with one long row group each, nothing deleted.
func longTable(t *testing.T, files int) (*fixture.Table, []*fixture.File) {
	t.Helper()
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "s", Type: iceberg.PrimitiveTypes.String})
	tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: schema})
	random := rand.New(rand.NewPCG(1, 2))
	var list []*fixture.File
	tx := tab.Begin()
	for range files {
		rows := make([]fixture.Row, 60_000)
		for i := range rows {
			rows[i] = fixture.Row{"s": strconv.FormatUint(random.Uint64(), 36) + strconv.FormatUint(random.Uint64(), 36)}
		}
		list = append(list, tx.Append(rows...))
	}
	tx.Commit()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	return tab, list
}

// TestKernelPaths: long reads of stored bytes are spliced, a part that is its
// data file is read by the kernel alone, and all give the same bytes as copies.
func TestKernelPaths(t *testing.T) {
	tab, _ := longTable(t, 3)
	type served struct {
		data, part []byte
		counters   map[string]int64
	}
	read := func(flags ...string) served {
		dir := startMount(t, tab.Dir(), "256", flags...)
		var s served
		var err error
		if s.data, err = os.ReadFile(filepath.Join(dir, "current", "data.parquet")); err != nil {
			t.Fatal(err)
		}
		s.counters = counters(t, dir)
		parts, err := filepath.Glob(filepath.Join(dir, "current", "parts", "*"))
		if err != nil || len(parts) != 3 {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		before := s.counters["copied_bytes_total"] + s.counters["spliced_bytes_total"]
		if s.part, err = os.ReadFile(parts[1]); err != nil {
			t.Fatal(err)
		}
		c := counters(t, dir)
		s.counters["passthrough_opens_total"] = c["passthrough_opens_total"]
		s.counters["part"] = c["copied_bytes_total"] + c["spliced_bytes_total"] - before
		return s
	}
	fast, copied := read(), read("--layout-options", "kernel=off")
	if !bytes.Equal(fast.data, copied.data) || !bytes.Equal(fast.part, copied.part) || len(fast.data) < 1<<20 || len(fast.part) < 256<<10 {
		t.Errorf("%d and %d bytes by the kernel, %d and %d copied: not the same", len(fast.data), len(fast.part), len(copied.data), len(copied.part))
	}
	if n := fast.counters["spliced_bytes_total"]; n < int64(len(fast.data))/3 {
		t.Errorf("%d of %d bytes were spliced", n, len(fast.data))
	}
	if c := copied.counters; c["spliced_bytes_total"] != 0 || c["passthrough_opens_total"] != 0 || c["copied_bytes_total"] < int64(len(copied.data)) {
		t.Errorf("with copies: %v", c)
	}
	opens, part := int64(0), fast.counters["part"]
	if kernelPasses(t, tab.Dir()) {
		opens = 1
	}
	if fast.counters["passthrough_opens_total"] != opens || (part == 0) != (opens == 1) {
		t.Errorf("a part was opened for passthrough %d times, want %d, and %d bytes of it served", fast.counters["passthrough_opens_total"], opens, part)
	}
}

// TestSplicedPieces: requests over the ends of stored chunks are spliced piece by
// piece, of whatever length and from wherever they are, and give the same bytes
// as copies. Pieces begin and end within pages, so that some take more pages of a
// pipe than there are.
func TestSplicedPieces(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Bool},
		iceberg.NestedField{ID: 2, Name: "b", Type: iceberg.PrimitiveTypes.Int64}, iceberg.NestedField{ID: 3, Name: "c", Type: iceberg.PrimitiveTypes.Bool})
	tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: schema})
	random := rand.New(rand.NewPCG(3, 4))
	tx := tab.Begin()
	for range 16 {
		rows := make([]fixture.Row, 16_500) // fewer would be taken together
		for i := range rows {
			rows[i] = fixture.Row{"a": random.IntN(2) == 0, "b": random.Int64(), "c": random.IntN(2) == 0}
		}
		tx.Append(rows...)
	}
	tx.Commit()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(startMount(t, tab.Dir(), "256", "--layout-options", "kernel=off"), "current", "data.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	dir := startMount(t, tab.Dir(), "256")
	f, err := os.Open(filepath.Join(dir, "current", "data.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 768<<10)
	edges := func() (off, n int) { // where pieces are short, lengths that nearly fill a pipe
		off = random.IntN(10) << 12
		if random.IntN(2) == 0 {
			off = len(want)&^4095 - random.IntN(40)<<12
		}
		return off, (32 - random.IntN(8)) << 12
	}
	for i := range 600 {
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil { // requests as long as reads
			t.Fatal(err)
		}
		off, n := random.IntN(len(want)), 1+random.IntN(len(buf))
		if i < 300 { // before pipes have become longer, for longer reads
			off, n = edges()
		}
		got, err := f.ReadAt(buf[:n], int64(off))
		if end := min(off+n, len(want)); got != end-off || !bytes.Equal(buf[:got], want[off:end]) {
			t.Fatalf("%d bytes of %d at %d, %v", got, n, off, err)
		}
	}
	c := counters(t, dir)
	if c["spliced_bytes_total"] < c["copied_bytes_total"]/2 || len(want) < 1<<20 {
		t.Errorf("%d bytes were spliced and %d copied of %d", c["spliced_bytes_total"], c["copied_bytes_total"], len(want))
	}
}

// TestReplacedSource: whoever has a part open goes on with the file it was opened
// on; a file put in its place, or cut, is never served in its stead.
func TestReplacedSource(t *testing.T) {
	for _, flags := range [][]string{nil, {"--layout-options", "kernel=off"}} {
		tab, files := longTable(t, 2)
		dir := startMount(t, tab.Dir(), "256", flags...)
		parts, err := filepath.Glob(filepath.Join(dir, "current", "parts", "*"))
		if err != nil || len(parts) != 2 {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		f, err := os.Open(parts[0])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		source := files[0].Local
		if !strings.Contains(source, strings.TrimSuffix(filepath.Base(parts[0]), ".parquet")) {
			source = files[1].Local
		}
		want, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		other := bytes.Clone(want)
		other[100] ^= 0xff
		if err := os.WriteFile(source+".new", other, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(source+".new", source); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 0); err == nil && !bytes.Equal(got, want) {
			t.Errorf("%v: the open file shows other bytes", flags)
		} else if err != nil && !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%v: the open file: %v", flags, err)
		}
		// Of the kernel's cache, if it was read, or not at all.
		if got, err := os.ReadFile(parts[0]); err == nil && !bytes.Equal(got, want) {
			t.Errorf("%v: opened again, it shows other bytes", flags)
		} else if err != nil && !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%v: opened again: %v", flags, err)
		}
		if out, err := exec.Command("cmp", parts[1], source).CombinedOutput(); err == nil {
			t.Errorf("%v: two parts are the same file: %s", flags, out)
		}
		if got, err := os.ReadFile(parts[1]); err != nil || len(got) == 0 {
			t.Errorf("%v: the other part: %v", flags, err)
		}
	}
}
