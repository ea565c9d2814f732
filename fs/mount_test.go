package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
)

func stat(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return st
}

func mtime(st unix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }

func TestAttributes(t *testing.T) {
	m := start(t, 2, time.Hour)
	for _, c := range []struct {
		path string
		mode uint32
		time time.Time
	}{
		{"", unix.S_IFDIR | 0o555, tree.Fixed()},
		{"t", unix.S_IFDIR | 0o555, treetest.Moment(2)},
		{"t/current", unix.S_IFLNK | 0o777, treetest.Moment(2)},
		{"t/snapshots/1", unix.S_IFDIR | 0o555, treetest.Moment(1)},
		{"t/snapshots/1/data.parquet", unix.S_IFREG | 0o444, treetest.Moment(1)},
		{"t/snapshots/1/schema.json", unix.S_IFREG | 0o444, treetest.Moment(1)},
		{".icefs/time", unix.S_IFREG | 0o444, tree.Fixed()},
	} {
		st := stat(t, filepath.Join(m.dir, c.path))
		if st.Mode != c.mode || st.Nlink != 1 || st.Uid != uint32(os.Geteuid()) || st.Gid != uint32(os.Getegid()) {
			t.Errorf("%s: mode %o, %d links, owner %d:%d", c.path, st.Mode, st.Nlink, st.Uid, st.Gid)
		}
		if !mtime(st).Equal(c.time) || st.Atim != st.Mtim || st.Ctim != st.Mtim {
			t.Errorf("%s: time %v, want %v", c.path, mtime(st), c.time)
		}
	}
	link := stat(t, m.dir+"/t/current")
	to, err := os.Readlink(m.dir + "/t/current")
	if err != nil || to != "snapshots/2@schema-1" || link.Size != int64(len(to)) {
		t.Errorf("current leads to %q, %v, size %d", to, err, link.Size)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(m.dir, &fs); err != nil || fs.Blocks == 0 || fs.Namelen != 255 || fs.Bavail != 0 {
		t.Errorf("statfs: %+v, %v", fs, err)
	}
}

func TestMountFlags(t *testing.T) {
	m := start(t, 1, time.Hour)
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if f[1] != m.dir {
			continue
		}
		if f[0] != "icefs" || f[2] != "fuse.icefs" {
			t.Errorf("mounted as %q of type %q", f[0], f[2])
		}
		opts := strings.Split(f[3], ",")
		for _, want := range []string{"ro", "nosuid", "nodev", "noatime", "default_permissions"} {
			if !slices.Contains(opts, want) {
				t.Errorf("options %q lack %s", f[3], want)
			}
		}
		if slices.Contains(opts, "allow_other") {
			t.Error("other users may read it")
		}
		return
	}
	t.Errorf("not in the mount table:\n%s", table)
}

