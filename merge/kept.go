package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// A layout takes footers, headers of pages and deletes to make. Once a reader has
// asked for its footer, it is kept in Persist: where each byte comes from, and the
// footer. Another mount that finds it reads none of these. It looks at each file
// instead: a layout stands for the files of the versions that it was made of. Only
// where a chunk has to be made that Persist has not, the layout is made again,
// beside it, and has to be the same.
//
// All that a layout follows from is named: the engine's options and the view by
// its key (keptKey), versions of files and what manifests say of them by the state
// that it is kept with.

// Ranged is a Persist whose values can be read in part.
type Ranged interface {
	// ReadAt fills p from place off of the value of size bytes that is kept for a
	// key; false if there is none.
	ReadAt(key string, size int64, p []byte, off int64) bool
}

// readKept fills p from a part of what is kept for a key, as Ranged says. Values
// that are read from their start are counted.
func (e *Engine) readKept(key string, size int64, p []byte, off int64) bool {
	ok := false
	switch kept := e.opt.Persist.(type) {
	case nil:
	case Ranged:
		ok = kept.ReadAt(key, size, p, off)
	default:
		v, found := kept.Get(key)
		if ok = found && int64(len(v)) == size; ok {
			copy(p, v[off:])
		}
	}
	if ok && off == 0 {
		e.count(func(c *Counters) { c.ChunksLoaded.Add(1) })
	}
	return ok
}

const (
	// leastKept is how many files and segments a layout has at least that is kept:
	// smaller ones are made as fast as they are found.
	leastKept = 16
	// maxKeptLayout bounds a kept layout, its footer apart: a view of a million
	// chunks.
	maxKeptLayout = 64 << 20
)

// keptKey is what the layout is kept by; key is the view's.
func (v *parquetView) keptKey(key string) string {
	o := &v.engine.opt
	h := sha256.New()
	fmt.Fprintf(h, "%s|%s|%d|%v|%v|%v|%+v", keptForm, key, o.Statistics, o.NoSplice, o.NoCoalesce, o.NoPages, v.engine.limits)
	return hex.EncodeToString(h.Sum(nil))
}

// footerKey is what the footer of a layout of a state is kept by: another mount may
// keep one of another state meanwhile.
func footerKey(kept string, state [sha256.Size]byte) string {
	return fmt.Sprintf("viewfooter|%s|%x", kept, state)
}

// load returns the layout as it was kept, or nil. What keeps it from being found
// keeps it from being made, too, which then tells.
func (v *parquetView) load(ctx context.Context, key string) *layout {
	p := v.engine.opt.Persist
	if p == nil || len(v.files) == 0 {
		return nil
	}
	kept := v.keptKey(key)
	b, ok := p.Get("layout|" + kept)
	if !ok {
		return nil
	}
	objects, state, err := v.state(ctx)
	if err != nil {
		return nil
	}
	d := layoutDecoder{b: b, view: v, objects: objects, footerKey: footerKey(kept, state)}
	return d.layout(state)
}

// keep keeps a layout and its footer.
func (v *parquetView) keep(ctx context.Context, key string, l *layout, footer []byte) {
	p := v.engine.opt.Persist
	if p == nil || int64(len(v.files)+len(l.segments)) < v.engine.limits.leastKept {
		return
	}
	objects, state, err := v.state(ctx)
	if err != nil {
		return
	}
	enc := layoutEncoder{places: make(map[source.Object]int, len(objects))}
	for i, o := range l.objects {
		if o == nil || o.Version() != objects[i].Version() {
			return
		}
		enc.places[o] = i
	}
	if b := enc.layout(l, state); b != nil {
		kept := v.keptKey(key)
		p.Put(footerKey(kept, state), footer)
		p.Put("layout|"+kept, b)
	}
}

