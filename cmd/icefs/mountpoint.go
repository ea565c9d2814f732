package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/icefs/icefs/fs"
	"github.com/icefs/icefs/internal/warehouse"
)

// prepareMountpoint checks the mountpoint, takes over a dead mount on it, and
// returns its absolute path without links.
func prepareMountpoint(where string) (string, error) {
	if err := checkDevice(); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(where)
	if err != nil {
		return "", err
	}
	if dead(dir) {
		if err := fs.Unmount(dir, true); err != nil {
			return "", fmt.Errorf("a dead mount is on %s and cannot be detached: %w", dir, err)
		}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("mountpoint %s does not exist: create it with mkdir -p", where)
	case errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("mountpoint %s is not accessible to you: %w", where, err)
	case err != nil:
		return "", fmt.Errorf("mountpoint: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("mountpoint %s is not a directory", where)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if m, on, err := fs.MountedOn(dir); err == nil && on && m.Type == "fuse."+fs.Name {
		return "", fmt.Errorf("icefs is mounted on %s already: icefs umount %s", where, where)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("mountpoint: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("mountpoint %s is not empty: mount on an empty directory", where)
	}
	return dir, nil
}

// dead reports whether a mount is on dir whose server is gone. Attributes may
// still be answered from the kernel's cache; statfs never is.
func dead(dir string) bool {
	var st unix.Statfs_t
	return errors.Is(unix.Statfs(dir, &st), unix.ENOTCONN)
}

// checkDevice looks for what a mount needs of the system. Also fusermount3 opens
// the device with the rights of its caller.
func checkDevice() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return errNoDevice
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: you may not open the FUSE device, whose mode is 0666 as a rule; a container needs --device /dev/fuse", err)
	case err != nil:
		return err
	}
	f.Close()
	if os.Geteuid() != 0 {
		_, err = fs.Fusermount()
	}
	return err
}

var errNoDevice = errors.New("there is no /dev/fuse: load the module with 'modprobe fuse', or give the container --device /dev/fuse")

// checkOverlap refuses a mountpoint in, on or around what icefs itself reads and
// writes: it would wait for itself.
func checkOverlap(dir, src string, opt options) error {
	own := []struct{ what, path string }{
		{"the source", src},
		{"the disk cache", opt.cacheDir},
		{"the log file", opt.logging.file},
	}
	for _, allowed := range opt.allowPaths {
		own = append(own, struct{ what, path string }{"the allowed path", allowed})
	}
	if root := tableFolder(src); root != "" {
		own = append(own, struct{ what, path string }{"the table's folder", root})
	}
	if u, err := url.Parse(src); err == nil && u.Query().Has("warehouse") {
		own = append(own, struct{ what, path string }{"the catalog's warehouse", strings.TrimPrefix(u.Query().Get("warehouse"), "file://")})
	}
	if props, err := catalogOf(src, opt.stores.properties, userCatalogs()); err == nil && props["warehouse"] != "" {
		own = append(own, struct{ what, path string }{"the catalog's warehouse", strings.TrimPrefix(props["warehouse"], "file://")})
	}
	for _, o := range own {
		if o.path == "" {
			continue
		}
		path, err := realPath(o.path)
		if err != nil {
			continue // not a path, or not there yet; the source is checked when it is opened
		}
		if within(dir, path) || within(path, dir) {
			return fmt.Errorf("mountpoint %s and %s %s overlap: choose another mountpoint", dir, o.what, o.path)
		}
	}
	return nil
}

// tableFolder is the folder of a table whose metadata file is given; empty for
// any other source.
func tableFolder(src string) string {
	abs, err := filepath.Abs(src)
	if err != nil {
		return ""
	}
	info, err := os.Stat(abs)
	if dir := filepath.Dir(abs); err == nil && !info.IsDir() && filepath.Base(dir) == "metadata" {
		return filepath.Dir(dir)
	}
	return ""
}

// realPath is a path without links; of one that does not exist, as far as it
// does.
func realPath(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		real, err := filepath.EvalSymlinks(abs)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		up := filepath.Dir(abs)
		if !errors.Is(err, os.ErrNotExist) || up == abs {
			return "", err
		}
		rest = filepath.Join(filepath.Base(abs), rest)
		abs = up
	}
}

// within reports whether p is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// warnAboutAccess tells of rows that become readable to users who could not read
// the source.
func (s *session) warnAboutAccess(m mountOptions) {
	if os.Geteuid() != 0 || !m.allowOther || m.fileMode&0o004 == 0 {
		return
	}
	info, err := os.Stat(s.source)
	if err == nil && info.Mode()&0o005 == 0o005 {
		return
	}
	s.log.Warn("every user can read the tree, but not its source: restrict it with --file-mode and --dir-mode", "source", redact(s.source))
}

// explainSource says what to do about a source that could not be opened.
func explainSource(src string, err error) error {
	src = redact(src)
	switch {
	case errors.Is(err, warehouse.ErrUnsupportedSource), errors.Is(err, os.ErrNotExist), errors.Is(err, errNoTable), errors.Is(err, errNoCatalog):
		return fmt.Errorf("cannot open %s: %w\nSOURCE is a warehouse folder, a table's folder, a metadata.json, a catalog's URL (sqlite:///FILE?catalog=NAME, http://…) or the name of a catalog", src, err)
	case errors.Is(err, warehouse.ErrUnavailable):
		return fmt.Errorf("cannot open %s: %w\nIs the catalog running, and its address right?", src, err)
	case errors.Is(err, warehouse.ErrDenied):
		return fmt.Errorf("cannot open %s: %w\nCheck the catalog's credential or token", src, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("cannot open %s: %w\nRun icefs as a user who may read it", src, err)
	}
	return fmt.Errorf("cannot open %s: %w", src, err)
}
