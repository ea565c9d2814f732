package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// user is a process that keeps a mount busy.
type user struct {
	pid  int
	name string
	how  string // "its working directory", or a path that it has open
}

func (u user) String() string { return fmt.Sprintf("%s (process %d): %s", u.name, u.pid, u.how) }

// maxUsers bounds how many are told.
const maxUsers = 10

// usersOf finds processes that have something below dir open, mapped or as their
// working directory: those that this user may look into. Only links and maps of
// /proc are read, so a mount that hangs does not matter.
func usersOf(dir string) []user {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var users []user
	for _, proc := range procs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if how := useOf(proc, dir); how != "" {
			name, _ := os.ReadFile(proc + "/comm")
			users = append(users, user{pid, strings.TrimSpace(string(name)), how})
		}
	}
	slices.SortFunc(users, func(a, b user) int { return a.pid - b.pid })
	return users
}

// useOf tells how a process uses what is below dir; empty if it does not.
func useOf(proc, dir string) string {
	for _, link := range []struct{ name, what string }{{"cwd", "its working directory"}, {"root", "its root directory"}} {
		if to, err := os.Readlink(proc + "/" + link.name); err == nil && within(to, dir) {
			return link.what
		}
	}
	open, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return ""
	}
	for _, fd := range open {
		if to, err := os.Readlink(proc + "/fd/" + fd.Name()); err == nil && within(to, dir) {
			return to
		}
	}
	maps, err := os.ReadFile(proc + "/maps")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 && within(strings.TrimSuffix(line[i:], "\n"), dir) {
			return strings.TrimSuffix(line[i:], "\n") + " (mapped)"
		}
	}
	return ""
}

// busyError says who keeps a mount busy, as far as this user may know.
func busyError(where, dir string) error {
	users := usersOf(dir)
	var b strings.Builder
	fmt.Fprintf(&b, "%s is busy", where)
	if len(users) == 0 {
		b.WriteString(": a process of another user has a file open or its working directory there (as root, icefs umount tells which)")
	}
	for i, u := range users {
		if i == maxUsers {
			fmt.Fprintf(&b, "\n  and %d more", len(users)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s", u)
	}
	b.WriteString("\nicefs umount --lazy takes the tree away at once; open files stay readable until they are closed")
	return fmt.Errorf("%s", b.String())
}