// TestExactSize: a size is told before anything is read, and holds.
func TestExactSize(t *testing.T) {
	m := start(t, 2, time.Hour)
	name := m.dir + "/t/snapshots/2/data.csv"
	before := stat(t, name)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != before.Size || !bytes.HasPrefix(b, []byte("csv of 2, schema 0")) {
		t.Errorf("size %d, read %d bytes", before.Size, len(b))
	}
	if after := stat(t, name); after != before {
		t.Errorf("reading changed %+v to %+v", before, after)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, off := range []int64{0, 1, 4095, 131072, before.Size - 1, before.Size, before.Size + 10} {
		buf := make([]byte, 5000)
		n, err := f.ReadAt(buf, off)
		want := b[min(off, before.Size):min(off+5000, before.Size)]
		if !bytes.Equal(buf[:n], want) || (n < len(buf)) != errors.Is(err, io.EOF) {
			t.Errorf("at %d: %d bytes, %v", off, n, err)
		}
	}
	tail, err := exec.Command("tail", "-c", "8", name).Output()
	if err != nil || !bytes.Equal(tail, b[len(b)-8:]) {
		t.Errorf("tail: %q, %v", tail, err)
	}
	for _, flags := range []int{unix.MAP_SHARED, unix.MAP_PRIVATE} {
		mapped, err := unix.Mmap(int(f.Fd()), 0, int(before.Size), unix.PROT_READ, flags)
		if err != nil {
			t.Fatalf("mmap: %v", err)
		}
		if !bytes.Equal(mapped, b) {
			t.Error("the mapping has other bytes")
		}
		if err := unix.Munmap(mapped); err != nil {
			t.Error(err)
		}
	}
}

func TestControlFilesAreMadeAnew(t *testing.T) {
	m := start(t, 1, time.Hour)
	f, err := os.Open(m.dir + "/.icefs/time")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first, err := io.ReadAll(f)
	if err != nil || len(first) == 0 {
		t.Fatalf("%q, %v", first, err)
	}
	again := make([]byte, len(first))
	if _, err := f.ReadAt(again, 0); err != nil || !bytes.Equal(first, again) {
		t.Errorf("an open file changed from %q to %q, %v", first, again, err)
	}
	if other, err := os.ReadFile(f.Name()); err != nil || bytes.Equal(other, first) {
		t.Errorf("opened again it is %q, %v", other, err)
	}
}

func TestReadOnly(t *testing.T) {
	m := start(t, 1, time.Hour)
	dir, file := m.dir+"/t/snapshots/1", m.dir+"/t/snapshots/1/data.csv"
	for name, call := range map[string]func() error{
		"create":     func() error { _, err := unix.Open(dir+"/new", unix.O_CREAT|unix.O_WRONLY, 0o600); return err },
		"write":      func() error { _, err := unix.Open(file, unix.O_WRONLY, 0); return err },
		"read+":      func() error { _, err := unix.Open(file, unix.O_RDWR, 0); return err },
		"truncate":   func() error { return unix.Truncate(file, 0) },
		"open+trunc": func() error { _, err := unix.Open(file, unix.O_RDONLY|unix.O_TRUNC, 0); return err },
		"chmod":      func() error { return unix.Chmod(file, 0o600) },
		"chown":      func() error { return unix.Chown(file, 1, 1) },
		"utimes":     func() error { return unix.Utimes(file, make([]unix.Timeval, 2)) },
		"unlink":     func() error { return unix.Unlink(file) },
		"rmdir":      func() error { return unix.Rmdir(dir) },
		"mkdir":      func() error { return unix.Mkdir(dir+"/new", 0o700) },
		"mknod":      func() error { return unix.Mknod(dir+"/new", unix.S_IFIFO|0o600, 0) },
		"rename":     func() error { return unix.Rename(file, dir+"/new") },
		"link":       func() error { return unix.Link(file, dir+"/new") },
		"symlink":    func() error { return unix.Symlink("x", dir+"/new") },
		"setxattr":   func() error { return unix.Setxattr(file, "user.x", []byte("y"), 0) },
	} {
		if err := call(); !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// dirent is an entry as getdents64 gives it.
type dirent struct {
	ino  uint64
	off  int64 // where the next entry begins
	kind byte
	name string
}

// getdents reads at most one buffer of entries.
func getdents(t *testing.T, fd, size int) []dirent {
	t.Helper()
	buf := make([]byte, size)
	n, err := unix.Getdents(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	var list []dirent
	for buf = buf[:n]; len(buf) > 0; {
		length := int(buf[16]) | int(buf[17])<<8
		name, _, _ := bytes.Cut(buf[19:length], []byte{0})
		var e dirent
		for i := range 8 {
			e.ino |= uint64(buf[i]) << (8 * i)
			e.off |= int64(buf[8+i]) << (8 * i)
		}
		e.kind, e.name = buf[18], string(name)
		list = append(list, e)
		buf = buf[length:]
	}
	return list
}

func openDir(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func all(t *testing.T, fd int) []dirent {
	t.Helper()
	var list []dirent
	for {
		some := getdents(t, fd, 4096)
		if len(some) == 0 {
			return list
		}
		list = append(list, some...)
	}
}

// TestSeekdir: 5,000 snapshots, each listed once; after a seek to any entry the
// listing goes on behind it, also while a commit adds one.
func TestSeekdir(t *testing.T) {
	const n = 5000
	m := start(t, n, -1)
	fd := openDir(t, m.dir+"/t/snapshots")
	list := all(t, fd)
	if len(list) != n+2 || list[0].name != "." || list[1].name != ".." {
		t.Fatalf("%d entries, the first %+v", len(list), list[:2])
	}
	seen := make(map[string]bool)
	for _, e := range list {
		if seen[e.name] {
			t.Errorf("%s is listed twice", e.name)
		}
		seen[e.name] = true
	}
	m.do(fmt.Sprintf("snapshots %d", n+1))
	for _, i := range []int{0, 1, 2, 77, 2500, n, n + 1} {
		if _, err := unix.Seek(fd, list[i].off, unix.SEEK_SET); err != nil {
			t.Fatal(err)
		}
		if rest := all(t, fd); !slices.Equal(rest, list[i+1:]) {
			t.Errorf("after entry %d: %d entries, want %d", i, len(rest), len(list)-i-1)
		}
	}
	if second := all(t, openDir(t, m.dir+"/t/snapshots")); len(second) != n+3 {
		t.Errorf("a listing after the commit has %d entries", len(second))
	}
}

// inodes walks the mount: every entry is listed with the number that stat tells.
func inodes(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	found := make(map[string]uint64)
	var walk func(path string)
	walk = func(path string) {
		for _, e := range all(t, openDir(t, path)) {
			st := stat(t, path+"/"+e.name)
			if e.name == "." || e.name == ".." {
				if path != dir && st.Ino != e.ino {
					t.Errorf("%s/%s is listed as %d, but is %d", path, e.name, e.ino, st.Ino)
				}
				continue
			}
			if st.Ino != e.ino {
				t.Errorf("%s/%s is listed as %d, but is %d", path, e.name, e.ino, st.Ino)
			}
			found[strings.TrimPrefix(path+"/"+e.name, dir)] = st.Ino
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				walk(path + "/" + e.name)
			}
		}
	}
	walk(dir)
	return found
}

func TestInodesAreStable(t *testing.T) {
	first := inodes(t, start(t, 3, time.Hour).dir)
	second := inodes(t, start(t, 3, time.Hour).dir)
	if len(first) < 30 || len(first) != len(second) {
		t.Fatalf("%d and %d entries", len(first), len(second))
	}
	for path, ino := range first {
		if second[path] != ino {
			t.Errorf("%s has inode number %d in one mount and %d in another", path, ino, second[path])
		}
	}
}

func TestOneInode(t *testing.T) {
	m := start(t, 2, time.Hour)
	a := stat(t, m.dir+"/t/current/data.csv")
	for _, p := range []string{"/t/snapshots/2@schema-1/data.csv", "/t/branches/main/data.csv"} {
		if b := stat(t, m.dir+p); b != a {
			t.Errorf("%s is %+v, want %+v", p, b, a)
		}
	}
	if b := stat(t, m.dir+"/t/snapshots/2/data.csv"); b.Ino == a.Ino {
		t.Error("another schema has the same inode number")
	}
}

// TestCommit: a commit shows at the next look; open files stay.
func TestCommit(t *testing.T) {
	m := start(t, 1, -1)
	f, err := os.Open(m.dir + "/t/current/data.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := stat(t, m.dir+"/t/snapshots/1/data.csv")
	buf := make([]byte, 8)
	if _, err := f.ReadAt(buf, 0); err != nil || string(buf) != "csv of 1" {
		t.Fatalf("%q, %v", buf, err)
	}
	m.do("snapshots 2")
	if b, err := os.ReadFile(m.dir + "/t/current/data.csv"); err != nil || !bytes.HasPrefix(b, []byte("csv of 2")) {
		t.Errorf("a new reader gets %.20q, %v", b, err)
	}
	rest, err := io.ReadAll(f)
	if err != nil || !bytes.HasPrefix(rest, []byte("csv of 1")) {
		t.Errorf("the open file reads %.20q, %v", rest, err)
	}
	if st := stat(t, m.dir+"/t/snapshots/1/data.csv"); st != old {
		t.Errorf("the commit changed an old snapshot: %+v, was %+v", st, old)
	}
	if st := stat(t, m.dir+"/t/metadata.json"); st.Size == 0 {
		t.Error("metadata.json is empty")
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		kind string
		want error
	}{{"changed", unix.ESTALE}, {"missing", unix.EIO}, {"unsupported", unix.EOPNOTSUPP}, {"timeout", unix.ETIMEDOUT}, {"other", unix.EIO}} {
		t.Run(c.kind, func(t *testing.T) {
			m := start(t, 2, -1)
			f, err := os.Open(m.dir + "/t/snapshots/1/data.csv")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			m.do("fail " + c.kind)
			if n, err := f.ReadAt(make([]byte, 10), 200_000); !errors.Is(err, c.want) || n != 0 {
				t.Errorf("read: %d bytes, %v", n, err)
			}
			if _, err := os.Stat(m.dir + "/t/snapshots/2/data.csv"); !errors.Is(err, c.want) {
				t.Errorf("stat: %v", err)
			}
			if list := all(t, openDir(t, m.dir+"/t/snapshots/2")); len(list) != 9 {
				t.Errorf("listed: %+v", list)
			}
			if _, err := os.ReadFile(m.dir + "/t/snapshots/2/snapshot.json"); err != nil {
				t.Errorf("another file: %v", err)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	m := start(t, 2, -1)
	f, err := os.Open(m.dir + "/t/snapshots/1/data.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m.do("fail missing")
	m.do("expire")
	if _, err := f.ReadAt(make([]byte, 10), 0); !errors.Is(err, unix.ESTALE) {
		t.Errorf("read: %v", err)
	}
}

func TestPanic(t *testing.T) {
	m := start(t, 1, time.Hour)
	m.do("panic")
	if _, err := os.ReadFile(m.dir + "/t/snapshots/1/data.parquet"); !errors.Is(err, unix.EIO) {
		t.Errorf("a handler that panics: %v", err)
	}
	if _, err := os.ReadFile(m.dir + "/t/snapshots/1/data.csv"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestSlowSize: a size that takes long is exact all the same, also for those who
// read without asking for it.
func TestSlowSize(t *testing.T) {
	m := start(t, 2, time.Hour)
	m.do("slow")
	one, two := m.dir+"/t/snapshots/1/data.jsonl", m.dir+"/t/snapshots/2/data.jsonl"
	if st := stat(t, one); st.Size < 300_000 {
		t.Errorf("size %d", st.Size)
	}
	fd, err := unix.Open(two, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 16)
	if n, err := unix.Pread(fd, buf, 0); err != nil || string(buf[:n]) != "jsonl of 2, sche" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if end, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil || end != stat(t, two).Size || end < 300_000 {
		t.Errorf("the end is at %d, %v", end, err)
	}
}

// TestInterrupt: a reader that waits for the tree, for bytes or for a size, dies
// of a signal in two seconds, and takes no other reader with it.
func TestInterrupt(t *testing.T) {
	for _, file := range []string{"data.parquet", "data.jsonl"} {
		t.Run(file, func(t *testing.T) { interrupt(t, file) })
	}
}

func interrupt(t *testing.T, file string) {
	m := start(t, 1, time.Hour)
	m.do("block")
	name := m.dir + "/t/snapshots/1/" + file
	readers := make([]*exec.Cmd, 2)
	ended := make([]chan error, len(readers))
	for i := range readers {
		readers[i] = exec.Command("cat", name)
		if err := readers[i].Start(); err != nil {
			t.Fatal(err)
		}
		ended[i] = make(chan error, 1)
		go func() { ended[i] <- readers[i].Wait() }()
	}
	time.Sleep(200 * time.Millisecond)
	readers[0].Process.Signal(syscall.SIGINT)
	select {
	case <-ended[0]:
	case <-time.After(2 * time.Second):
		t.Error("the interrupted reader is still there")
	}
	select {
	case err := <-ended[1]:
		t.Errorf("the other reader ended: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	readers[1].Process.Kill()
	<-ended[1]
}
