package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// helperName is what mount(8) runs for a file system of type icefs: a link to
// icefs of this name in /sbin.
const helperName = "mount.icefs"

// asHelper turns a command line of the mount helper,
//
//	mount.icefs SOURCE MOUNTPOINT [-sfnvrw] [-N NAMESPACE] [-o OPTS] [-t TYPE]
//
// into one of icefs mount that returns when the tree can be read. fake (-f) asks
// for nothing to be done. ok is false for any other name of the program.
func asHelper(program string, args []string) (command []string, fake, ok bool) {
	if filepath.Base(program) != helperName {
		return nil, false, false
	}
	var opts, places []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case len(a) < 2 || a[0] != '-':
			places = append(places, a)
		case slices.Contains([]string{"-o", "-N", "-t"}, a) && i+1 < len(args):
			i++
			if a == "-o" {
				opts = append(opts, asked(args[i])...)
			}
		case strings.Trim(a[1:], "sfnvrw") == "":
			fake = fake || strings.Contains(a, "f")
		default: // for icefs mount to refuse
			places = append(places, a)
		}
	}
	return slices.Concat([]string{"mount", "--daemon", "-o", strings.Join(opts, ","), "--"}, places), fake, true
}

// fromMount turns the command line that mount(8) makes of a line of type
// fuse.icefs in /etc/fstab, by way of mount.fuse,
//
//	icefs SOURCE MOUNTPOINT -o OPTS
//
// into one of icefs mount that returns when the tree can be read. It returns nil
// for any other command line: no command has a name with a slash or a colon in it,
// and a SOURCE has one of them, since mount(8) wants it absolute.
func fromMount(args []string) []string {
	if len(args) != 4 || args[2] != "-o" || !strings.ContainsAny(args[0], "/:") {
		return nil
	}
	return []string{"mount", "--daemon", "-o", strings.Join(asked(args[3]), ","), "--", args[0], args[1]}
}

// asked are the options that somebody asked for. Where a line of fstab has
// neither ro, nodev nor nosuid, rw, dev and suid are added on the way; icefs
// mount refuses them.
func asked(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(o string) bool { return o == "rw" || o == "dev" || o == "suid" })
}
