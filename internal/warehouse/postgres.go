package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// postgresDriver is the database/sql driver that the program registers.
const postgresDriver = "pgx"

// maxSessions is how many connections to a database are open at once.
const maxSessions = 4

// openPostgres opens a catalog in PostgreSQL. uri is as libpq and pyiceberg write
// it (postgresql+psycopg2://…); what is not in it libpq's environment and files
// may say (PGPASSWORD, ~/.pgpass).
func openPostgres(ctx context.Context, uri, name string, props map[string]string, e *env) (*sqlCatalog, error) {
	scheme, rest, _ := strings.Cut(uri, "://")
	scheme, _, _ = strings.Cut(scheme, "+")
	pool, err := sql.Open(postgresDriver, scheme+"://"+rest)
	if err != nil {
		return nil, fmt.Errorf("%w: uri: %w", ErrUnsupportedSource, err)
	}
	pool.SetMaxOpenConns(maxSessions)
	c := &sqlCatalog{
		open: func(context.Context) (*sql.DB, func(), error) { return pool, func() {}, nil },
		mark: func(i int) string { return "$" + strconv.Itoa(i) },
		pool: pool, where: redactDatabase(uri), name: name, props: props,
		retry: e.retry(), classify: classifyPostgres, refresh: e.opt.Refresh, gate: newGate(),
	}
	if err := c.chooseCatalog(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return c, nil
}

// redactDatabase is a database's URL for messages: server and name.
func redactDatabase(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "(a database)"
	}
	return (&url.URL{Scheme: "postgresql", Host: u.Host, Path: u.Path}).String()
}

// classifyPostgres tells failures by their SQLSTATE (PostgreSQL manual, appendix
// A): those of a connection, of a server that lacks something or shuts down, and
// those without a code (no connection) may pass; the others stay.
func classifyPostgres(err error) error {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	code := state.SQLState()
	switch {
	case strings.HasPrefix(code, "28"), code == "42501":
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "40"):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
