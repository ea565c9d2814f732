package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/merge"
)

func inspectCommand() (*pflag.FlagSet, runner) {
	set := newFlags("inspect")
	var opt options
	opt.add(set)
	return set, func(ctx context.Context, args []string, out console) error {
		if err := wantArgs(args, 2, 2, "SOURCE and PATH"); err != nil {
			return err
		}
		s, err := openSession(ctx, args[0], opt, out, false)
		if err != nil {
			return err
		}
		defer s.close()
		v, err := viewAt(ctx, s.tree, args[1])
		if err != nil {
			return err
		}
		e, ok := v.(merge.Explainer)
		if !ok {
			return fmt.Errorf("%s: there is nothing to explain about this form", args[1])
		}
		w := bufio.NewWriter(out.out)
		if err := e.Explain(ctx, w); err != nil {
			return err
		}
		return w.Flush()
	}
}

// viewAt resolves a path to a view; for a snapshot's folder, to its Parquet file.
func viewAt(ctx context.Context, t *tree.Tree, path string) (merge.View, error) {
	n, err := t.Resolve(ctx, path)
	if err != nil {
		return nil, err
	}
	if dir, ok := n.(tree.Dir); ok {
		n, err = dir.Lookup(ctx, "data.parquet")
		if errors.Is(err, iofs.ErrNotExist) {
			return nil, fmt.Errorf("%s is neither a data file nor a snapshot's folder", path)
		}
		if err != nil {
			return nil, err
		}
	}
	f, ok := n.(tree.ViewFile)
	if !ok {
		return nil, fmt.Errorf("%s holds no rows: it is shown as it is", path)
	}
	return f.View(ctx)
}
