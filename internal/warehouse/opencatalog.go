package warehouse

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/icefs/icefs/internal/source"
)

// Kinds of catalogs, as the property type names them.
const (
	kindREST   = "rest"
	kindSQL    = "sql"
	kindGlue   = "glue"
	kindHive   = "hive"
	kindHadoop = "hadoop"
)

// OpenCatalog opens a catalog by its properties, named as pyiceberg and the Java
// implementation name them (docs/catalogs.md lists those that are used): its
// type, its uri, its warehouse, how to log in, and file-IO properties for its
// tables. name is what the user calls it; a database may hold several catalogs,
// told apart by their names.
//
// Properties may hold secrets: no error and no log line does.
func OpenCatalog(ctx context.Context, name string, props map[string]string, opt Options) (*Catalog, error) {
	fail := func(err error) (*Catalog, error) {
		if name == "" {
			return nil, err
		}
		return nil, fmt.Errorf("catalog %s: %w", name, err)
	}
	kind, err := kindOf(props)
	if err != nil {
		return fail(err)
	}
	if kind == kindHadoop {
		return openHadoop(ctx, name, props, opt)
	}
	// The user's own word on where files are and how they are reached comes first.
	var roots []string
	if warehouse := props[propWarehouse]; source.IsURL(warehouse) && opt.Remotes != nil {
		roots = append(roots, warehouse)
	} else if local, ok := source.LocalPath(warehouse); ok {
		roots = append(roots, local)
	}
	all := opt
	all.Properties = maps.Clone(props)
	maps.Copy(all.Properties, opt.Properties)
	e, err := newEnv(all, roots...)
	if err != nil {
		return fail(err)
	}
	e.opt.Properties = opt.Properties // come after those that a catalog sets
	r, err := openRemote(ctx, kind, name, props, e)
	if err != nil {
		return fail(err)
	}
	w := &watched{remote: r, name: name, log: e.log}
	return &Catalog{env: e, remote: w, root: newRemoteNamespace(e, w, newSharedAccess(), nil)}, nil
}

// openRemote opens a catalog of a kind that is asked.
func openRemote(ctx context.Context, kind, name string, props map[string]string, e *env) (remote, error) {
	uri := props[propURI]
	switch {
	case kind == kindREST:
		return openREST(ctx, props, e.retry())
	case kind == kindSQL && strings.HasPrefix(uri, "sqlite:"):
		path, catalog, _, err := sqliteSource(uri)
		if err != nil {
			return nil, err
		}
		if catalog == "" {
			catalog = name
		}
		return openSQLite(ctx, path, catalog, props, e)
	case kind == kindSQL && isPostgres(uri):
		return openPostgres(ctx, uri, name, props, e)
	case kind == kindSQL:
		scheme, _, _ := strings.Cut(uri, ":")
		return nil, fmt.Errorf("%w: a database of the kind %q (SQLite and PostgreSQL are)", ErrUnsupportedSource, scheme)
	case kind == kindGlue:
		return openGlue(ctx, props, e)
	case kind == kindHive:
		return openHive(ctx, props, e)
	}
	return nil, fmt.Errorf("%w: catalogs of type %q (rest, sql, glue, hive and hadoop are)", ErrUnsupportedSource, kind)
}

// openHadoop opens a catalog that is its warehouse's folders.
func openHadoop(ctx context.Context, name string, props map[string]string, opt Options) (*Catalog, error) {
	warehouse := props[propWarehouse]
	if warehouse == "" {
		return nil, fmt.Errorf("%w: catalog %s: a catalog of type hadoop needs a warehouse", ErrUnsupportedSource, name)
	}
	all := maps.Clone(props)
	maps.Copy(all, opt.Properties)
	opt.Properties = all
	return Open(ctx, warehouse, opt)
}

// kindOf is a catalog's type, if it is not said that of its uri.
func kindOf(props map[string]string) (string, error) {
	if kind := strings.ToLower(props[propType]); kind != "" {
		return kind, nil
	}
	uri := props[propURI]
	scheme, _, _ := strings.Cut(uri, ":")
	switch {
	case scheme == "http", scheme == "https":
		return kindREST, nil
	case scheme == "thrift":
		return kindHive, nil
	case scheme == "sqlite", isPostgres(uri):
		return kindSQL, nil
	case uri == "":
		return "", fmt.Errorf("%w: neither its type nor its uri is set", ErrUnsupportedSource)
	}
	return "", fmt.Errorf("%w: a uri of the kind %s: (http, https, thrift, postgresql and sqlite are)", ErrUnsupportedSource, scheme)
}

func isPostgres(uri string) bool {
	scheme, _, found := strings.Cut(uri, "://")
	scheme, _, _ = strings.Cut(scheme, "+")
	return found && (scheme == "postgresql" || scheme == "postgres")
}

// isCatalogURL reports whether a SOURCE is the uri of a catalog.
func isCatalogURL(src string) bool {
	kind, err := kindOf(map[string]string{propURI: src})
	return err == nil && kind != "" && strings.Contains(src, "://")
}

// openCatalogURL opens the catalog at a URL. Parameters catalog and warehouse are
// those of its properties.
func openCatalogURL(ctx context.Context, src string, opt Options) (*Catalog, error) {
	u, err := url.Parse(src)
	if err != nil {
		return nil, fmt.Errorf("%w: not a URL", ErrUnsupportedSource)
	}
	if _, has := u.User.Password(); has {
		return nil, fmt.Errorf("%w: a password in SOURCE can be seen by every user: put the uri into .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI, and mount it by name", ErrUnsupportedSource)
	}
	props := maps.Clone(opt.Properties)
	if props == nil {
		props = map[string]string{}
	}
	query := u.Query()
	name := query.Get("catalog")
	if warehouse := query.Get(propWarehouse); warehouse != "" {
		props[propWarehouse] = warehouse
	}
	if strings.HasPrefix(src, sqliteScheme) {
		if _, _, _, err := sqliteSource(src); err != nil {
			return nil, err
		}
		if warehouse := props[propWarehouse]; warehouse != "" && !source.IsURL(warehouse) {
			local, ok := source.LocalPath(warehouse)
			if !ok {
				local = warehouse // relative to the working folder
			}
			if props[propWarehouse], err = filepath.Abs(local); err != nil {
				return nil, fmt.Errorf("source %s: %w", src, err)
			}
		}
		props[propURI] = src
		return OpenCatalog(ctx, name, props, opt)
	}
	query.Del("catalog")
	query.Del(propWarehouse)
	u.RawQuery = query.Encode()
	props[propURI] = u.String()
	return OpenCatalog(ctx, name, props, opt)
}
