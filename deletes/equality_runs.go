package deletes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// A table fed by a stream has thousands of small equality-delete files, and
// each of its data files is covered by those committed after it: by a suffix of
// one list that grows with every commit. Looking rows up file by file would cost
// the product. So the list is cut into runs, by the delete files themselves and
// not by where a suffix begins: a file closes a run of level L with probability
// 4^-L, decided by the hash of its version. Runs of the highest level come first,
// then, of what is left at the end, those of the next, down to single files. All
// suffixes share their runs but for the first; a commit adds one file, which may
// close runs whose parts are known. A run is one key set and one result.
const (
	maxRunLevel = 4 // runs of 256 files on average
	// runRecords is how many keys make a run: a file closes one also with
	// probability records/runRecords, so that key sets stay small.
	runRecords = 2 << 20
	// growingRuns is how many runs at the end are looked up by their parts when
	// they are not known as a whole.
	growingRuns = 2
)

// equalityFile is an equality-delete file.
type equalityFile struct {
	del   *snapshot.DataFile
	obj   source.Object
	hash  [sha256.Size]byte // of its version
	level int               // the highest level of runs that it closes
}

func newEqualityFile(del *snapshot.DataFile, obj source.Object) equalityFile {
	f := equalityFile{del: del, obj: obj, hash: sha256.Sum256([]byte(obj.Version()))}
	chance := float64(binary.BigEndian.Uint64(f.hash[:])) / math.MaxUint64
	heavy := float64(del.Records) / runRecords
	for f.level < maxRunLevel && chance < max(math.Pow(4, -float64(f.level+1)), heavy) {
		f.level++
	}
	return f
}

// run is consecutive delete files of one key, and what they delete in a data
// file.
type run struct {
	files []equalityFile
	level int

	known  bool
	result *Positions
	parts  []*run // if it is not known, but some of these are

	// While it is matched: keys, where these begin (nil: at the first file's first
	// row), and the rows that they and those before them gave.
	set   *keySet
	from  *keyCursor
	found builder
}

// closedRuns cuts files into runs of a level and, after the last of these, of
// lower ones.
func closedRuns(files []equalityFile, level int) []*run {
	var runs []*run
	start := 0
	for i := range files {
		if files[i].level >= level {
			runs = append(runs, &run{files: files[start : i+1], level: level})
			start = i + 1
		}
	}
	if start < len(files) { // every file closes a run of level 0
		runs = append(runs, closedRuns(files[start:], level-1)...)
	}
	return runs
}

// identity tells the run's files apart from any other list of files.
func (n *run) identity() string {
	if len(n.files) == 1 {
		return hex.EncodeToString(n.files[0].hash[:])
	}
	h := sha256.New()
	for i := range n.files {
		h.Write(n.files[i].hash[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// part tells the keys from n.from on apart from any other.
func (n *run) part() string {
	if n.from == nil {
		return n.identity()
	}
	return fmt.Sprintf("%s@%d.%d", n.identity(), n.from.file, n.from.row)
}

// lookUp finds the run's result if it is kept, or else, if deep, its parts'.
// It reports whether anything is known.
func (r *Resolver) lookUp(ctx context.Context, data *keyedData, n *run, deep bool) bool {
	if n.result, n.known = r.known(ctx, data.resultKey(n)); n.known {
		return true
	}
	if !deep || len(n.files) == 1 {
		return false
	}
	parts := closedRuns(n.files, n.level-1)
	any := false
	for _, part := range parts {
		if r.lookUp(ctx, data, part, true) {
			any = true
		}
	}
	if any {
		n.parts = parts
	}
	return any
}

// appendMissing appends the runs that have to be matched.
func (n *run) appendMissing(dst []*run) []*run {
	switch {
	case n.known:
	case n.parts == nil:
		dst = append(dst, n)
	default:
		for _, part := range n.parts {
			dst = part.appendMissing(dst)
		}
	}
	return dst
}

// unite makes the result of a run from its parts, all of which are known.
func (r *Resolver) unite(ctx context.Context, data *keyedData, n *run) error {
	if n.known {
		return nil
	}
	found := make([]*Positions, len(n.parts))
	for i, part := range n.parts {
		if err := r.unite(ctx, data, part); err != nil {
			return err
		}
		found[i] = part.result
	}
	var err error
	if n.result, err = union(found); err != nil {
		return err
	}
	n.known = true
	r.keep(ctx, data.resultKey(n), n.result)
	return nil
}

// errAbsent is the answer of a look-up that must not load.
var errAbsent = errors.New("not in the cache")

// known returns a result kept in memory or on disk.
func (r *Resolver) known(ctx context.Context, key string) (*Positions, bool) {
	if r.opt.Cache == nil && r.opt.Persist == nil {
		return nil, false
	}
	p, err := r.cached(ctx, key, func(context.Context) (*Positions, error) {
		if r.opt.Persist == nil {
			return nil, errAbsent
		}
		b, ok := r.opt.Persist.Get(key)
		if !ok {
			return nil, errAbsent
		}
		p, err := decodePortable(b)
		if err != nil {
			r.opt.Log.Warn("persisted equality deletes are damaged and found anew", "err", err)
			return nil, errAbsent
		}
		return p.orNil(), nil
	})
	return p, err == nil
}

// keep stores a result in memory and on disk.
func (r *Resolver) keep(ctx context.Context, key string, p *Positions) {
	// The load cannot fail; if ctx has ended, the result is on disk alone.
	_, _ = r.cached(ctx, key, func(context.Context) (*Positions, error) { return p, nil })
	if r.opt.Persist != nil {
		r.opt.Persist.Put(key, appendPortable(nil, p))
	}
}
