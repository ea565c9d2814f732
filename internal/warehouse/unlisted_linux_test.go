package warehouse

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUnlistedFolders: a folder that may not be listed is left out, which is
// logged once; a metadata folder that may not be is a table all the same, whose
// load says why.
func TestUnlistedFolders(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"open", "closed", "ns/t", "ns/deep/closed", "half"} {
		write(t, filepath.Join(dir, path, "metadata", "v1.metadata.json"), versionFile("u", 1))
	}
	for _, path := range []string{"closed", "ns/deep/closed", "half/metadata"} {
		if err := os.Chmod(filepath.Join(dir, path), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, path), 0o755) })
	}
	// Modes bind root only as another user; on Linux a thread can be one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if os.Geteuid() == 0 {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		unix.Setfsuid(65534)
		defer unix.Setfsuid(0)
	}
	log := &logBuffer{}
	c := open(t, dir, Options{Log: log.logger(), Refresh: time.Nanosecond})
	for range 2 {
		if got, want := slices.Sorted(maps.Keys(tablesOf(t, c))), []string{"half", "ns/t", "open"}; !slices.Equal(got, want) {
			t.Errorf("tables %q, want %q", got, want)
		}
	}
	if _, err := tablesOf(t, c)["half"].Load(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("half: %v", err)
	}
	for _, path := range []string{"closed", "ns/deep/closed"} {
		told := 0
		for _, line := range log.lines() {
			if strings.Contains(line, "folder="+filepath.Join(dir, path)+" ") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%s: %d lines of\n%s", path, told, strings.Join(log.lines(), ""))
		}
	}
}
