package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdUnit: systemd finds nothing wrong with the unit, and icefs nothing
// with the command line in it. That the service waits for READY=1 is of use only if
// icefs sends it: TestNotify.
func TestSystemdUnit(t *testing.T) {
	const file = "../../docs/systemd/icefs@.service"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const command = "ExecStart=/usr/local/bin/icefs mount --cache-dir ${CACHE_DIRECTORY} $OPTIONS ${SOURCE} ${MOUNTPOINT}\n"
	for _, line := range []string{"Type=notify\n", command} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the unit has no %s", line)
		}
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd-analyze here")
		return
	}
	binary := icefsBinary(t)
	unit := filepath.Join(t.TempDir(), "icefs@.service")
	ours := strings.ReplaceAll(string(text), "/usr/local/bin/icefs", binary)
	if err := os.WriteFile(unit, []byte(ours), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(verify, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
