package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source/storetest"
)

// shownFile is a file of a mount, as far as where its table lies may change it.
type shownFile struct {
	inode uint64
	bytes []byte
}

func showFiles(t *testing.T, snapshot string) map[string]shownFile {
	t.Helper()
	all := map[string]shownFile{}
	for _, pattern := range []string{"data.*", "parts/*"} {
		for _, name := range glob(t, filepath.Join(snapshot, pattern)) {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(snapshot, name)
			all[rel] = shownFile{info.Sys().(*syscall.Stat_t).Ino, b}
		}
	}
	return all
}

// A catalog names a table in an object store and a copy of it on a disk: each is
// as in a mount of its own.
func TestDiskAndStoreInOneCatalog(t *testing.T) {
	_, endpoint := aStore(t)
	warehouse := t.TempDir()
	local := filepath.Join(warehouse, "copy")
	if err := os.CopyFS(local, os.DirFS("../../testdata/object-store/icefs-bucket/wh/sales/s3_v2")); err != nil {
		t.Fatal(err)
	}
	names := glob(t, filepath.Join(local, "metadata", "*.metadata.json"))
	metadata := filepath.Base(names[len(names)-1])
	catalog := filepath.Join(t.TempDir(), "catalog.db")
	db, err := sql.Open("sqlite", catalog)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT,
			previous_metadata_location TEXT, iceberg_type TEXT)`,
		fmt.Sprintf("INSERT INTO iceberg_tables VALUES ('c','db','here','%s/metadata/%s',NULL,'TABLE')", local, metadata),
		fmt.Sprintf("INSERT INTO iceberg_tables VALUES ('c','db','there','s3://icefs-bucket/wh/sales/s3_v2/metadata/%s',NULL,'TABLE')", metadata),
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	both := startMount(t, "sqlite:///"+catalog+"?catalog=c&warehouse="+warehouse, "256", "--s3-endpoint", endpoint)
	disk := startMount(t, local, "256")
	store := startMount(t, "s3://icefs-bucket/wh/sales/s3_v2", "256", "--s3-endpoint", endpoint)
	here, there := showFiles(t, filepath.Join(both, "db/here/current")), showFiles(t, filepath.Join(both, "db/there/current"))
	onDisk, inStore := showFiles(t, filepath.Join(disk, "current")), showFiles(t, filepath.Join(store, "current"))
	apart := 0
	for name, f := range here {
		if f.inode != onDisk[name].inode || !bytes.Equal(f.bytes, onDisk[name].bytes) {
			t.Errorf("%s on the disk is another file than in a mount of its own", name)
		}
		if g := there[name]; g.inode != inStore[name].inode || !bytes.Equal(g.bytes, inStore[name].bytes) {
			t.Errorf("%s in the store is another file than in a mount of its own", name)
		} else if same := f.inode == g.inode; same && !bytes.Equal(f.bytes, g.bytes) {
			t.Errorf("%s: one inode, but other bytes", name)
		} else if !same {
			apart++
		}
	}
	if len(here) < 4 || len(there) != len(here) || apart < 2 {
		t.Errorf("%d files on the disk, %d in the store, %d of them others", len(here), len(there), apart)
	}
}

// A read that begins in an outage waits for its end, up to --timeout; one that
// waits for less fails in time, and works afterwards.
func TestLongOutage(t *testing.T) {
	outage, short := 3*time.Second, time.Second
	if os.Getenv("ICEFS_OUTAGE") != "" {
		outage, short = 30*time.Second, 5*time.Second
	}
	front, endpoint := aStore(t)
	mount := func(timeout time.Duration) string {
		dir := startMount(t, "s3://icefs-bucket/wh", "256", "--s3-endpoint", endpoint, "--timeout", timeout.String(), "--refresh", "1h")
		name := filepath.Join(dir, s3Table, "current", "data.csv")
		if _, err := os.Stat(filepath.Dir(name)); err != nil { // which reads no data file
			t.Fatal(err)
		}
		return name
	}
	patient, hasty := mount(2*outage), mount(short)
	front.Set(storetest.Faults{Down: true})
	began := time.Now()
	time.AfterFunc(outage, func() { front.Set(storetest.Faults{}) })
	waited := make(chan error, 1)
	var got []byte
	go func() {
		var err error
		got, err = os.ReadFile(patient)
		waited <- err
	}()
	if _, err := os.ReadFile(hasty); err == nil || time.Since(began) > 2*short || time.Since(began) < short/2 {
		t.Errorf("--timeout %v in an outage: %v after %v", short, err, time.Since(began))
	}
	if err := <-waited; err != nil || time.Since(began) < outage {
		t.Errorf("--timeout %v: %v after %v", 2*outage, err, time.Since(began))
	}
	if again, err := os.ReadFile(hasty); err != nil || !bytes.Equal(again, got) || len(got) < 1000 {
		t.Errorf("after the outage: %v, %d bytes", err, len(again))
	}
}
