package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/demo"
)

func demoCommand() (*pflag.FlagSet, runner) {
	return newFlags("demo"), func(_ context.Context, args []string, out console) error {
		if err := wantArgs(args, 1, 1, "DIR, a folder that is empty or not there yet"); err != nil {
			return err
		}
		return demo.Create(args[0], out.out)
	}
}
