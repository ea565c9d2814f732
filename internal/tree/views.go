package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"weak"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// form of a view of rows.
type form int

const (
	formParquet form = iota
	formCSV
	formJSONL
)

func (f form) extension() string {
	switch f {
	case formCSV:
		return ".csv"
	case formJSONL:
		return ".jsonl"
	}
	return ".parquet"
}

// file is the name of the view of all rows.
func (f form) file() string { return "data" + f.extension() }

// options spells out what else changes a view's bytes.
func (t *Tree) options(f form) string {
	switch f {
	case formCSV:
		return t.opt.CSVOptions
	case formJSONL:
		return t.opt.JSONLOptions
	}
	return t.opt.ParquetOptions
}

// viewFile is the view of all rows of a snapshot in one form.
type viewFile struct {
	dir   *snapshotDir
	form  form
	first first
}

var _ ViewFile = (*viewFile)(nil)

// plan returns the snapshot's plan, of which the file is what it was.
func (f *viewFile) plan(ctx context.Context) (*planned, error) {
	p, err := f.dir.plan(ctx)
	if err != nil {
		return nil, f.dir.fail(ctx, err)
	}
	return p, f.first.is(f.id(p))
}

func (f *viewFile) id(p *planned) snapshot.ID { return p.viewID(f.form.file(), p.options(f.form)) }

func (f *viewFile) Attr(ctx context.Context) (Attr, error) {
	p, err := f.plan(ctx)
	if err != nil {
		return Attr{}, err
	}
	return f.dir.attr(KindFile, f.id(p)), nil
}

func (f *viewFile) View(ctx context.Context) (merge.View, error) {
	p, err := f.plan(ctx)
	if err != nil {
		return nil, err
	}
	return p.view(f.form.file(), func() merge.View { return f.dir.dir.tree.view(f.form, p.scan) }), nil
}

// view makes the view of all rows of a scan.
func (t *Tree) view(f form, s merge.Scan) merge.View {
	switch f {
	case formCSV:
		return t.opt.Views.CSV(s)
	case formJSONL:
		return t.opt.Views.JSONL(s)
	}
	return t.opt.Views.Parquet(s)
}

func (f *viewFile) Size(ctx context.Context) (int64, error) { return f.dir.size(ctx, f) }

func (f *viewFile) Open(ctx context.Context) (merge.Handle, error) { return f.dir.open(ctx, f) }

// size asks a view for its size.
func (d *snapshotDir) size(ctx context.Context, f ViewFile) (int64, error) {
	v, err := f.View(ctx)
	if err != nil {
		return 0, err
	}
	n, err := v.Size(ctx)
	return n, d.fail(ctx, err)
}

// open opens a view whose size is known to be tellable.
func (d *snapshotDir) open(ctx context.Context, f ViewFile) (merge.Handle, error) {
	v, err := f.View(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := v.Size(ctx); err != nil {
		return nil, d.fail(ctx, err)
	}
	g := guarded{openView(v), d}
	pieces, ok := g.Handle.(merge.Piecer)
	if !ok {
		return &g, nil
	}
	p := guardedPieces{g, pieces}
	if file, ok := g.Handle.(merge.Passthrough); ok {
		return &guardedFile{p, file}, nil
	}
	return &p, nil
}

// guarded marks failures of a reader whose snapshot has expired.
type guarded struct {
	merge.Handle
	dir *snapshotDir
}

func (g *guarded) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := g.Handle.ReadAt(ctx, p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, g.dir.fail(ctx, err)
	}
	return n, err
}

// guardedPieces is a guarded reader whose bytes may be in memory.
type guardedPieces struct {
	guarded
	pieces merge.Piecer
}

var _ merge.Piecer = (*guardedPieces)(nil)

func (g *guardedPieces) Pieces(ctx context.Context, n int, off int64) ([][]byte, error) {
	pieces, err := g.pieces.Pieces(ctx, n, off)
	return pieces, g.dir.fail(ctx, err)
}

