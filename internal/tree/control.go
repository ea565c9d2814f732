package tree

import (
	"context"
	"iter"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// nameControl is the folder of files about the mount itself.
const nameControl = ".icefs"

func (t *Tree) controlNames() []string {
	if len(t.opt.Control) == 0 {
		return nil
	}
	return []string{nameControl}
}

// rootDir is the top: a namespace or a table, with .icefs beside its entries.
type rootDir struct {
	Dir
	tree *Tree
}

func (d *rootDir) Attr(ctx context.Context) (Attr, error) {
	if _, err := d.Dir.Attr(ctx); err != nil {
		return Attr{}, err
	}
	return Attr{Kind: KindDir, Ino: 1, MTime: Fixed()}, nil
}

func (d *rootDir) Entries(ctx context.Context) ([]Entry, error) {
	list, err := d.Dir.Entries(ctx)
	if err != nil || len(d.tree.opt.Control) == 0 {
		return list, err
	}
	all := make([]Entry, 0, len(list)+1)
	all = append(all, controlEntry())
	return append(all, list...), nil
}

// Stream implements Streamer, also for a folder that is none.
func (d *rootDir) Stream(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if len(d.tree.opt.Control) > 0 && !yield(controlEntry(), nil) {
			return
		}
		for e, err := range stream(ctx, d.Dir) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// stream lists any folder.
func stream(ctx context.Context, d Dir) iter.Seq2[Entry, error] {
	if s, ok := d.(Streamer); ok {
		return s.Stream(ctx)
	}
	return func(yield func(Entry, error) bool) {
		list, err := d.Entries(ctx)
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

func controlEntry() Entry { return Entry{nameControl, KindDir, controlID("").Inode()} }

func (d *rootDir) Lookup(ctx context.Context, name string) (Node, error) {
	if name == nameControl && len(d.tree.opt.Control) > 0 {
		return &controlDir{d.tree}, nil
	}
	return d.Dir.Lookup(ctx, name)
}

func controlID(name string) snapshot.ID { return snapshot.HashID("control", name) }

// controlDir is .icefs.
type controlDir struct{ tree *Tree }

func (d *controlDir) Attr(context.Context) (Attr, error) {
	return Attr{Kind: KindDir, Ino: controlID("").Inode(), MTime: Fixed()}, nil
}

func (d *controlDir) Entries(context.Context) ([]Entry, error) {
	list := make([]Entry, len(d.tree.opt.Control))
	for i, c := range d.tree.opt.Control {
		list[i] = Entry{c.Name, KindFile, controlID(c.Name).Inode()}
	}
	return list, nil
}

func (d *controlDir) Lookup(_ context.Context, name string) (Node, error) {
	for _, c := range d.tree.opt.Control {
		if c.Name == name {
			return &controlFile{c}, nil
		}
	}
	return nil, errNoEntry
}

// controlFile has its content made when it is opened.
type controlFile struct{ ControlFile }

var _ File = (*controlFile)(nil)

func (f *controlFile) Attr(context.Context) (Attr, error) {
	return Attr{Kind: KindFile, Ino: controlID(f.Name).Inode(), MTime: Fixed(), Dynamic: true}, nil
}

func (f *controlFile) Size(context.Context) (int64, error) { return 0, nil }

func (f *controlFile) Open(ctx context.Context) (merge.Handle, error) {
	b, err := f.Content(ctx)
	if err != nil {
		return nil, err
	}
	return newBytesHandle(b), nil
}
