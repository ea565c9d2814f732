package warehouse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// Catalog is an opened SOURCE: the namespace at its root, or one table.
type Catalog struct {
	env    *env
	root   *Namespace
	table  *Table
	remote *watched // nil = folders
}

// Open opens SOURCE, a path if one exists, else a URL:
//
//   - a folder with metadata files in its metadata folder, or in itself: that
//     table;
//   - another folder: a warehouse, searched for tables as it is listed;
//   - a file: the table at that metadata version, for good;
//   - the same three in an object store, by the URL of the folder or the file;
//   - sqlite:///path.db?catalog=NAME&warehouse=DIR, http://…, https://…,
//     thrift://… or postgresql://…: the tables of the catalog at that uri, with
//     Options.Properties for its properties (OpenCatalog).
func Open(ctx context.Context, src string, opt Options) (*Catalog, error) {
	if local, ok := source.LocalPath(src); ok {
		src = local
	}
	fi, err := os.Stat(src)
	switch {
	case err == nil && fi.IsDir():
		return openFolder(ctx, src, opt)
	case err == nil:
		return openFile(src, opt)
	case isCatalogURL(src):
		return openCatalogURL(ctx, src, opt)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("source %s: %w", src, err)
	case opt.isRemote(src):
		return openURL(ctx, strings.TrimRight(src, "/"), opt)
	case strings.Contains(src, "://"):
		if o := opt.Remotes; o != nil && source.IsURL(src) {
			// It may say more: that the program was built without it.
			if _, err := o.Folders(source.Access{Roots: []string{src}}); err != nil {
				return nil, fmt.Errorf("%w: %w (a folder, a metadata file or a catalog's URL is supported)", ErrUnsupportedSource, err)
			}
		}
		scheme, _, _ := strings.Cut(src, "://")
		return nil, fmt.Errorf("%w: %s:// (a folder, a metadata file or a catalog's URL is)", ErrUnsupportedSource, scheme)
	default:
		return nil, fmt.Errorf("source %s: %w", src, fs.ErrNotExist)
	}
}

// openFolder opens a table's folder or a warehouse. A folder of metadata files
// that is named metadata stands for the table above it.
func openFolder(ctx context.Context, src string, opt Options) (*Catalog, error) {
	dir, err := filepath.Abs(src)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", src, err)
	}
	return openDir(ctx, dir, opt)
}

// isRemote reports whether a location is that of an object store.
func (o *Options) isRemote(location string) bool {
	if o.Remotes == nil || !source.IsURL(location) {
		return false
	}
	_, err := o.Remotes.Folders(source.Access{Roots: []string{location}})
	return !errors.Is(err, source.ErrUnsupported)
}

// openURL opens a folder or a metadata file in an object store.
func openURL(ctx context.Context, src string, opt Options) (*Catalog, error) {
	dir, name := folderOf(src), path.Base(src)
	if _, ok := parseMetadataName(name); !ok && !strings.HasSuffix(name, ".json") {
		return openDir(ctx, src, opt)
	}
	if path.Base(dir) == metadataFolder {
		dir = folderOf(dir)
	}
	e, err := newEnv(opt, dir)
	if err != nil {
		return nil, err
	}
	if _, err := e.reach.Open(ctx, src); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return &Catalog{env: e, table: newTable(e, pinnedFile{e, src})}, nil
}

// openDir opens the folder at a location.
func openDir(ctx context.Context, dir string, opt Options) (*Catalog, error) {
	e, err := newEnv(opt, dir)
	if err != nil {
		return nil, err
	}
	isTable, err := e.isTable(ctx, dir)
	if err != nil {
		return nil, err
	}
	if isTable {
		return &Catalog{env: e, table: newTable(e, newFolderTable(e, join(dir, metadataFolder)))}, nil
	}
	hasMetadata, err := e.hasMetadata(ctx, dir)
	switch {
	case err != nil:
		return nil, err
	case hasMetadata && path.Base(dir) == metadataFolder:
		return openDir(ctx, folderOf(dir), opt)
	case hasMetadata:
		return &Catalog{env: e, table: newTable(e, newFolderTable(e, dir))}, nil
	}
	return &Catalog{env: e, root: newNamespace(e, folder{env: e, dir: dir})}, nil
}

// openFile opens a table at one metadata file. What it may refer to lies in its
// folder, or in the table's if that folder is named metadata.
func openFile(src string, opt Options) (*Catalog, error) {
	file, err := filepath.Abs(src)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", src, err)
	}
	dir := filepath.Dir(file)
	if filepath.Base(dir) == metadataFolder {
		dir = filepath.Dir(dir)
	}
	e, err := newEnv(opt, dir)
	if err != nil {
		return nil, err
	}
	return &Catalog{env: e, table: newTable(e, pinnedFile{e, file})}, nil
}

// Root returns the namespace at the root, or (one table mounted) the table.
func (c *Catalog) Root(ctx context.Context) (*Namespace, *Table, error) {
	return c.root, c.table, ctx.Err()
}

// Outage returns since when a catalog service has not answered, and why; a zero
// time if it does.
func (c *Catalog) Outage() (time.Time, error) {
	if c.remote == nil {
		return time.Time{}, nil
	}
	return c.remote.outage()
}

// Folders reports whether the tables are found in folders, rather than named by
// a catalog.
func (c *Catalog) Folders() bool { return c.remote == nil }

// Remote reports whether tables may be in an object store: where the roots lead
// to one, and where a catalog names tables and no root is local.
func (c *Catalog) Remote() bool {
	return c.env.reach.Remote() || c.remote != nil && len(c.env.reach.Local().Roots()) == 0
}

// Close closes the descriptors and connections that no reader uses.
func (c *Catalog) Close() error {
	if c.remote != nil {
		c.remote.close()
	}
	c.env.opt.Pool.CloseIdle()
	return nil
}
