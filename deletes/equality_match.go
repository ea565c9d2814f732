package deletes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/pqfile"
)

// A pass over a data file looks for the keys of several runs at once. Nearly
// all rows are told to have none by hashes: of one column after the other, as
// long as rows are left, and then of the whole key. What is left is compared.
// Row groups are matched in parallel.

// matcher is one pass over a data file.
type matcher struct {
	r     *Resolver
	data  *keyedData
	runs  []*run // those that have keys
	file  columnFile
	proj  *pqfile.Projection
	probe *keyProbe

	mu    sync.Mutex      // guards found of the runs, and spare
	spare []*groupMatcher // of row groups that are done
}

// match reads the data file's key columns once and finds the rows of each run.
func (r *Resolver) match(ctx context.Context, data *keyedData, all []*run) error {
	m := &matcher{r: r, data: data}
	for _, run := range all {
		if run.set.n > 0 {
			m.runs = append(m.runs, run)
		}
	}
	if len(m.runs) == 0 {
		return nil
	}
	r.opt.Counters.Passes.Add(1)
	var err error
	if m.file, err = r.openColumns(ctx, data.obj, data.file); err != nil {
		return err
	}
	if m.proj, err = m.file.project(data.keys.target(data.constants)); err != nil {
		return err
	}
	if m.probe, err = r.probe(ctx, data.keys, m.runs); err != nil {
		return err
	}
	groups := m.file.groups()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.opt.Workers)
	for g := range len(groups) - 1 {
		if groups[g] == groups[g+1] {
			continue
		}
		active := m.active(g)
		if len(active) == 0 {
			r.opt.Counters.ByStatistics.Add(1)
			continue
		}
		group.Go(protected(func() error {
			select {
			case r.slots <- struct{}{}:
				defer func() { <-r.slots }()
			case <-ctx.Done():
				return ctx.Err()
			}
			return m.group(ctx, g, active)
		}))
	}
	return group.Wait()
}

// probe returns what rows without keys of runs are told by, through the cache.
func (r *Resolver) probe(ctx context.Context, keys *keySchema, runs []*run) (*keyProbe, error) {
	parts := make([]string, len(runs))
	sets := make([]*keySet, len(runs))
	for i, run := range runs {
		parts[i], sets[i] = run.part(), run.set
	}
	key := fmt.Sprintf("deletes/probe|%x|%s|%s", r.hash.ints, strings.Join(parts, ","), keys.identity)
	return get(ctx, r, key, func(context.Context) (*keyProbe, int64, error) {
		p := newKeyProbe(r.hash, sets)
		return p, p.size(), nil
	})
}

// active returns the runs whose keys a row group can hold by its statistics.
func (m *matcher) active(group int) []*run {
	var active []*run
	for _, run := range m.runs {
		if run.set.mayMatch(m.file, group, m.proj.Columns) {
			active = append(active, run)
		}
	}
	return active
}

// errNoKey ends the reading of a row group that has no key.
var errNoKey = errors.New("no key")

// group matches a row group.
func (m *matcher) group(ctx context.Context, group int, active []*run) error {
	m.r.opt.Counters.Groups.Add(1)
	g := m.borrow()
	defer m.giveBack(g)
	g.group, g.active = group, active
	for len(g.found) < len(active) {
		g.found = append(g.found, builder{})
	}
	g.kept.reset(group)
	err := m.file.scan(ctx, m.proj, group, func(rows rowBatch) error { return g.match(g.kept.over(ctx, rows)) })
	if errors.Is(err, errNoKey) {
		m.r.opt.Counters.ByDictionary.Add(1)
	} else if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, run := range active {
		run.found.merge(&g.found[i])
	}
	return nil
}

// borrow returns a groupMatcher, with the memory of one that is done.
func (m *matcher) borrow() *groupMatcher {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.spare); n > 0 {
		g := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return g
	}
	return &groupMatcher{matcher: m, kept: newKeptColumns(m), batch: newKeyBatch(m.r.hash, m.data.keys.view.Leaves)}
}

func (m *matcher) giveBack(g *groupMatcher) {
	for i := range g.batch.columns {
		g.batch.columns[i].dict = nil // another row group has another
	}
	g.coded.dict = nil
	g.kept.reset(0)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spare = append(m.spare, g)
}

// groupMatcher matches one row group at a time. Not safe for concurrent use.
type groupMatcher struct {
	*matcher
	group  int
	active []*run
	found  []builder // by active run: rows, ascending
	kept   *keptColumns
	batch  *keyBatch
	coded  codedKeys
	rows   []int32  // of the batch at hand that may have a key
	hashes []uint32 // of their keys
	hits   []int32  // that have one of the run at hand
}

// match looks at a batch of rows.
func (g *groupMatcher) match(rows rowBatch) error {
	b := g.batch
	b.rows = rows.rows
	for step, i := range g.probe.order {
		if err := b.loadColumn(i, rows); err != nil {
			return err
		}
		c := &b.columns[i]
		if len(b.columns) == 1 && c.index != nil && !c.repeat {
			return g.matchCoded(c, rows.first)
		}
		if step == 0 {
			g.rows = c.appendPassing(g.rows[:0], &g.probe.columns[i])
		} else {
			g.rows = c.keepPassing(g.rows, &g.probe.columns[i])
		}
		if len(g.rows) == 0 {
			if g.excluded(i) {
				return errNoKey
			}
			return nil
		}
	}
	g.look(b, func(i int) { g.add(i, rows.first, g.hits) })
	return nil
}

// add adds rows of a batch to what the i-th active run has found.
func (g *groupMatcher) add(i int, first int64, rows []int32) {
	for _, row := range rows {
		g.found[i].add(first + int64(row))
	}
}

// excluded reports whether no row of the group can have a key, by the dictionary
// of a column.
func (g *groupMatcher) excluded(i int) bool {
	b := &g.batch.columns[i]
	if b.dict == nil || !g.file.allDictionary(g.group, &g.proj.Columns[i]) {
		return false
	}
	filter := &g.probe.columns[i]
	if filter.has(nullHash) && b.leaf.MaxDef > 0 {
		return false
	}
	for _, passes := range b.dictionary(filter) {
		if passes {
			return false
		}
	}
	return true
}

// look compares the rows of a batch that are left with the keys of each run. each
// is called with the number of an active run that has some of them, which are hits
// then.
func (g *groupMatcher) look(b *keyBatch, each func(i int)) {
	left := g.rows[:0]
	g.hashes = g.hashes[:0]
	for _, row := range g.rows {
		if hash := b.hashOf(int(row)); g.probe.whole.has(hash) {
			left, g.hashes = append(left, row), append(g.hashes, hash)
		}
	}
	g.rows = left
	g.r.opt.Counters.Rows.Add(int64(len(left)))
	for i, run := range g.active {
		g.hits = g.hits[:0]
		for k, row := range left {
			if run.set.has(g.hashes[k], b, int(row)) {
				g.hits = append(g.hits, row)
			}
		}
		if len(g.hits) > 0 {
			each(i)
		}
	}
}
