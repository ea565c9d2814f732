package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// newTable starts a table in an empty folder.
func newTable(dir string) (*table, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	t := &table{Table: fixture.New(dir, fixture.Options{FormatVersion: 3, Schema: schema(), UUIDNames: true})}
	return t, os.MkdirAll(filepath.Join(dir, "data"), 0o755)
}

// history writes a table of so many snapshots, each of which appends one data
// file of rows rows. It reports the last as "last".
func history(dir string, snapshots, rows int) error {
	t, err := newTable(dir)
	if err != nil {
		return err
	}
	gen := newGenerator()
	for i := range snapshots {
		tx := t.Begin()
		if err := t.adopt(tx, gen, i, rows, 1); err != nil {
			return err
		}
		t.base = tx.Commit()
	}
	t.report("last", t.base)
	return t.Err()
}

// copies writes a table of one snapshot, "copies": one data file, and so many
// hard links to it, each a data file of its own.
func copies(dir string, links, rows, groups int) error {
	t, err := newTable(dir)
	if err != nil {
		return err
	}
	gen := newGenerator()
	tx := t.Begin()
	if err := t.adopt(tx, gen, 0, rows, groups); err != nil {
		return err
	}
	first := filepath.Join(dir, "data", dataName(0))
	for i := 1; i <= links; i++ {
		path := filepath.Join(dir, "data", dataName(i))
		if err := os.Link(first, path); err != nil {
			return err
		}
		t.data = append(t.data, tx.Adopt(path, int64(rows), nil))
	}
	t.report("copies", tx.Commit())
	return t.Err()
}

func dataName(i int) string { return fmt.Sprintf("part-%05d.parquet", i) }

// adopt writes data file i and adds it to the table.
func (t *table) adopt(tx *fixture.Tx, gen *generator, i, rows, groups int) error {
	path := filepath.Join(t.Dir(), "data", dataName(i))
	lower, upper, err := gen.writeFile(path, rows, groups)
	if err != nil {
		return err
	}
	t.data = append(t.data, tx.Adopt(path, int64(rows), map[int][2]iceberg.Literal{
		orderKeyID: {iceberg.NewLiteral(lower), iceberg.NewLiteral(upper)},
	}))
	return nil
}
