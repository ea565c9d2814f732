// Command lineitem writes a lineitem-like Iceberg table for benchmarks: by
// default 6 million rows of 18 columns in 8 zstd data files of 10 row groups
// each, sorted by l_orderkey, and one branch per kind of deletes over them:
//
//	base        nothing deleted
//	random      deletion vectors, 5 % of the rows at random (also main)
//	clustered   deletion vectors, 5 % of the rows in runs of 1,000
//	equality    an equality-delete file of 120,000 l_orderkey values
//	equality-more  that, and a later one of 20,000 further values
//	equality-2  an equality-delete file of 120,000 pairs of l_orderkey and l_linenumber
//	random-<p>  deletion vectors, p % at random, for each -percent
//
// With -history it writes a table of many appends (branch "last"), with -links
// one of many hard links to a data file (branch "copies").
//
// It prints a line "<branch> <snapshot id>" for each. The same flags write the
// same rows.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/icefs/icefs/internal/fixture"
)

func main() {
	log.SetFlags(0)
	rows := flag.Int("rows", 6_000_000, "rows of the table")
	files := flag.Int("files", 8, "data files")
	groups := flag.Int("groups", 10, "row groups of a file")
	keys := flag.Int("equality-keys", 120_000, "keys of the equality-delete files; a sixth as many more in branch equality-more")
	percents := flag.String("percent", "", "further percentages of random deletes, comma-separated")
	snapshots := flag.Int("history", 0, "instead: a table of so many snapshots, each of which appends -rows rows")
	links := flag.Int("links", 0, "instead: a table of one data file of -rows rows and so many hard links to it")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: lineitem [flags] TABLE_DIR")
	}
	switch {
	case *snapshots > 0:
		if err := history(flag.Arg(0), *snapshots, *rows); err != nil {
			log.Fatal(err)
		}
		return
	case *links > 0:
		if err := copies(flag.Arg(0), *links, *rows, *groups); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := generate(flag.Arg(0), *rows, *files, *groups, *keys, *percents); err != nil {
		log.Fatal(err)
	}
}

// table is the table in the making.
type table struct {
	*fixture.Table
	data []*fixture.File
	base *fixture.Snapshot
}

func generate(dir string, rows, files, groups, keys int, percents string) error {
	t, err := newTable(dir)
	if err != nil {
		return err
	}
	tx := t.Begin()
	gen := newGenerator()
	for i := range files {
		if err := t.adopt(tx, gen, i, rows*(i+1)/files-rows*i/files, groups); err != nil {
			return err
		}
	}
	t.base = tx.Commit()
	t.report("base", t.base)

	t.branch("random", func(tx *fixture.Tx) { t.deleteRandom(tx, 5) })
	t.branch("clustered", func(tx *fixture.Tx) { t.deleteRuns(tx, 5, 1000) })
	t.equality(keys, gen.orderKey)
	for _, p := range strings.FieldsFunc(percents, func(r rune) bool { return r == ',' }) {
		percent, err := strconv.ParseFloat(p, 64)
		if err != nil {
			return err
		}
		t.branch("random-"+p, func(tx *fixture.Tx) { t.deleteRandom(tx, percent) })
	}
	tx = t.Begin() // main: the same rows as branch random
	t.deleteRandom(tx, 5)
	t.report("main", tx.Commit())
	return t.Err()
}

func (t *table) report(name string, s *fixture.Snapshot) {
	if s != nil {
		fmt.Println(name, s.ID)
	}
}

// branch commits one change on a new branch of the base snapshot.
func (t *table) branch(name string, change func(*fixture.Tx)) {
	t.SetBranch(name, t.base)
	tx := t.BeginOn(name)
	change(tx)
	t.report(name, tx.Commit())
}

// deleteRandom deletes each row with a probability of percent/100.
func (t *table) deleteRandom(tx *fixture.Tx, percent float64) {
	rnd := rand.New(rand.NewPCG(7, uint64(percent*1000)))
	for _, f := range t.data {
		var positions []int64
		for pos := range f.Count {
			if rnd.Float64()*100 < percent {
				positions = append(positions, pos)
			}
		}
		tx.DeleteVector(f, positions...)
	}
}

// deleteRuns deletes about percent of the rows in runs of length rows.
func (t *table) deleteRuns(tx *fixture.Tx, percent float64, length int64) {
	rnd := rand.New(rand.NewPCG(8, uint64(length)))
	for _, f := range t.data {
		var positions []int64
		for start := int64(0); start+length <= f.Count; start += length {
			if rnd.Float64()*100 < percent {
				for pos := start; pos < start+length; pos++ {
					positions = append(positions, pos)
				}
			}
		}
		tx.DeleteVector(f, positions...)
	}
}

// equality commits the branches with equality deletes.
func (t *table) equality(keys int, maxKey int64) {
	rnd := rand.New(rand.NewPCG(9, uint64(keys)))
	list := distinctKeys(rnd, keys+keys/6, maxKey)
	first := list[:min(keys, len(list))]
	t.branch("equality", func(tx *fixture.Tx) { t.deleteKeys(tx, first, nil) })
	t.SetBranch("equality-more", t.Head("equality"))
	tx := t.BeginOn("equality-more")
	t.deleteKeys(tx, list[len(first):], nil)
	t.report("equality-more", tx.Commit())
	t.branch("equality-2", func(tx *fixture.Tx) { t.deleteKeys(tx, first, rnd) })
}

// distinctKeys draws n of the keys from 1 to maxKey, or all if they are fewer.
func distinctKeys(rnd *rand.Rand, n int, maxKey int64) []int64 {
	seen := make(map[int64]bool, n)
	list := make([]int64, 0, n)
	for len(list) < n && int64(len(list)) < maxKey {
		if key := 1 + rnd.Int64N(maxKey); !seen[key] {
			seen[key] = true
			list = append(list, key)
		}
	}
	return list
}

// deleteKeys deletes the rows of order keys or, given rnd, the line with a
// random number of each.
func (t *table) deleteKeys(tx *fixture.Tx, keys []int64, rnd *rand.Rand) {
	ids := []int{orderKeyID}
	if rnd != nil {
		ids = append(ids, lineNumberID)
	}
	records := make([]fixture.Record, 0, len(keys))
	for _, key := range slices.Sorted(slices.Values(keys)) {
		r := fixture.Record{orderKeyID: key}
		if rnd != nil {
			r[lineNumberID] = 1 + rnd.Int32N(7)
		}
		records = append(records, r)
	}
	tx.DeleteEqualRecords(fixture.EqualityOptions{IDs: ids}, records)
}
