package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
)

// Parts of values are read as they were put, waiting, written and open already.
func TestDiskReadAt(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{BehindBytes: 1 << 30})
	sizes := []int{1, 100, 4000, 4096, blockLen, blockLen + 1, 5*blockLen + 77, 300 * blockLen}
	check := func(d *Disk) {
		t.Helper()
		r := rand.New(rand.NewPCG(3, 4))
		for i, n := range sizes {
			key, value := fmt.Sprint("key", n), noise(uint64(i), n)
			for range 50 {
				off := r.IntN(n)
				p := make([]byte, r.IntN(min(n-off, 9*blockLen)+1))
				if !d.ReadAt(key, int64(n), p, int64(off)) || !bytes.Equal(p, value[off:off+len(p)]) {
					t.Fatalf("value of %d bytes: %d bytes at %d are wrong", n, len(p), off)
				}
			}
			for _, c := range []struct {
				size, off int64
				n         int
			}{{int64(n) + 1, 0, 1}, {int64(n), int64(n), 1}, {int64(n), -1, 1}, {int64(n), 0, n + 1}} {
				if d.ReadAt(key, c.size, make([]byte, c.n), c.off) {
					t.Errorf("%d bytes at %d of a value of %d, said to have %d", c.n, c.off, n, c.size)
				}
			}
		}
		if d.ReadAt("missing", 1, make([]byte, 1), 0) {
			t.Error("a value that was never put")
		}
	}
	for i, n := range sizes {
		d.Put(fmt.Sprint("key", n), noise(uint64(i), n))
	}
	check(d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again := openDisk(t, dir, DiskOptions{})
	check(again)
	again.readers.open.Purge() // as it is once it is idle
	check(again)
	var nothing *Disk
	if nothing.ReadAt("key1", 1, make([]byte, 1), 0) {
		t.Error("no cache has a value")
	}
}

// A damaged value is not given, and a value that comes in its place is.
func TestDiskReadAtDamaged(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{})
	value := noise(6, 5*blockLen)
	d.Put("k", value)
	p := make([]byte, 10)
	if !d.ReadAt("k", int64(len(value)), p, 0) {
		t.Fatal("not found")
	}
	f, err := os.OpenFile(entryFile(t, dir), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{value[3*blockLen] ^ 1}, 3*blockLen); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if d.ReadAt("k", int64(len(value)), p, 3*blockLen+100) {
		t.Error("damage was not noticed")
	}
	if d.ReadAt("k", int64(len(value)), p, 0) {
		t.Error("the damaged entry is still there")
	}
	d.Put("k", value)
	if !d.ReadAt("k", int64(len(value)), p, 3*blockLen+100) || !bytes.Equal(p, value[3*blockLen+100:][:10]) {
		t.Error("the new entry is not served")
	}
}

// Readers whose entries are closed between their reads see no error.
func TestDiskReadAtParallel(t *testing.T) {
	d := openDisk(t, t.TempDir(), DiskOptions{})
	const values = openEntries + 20
	for i := range values {
		d.Put(fmt.Sprint(i), noise(uint64(i), blockLen+i))
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			p := make([]byte, 100)
			for n := range 2000 {
				i := (n*7 + g*13) % values
				if !d.ReadAt(fmt.Sprint(i), int64(blockLen+i), p, 50) || !bytes.Equal(p, noise(uint64(i), 150)[50:]) {
					t.Errorf("value %d", i)
					return
				}
				if n%100 == 0 {
					d.readers.open.Purge()
				}
			}
		})
	}
	wg.Wait()
	if n := d.readers.open.Len(); n > openEntries {
		t.Errorf("%d entries are open", n)
	}
}