// guardedFile is a guarded reader whose bytes may be those of local files.
type guardedFile struct {
	guardedPieces
	file merge.Passthrough
}

var _ merge.Passthrough = (*guardedFile)(nil)

func (g *guardedFile) OpenFile(ctx context.Context) (*os.File, error) {
	f, err := g.file.OpenFile(ctx)
	return f, g.dir.fail(ctx, err)
}

func (g *guardedFile) Stored(ctx context.Context) (stored, remote bool) { return g.file.Stored(ctx) }

func (g *guardedFile) Borrow(ctx context.Context, off int64, n int, each func(f *os.File, at int64, n int) error) (bool, error) {
	return g.file.Borrow(ctx, off, n, each)
}

// partsDir has one file for each live data file of a snapshot.
type partsDir struct {
	dir  *snapshotDir
	name string
	form form
}

var _ Dir = (*partsDir)(nil)

func (d *partsDir) Attr(context.Context) (Attr, error) {
	return d.dir.attr(KindDir, d.dir.place.id("folder", d.dir.id().String(), d.name)), nil
}

// base is what the identities of all parts have in common.
func (d *partsDir) base(p *planned) snapshot.ID {
	return p.partBase(d.name, d.dir.dir.tree.options(d.form))
}

func (d *partsDir) Entries(ctx context.Context) ([]Entry, error) {
	p, err := d.dir.plan(ctx)
	if err != nil {
		return nil, d.dir.fail(ctx, err)
	}
	base := d.base(p)
	stems, _ := p.stems()
	list := make([]Entry, len(stems))
	for i, s := range stems {
		list[i] = Entry{s + d.form.extension(), KindFile, p.partID(base, d.form, i).Inode()}
	}
	return list, nil
}

func (d *partsDir) Lookup(ctx context.Context, name string) (Node, error) {
	p, err := d.dir.plan(ctx)
	if err != nil {
		return nil, d.dir.fail(ctx, err)
	}
	ext := d.form.extension()
	if len(name) <= len(ext) || name[len(name)-len(ext):] != ext {
		return nil, errNoEntry
	}
	stem := name[:len(name)-len(ext)]
	_, index := p.stems()
	i, ok := index[stem]
	if !ok {
		return nil, errNoEntry
	}
	return &partFile{parts: d, at: i, id: p.partID(d.base(p), d.form, i), made: weak.Make(p)}, nil
}

// partFile is the view of one data file's visible rows.
type partFile struct {
	parts *partsDir
	at    int // place in the plan
	id    snapshot.ID
	made  weak.Pointer[planned] // that it was looked up in
}

// plan returns the snapshot's plan, in which the part is what it was.
func (f *partFile) plan(ctx context.Context) (*planned, error) {
	d := f.parts.dir
	p, err := d.plan(ctx)
	if err != nil {
		return nil, d.fail(ctx, err)
	}
	if f.made.Value() != p && (f.at >= len(p.scan.Plan.Files) || p.partID(f.parts.base(p), f.parts.form, f.at) != f.id) {
		return nil, fmt.Errorf("part %d: %w as it was", f.at, ErrExpired)
	}
	return p, nil
}

var _ ViewFile = (*partFile)(nil)

func (f *partFile) Attr(context.Context) (Attr, error) {
	return f.parts.dir.attr(KindFile, f.id), nil
}

func (f *partFile) View(ctx context.Context) (merge.View, error) {
	p, err := f.plan(ctx)
	if err != nil {
		return nil, err
	}
	tree := f.parts.dir.dir.tree
	return p.view(f.parts.name+"/"+decimal(int64(f.at)), func() merge.View {
		if f.parts.form == formParquet {
			return tree.opt.Views.Part(p.scan, f.at)
		}
		return tree.view(f.parts.form, p.one(f.at))
	}), nil
}

func (f *partFile) Size(ctx context.Context) (int64, error) { return f.parts.dir.size(ctx, f) }

func (f *partFile) Open(ctx context.Context) (merge.Handle, error) { return f.parts.dir.open(ctx, f) }