// state opens the view's files, and hashes of each what a layout follows from
// beside the view's key. The store keeps to the version of a file that it met
// first (source.Pinned), so that what was made of one file is never taken for
// another's.
func (v *parquetView) state(ctx context.Context) (objects []source.Object, state [sha256.Size]byte, err error) {
	paths := make([]string, 0, 2*len(v.files))
	for i := range v.files {
		paths = append(paths, v.files[i].Path)
	}
	place := make(map[string]int) // of delete files
	for i := range v.files {
		for _, d := range deletesOf(&v.files[i]) {
			if _, ok := place[d.Path]; !ok {
				place[d.Path] = len(paths)
				paths = append(paths, d.Path)
			}
		}
	}
	if objects, err = v.engine.open(ctx, v.scan.Store, paths); err != nil {
		return nil, state, err
	}
	h := sha256.New()
	equality := false
	for i := range v.files {
		f := &v.files[i]
		if f.Err != nil {
			return nil, state, f.Err
		}
		v.hashFile(h, f, objects[i])
		for _, d := range deletesOf(f) {
			fmt.Fprintf(h, "%d|%d|%d|%d|%v|%q|", d.Content, d.ContentOffset, d.ContentSize, d.Records, d.EncryptedKey, objects[place[d.Path]].Version())
			equality = equality || d.Content == snapshot.EqualityDeletes
		}
	}
	if equality { // their keys may be columns that the view's schema has no more
		schemas, err := json.Marshal(v.scan.Table.Schemas)
		if err != nil {
			return nil, state, err
		}
		h.Write(schemas)
	}
	h.Sum(state[:0])
	return objects[:len(v.files)], state, nil
}

// hashFile hashes what a layout follows from of a data file's entry.
func (v *parquetView) hashFile(h hash.Hash, f *snapshot.File, o source.Object) {
	constants := snapshot.PartitionKey(0, nil, identityConstants(v.scan.Table, f.DataFile))
	fmt.Fprintf(h, "%q|%v|%s|%d|%v|%q|", o.Version(), source.InStore(v.scan.Store, f.Path), f.Format, f.Records, f.EncryptedKey, constants)
	for _, d := range f.Equality { // mayHoldNaN
		for _, id := range d.EqualityIDs {
			fmt.Fprintf(h, "%d|", f.Column(id).NaNs)
		}
	}
}

// deletesOf lists the delete files that apply to a data file.
func deletesOf(f *snapshot.File) []*snapshot.DataFile {
	all := slices.Concat(f.Positions, f.Equality)
	if f.DV != nil {
		all = append(all, f.DV)
	}
	return all
}

// open opens files, several at a time.
func (e *Engine) open(ctx context.Context, store source.Store, paths []string) ([]source.Object, error) {
	objects := make([]source.Object, len(paths))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.workers())
	if len(paths) > 0 && source.InStore(store, paths[0]) {
		g.SetLimit(max(e.workers(), remoteWorkers))
	}
	const portion = 16 // paths for each goroutine
	for from := 0; from < len(paths); from += portion {
		g.Go(func() error {
			return pqfile.Protect(func() (err error) {
				for i := from; i < min(from+portion, len(paths)) && err == nil; i++ {
					objects[i], err = store.Open(ctx, paths[i])
				}
				return err
			})
		})
	}
	return objects, g.Wait()
}

// built returns the view's layout with all that it was made of.
func (v *parquetView) built(ctx context.Context) (*layout, error) {
	l, err := v.layout(ctx)
	if err != nil || !l.kept {
		return l, err
	}
	key, err := v.key()
	if err != nil {
		return nil, err
	}
	return v.cachedLayout(ctx, "built|"+key, func(ctx context.Context) (*layout, error) { return v.build(ctx, key) })
}

// keptSegment is a segment of a kept layout whose bytes were made: a run of a
// rewritten chunk, or the footer.
type keptSegment struct {
	view   *parquetView
	layout *layout // that it is part of
	index  int     // of it there
	n      int64
	key    string // what its bytes are kept by; "" = they are not
}

var _ segment = (*keptSegment)(nil)

func (k *keptSegment) size() int64 { return k.n }

func (k *keptSegment) describe() string { return "kept" }

func (k *keptSegment) readAt(ctx context.Context, h *handle, p []byte, off int64) error {
	if k.key != "" && k.view.engine.readKept(k.key, k.n, p, off) {
		return nil
	}
	l, err := k.view.built(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(l.starts, k.layout.starts) || l.length != k.layout.length {
		return fmt.Errorf("%w: kept layout of a view of %s and others is not as it is made", ErrCorrupt, k.view.files[0].Path)
	}
	return l.segments[k.index].readAt(ctx, h, p, off)
}
