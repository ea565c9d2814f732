package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/merge"
)

func catCommand() (*pflag.FlagSet, runner) {
	set := newFlags("cat")
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
		n, err := s.tree.Resolve(ctx, args[1])
		if err != nil {
			return err
		}
		f, ok := n.(tree.File)
		if !ok {
			return fmt.Errorf("%s is a folder: icefs ls lists it", args[1])
		}
		return copyFile(ctx, out.out, f)
	}
}

// copyBuffer is how much cat reads and writes at once.
const copyBuffer = 1 << 20

// copyFile writes a file out, without asking for its size if it can do without.
func copyFile(ctx context.Context, w io.Writer, f tree.File) error {
	out := bufio.NewWriterSize(w, copyBuffer)
	if v, ok := f.(tree.ViewFile); ok {
		view, err := v.View(ctx)
		if err != nil {
			return err
		}
		if s, ok := view.(merge.Streamer); ok {
			if err := s.WriteTo(ctx, out); err != nil {
				return err
			}
			return out.Flush()
		}
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	buf := make([]byte, copyBuffer)
	for off := int64(0); ; {
		n, err := h.ReadAt(ctx, buf, off)
		if _, werr := out.Write(buf[:n]); werr != nil {
			return werr
		}
		off += int64(n)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}
