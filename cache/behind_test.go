package cache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// entries lists the files of values under a cache directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func openBehind(t *testing.T, dir string, limit int64) *Disk {
	t.Helper()
	d, err := OpenDisk(dir, DiskOptions{BehindBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBehindIsFoundBeforeAndAfterItIsWritten(t *testing.T) {
	dir := t.TempDir()
	d := openBehind(t, dir, 1<<20)
	for i := range 10 {
		d.Put(fmt.Sprint(i), []byte{byte(i), 1, 2})
	}
	if n := len(entries(t, dir)); n != 0 {
		t.Errorf("%d values were written while more came", n)
	}
	check := func(d *Disk) {
		t.Helper()
		for i := range 10 {
			if v, ok := d.Get(fmt.Sprint(i)); !ok || !bytes.Equal(v, []byte{byte(i), 1, 2}) {
				t.Errorf("value %d is %v, %v", i, v, ok)
			}
		}
	}
	check(d)
	for at := time.Now(); len(entries(t, dir)) < 10; time.Sleep(10 * time.Millisecond) {
		if time.Since(at) > 20*time.Second {
			t.Fatal("nothing is written though nothing more comes")
		}
	}
	check(d)
	d.Put("late", []byte("x"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(entries(t, dir)); n != 11 {
		t.Errorf("%d values on disk after Close, not 11", n)
	}
	d = openBehind(t, dir, 1<<20)
	defer d.Close()
	check(d)
}

// What has no room is written at once, and so is half of what waits once it is
// more than that.
func TestBehindIsBounded(t *testing.T) {
	dir := t.TempDir()
	d := openBehind(t, dir, 1000)
	d.Put("small", make([]byte, 100))
	d.Put("large", make([]byte, 990))
	if n := len(entries(t, dir)); n != 1 {
		t.Errorf("%d values are written, want the large one", n)
	}
	d.Put("more", make([]byte, 800))
	for at := time.Now(); len(entries(t, dir)) < 2; time.Sleep(time.Millisecond) {
		if time.Since(at) > 20*time.Second {
			t.Fatal("nothing is written though more than half has to wait")
		}
	}
	d.behind.mu.Lock()
	if d.behind.bytes > 1000 {
		t.Errorf("%d bytes wait, 1000 may", d.behind.bytes)
	}
	d.behind.mu.Unlock()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(entries(t, dir)); n != 3 {
		t.Errorf("%d values on disk after Close, not 3", n)
	}
}

func TestBehindWithManyAndADeletedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d := openBehind(t, dir, 1<<16)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				key := fmt.Sprint(g%2, "/", i)
				d.Put(key, bytes.Repeat([]byte(key), 100))
				if v, ok := d.Get(key); ok && !bytes.Equal(v, bytes.Repeat([]byte(key), 100)) {
					t.Errorf("%s: other bytes", key)
				}
				if g == 0 && i == 100 {
					os.RemoveAll(dir)
				}
			}
		})
	}
	all.Wait()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.Put("after", []byte("is not kept, and harms nobody"))
}
