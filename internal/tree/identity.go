package tree

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// An inode number says what an entry is, on every machine:
//
//	a view           snapshot.Identity: everything its bytes depend on
//	any other file   the table, the snapshot, the name and what the content is
//	                 made from (a hash of it, or of the plan)
//	a table's folder the path in the mount, so that a listing needs no metadata
//	what is below    the table's uuid and the folder's name
//
// The kernel takes two entries of one number and generation for one file. A
// warehouse may hold a table twice (a copy has the uuid of its original), and
// the copies must stay apart, since one may lack files that the other has: the
// generation, which no stat shows, is mixed with the table's path.

// dirID identifies a folder.
func dirID(kind string, parts ...string) snapshot.ID {
	return snapshot.HashID(append([]string{"folder", kind}, parts...)...)
}

// generation mixes the place in the mount into an identity's generation.
func generation(id snapshot.ID, place string) uint64 {
	at := snapshot.HashID("place", place)
	return id.Generation() ^ binary.BigEndian.Uint64(at[:8])
}

// keyOf identifies a table: its uuid, or for those of format version 1 that have
// none, its location as the metadata spells it.
func keyOf(meta *snapshot.Table) string {
	if meta.UUID != "" {
		return meta.UUID
	}
	return "location " + meta.Location
}

func (p *place) id(kind string, parts ...string) snapshot.ID {
	return snapshot.HashID(append([]string{kind, p.key}, parts...)...)
}

// entry has the attributes of an entry of the table that is not immutable.
func (p *place) entry(kind Kind, id snapshot.ID, mtime time.Time) Attr {
	return Attr{Kind: kind, Ino: id.Inode(), Generation: generation(id, p.dir.path), MTime: mtime}
}

// attr of an entry of the table that changes with it.
func (t *table) attr(kind Kind, id snapshot.ID) Attr { return t.entry(kind, id, t.meta.LastUpdated) }

// first is the identity that a file has had since it was first asked. What it is
// made of may be given up and read again, of other metadata: then it has to be the
// same file.
type first struct {
	mu sync.Mutex
	id snapshot.ID // zero = not asked yet
}

// is fails with ErrExpired if an identity is another than the first.
func (f *first) is(id snapshot.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.id == (snapshot.ID{}) {
		f.id = id
	}
	if f.id != id {
		return fmt.Errorf("%w as it was", ErrExpired)
	}
	return nil
}

// viewID identifies the view of a whole snapshot.
func (p *planned) viewID(view, options string) snapshot.ID {
	return p.identify(view, p.digest(), options)
}

// identify hashes what a view shows, once for each.
func (p *planned) identify(view string, files [32]byte, options string) snapshot.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.ids[view]; ok {
		return id
	}
	identity := snapshot.Identity{
		UUID:        p.table.key,
		SnapshotID:  p.scan.Plan.SnapshotID,
		View:        view,
		Files:       files,
		Schema:      p.scan.Schema,
		NameMapping: p.table.meta.NameMapping,
		Layout:      merge.LayoutFormat,
		Options:     options,
	}
	id := identity.ID()
	p.ids[view] = id
	return id
}

// partID identifies the view of one data file: what all parts of the snapshot
// have in common is hashed once.
func (p *planned) partID(base snapshot.ID, f form, i int) snapshot.ID {
	d := p.scan.Plan.Files[i].Digest()
	parts := []string{"part", base.String(), hex.EncodeToString(d[:]), p.scan.Plan.Files[i].Path}
	if f == formParquet && p.scan.InStore(i) {
		parts = append(parts, inStore)
	}
	return snapshot.HashID(parts...)
}

// inStore tells Parquet views of files in an object store, which are laid out
// otherwise, from those of the same files on a disk.
const inStore = " in a store"

// options spells out what else changes the bytes of the snapshot's views of a form.
func (p *planned) options(f form) string {
	p.storeOnce.Do(func() {
		for i := range p.scan.Plan.Files {
			p.inStore = p.inStore || p.scan.InStore(i)
		}
	})
	if f == formParquet && p.inStore {
		return p.table.dir.tree.options(f) + inStore
	}
	return p.table.dir.tree.options(f)
}

// partBase is the part of every partID that does not depend on the data file.
func (p *planned) partBase(view, options string) snapshot.ID {
	return p.identify(view, [32]byte{}, options)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
