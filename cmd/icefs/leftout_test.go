//go:build nogcs && noazure && noglue && nohive

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLeftOut: what the program was built without is refused with the name of the
// tag that left it out.
func TestLeftOut(t *testing.T) {
	icefs := icefsBinary(t)
	for tag, args := range map[string][]string{
		"nogcs":   {"gs://bucket/warehouse"},
		"noazure": {"abfss://c@a.dfs.core.windows.net/warehouse"},
		"noglue":  {"--property", "type=glue", "lake"},
		"nohive":  {"thrift://localhost:9083"},
	} {
		out, err := exec.Command(icefs, append([]string{"ls"}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "built without") || !strings.Contains(string(out), "(tag "+tag+")") {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	// Signed requests to a REST catalog are a part of AWS, too.
	out, err := exec.Command(icefs, "ls", "--property", "rest.sigv4-enabled=true", "http://127.0.0.1:1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "(tag noglue)") {
		t.Errorf("%v, %s", err, out)
	}
}
