package fs

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// xattrs reads all attributes of a path, as getfattr -d does.
func xattrs(t *testing.T, path string) map[string]string {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if size, err := unix.Llistxattr(path, nil); err != nil || size != n {
		t.Errorf("%s: the list is %d bytes long, and said to be %d (%v)", path, n, size, err)
	}
	got := make(map[string]string)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value := make([]byte, 100)
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			t.Errorf("%s: %s: %v", path, name, err)
			continue
		}
		got[name] = string(value[:n])
	}
	return got
}

func TestXattrs(t *testing.T) {
	m := start(t, 2, time.Hour)
	for _, c := range []struct{ path, want string }{
		{"t/snapshots/2", "snapshot-id=2 schema-id=0 rows=90 deleted-rows=10"},
		{"t/snapshots/2@schema-1", "snapshot-id=2 schema-id=1 rows=90 deleted-rows=10"},
		{"t/snapshots/2/parts", "snapshot-id=2 schema-id=0 rows=90 deleted-rows=10"},
		{"t/current/data.parquet", "snapshot-id=2 schema-id=1 rows=90 deleted-rows=10 layout=chunks raw=4 synthesized=2 rewritten=1"},
		{"t/snapshots/1/data.csv", "snapshot-id=1 schema-id=0 rows=90 deleted-rows=10 layout=text"},
		{"t/snapshots/1/parts/a.parquet", "snapshot-id=1 schema-id=0 rows=50 deleted-rows=0 layout=raw"},
		{"", ""}, {"t", ""}, {"t/snapshots", ""}, {"t/snapshots/1/schema.json", ""}, {".icefs/time", ""},
	} {
		want := map[string]string{}
		for i, name := range []string{"snapshot-id", "schema-id", "rows", "deleted-rows", "layout"} {
			if _, value, ok := strings.Cut(" "+c.want, " "+name+"="); ok {
				if i < 4 {
					value, _, _ = strings.Cut(value, " ")
				}
				want["user.icefs."+name] = value
			}
		}
		got := xattrs(t, filepath.Join(m.dir, c.path))
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", c.path, got, want)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", c.path, name, got[name], value)
			}
		}
	}
}

func TestXattrErrors(t *testing.T) {
	m := start(t, 1, time.Hour)
	file := m.dir + "/t/snapshots/1/data.parquet"
	buf := make([]byte, 100)
	for _, name := range []string{"user.icefs.nothing", "user.other", "security.selinux", "trusted.x"} {
		if _, err := unix.Lgetxattr(file, name, buf); !errors.Is(err, unix.ENODATA) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := unix.Lgetxattr(file, xattrLayout, buf[:3]); !errors.Is(err, unix.ERANGE) {
		t.Errorf("a short buffer: %v", err)
	}
	if _, err := unix.Llistxattr(file, buf[:3]); !errors.Is(err, unix.ERANGE) {
		t.Errorf("a short buffer for the list: %v", err)
	}
	if n, err := unix.Lgetxattr(file, xattrLayout, nil); err != nil || n != len("chunks raw=4 synthesized=2 rewritten=1") {
		t.Errorf("the length alone: %d, %v", n, err)
	}
	if err := unix.Lsetxattr(file, xattrLayout, buf, 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("setting one: %v", err)
	}
	m.do("fail changed")
	if _, err := unix.Lgetxattr(file, xattrRows, buf); !errors.Is(err, unix.ESTALE) {
		t.Errorf("rows of a source that was replaced: %v", err)
	}
	if n, err := unix.Lgetxattr(filepath.Dir(file), xattrSnapshot, buf); err != nil || string(buf[:n]) != "1" {
		t.Errorf("the snapshot's id needs no source: %q, %v", buf[:max(n, 0)], err)
	}
}

// TestStatfs: df on a table tells what its live data files hold.
func TestStatfs(t *testing.T) {
	m := start(t, 2, time.Hour)
	for _, c := range []struct {
		path   string
		blocks uint64
	}{
		{"", otherBlocks}, {".icefs", otherBlocks},
		{"t", 769}, {"t/current/", 769}, {"t/snapshots/1", 769}, {"t/by-time", 769},
		{"t/snapshots/1/data.parquet", 769}, {"t/snapshots/1/parts/a.parquet", 769},
	} {
		var st unix.Statfs_t
		if err := unix.Statfs(filepath.Join(m.dir, c.path), &st); err != nil {
			t.Fatal(err)
		}
		if st.Blocks != c.blocks || st.Bsize != 4096 || st.Bfree != 0 || st.Bavail != 0 || st.Namelen != 255 {
			t.Errorf("%s: %+v", c.path, st)
		}
		if small := c.blocks == 769; small && st.Files != 2 {
			t.Errorf("%s: %d files", c.path, st.Files)
		}
	}
	names, err := filepath.Glob(m.dir + "/t/snapshots/1/parts/*")
	if err != nil || !slices.Equal(names, []string{m.dir + "/t/snapshots/1/parts/a.parquet", m.dir + "/t/snapshots/1/parts/b.parquet"}) {
		t.Errorf("%v, %v", names, err)
	}
}
