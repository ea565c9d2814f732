package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/merge"
)

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func versionText() string {
	return fmt.Sprintf("icefs %s (layout format %d, %s, %s/%s)\n", version(), merge.LayoutFormat,
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand() (*pflag.FlagSet, runner) {
	return newFlags("version"), func(_ context.Context, args []string, out console) error {
		if err := wantArgs(args, 0, 0, "no arguments"); err != nil {
			return err
		}
		_, err := fmt.Fprint(out.out, versionText())
		return err
	}
}
