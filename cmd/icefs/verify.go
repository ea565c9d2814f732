package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/reference"
	"github.com/icefs/icefs/internal/tree"
)

const verifyHelp = `PATH is a snapshot's folder, or anything above: then every snapshot listed below it
is verified. All rows of each form are decoded and compared with a merge of the
table's files row by row, and Puffin footers with the manifests. This is slow.

`

// errProblems: verify found something.
var errProblems = errors.New("not everything is as it has to be")

func verifyCommand() (*pflag.FlagSet, runner) {
	set := newFlags("verify")
	var opt options
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
		n, err := s.tree.Resolve(ctx, pathArg(args))
		if err != nil {
			return err
		}
		dir, ok := n.(tree.Dir)
		if !ok {
			return fmt.Errorf("%s is a file: verify its folder", args[1])
		}
		v := verifier{session: s, out: out}
		if err := v.walk(ctx, dir, pathArg(args)); err != nil {
			return err
		}
		if v.problems > 0 {
			return errProblems
		}
		return nil
	}
}

// verifier verifies the snapshots below a folder.
type verifier struct {
	session  *session
	out      console
	problems int
}

// walk verifies a snapshot's folder, or each below. Links lead to folders that
// are listed elsewhere, except one that shows a snapshot under another schema.
func (v *verifier) walk(ctx context.Context, dir tree.Dir, path string) error {
	if s, ok := dir.(tree.SnapshotFolder); ok {
		return v.verify(ctx, s, path)
	}
	entries, err := dir.Entries(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range entries {
		below := path + "/" + e.Name
		if path == "" {
			below = e.Name
		}
		n, err := dir.Lookup(ctx, e.Name)
		if err != nil {
			return fmt.Errorf("%s: %w", below, err)
		}
		if link, ok := n.(tree.Link); ok {
			if n, err = v.otherSchema(ctx, link, below); err != nil {
				return fmt.Errorf("%s: %w", below, err)
			}
		}
		if d, ok := n.(tree.Dir); ok {
			if err := v.walk(ctx, d, below); err != nil {
				return err
			}
		} else if e.Name == "error.txt" {
			v.problem(path, errors.New("the table cannot be shown: see error.txt"))
		}
	}
	return nil
}

// otherSchema returns the folder a link leads to if no snapshots/ lists it.
func (v *verifier) otherSchema(ctx context.Context, link tree.Link, path string) (tree.Node, error) {
	target, err := link.Target(ctx)
	if err != nil || !strings.Contains(target, "@schema-") {
		return nil, err
	}
	return v.session.tree.Resolve(ctx, path)
}

func (v *verifier) problem(path string, err error) {
	v.problems++
	fmt.Fprintf(v.out.err, "icefs: %s: %v\n", path, err)
}

// verify prints one line for a snapshot, and its problems.
func (v *verifier) verify(ctx context.Context, dir tree.SnapshotFolder, path string) error {
	scan, err := dir.Scan(ctx)
	if err != nil {
		v.problem(path, err)
		return ctx.Err()
	}
	views, err := folderViews(ctx, dir)
	if err != nil {
		v.problem(path, err)
		return ctx.Err()
	}
	csv := v.session.opt.csv
	report, err := reference.Verify(ctx,
		&reference.Merge{Table: scan.Table, Schema: scan.Schema, Plan: scan.Plan, Store: scan.Store, Metadata: v.session.opt.metadata}, views,
		reference.TextOptions{Null: csv.Null, Delimiter: csv.Delimiter, NoHeader: csv.NoHeader, BOM: csv.BOM})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Fprintf(v.out.out, "%s: %d rows, %d files right, %d cannot be served, %d deletion vectors right\n",
		path, report.Rows, report.Views, report.Refused, report.Vectors)
	for _, p := range report.Unverified {
		fmt.Fprintf(v.out.out, "%s: %s: not verified: %v\n", path, p.Name, p.Err)
	}
	for _, p := range report.Problems {
		v.problem(path+": "+p.Name, p.Err)
	}
	return nil
}

// folderViews are the views that a folder shows.
func folderViews(ctx context.Context, dir tree.Dir) (reference.Views, error) {
	var views reference.Views
	entries, err := dir.Entries(ctx)
	if err != nil {
		return views, err
	}
	for _, e := range entries {
		n, err := dir.Lookup(ctx, e.Name)
		if err != nil {
			return views, err
		}
		switch e.Name {
		case "data.parquet":
			views.Parquet, err = viewOf(ctx, n)
		case "data.csv":
			views.CSV, err = viewOf(ctx, n)
		case "data.jsonl":
			views.JSONL, err = viewOf(ctx, n)
		case "parts":
			views.Parts, err = partViews(ctx, n.(tree.Dir))
		}
		if err != nil {
			return views, err
		}
	}
	return views, nil
}

func viewOf(ctx context.Context, n tree.Node) (reference.View, error) {
	return n.(tree.ViewFile).View(ctx)
}

// partViews are the views of parts/, which it lists in the plan's order.
func partViews(ctx context.Context, dir tree.Dir) ([]reference.View, error) {
	entries, err := dir.Entries(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]reference.View, len(entries))
	for i, e := range entries {
		n, err := dir.Lookup(ctx, e.Name)
		if err != nil {
			return nil, err
		}
		if views[i], err = viewOf(ctx, n); err != nil {
			return nil, err
		}
	}
	return views, nil
}
