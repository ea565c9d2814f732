package main

import (
	"slices"
	"strings"
)

// fromMount turns the command line that mount(8) makes of a line in /etc/fstab,
// by way of mount.fuse,
//
//	icefs SOURCE MOUNTPOINT -o OPTS
//
// into one of icefs mount that returns when the tree can be read. It returns nil
// for any other command line: no command has a name with a slash or a colon in it,
// and a SOURCE has one of them, since mount(8) wants it absolute.
//
// Where a line has neither ro, nodev nor nosuid, rw, dev and suid are added on the
// way. Nobody asked for them, so they are dropped; icefs mount refuses them.
func fromMount(args []string) []string {
	if len(args) != 4 || args[2] != "-o" || !strings.ContainsAny(args[0], "/:") {
		return nil
	}
	opts := slices.DeleteFunc(strings.Split(args[3], ","), func(o string) bool { return o == "rw" || o == "dev" || o == "suid" })
	return []string{"mount", "--daemon", "-o", strings.Join(opts, ","), "--", args[0], args[1]}
}
