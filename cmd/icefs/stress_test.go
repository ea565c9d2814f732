package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/internal/fixture"
)

const (
	stressReaders = 64
	// stressShort is how long the readers read in `make test`; `make stress` sets
	// stressEnv.
	stressShort = 2 * time.Second
	stressEnv   = "ICEFS_STRESS"
)

// everyKind is a table whose views have segments of every kind: a first snapshot
// without deletes, and a second with a deletion vector, many tiny row groups, an
// equality delete, and a file from before a column was added.
func everyKind(t *testing.T) *fixture.Table {
	t.Helper()
	field := func(id int, name string, typ iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: typ}
	}
	schema := iceberg.NewSchema(0, field(1, "k", iceberg.PrimitiveTypes.Int64), field(2, "s", iceberg.PrimitiveTypes.String),
		field(3, "f", iceberg.PrimitiveTypes.Float64), field(4, "i", iceberg.PrimitiveTypes.Int32))
	tab := fixture.New(filepath.Join(t.TempDir(), "t"), fixture.Options{Schema: schema, FormatVersion: 3})
	random := rand.New(rand.NewPCG(3, 4))
	key := 0
	rows := func(n int) []fixture.Row {
		list := make([]fixture.Row, n)
		for i := range list {
			list[i] = fixture.Row{"k": key, "s": fmt.Sprint("text, ", random.Uint64()), "f": random.NormFloat64(), "i": i % 97}
			if i%11 == 0 {
				list[i]["s"] = nil
			}
			key++
		}
		return list
	}
	tx := tab.Begin()
	files := []*fixture.File{tx.Append(rows(40_000)...), tx.Append(rows(40_000)...)}
	tx.Commit()
	tx = tab.Begin()
	for range 20 {
		tx.Append(rows(100)...)
	}
	var dead []int64
	for i := int64(0); i < 40_000; i += 1 + random.Int64N(30) {
		dead = append(dead, i)
	}
	tx.DeleteVector(files[0], dead...)
	tx.Commit()
	tx = tab.Begin()
	tx.DeleteEqual([]int{1}, fixture.Row{"k": 80_005}, fixture.Row{"k": 81_050})
	tx.Commit()
	if err := tab.Err(); err != nil {
		t.Fatal(err)
	}
	return tab
}

// TestRandomReaders: whatever 64 readers read at once, anywhere, by pread and by
// mmap, is what one reader gets from beginning to end; with the least memory,
// no cache, and the kernel's page cache emptied all the time.
func TestRandomReaders(t *testing.T) {
	tab := everyKind(t)
	show := []string{"--views", "parquet,csv,jsonl,parts,parts.csv,parts.jsonl"}
	calm := startMount(t, tab.Dir(), "4096", append(show, "--layout-options", "kernel=off")...)
	var names []string
	for _, pattern := range []string{"data.*", "parts/*", "parts.csv/*", "parts.jsonl/*"} {
		list, err := filepath.Glob(filepath.Join(calm, "snapshots", "*", pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, list...)
	}
	if len(names) < 40 {
		t.Fatalf("%d views", len(names))
	}
	want := make(map[string][]byte)
	for i, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		names[i] = name[len(calm):]
		want[names[i]] = b
	}
	dir := startMount(t, tab.Dir(), "4096", append(show, "--memory", "64MiB", "--cache-size", "1MiB", "--layout-options", "cache=off")...)
	length := stressShort
	if s := os.Getenv(stressEnv); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	var reads, bytesRead atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(length)
	for i := range stressReaders {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 5))
			for time.Now().Before(end) && !t.Failed() {
				name := names[random.IntN(len(names))]
				n, bytes, err := readAbout(dir+name, want[name], random)
				reads.Add(n)
				bytesRead.Add(bytes)
				if err != nil {
					t.Errorf("reader %d: %s: %v", i, name, err)
				}
			}
		})
	}
	all.Wait()
	c := counters(t, dir)
	t.Logf("%d reads of %d MB; served: %d MB copied, %d MB spliced; %d chunks rewritten", reads.Load(), bytesRead.Load()>>20,
		c["copied_bytes_total"]>>20, c["spliced_bytes_total"]>>20, c["chunks_rewritten_total"])
	if reads.Load() < stressReaders || c["copied_bytes_total"] == 0 || c["chunks_rewritten_total"] == 0 {
		t.Error("hardly anything was read")
	}
}

// readAbout opens a file in one of three ways, buffered, direct and mapped,
// reads some ranges of 1 B to 1 MiB, and drops what the kernel has cached of it.
func readAbout(name string, want []byte, random *rand.Rand) (reads, total int64, err error) {
	way := random.IntN(3)
	flags := os.O_RDONLY
	if way == 1 {
		flags |= syscall.O_DIRECT
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	defer unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	var mapped []byte
	if way == 2 {
		if mapped, err = unix.Mmap(int(f.Fd()), 0, len(want), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return 0, 0, err
		}
		defer unix.Munmap(mapped)
	}
	buf := make([]byte, 1<<20)
	for range 1 + random.IntN(20) {
		n := min(int(math.Exp(random.Float64()*math.Log(1<<20))), len(want))
		off := random.IntN(len(want) - n + 1)
		got := buf[:n]
		if way == 2 {
			got = mapped[off : off+n]
		} else if m, err := f.ReadAt(got, int64(off)); err != nil {
			// A direct read of a passed-through part has to be aligned.
			if way == 1 && err.(*os.PathError).Err == syscall.EINVAL {
				return reads, total, nil
			}
			return reads, total, fmt.Errorf("%d of %d bytes at %d: %w", m, n, off, err)
		}
		if !bytes.Equal(got, want[off:off+n]) {
			return reads, total, fmt.Errorf("%d bytes at %d: not those of a sequential read (way %d)", n, off, way)
		}
		reads++
		total += int64(n)
	}
	return reads, total, nil
}
