package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/tree"
)

func lsCommand() (*pflag.FlagSet, runner) {
	set := newFlags("ls")
	var long bool
	var opt options
	set.BoolVarP(&long, "long", "l", false, "show sizes, times and where links lead; sizes may cost work")
	opt.add(set)
	return set, func(ctx context.Context, args []string, out console) error {
		if err := wantArgs(args, 1, 2, "SOURCE and at most one PATH"); err != nil {
			return err
		}
		s, err := openSession(ctx, args[0], opt, out, false)
		if err != nil {
			return err
		}
		defer s.close()
		if len(args) == 1 {
			if err := s.checkRoot(ctx); err != nil {
				return err
			}
		}
		return list(ctx, s.tree, pathArg(args), long, out)
	}
}

// pathArg is the PATH after SOURCE, or the root.
func pathArg(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

// list prints a folder's entries by name, or one file or link.
func list(ctx context.Context, t *tree.Tree, where string, long bool, out console) error {
	resolve := t.ResolveLink
	if strings.HasSuffix(where, "/") {
		resolve = t.Resolve
	}
	n, err := resolve(ctx, where)
	if err != nil {
		return err
	}
	if link, ok := n.(tree.Link); ok && !long {
		if n, err = t.Resolve(ctx, where); err != nil {
			return err
		}
		if _, dir := n.(tree.Dir); !dir {
			n = link
		}
	}
	dir, ok := n.(tree.Dir)
	if !ok {
		return printNodes(ctx, []named{{path.Base(where), n}}, long, out)
	}
	entries, err := dir.Entries(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b tree.Entry) int { return cmp.Compare(a.Name, b.Name) })
	if !long {
		for _, e := range entries {
			if _, err := fmt.Fprintln(out.out, e.Name); err != nil {
				return err
			}
		}
		return nil
	}
	nodes := make([]named, len(entries))
	for i, e := range entries {
		nodes[i].name = e.Name
		if nodes[i].node, err = dir.Lookup(ctx, e.Name); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return printNodes(ctx, nodes, long, out)
}

// named is a node and its name.
type named struct {
	name string
	node tree.Node
}

// printNodes prints nodes, one a line. What fails is told on the error stream, and
// the rest is printed all the same.
func printNodes(ctx context.Context, nodes []named, long bool, out console) error {
	w := tabwriter.NewWriter(out.out, 0, 0, 1, ' ', tabwriter.AlignRight)
	failed := false
	for _, n := range nodes {
		if !long {
			fmt.Fprintln(out.out, n.name)
			continue
		}
		if err := printLong(ctx, w, n); err != nil {
			failed = true
			fmt.Fprintf(out.err, "icefs: %s: %v\n", n.name, err)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if failed {
		return errors.New("not everything could be shown")
	}
	return nil
}

// printLong prints size, time, name and target.
func printLong(ctx context.Context, w io.Writer, n named) error {
	size, kind, target := "-", "", ""
	var failed error
	switch t := n.node.(type) {
	case tree.Dir:
		kind = "/"
	case tree.Link:
		to, err := t.Target(ctx)
		if err != nil {
			to, failed = "?", err
		}
		target = " -> " + to
	case tree.File:
		bytes, err := t.Size(ctx)
		size = fmt.Sprint(bytes)
		if err != nil {
			size, failed = "?", err
		}
	}
	when := "-"
	if a, err := n.node.Attr(ctx); err == nil {
		when = a.MTime.UTC().Format("2006-01-02T15:04:05.000Z")
	} else {
		failed = err
	}
	fmt.Fprintf(w, "%s\t %s\t %s%s%s\n", size, when, n.name, kind, target)
	return failed
}
