package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asContainer runs icefs as the first process of a container, as
// docs/operations.md does it: with a root of its own (here with the libraries that
// a test binary needs), the source read-only, and a folder of the outside shared
// with it. Its arguments are icefs, the source and an empty folder.
const asContainer = `
set -e
icefs=$1 src=$2 tmp=$3
mkdir "$tmp/outside" "$tmp/root"
mount -t tmpfs tmpfs "$tmp/outside"
mount --make-shared "$tmp/outside"
mkdir "$tmp/outside/lake"
cat > "$tmp/first" <<'end'
set -e
icefs=$1 src=$2 tmp=$3 root=$3/root
mount -t tmpfs tmpfs "$root"
cd "$root"
mkdir warehouse mnt tmp dev proc old usr
for dir in /lib /lib64; do if [ -L $dir ]; then cp -P $dir .; elif [ -d $dir ]; then mkdir ./$dir; mount --rbind $dir ./$dir; fi; done
mount --rbind /usr usr
cp "$icefs" icefs
mount --bind "$src" warehouse
mount -o remount,bind,ro warehouse
mount --rbind "$tmp/outside" mnt
mknod dev/fuse c 10 229
mount -t proc proc proc
pivot_root . old
exec /icefs mount --allow-other --cache-dir /tmp/cache /warehouse /mnt/lake
end
unshare --mount --pid --fork --propagation unchanged --kill-child sh "$tmp/first" "$icefs" "$src" "$tmp" &
container=$!
lake=$tmp/outside/lake
for i in $(seq 300); do if mountpoint -q "$lake"; then break; fi; sleep 0.1; done
cat "$lake/current/data.csv"
grep '"pid": 1,' "$lake/.icefs/status.json"
kill -TERM $(cat /proc/$container/task/$container/children)
wait $container
if mountpoint -q "$lake"; then echo "still mounted"; exit 1; fi
umount "$tmp/outside"
`

// TestContainer: what icefs mounts as process 1 of a container is seen outside, and
// SIGTERM, which is all that stopping a container is, ends it.
func TestContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("as root only: it needs namespaces")
		return
	}
	src, err := filepath.Abs("../../testdata/warehouse/db/one_col")
	if err != nil {
		t.Fatal(err)
	}
	icefs := filepath.Join(t.TempDir(), "icefs")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(icefs, self, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("timeout", "60", "unshare", "--mount", "--propagation", "private",
		"sh", "-c", asContainer, "sh", icefs, src, t.TempDir()).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "only\n\"\"\n\"\"\n") || !strings.Contains(text, "msg=unmounted") {
		t.Errorf("%v\n%s", err, text)
	}
}
