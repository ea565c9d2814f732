package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// planKey names a snapshot under a schema, in one metadata version.
type planKey struct {
	table    *table
	snapshot int64
	schema   int
}

// planned is a snapshot under a schema with its files known. Its views are made
// when they are asked for; what is opened outlives it.
type planned struct {
	table *table
	scan  merge.Scan

	digestOnce sync.Once
	sum        [32]byte

	storeOnce sync.Once
	inStore   bool // any data file is in an object store

	key planKey

	partsOnce sync.Once
	names     []string       // stem of each data file, in the plan's order
	index     map[string]int // stem -> place in the plan

	filesOnce sync.Once
	filesSize int64 // of files.csv

	mu    sync.Mutex // guards below
	ids   map[string]snapshot.ID
	views map[string]merge.View
}

// maxViews bounds the views that a planned keeps. All are forgotten then: what a
// view has found out is in the engine's caches.
const maxViews = 1 << 10

// What a planned takes beside its plan: itself, a view of a file, and the names of
// a part.
const (
	plannedBytes = 4 << 10
	viewBytes    = 1 << 10
	stemBytes    = 80
)

// plan returns the snapshot's plan under a schema. snap is nil for a table
// without a snapshot, which has no file.
func (t *table) plan(ctx context.Context, snap *snapshot.Snapshot, schema int) (*planned, error) {
	key := planKey{table: t, snapshot: -1, schema: schema}
	if snap != nil {
		key.snapshot = snap.ID
	}
	kept := t.dir.tree.keeper
	if p, ok := kept.get(key); ok {
		kept.get(tableKey{t.loaded, t.dir.path}) // after the plan: it is held by that
		return p.(*planned), nil
	}
	s := t.meta.Schema(schema)
	if s == nil {
		return nil, fmt.Errorf("schema %d is not in the table's metadata: %w", schema, errNoEntry)
	}
	plan := &snapshot.Plan{SnapshotID: -1}
	if snap != nil {
		var err error
		if plan, err = t.loaded.Plan(ctx, snap.ID); err != nil {
			return nil, err
		}
	}
	p := &planned{
		table: t,
		scan:  merge.Scan{Table: t.meta, Schema: s, Plan: plan, Store: t.loaded.Store()},
		key:   key,
		ids:   make(map[string]snapshot.ID),
		views: make(map[string]merge.View),
	}
	p = kept.add(key, p, plannedBytes+plan.Bytes).(*planned)
	t.keep()
	return p, nil
}

// grow notes that p takes more than it did.
func (p *planned) grow(bytes int64) { p.table.dir.tree.keeper.grow(p.key, bytes) }

// digest hashes the plan's files and deletes, once.
func (p *planned) digest() [32]byte {
	p.digestOnce.Do(func() { p.sum = p.scan.Plan.Digest() })
	return p.sum
}

// view returns the view of a key, made once.
func (p *planned) view(key string, build func() merge.View) merge.View {
	p.mu.Lock()
	v, ok := p.views[key]
	grown := int64(0)
	if !ok {
		if len(p.views) == maxViews {
			clear(p.views)
			grown = -maxViews * viewBytes
		}
		v = build()
		p.views[key] = v
		grown += viewBytes
	}
	p.mu.Unlock()
	if !ok {
		p.grow(grown)
	}
	return v
}

// one is the scan of a single data file.
func (p *planned) one(i int) merge.Scan {
	s := p.scan
	s.Plan = &snapshot.Plan{SnapshotID: s.Plan.SnapshotID, Files: []snapshot.File{s.Plan.Files[i].Alone()}}
	return s
}

// stems names every data file of the plan: the stem of its own name; twins get
// "-" and hex digits of their path's hash, 8 of them if that tells them apart.
func (p *planned) stems() ([]string, map[string]int) {
	p.partsOnce.Do(func() {
		files := p.scan.Plan.Files
		p.names = make([]string, len(files))
		count := make(map[string]int, len(files))
		for i := range files {
			p.names[i] = stem(files[i].Path)
			count[p.names[i]]++
		}
		p.index = make(map[string]int, len(files))
		for i, name := range p.names {
			if count[name] == 1 {
				p.index[name] = i
			}
		}
		for i, name := range p.names {
			if count[name] > 1 {
				p.names[i] = p.twin(name, files[i].Path, i)
				p.index[p.names[i]] = i
			}
		}
		p.grow(stemBytes * int64(len(files)))
	})
	return p.names, p.index
}

// twin finds a free name for a data file that shares its stem with another.
func (p *planned) twin(name, path string, i int) string {
	sum := sha256.Sum256([]byte(path))
	digits := hex.EncodeToString(sum[:])
	for n := 8; n <= len(digits); n += 8 {
		if s := fitStem(name, "-"+digits[:n], path); p.isFree(s) {
			return s
		}
	}
	return fitStem(name, fmt.Sprintf("-%s-%d", digits[:8], i), path) // one path listed twice
}

func (p *planned) isFree(name string) bool {
	_, taken := p.index[name]
	return !taken
}

// longestExtension of a part is kept free in its stem.
const longestExtension = len(".parquet")

// stem is the last element of a path without its extension, cut to fit.
func stem(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[:dot]
	}
	name = strings.ReplaceAll(name, "\x00", "%00")
	return fitStem(name, "", path)
}

// fitStem is fitName that leaves room for an extension.
func fitStem(name, suffix, path string) string {
	if len(name)+len(suffix)+longestExtension <= maxName && name != "" {
		return name + suffix
	}
	fitted := fitName(name, suffix+"........", path)
	return fitted[:len(fitted)-longestExtension]
}
