package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite docs/icefs.1")

// TestManual: docs/icefs.1 is what icefs man says, and names every flag.
func TestManual(t *testing.T) {
	const name = "../../docs/icefs.1"
	var b bytes.Buffer
	if err := writeManual(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, b.Bytes()) {
		t.Errorf("%s is not what 'icefs man' says: go test ./cmd/icefs -run TestManual -update", name)
	}
	text := strings.ReplaceAll(string(kept), `\-`, "-")
	for _, c := range commands() {
		set, _ := c.setup()
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("--%s is not in it", f.Name)
			}
		})
	}
	if strings.Contains(text, os.TempDir()) || strings.Contains(text, "/root") {
		t.Error("it holds a path of this machine")
	}
}

// TestBashCompletion runs the completion as bash does.
func TestBashCompletion(t *testing.T) {
	var script bytes.Buffer
	completeBash(&script)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ware house"), 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"icefs mo":                  {"mount"},
		"icefs u":                   {"umount"},
		"icefs mount --me":          {"--metadata-columns", "--memory", "--metrics-addr"},
		"icefs umount --":           {"--lazy", "--wait", "--help"},
		"icefs serve --log-format ": {"text", "json"},
		"icefs ls --views parts.":   {"parts.csv", "parts.jsonl"},
		"icefs completion ":         {"bash", "zsh", "fish"},
		"icefs help ver":            {"verify", "version"},
		"icefs ls " + dir + "/wa":   {dir + "/ware", "house"}, // split by compgen; bash quotes it as a file name
		"icefs mount --history re":  {"refs"},
	} {
		words := strings.Split(line, " ")
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, quoteShell(w))
		}
		cmd := exec.Command("bash", "-c", script.String()+"\nCOMP_WORDS=("+strings.Join(quoted, " ")+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _icefs; printf '%s\\n' \"${COMPREPLY[@]}\"")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		got := strings.Fields(string(out))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q gives %v, want %v", line, got, want)
		}
	}
}

// TestCompletionsKnowEverything: each names every command and flag.
func TestCompletionsKnowEverything(t *testing.T) {
	for shell, write := range map[string]func(*bytes.Buffer){
		"bash": func(b *bytes.Buffer) { completeBash(b) },
		"zsh":  func(b *bytes.Buffer) { completeZsh(b) },
		"fish": func(b *bytes.Buffer) { completeFish(b) },
	} {
		var b bytes.Buffer
		write(&b)
		for _, c := range commands() {
			for _, f := range flagsOf(c) {
				if !strings.Contains(b.String(), f.name) {
					t.Errorf("%s: %s --%s is missing", shell, c.name, f.name)
				}
			}
		}
		if bin, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(bin, "-n")
			cmd.Stdin = &b
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s does not accept it: %v\n%s", shell, err, out)
			}
		}
	}
}
