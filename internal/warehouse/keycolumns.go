package warehouse

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/icefs/icefs/snapshot"
)

// keyColumns are the key columns of a table's equality deletes as far as they
// are known: those of whose metrics manifests are read. They are the table's,
// not a snapshot's, so that all snapshots share what is read of a manifest; each
// new column makes the manifests that are needed then be read once more.
type keyColumns struct {
	mu  sync.Mutex
	ids []int // sorted; never changed in place
}

// with adds columns, and returns all.
func (k *keyColumns) with(ids []int) []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		if i, ok := slices.BinarySearch(k.ids, id); !ok {
			k.ids = slices.Insert(slices.Clone(k.ids), i, id)
		}
	}
	return k.ids
}

// foresee adds the key columns of the newest snapshot that says in its summary
// that it has equality deletes, so that snapshots from before them are not read
// without metrics first. It is a guess that costs and changes nothing else: if
// it fails, so will the plan of that snapshot.
func (l *Loaded) foresee(ctx context.Context) {
	if l.foreseen.Load() {
		return
	}
	for _, s := range slices.Backward(l.table.Snapshots) {
		if !hasEqualityDeletes(&s) {
			continue
		}
		list, err := l.manifests(ctx, &s)
		if err != nil {
			break
		}
		_, deletes := byContent(list)
		if files, _, err := l.readManifests(ctx, deletes, nil); err == nil {
			l.columns.with(equalityIDs(files))
		}
		break
	}
	if ctx.Err() == nil {
		l.foreseen.Store(true)
	}
}

// hasEqualityDeletes reports what a snapshot's summary says.
func hasEqualityDeletes(s *snapshot.Snapshot) bool {
	if !bytes.Contains(s.JSON, []byte(`-equality-deletes"`)) {
		return false
	}
	var e struct {
		Summary struct {
			Total string `json:"total-equality-deletes"`
			Added string `json:"added-equality-deletes"`
		} `json:"summary"`
	}
	some := func(count string) bool { return count != "" && count != "0" }
	return json.Unmarshal(s.JSON, &e) == nil && (some(e.Summary.Total) || some(e.Summary.Added))
}

// byContent tells manifests of data files from those of deletes.
func byContent(list []manifestFile) (data, deletes []manifestFile) {
	for _, m := range list {
		if m.deletes {
			deletes = append(deletes, m)
		} else {
			data = append(data, m)
		}
	}
	return data, deletes
}
