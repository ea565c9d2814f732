// Package demo makes a small warehouse to try icefs on: three tables of a shop
// with a week of history, deleted rows of all three kinds, a correction, a tag,
// a branch and a schema change. The same rows are made every time.
package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrNotEmpty says that the folder for the demo holds something already.
var ErrNotEmpty = errors.New("folder is not empty")

// Create writes the warehouse to dir, which is made if it does not exist and has
// to be empty if it does, and tells on out what there is and what to try.
func Create(dir string, out io.Writer) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s: %w: give the demo a folder of its own", dir, ErrNotEmpty)
	}
	shop := filepath.Join(dir, "shop")
	for _, table := range []func(string) error{orders, customers, stock} {
		if err := table(shop); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, guide, dir)
	return err
}

// guide is printed when the demo is made.
const guide = `A shop's warehouse with three tables and a week of history:

  shop/orders     a week of orders; cancelled ones are position-deleted, Tuesday's
                  prices were corrected, Thursday added a column, Friday renamed one
  shop/customers  kept up to date by equality deletes, as Flink does
  shop/stock      format version 3: what was sold out is in deletion vectors

Mount it, or look without mounting:

  icefs mount %[1]s /mnt/shop
  icefs ls %[1]s shop/orders/by-time

Then try, below the mountpoint:

  ls shop/orders/by-time                        a week of snapshots
  head shop/orders/current/data.csv             the orders as they are now
  head shop/orders/tags/monday/data.csv         and as they were on Monday evening
  wc -l shop/orders/by-time/*/data.csv          how they grew
  diff shop/orders/by-time/2026-01-06T*/data.csv   what Tuesday's cancellations took
  cat shop/orders/current/files.csv             which files hold the rows
  duckdb -c "FROM 'shop/stock/current/data.parquet' LIMIT 5"
  icefs inspect %[1]s shop/orders/current/data.parquet

And compare with what the folder itself holds: the deleted rows come back.

  duckdb -c "SELECT count(*) FROM '%[1]s/shop/stock/data/*.parquet'"
  duckdb -c "SELECT count(*) FROM 'shop/stock/current/data.parquet'"
`

// monday is the first day of the shop's week.
func monday() time.Time { return time.Date(2026, 1, 5, 18, 0, 0, 0, time.UTC) }

// day is the evening of the n-th day.
func day(n int) time.Time { return monday().AddDate(0, 0, n) }

// ordersADay is enough to need several row groups, little enough to be quick.
const ordersADay = 2000
