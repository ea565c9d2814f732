package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asNobody runs in a mount namespace of its own, with a FUSE device that
// everybody may open, and mounts as a user without rights. Its arguments are
// icefs, the source, the mountpoint and a folder for what it needs.
const asNobody = `
set -e
icefs=$1 src=$2 mnt=$3 tmp=$4
mknod "$tmp/fuse" c 10 229
chmod 666 "$tmp/fuse"
mount --bind "$tmp/fuse" /dev/fuse
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
echo "# /etc/fuse.conf" > "$tmp/fuse.conf"
if [ -e /etc/fuse.conf ]; then mount --bind "$tmp/fuse.conf" /etc/fuse.conf; fi
if nobody "$icefs" mount --daemon --cache-dir '' --allow-other "$src" "$mnt"; then echo "allow_other was allowed"; exit 1; fi
nobody "$icefs" mount --daemon --cache-dir '' "$src" "$mnt"
nobody cat "$mnt/current/data.csv"
if ls "$mnt"; then echo "root can read it"; exit 1; fi
nobody "$icefs" umount "$mnt"
`

// TestOtherUser: users other than root mount through fusermount3, for themselves
// alone, and are told what --allow-other needs.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("as root only: it needs a mount namespace")
		return
	}
	tmp := t.TempDir()
	src, mnt, icefs := filepath.Join(tmp, "src"), filepath.Join(tmp, "mnt"), filepath.Join(tmp, "icefs")
	if err := os.CopyFS(src, os.DirFS("../../testdata/warehouse/db/one_col")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(icefs, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(mnt, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for dir := tmp; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("unshare", "-m", "sh", "-c", asNobody, "sh", icefs, src, mnt, tmp).CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "only\n\"\"\n\"\"\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if !strings.Contains(text, "For --allow-other the line user_allow_other has to be in /etc/fuse.conf") {
		t.Errorf("it does not tell what --allow-other needs:\n%s", text)
	}
}
