package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// apply reads the options of -o. Those of fstab that mean nothing here, or what
// icefs does anyway, are accepted; others are flags by name, with _ for -.
func (m *mountOptions) apply(set *pflag.FlagSet) error {
	for _, list := range m.extra {
		for opt := range strings.SplitSeq(list, ",") {
			if err := m.applyOne(set, opt); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mountOptions) applyOne(set *pflag.FlagSet, opt string) error {
	name, value, valued := strings.Cut(opt, "=")
	switch {
	case opt == "", slices.Contains(ignoredOptions(), name), strings.HasPrefix(opt, "x-"), strings.HasPrefix(opt, "X-"):
		return nil
	case opt == "rw":
		return usageError{"the tree is read-only: leave out -o rw"}
	case slices.Contains([]string{"noexec", "exec"}, opt):
		m.flags = append(m.flags, opt)
		return nil
	case slices.Contains([]string{"suid", "dev", "atime"}, opt):
		return usageError{fmt.Sprintf("-o %s is not possible: the mount is nosuid, nodev and noatime", opt)}
	}
	flag := set.Lookup(strings.ReplaceAll(name, "_", "-"))
	if flag == nil || flag.Name == "options" {
		return usageError{fmt.Sprintf("-o %s: no such option", opt)}
	}
	if !valued {
		if flag.NoOptDefVal == "" {
			return usageError{fmt.Sprintf("-o %s: want %s=VALUE", opt, name)}
		}
		value = flag.NoOptDefVal
	}
	if err := set.Set(flag.Name, value); err != nil {
		return usageError{fmt.Sprintf("-o %s: %v", opt, err)}
	}
	return nil
}

// ignoredOptions are fstab's own, and what the mount has in any case.
func ignoredOptions() []string {
	return []string{"ro", "nosuid", "nodev", "noatime", "default_permissions", "defaults",
		"auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev", "comment", "helper",
		"async", "relatime", "norelatime", "nodiratime", "silent", "loud"}
}
