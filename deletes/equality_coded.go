package deletes

import (
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// A key of one column that is coded by a dictionary is looked up once for each
// value of the dictionary, as if these were rows. What rows have is told by their
// indexes then.

// codedKeys tells which values of a dictionary are keys. The place behind the
// last value stands for NULL.
type codedKeys struct {
	dict *pqfile.Values
	any  []bool   // of any active run
	runs [][]bool // of each
	none bool     // no value, nor NULL
}

// matchCoded looks at a batch of rows of the only column.
func (g *groupMatcher) matchCoded(c *columnBatch, first int64) error {
	keys := &g.coded
	if keys.dict != c.dict {
		g.lookUpDictionary(c)
	}
	if keys.none {
		if g.file.allDictionary(g.group, &g.proj.Columns[0]) {
			return errNoKey
		}
		return nil
	}
	g.rows = keys.appendHits(g.rows[:0], c)
	if len(g.active) == 1 {
		g.add(0, first, g.rows)
		return nil
	}
	for i := range g.active {
		g.hits = g.hits[:0]
		for _, row := range g.rows {
			v := c.value(int(row))
			if v < 0 {
				v = len(keys.any) - 1
			}
			if keys.runs[i][v] {
				g.hits = append(g.hits, row)
			}
		}
		g.add(i, first, g.hits)
	}
	return nil
}

// appendHits appends the rows whose values are keys.
func (k *codedKeys) appendHits(dst []int32, c *columnBatch) []int32 {
	if c.places == nil {
		for row, x := range c.index {
			if k.any[x] {
				dst = append(dst, int32(row))
			}
		}
		return dst
	}
	null := len(k.any) - 1
	for row, place := range c.places {
		x := null
		if place >= 0 {
			x = int(c.index[place])
		}
		if k.any[x] {
			dst = append(dst, int32(row))
		}
	}
	return dst
}

// lookUpDictionary finds the keys among the values of a column's dictionary.
func (g *groupMatcher) lookUpDictionary(c *columnBatch) {
	keys, n := &g.coded, len(c.coded.hashes)
	keys.dict, keys.none = c.dict, true
	keys.any = falses(keys.any, n+1)
	keys.runs = slices.Grow(keys.runs[:0], len(g.active))[:len(g.active)]
	for i, run := range g.active {
		keys.runs[i] = falses(keys.runs[i], n+1)
		if run.set.columns[0].null != nil {
			keys.runs[i][n], keys.any[n], keys.none = true, true, false
		}
	}
	values := &keyBatch{hash: g.batch.hash, rows: n, columns: []columnBatch{{leaf: c.leaf, rows: n, values: &c.coded}}}
	g.rows = values.columns[0].appendPassing(g.rows[:0], &g.probe.columns[0])
	g.look(values, func(i int) {
		for _, v := range g.hits {
			keys.runs[i][v], keys.any[v] = true, true
		}
		keys.none = false
	})
}

// falses returns n times false, in the memory of b if that is long enough.
func falses(b []bool, n int) []bool {
	b = slices.Grow(b[:0], n)[:n]
	clear(b)
	return b
}
