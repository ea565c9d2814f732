package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/demo"
)

func demoCommand() (*pflag.FlagSet, runner) {
	return newFlags("demo"), func(_ context.Context, args []string, out console) error {
		if err := wantArgs(args, 1, 1, "DIR, a folder that is empty or not there yet"); err != nil {
			return err
		}
		err := demo.Create(args[0], out.out)
		if errors.Is(err, demo.ErrNotEmpty) {
			return fmt.Errorf("%w: give the demo a folder of its own", err)
		}
		return err
	}
}
