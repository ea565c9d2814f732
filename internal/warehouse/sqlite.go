package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const sqliteScheme = "sqlite://"

// sqliteDriver is the database/sql driver that the program registers.
const sqliteDriver = "sqlite"

// sqliteSource takes sqlite:///relative/path.db?catalog=NAME&warehouse=DIR apart;
// four slashes begin an absolute path.
func sqliteSource(src string) (path, catalog, warehouse string, err error) {
	path, rawQuery, _ := strings.Cut(strings.TrimPrefix(src, sqliteScheme), "?")
	path, ok := strings.CutPrefix(path, "/")
	if !ok || path == "" {
		return "", "", "", fmt.Errorf("%w: %s: write sqlite:///path or sqlite:////absolute/path", ErrUnsupportedSource, src)
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", "", "", fmt.Errorf("%w: %s: %w", ErrUnsupportedSource, src, err)
	}
	for key := range query {
		if key != "catalog" && key != "warehouse" {
			return "", "", "", fmt.Errorf("%w: %s: unknown parameter %s", ErrUnsupportedSource, src, key)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", "", "", fmt.Errorf("source %s: %w", src, err)
	}
	return path, query.Get("catalog"), query.Get("warehouse"), nil
}

// openSQLite opens a catalog in a file. The file is opened anew for each
// question, so that one that was replaced is noticed.
func openSQLite(ctx context.Context, path, name string, props map[string]string, e *env) (*sqlCatalog, error) {
	file := &sqliteFile{path: path}
	c := &sqlCatalog{
		open: file.open, mark: func(int) string { return "?" }, where: path, name: name, props: props,
		retry: e.retry(), classify: func(err error) error { return err }, refresh: e.opt.Refresh, gate: newGate(),
	}
	return c, c.chooseCatalog(ctx)
}

// sqliteFile is a file of SQLite, opened to be read.
type sqliteFile struct{ path string }

// busyWait is how long a writer that holds the file is waited for.
const busyWait = "_pragma=busy_timeout(2000)"

// errNoFile is not os.ErrNotExist: a catalog that is gone is no missing folder.
var errNoFile = errors.New("there is no such file (sqlite:/// begins a path from the working folder, sqlite://// one from the root)")

// open opens the file. Where the folder cannot be written, SQLite may be unable
// to open a file in WAL mode: then it is read as it lies there.
func (f *sqliteFile) open(ctx context.Context) (*sql.DB, func(), error) {
	db, err := f.openMode(ctx, "mode=ro&"+busyWait)
	if err != nil && ctx.Err() == nil {
		if _, statErr := os.Stat(f.path); errors.Is(statErr, os.ErrNotExist) {
			return nil, nil, errNoFile
		}
		if unix.Access(filepath.Dir(f.path), unix.W_OK) != nil {
			db, err = f.openMode(ctx, "mode=ro&immutable=1")
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return db, func() { db.Close() }, nil
}

func (f *sqliteFile) openMode(ctx context.Context, mode string) (*sql.DB, error) {
	uri := url.URL{Scheme: "file", Path: f.path, RawQuery: mode}
	db, err := sql.Open(sqliteDriver, uri.String())
	if err != nil {
		return nil, err
	}
	// Opening reads nothing; the first query tells whether the file can be read.
	if _, err := db.ExecContext(ctx, "SELECT 1 FROM sqlite_master LIMIT 1"); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}
