package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrBusy: the file system is in use.
var ErrBusy = errors.New("file system is busy")

// Unmount detaches whatever FUSE file system is mounted on dir. lazy detaches it
// from the tree at once and lets its readers finish. Root calls the kernel,
// others fusermount3.
func Unmount(dir string, lazy bool) error {
	if os.Geteuid() == 0 {
		flags := unix.UMOUNT_NOFOLLOW
		if lazy {
			flags |= unix.MNT_DETACH
		}
		err := unix.Unmount(dir, flags)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%s: %w", dir, ErrBusy)
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
		return nil
	}
	bin, err := Fusermount()
	if err != nil {
		return err
	}
	args := []string{"-u", "--", dir}
	if lazy {
		args = []string{"-u", "-z", "--", dir}
	}
	var out bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		if strings.Contains(text, "busy") {
			return fmt.Errorf("%s: %w", dir, ErrBusy)
		}
		return fmt.Errorf("unmount %s: %s", dir, text)
	}
	return nil
}

// Fusermount finds the helper that mounts for users other than root.
func Fusermount() (string, error) {
	for _, name := range []string{"fusermount3", "fusermount", "/bin/fusermount3", "/bin/fusermount"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("fusermount3 not found: install the package fuse3, or mount as root")
}
