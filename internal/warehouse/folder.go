package warehouse

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/source"
)

// metadataFolder is where a table's metadata files lie, below its own folder.
const metadataFolder = "metadata"

// searchBudget is how many directory entries are read to find out whether a
// folder has a table somewhere below it: about a tenth of a second. Folders of
// plain data, which have none, seldom have more; one that does is shown as a
// namespace, so that no table is ever hidden.
const searchBudget = 100_000

// remoteSearchBudget is the same in an object store, where what costs is the
// listing of each folder; remoteListings are under way at a time.
const (
	remoteSearchBudget = 1_000
	remoteListings     = 16
)

// folder lists a folder of a warehouse. A folder is
//
//   - a table if its metadata folder has a metadata file; nothing below it is
//     looked at;
//   - a namespace if there is a table at any depth below it;
//   - not shown otherwise, nor if it cannot be listed, which is logged: it may
//     hold tables.
//
// A symbolic link to a table's folder is a table; other links are not followed.
type folder struct {
	env *env
	dir string
}

var _ lister = folder{}

func (f folder) list(ctx context.Context) ([]entry, error) {
	names, err := f.env.subfolders(ctx, f.dir, nil)
	if err != nil {
		return nil, err
	}
	found := make([]entry, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(remoteListings)
	for i, sub := range names {
		look := func() (err error) {
			found[i], err = f.look(ctx, sub)
			return err
		}
		if source.IsURL(f.dir) {
			g.Go(look)
		} else if err := look(); err != nil {
			return nil, err
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(e entry) bool { return e.name == "" }), nil
}

// look tells what a folder in f is: a table, a namespace, or (without a name)
// nothing to show.
func (f folder) look(ctx context.Context, sub subfolder) (entry, error) {
	dir := join(f.dir, sub.name)
	isTable, err := f.env.isTable(ctx, dir)
	if err != nil {
		return entry{}, err
	}
	if isTable {
		return entry{name: sub.name, table: newFolderTable(f.env, join(dir, metadataFolder))}, nil
	}
	if sub.link {
		return entry{}, nil
	}
	budget := searchBudget
	if source.IsURL(dir) {
		budget = remoteSearchBudget
	}
	found, err := f.env.hasTable(ctx, dir, &budget)
	if err != nil || !found {
		return entry{}, err
	}
	return entry{name: sub.name, namespace: folder{env: f.env, dir: dir}}, nil
}

type subfolder struct {
	name string
	link bool
}

// subfolders lists the folders in dir and the links to folders, by name. With a
// budget it takes one for each entry, and stops when none is left.
func (e *env) subfolders(ctx context.Context, dir string, budget *int) ([]subfolder, error) {
	var found []subfolder
	err := e.reach.ReadDir(ctx, dir, func(d os.DirEntry) bool {
		switch {
		case d.IsDir():
			found = append(found, subfolder{name: d.Name()})
		case d.Type()&os.ModeSymlink != 0 && e.reach.IsDir(ctx, join(dir, d.Name())):
			found = append(found, subfolder{name: d.Name(), link: true})
		}
		if budget != nil {
			*budget--
		}
		return budget == nil || *budget > 0
	})
	slices.SortFunc(found, func(a, b subfolder) int { return strings.Compare(a.name, b.name) })
	return found, err
}

// isTable reports whether dir is a table's folder.
func (e *env) isTable(ctx context.Context, dir string) (bool, error) {
	return e.hasMetadata(ctx, join(dir, metadataFolder))
}

// hasMetadata reports whether dir holds a metadata file.
func (e *env) hasMetadata(ctx context.Context, dir string) (found bool, err error) {
	err = e.reach.ReadDir(ctx, dir, func(d os.DirEntry) bool {
		_, found = parseMetadataName(d.Name())
		return !found
	})
	if unknown(dir, err) {
		return false, err
	}
	if err != nil && ctx.Err() == nil {
		// No such folder, not a folder or outside: not a table. One that may not be
		// read most likely is one, and is shown with the reason.
		return errors.Is(err, iofs.ErrPermission) && e.reach.IsDir(ctx, dir), nil
	}
	return found, err
}

// unknown reports whether err leaves open what is at dir: an object store that
// does not answer must not make a table vanish.
func unknown(dir string, err error) bool {
	return err != nil && source.IsURL(dir) && !errors.Is(err, source.ErrNotFound) && !errors.Is(err, source.ErrOutside)
}

// hasTable reports whether there is a table below dir. What cannot be read has
// none; a search that runs out of budget ends with yes.
func (e *env) hasTable(ctx context.Context, dir string, budget *int) (bool, error) {
	subs, err := e.subfolders(ctx, dir, budget)
	if unknown(dir, err) {
		return false, err
	}
	if err != nil {
		if ctx.Err() == nil {
			e.leftOut(dir, err)
		}
		return false, ctx.Err()
	}
	if *budget <= 0 {
		return true, nil
	}
	for _, sub := range subs {
		isTable, err := e.isTable(ctx, join(dir, sub.name))
		if isTable || err != nil {
			return isTable, err
		}
	}
	for _, sub := range subs {
		if sub.link {
			continue
		}
		found, err := e.hasTable(ctx, join(dir, sub.name), budget)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// leftOut logs once that a folder, with whatever tables it has, is not shown,
// unless it has only just gone.
func (e *env) leftOut(dir string, err error) {
	if errors.Is(err, source.ErrNotFound) {
		return
	}
	if _, known := e.unlisted.LoadOrStore(dir, true); !known {
		e.log.Warn("a folder cannot be listed: tables in it are not shown", "folder", dir, "err", err)
	}
}

// gone adds ErrGone to the error of something that is not there.
func gone(err error) error {
	if errors.Is(err, source.ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}
