package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// runner does a command's work once its flags are parsed.
type runner func(ctx context.Context, args []string, out console) error

// command is one of icefs's commands.
type command struct {
	name  string
	args  string // as in its usage line
	short string // one line
	long  string // further lines of its help
	// setup returns the command's flags and what to do with them.
	setup      func() (*pflag.FlagSet, runner)
	ownSignals bool
}

// commands in the order of the help.
func commands() []*command {
	return []*command{
		{name: "mount", args: "[flags] SOURCE MOUNTPOINT", short: "mount a warehouse or a table as a folder tree", long: mountHelp, setup: mountCommand, ownSignals: true},
		{name: "umount", args: "MOUNTPOINT", short: "unmount", setup: umountCommand},
		{name: "ls", args: "[flags] SOURCE [PATH]", short: "list the tree without mounting it", long: sourceHelp, setup: lsCommand},
		{name: "cat", args: "[flags] SOURCE PATH", short: "write a file of the tree to standard output", long: sourceHelp, setup: catCommand},
		{name: "inspect", args: "[flags] SOURCE PATH", short: "show how a file is made, and why", long: sourceHelp, setup: inspectCommand},
		{name: "verify", args: "[flags] SOURCE [PATH]", short: "decode views fully and compare them with a naive merge", long: verifyHelp + sourceHelp, setup: verifyCommand},
		{name: "demo", args: "DIR", short: "make a small warehouse with history and deletes to try icefs on", setup: demoCommand},
		{name: "version", short: "print the version", setup: versionCommand},
	}
}

func find(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

const about = `icefs mounts an Apache Iceberg warehouse as a read-only folder tree: each snapshot
of each table is a folder with its visible rows as data.parquet, data.csv and
data.jsonl. Deletes are applied while bytes are read; nothing is ever written to
the warehouse.
`

const sourceHelp = `SOURCE is a path if it exists: a warehouse (a folder that holds tables at any
depth), a table's folder, or one metadata.json, which pins that version. Else it is
a URL: of a REST catalog (https://…), of a Hive metastore (thrift://host:9083), of a
SQL catalog (postgresql://host/db?catalog=NAME, or
sqlite:///catalog.db?catalog=NAME&warehouse=DIR; three slashes: a relative path,
four: an absolute one). Else it is the name of a catalog that .pyiceberg.yaml,
PYICEBERG_CATALOG__NAME__… or .iceberg-go.yaml describes. --property adds to what
they say.
`

func usage(w io.Writer) {
	fmt.Fprintf(w, "%s\nUsage:\n", about)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-42s %s\n", strings.TrimSpace("icefs "+c.name+" "+c.args), c.short)
	}
	fmt.Fprint(w, "\nicefs COMMAND --help lists a command's flags.\n")
}

func (c *command) usage(w io.Writer, set *pflag.FlagSet) {
	fmt.Fprintf(w, "Usage: %s\n\n%s.\n", strings.TrimSpace("icefs "+c.name+" "+c.args), strings.ToUpper(c.short[:1])+c.short[1:])
	if c.long != "" {
		fmt.Fprintf(w, "\n%s", c.long)
	}
	if set.HasFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s", set.FlagUsages())
	}
}

func help(args []string, out console) int {
	if len(args) == 0 {
		usage(out.out)
		return exitOK
	}
	c := find(args[0])
	if c == nil {
		fmt.Fprintf(out.err, "icefs: there is no command %q\nTry 'icefs --help'.\n", args[0])
		return exitUsage
	}
	set, _ := c.setup()
	c.usage(out.out, set)
	return exitOK
}

// newFlags returns an empty set of flags.
func newFlags(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	return set
}

// wantArgs checks the number of arguments.
func wantArgs(args []string, low, high int, form string) error {
	if len(args) < low || len(args) > high {
		return usageError{"want " + form}
	}
	return nil
}
