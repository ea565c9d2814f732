package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// sqlCatalog is a catalog in a database, as Java's JdbcCatalog and pyiceberg
// keep it: a table iceberg_tables of metadata locations by catalog, namespace
// (its levels joined by dots) and name. It is only ever read.
type sqlCatalog struct {
	// open returns the database and what to do when a question is answered.
	open func(ctx context.Context) (db *sql.DB, release func(), err error)
	// mark is a parameter of a query by its number, from 1.
	mark  func(int) string
	where string // for messages, without secrets
	props map[string]string
	retry retry
	// classify wraps the sentinel that says what a failure means.
	classify func(error) error
	refresh  time.Duration
	pool     *sql.DB // nil = the database is opened for each question

	gate   gate // guards all below
	name   string
	at     time.Time
	spaces []string // namespaces, as stored
}

var _ remote = (*sqlCatalog)(nil)

// close implements remote.
func (c *sqlCatalog) close() {
	if c.pool != nil {
		c.pool.Close()
	}
}

// ask runs a query until it is answered. If it has to be asked again, row is
// called again for what it has had.
func (c *sqlCatalog) ask(ctx context.Context, query string, args []any, row func(columns []string, values []sql.NullString) error) error {
	err := c.retry.do(ctx, func(ctx context.Context) error {
		err := c.askOnce(ctx, query, args, row)
		if err == nil || errors.Is(err, errEnough) {
			return err
		}
		return c.classify(err)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("catalog %s: %w", c.where, err)
	}
	return err
}

func (c *sqlCatalog) askOnce(ctx context.Context, query string, args []any, row func(columns []string, values []sql.NullString) error) error {
	db, release, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for i := range columns {
		columns[i] = strings.ToLower(columns[i])
	}
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if err := row(columns, values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// strings runs a query of one column, and sorts the answer.
func (c *sqlCatalog) strings(ctx context.Context, query string, args ...any) (list []string, err error) {
	err = c.ask(ctx, query, args, func(_ []string, values []sql.NullString) error {
		list = append(list, values[0].String)
		return nil
	})
	slices.Sort(list)
	return slices.Compact(list), err
}

// chooseCatalog takes the only catalog of the database if none was named.
func (c *sqlCatalog) chooseCatalog(ctx context.Context) error {
	names, err := c.strings(ctx, "SELECT DISTINCT catalog_name FROM iceberg_tables")
	switch {
	case err != nil:
		return err
	case c.name == "" && len(names) == 1:
		c.name = names[0]
	case c.name == "" && len(names) > 1:
		return fmt.Errorf("%w: %s: choose one of its catalogs with ?catalog=: %s", ErrUnsupportedSource, c.where, strings.Join(names, ", "))
	case len(names) > 0 && !slices.Contains(names, c.name):
		c.retry.log.Warn("the catalog has no table; others in its database have", "catalog", c.name, "others", strings.Join(names, ", "))
	}
	return nil
}

// stored returns all namespaces as they are stored, those of tables and those
// that are kept for themselves.
func (c *sqlCatalog) stored(ctx context.Context) ([]string, error) {
	if err := c.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer c.gate.leave()
	if !c.at.IsZero() && time.Since(c.at) < c.refresh {
		return c.spaces, nil
	}
	all, err := c.strings(ctx, "SELECT DISTINCT table_namespace FROM iceberg_tables WHERE catalog_name = "+c.mark(1), c.name)
	if err != nil {
		return nil, err
	}
	// The oldest catalogs have no such table.
	kept, err := c.strings(ctx, "SELECT DISTINCT namespace FROM iceberg_namespace_properties WHERE catalog_name = "+c.mark(1), c.name)
	if err != nil && (ctx.Err() != nil || errors.Is(err, ErrUnavailable)) {
		return nil, err
	}
	all = append(all, kept...)
	slices.Sort(all)
	c.spaces, c.at = slices.Compact(all), time.Now()
	return c.spaces, nil
}

// namespaces implements remote.
func (c *sqlCatalog) namespaces(ctx context.Context, parent []string) ([]string, error) {
	stored, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	there := len(parent) == 0
	for _, namespace := range stored {
		levels := levelsOf(namespace)
		if len(levels) < len(parent) || !slices.Equal(levels[:len(parent)], parent) {
			continue
		}
		there = true
		if len(levels) > len(parent) {
			names = append(names, levels[len(parent)])
		}
	}
	if !there {
		return nil, fmt.Errorf("%w: namespace %s", ErrGone, strings.Join(parent, "."))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// levelsOf splits a stored namespace at its dots. One with an empty level cannot
// be told from a name with dots in it and stays whole.
func levelsOf(namespace string) []string {
	if namespace == "" {
		return nil
	}
	levels := strings.Split(namespace, ".")
	if slices.Contains(levels, "") {
		return []string{namespace}
	}
	return levels
}

// errEnough ends a query early.
var errEnough = errors.New("enough")

// tables implements remote.
func (c *sqlCatalog) tables(ctx context.Context, namespace []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		query := "SELECT * FROM iceberg_tables WHERE catalog_name = " + c.mark(1) + " AND table_namespace = " + c.mark(2)
		err := c.ask(ctx, query, []any{c.name, strings.Join(namespace, ".")}, func(columns []string, values []sql.NullString) error {
			row := rowOf(columns, values)
			if isTableRow(row) && !yield(row["table_name"].String, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield("", err)
		}
	}
}

// table implements remote.
func (c *sqlCatalog) table(ctx context.Context, namespace []string, name, _ string) (found, error) {
	query := "SELECT * FROM iceberg_tables WHERE catalog_name = " + c.mark(1) + " AND table_namespace = " + c.mark(2) + " AND table_name = " + c.mark(3)
	f, there := found{access: c.props}, false
	err := c.ask(ctx, query, []any{c.name, strings.Join(namespace, "."), name}, func(columns []string, values []sql.NullString) error {
		row := rowOf(columns, values)
		there = there || isTableRow(row)
		f.location = row["metadata_location"].String
		return nil
	})
	if err == nil && !there {
		err = fmt.Errorf("%w: no such row", ErrGone)
	}
	return f, err
}

func rowOf(columns []string, values []sql.NullString) map[string]sql.NullString {
	row := make(map[string]sql.NullString, len(columns))
	for i, column := range columns {
		row[column] = values[i]
	}
	return row
}

// isTableRow reports whether a row is a table's. Old catalogs have no column
// iceberg_type; in those that have, views are left out.
func isTableRow(row map[string]sql.NullString) bool {
	kind := row["iceberg_type"]
	return !kind.Valid || kind.String == "TABLE"
}
