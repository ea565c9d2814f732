package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// manCommand writes the manual page. It is made of the same definitions as
// --help, so that it says what the program does.
func manCommand() (*pflag.FlagSet, runner) {
	return newFlags("man"), func(_ context.Context, args []string, out console) error {
		if err := wantArgs(args, 0, 0, "no arguments"); err != nil {
			return err
		}
		return writeManual(out.out)
	}
}

// roff writes text in the man macros.
type roff struct{ *bufio.Writer }

// writeManual writes icefs(1).
func writeManual(w io.Writer) error {
	r := roff{bufio.NewWriter(w)}
	r.line(`.\" Made by 'icefs man'. Do not edit.`)
	r.line(".TH ICEFS 1")
	r.line(".SH NAME")
	r.text("icefs - " + summary)
	r.line(".SH SYNOPSIS")
	for i, c := range commands() {
		if i > 0 {
			r.line(".br")
		}
		r.line(`.B icefs ` + escapeRoff(c.name))
		if c.args != "" {
			r.line(escapeRoff(c.args))
		}
	}
	r.line(".SH DESCRIPTION")
	r.text(about)
	r.line(".SH COMMANDS")
	for _, c := range commands() {
		r.command(c)
	}
	r.static()
	return r.Flush()
}

// summary is the one line that whatis shows.
const summary = "mount an Apache Iceberg warehouse as a read-only folder tree of merged files"

// command writes a command and its flags.
func (r roff) command(c *command) {
	set, _ := c.setup()
	r.line(".SS icefs " + escapeRoff(strings.TrimSpace(c.name+" "+c.args)))
	r.text(strings.ToUpper(c.short[:1]) + c.short[1:] + ".")
	if c.long != "" {
		r.line(".PP")
		r.text(c.long)
	}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		r.line(".TP")
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		head := ".B " + escapeRoff(name)
		if kind != "" {
			head = ".BI \"" + escapeRoff(name) + " \" " + escapeRoff(kind)
		}
		r.line(head)
		r.text(usage + defaultOf(f))
	})
}

// defaultOf tells a flag's default where that is not "off", and the usage does
// not tell.
func defaultOf(f *pflag.Flag) string {
	if strings.Contains(f.Usage, "(default") {
		return "."
	}
	if f.Name == "cache-dir" { // it depends on the user
		return " (default ~/.cache/icefs)."
	}
	switch f.DefValue {
	case "", "[]", "false", "0", "0s":
		return "."
	}
	return " (default " + f.DefValue + ")."
}

// static writes the sections that no definition holds.
func (r roff) static() {
	r.line(".SH SIGNALS")
	r.text("SIGINT, SIGTERM and SIGHUP unmount; while files are open, for three seconds, and then the tree is detached. A second signal does not wait. The process ends within ten seconds.")
	r.line(".SH EXIT STATUS")
	r.text("0 if all went well, 1 if something failed, 2 if the command line was wrong.")
	r.line(".SH ENVIRONMENT")
	for _, e := range [][2]string{
		{"NOTIFY_SOCKET", "where mount and serve tell a service manager (systemd, Type=notify) that they are ready and that they stop"},
		{"XDG_CACHE_HOME", "folder of the default disk cache"},
	} {
		r.line(".TP")
		r.line(".B " + e[0])
		r.text(e[1] + ".")
	}
	r.line(".SH FILES")
	for _, e := range [][2]string{
		{"/sbin/mount.icefs", "a link to icefs, for lines of type icefs in /etc/fstab"},
		{"/etc/fuse.conf", "user_allow_other lets users other than root use --allow-other"},
	} {
		r.line(".TP")
		r.line(".I " + e[0])
		r.text(e[1] + ".")
	}
	r.line(".SH EXAMPLES")
	r.line(".nf")
	for _, e := range []string{
		"icefs mount /data/warehouse /mnt/lake",
		"grep -c honey /mnt/lake/shop/orders/current/data.csv",
		"icefs umount /mnt/lake",
		"/data/warehouse  /mnt/lake  icefs  ro,_netdev,allow_other,refresh=1m  0  0    # /etc/fstab",
	} {
		r.line(escapeRoff(e))
	}
	r.line(".fi")
	r.line(".SH SEE ALSO")
	r.line(".BR mount (8),")
	r.line(".BR fusermount3 (1),")
	r.line(".BR fstab (5)")
}

func (r roff) line(s string) { fmt.Fprintln(r, s) }

// text writes paragraphs: an empty line begins one, and a line break is a space.
func (r roff) text(s string) {
	for line := range strings.Lines(strings.TrimSpace(s)) {
		line = strings.TrimSpace(line)
		if line == "" {
			r.line(".PP")
			continue
		}
		r.line(escapeRoff(line))
	}
}

// escapeRoff keeps text from being taken for requests.
func escapeRoff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `"`, `\(dq`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
