package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDiskBytes(t *testing.T) {
	const bound = 1 << 20
	dir := t.TempDir()
	d := openDisk(t, dir, DiskOptions{MaxBytes: bound})
	check := func(when string) {
		t.Helper()
		if want, _ := diskBytes(t, dir); d.Bytes() != want {
			t.Errorf("%s: %d bytes, %d are there", when, d.Bytes(), want)
		}
	}
	check("empty")
	for i := range 300 {
		d.Put(fmt.Sprint(i), noise(uint64(i), 1000+i*50))
		check(fmt.Sprint("value ", i))
	}
	// What others do is seen by the next scan, and only by that.
	before := d.Bytes()
	other := openDisk(t, dir, DiskOptions{MaxBytes: bound})
	other.Put("theirs", noise(1, 10_000))
	files, err := filepath.Glob(filepath.Join(dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	for _, name := range files[:5] {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if now := d.Bytes(); now != before {
		t.Errorf("%d bytes: the folder was looked at again", now)
	}
	d.usage.due = time.Time{}
	check("a minute later")
	if due := time.Until(d.usage.due); due < usageAge/2 || due > time.Hour {
		t.Errorf("the next scan is in %v", due)
	}
	if n := (*Disk)(nil).Bytes(); n != 0 {
		t.Errorf("no cache takes %d bytes", n)
	}
}
