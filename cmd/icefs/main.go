// Command icefs mounts an Apache Iceberg warehouse as a read-only folder tree of
// merged files. See icefs --help.
//
// This package holds what no other may: command line, environment, signals and
// the wiring of packages (session.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	args := os.Args[1:]
	if command, fake, ok := asHelper(os.Args[0], args); ok {
		if fake {
			os.Exit(exitOK)
		}
		args = command
	}
	os.Exit(Main(args, os.Stdin, os.Stdout, os.Stderr))
}

// Main runs a command line and returns the exit code.
func Main(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	out := console{stdout, stderr}
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "-h", "--help", "help":
		return help(args[1:], out)
	case "--version":
		args[0] = "version"
	}
	if m := fromMount(args); m != nil {
		args = m
	}
	cmd := find(args[0])
	if cmd == nil {
		fmt.Fprintf(stderr, "icefs: there is no command %q\nTry 'icefs --help'.\n", args[0])
		return exitUsage
	}
	return cmd.run(args[1:], out)
}

// console is where a command writes.
type console struct{ out, err io.Writer }

// usageError is a command line that cannot be run.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// run parses a command's flags and runs it.
func (c *command) run(args []string, out console) int {
	set, do := c.setup()
	set.SetOutput(out.err)
	set.Usage = func() { c.usage(out.out, set) }
	err := set.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err == nil:
		ctx, stop := c.context()
		defer stop()
		err = do(ctx, set.Args(), out)
	default:
		err = usageError{err.Error()}
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(out.err, "icefs:", err)
	var wrong usageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(out.err, "Try 'icefs %s --help'.\n", c.name)
		return exitUsage
	}
	return exitFailed
}

// context ends at a signal, except for mount, which unmounts at one.
func (c *command) context() (context.Context, context.CancelFunc) {
	if c.ownSignals {
		return context.WithCancel(context.Background())
	}
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
