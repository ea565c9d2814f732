package deletes

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/snapshot"
)

func TestResolveRefuses(t *testing.T) {
	boom := errors.New("boom")
	l := newLab()
	l.files["data"] = nil
	if p, err := NewResolver(Options{}).Resolve(context.Background(), l.table, l, &l.file); p != nil || err != nil {
		t.Errorf("no deletes: %v, %v", p, err)
	}
	l.addPositions(parquetOf(t, 9, posRows("data", 1))).EncryptedKey = true
	if _, err := l.resolve(NewResolver(Options{})); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "positions-0") {
		t.Errorf("encrypted: %v", err)
	}
	l.file.Err = boom
	if _, err := l.resolve(NewResolver(Options{})); !errors.Is(err, boom) {
		t.Errorf("pairing error: %v", err)
	}
}

func TestResolveDV(t *testing.T) {
	l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
	l.files["data"] = parquetOf(t, 100, ones[int64](int64(1), int64(2), int64(3), int64(4)))
	a, b := blobOf(encode(t, []int64{0}, false)), blobOf(encode(t, []int64{1, 2}, false))
	// Two vectors of one length in one file without any Puffin frame.
	l.files["vectors"] = slices.Concat(a, b)
	dv := func(off, size, records int64) *snapshot.DataFile {
		return &snapshot.DataFile{Path: "vectors", Content: snapshot.PositionDeletes, Format: snapshot.Puffin,
			ContentOffset: off, ContentSize: size, Records: records, Referenced: "data", HasReferenced: true}
	}
	r := NewResolver(Options{Cache: &mapCache{}})
	l.file.DV = dv(0, int64(len(a)), 1)
	if got, err := l.resolve(r); got != "[{0 1}]" || err != nil {
		t.Errorf("first vector: %s, %v", got, err)
	}
	reads := l.reads.Load()
	l.file.DV = dv(int64(len(a)), int64(len(b)), 2)
	if got, err := l.resolve(r); got != "[{1 3}]" || err != nil || l.reads.Load() != reads+1 {
		t.Errorf("second vector: %s, %v, %d reads", got, err, l.reads.Load()-reads)
	}
	l.addPositions(parquetOf(t, 9, posRows("data", 3))) // a vector replaces these
	if got, err := l.resolve(r); got != "[{1 3}]" || err != nil {
		t.Errorf("beside position deletes: %s, %v", got, err)
	}
	l.addEquality(parquetOf(t, 9, ones[int64](int64(4))), 1) // but not these
	if got, err := l.resolve(r); got != "[{1 4}]" || err != nil {
		t.Errorf("beside equality deletes: %s, %v", got, err)
	}
	l.file.Equality = nil
	for name, bad := range map[string]*snapshot.DataFile{
		"past the end":   dv(int64(len(a)), int64(len(b))+1, 2),
		"no offset":      dv(-1, int64(len(a)), 1),
		"huge offset":    dv(math.MaxInt64, int64(len(a)), 1),
		"tiny":           dv(0, 11, 1),
		"huge":           dv(0, math.MaxInt64, 1),
		"between blobs":  dv(4, int64(len(a)), 1),
		"wrong count":    dv(0, int64(len(a)), 2),
		"negative count": dv(0, int64(len(a)), -1),
	} {
		l.file.DV = bad
		if got, err := l.resolve(NewResolver(Options{Cache: &mapCache{}})); !errors.Is(err, ErrCorrupt) || strings.Count(err.Error(), "vectors") != 1 {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestKey(t *testing.T) {
	a := &snapshot.DataFile{Path: "a", Content: snapshot.PositionDeletes}
	b := &snapshot.DataFile{Path: "b", Content: snapshot.EqualityDeletes, EqualityIDs: []int{1}}
	v := &snapshot.DataFile{Path: "v", Content: snapshot.PositionDeletes, Format: snapshot.Puffin, ContentOffset: 4, ContentSize: 40}
	key := func(f snapshot.File) string { return Key(&f) }
	if k := key(snapshot.File{}); k != "" {
		t.Errorf("key of no deletes = %q", k)
	}
	files := []snapshot.File{
		{Positions: []*snapshot.DataFile{a}},
		{Positions: []*snapshot.DataFile{a}, Equality: []*snapshot.DataFile{b}},
		{Equality: []*snapshot.DataFile{b}},
		{DV: v},
		{DV: ptr(snapshot.DataFile{Path: "v", Content: snapshot.PositionDeletes, Format: snapshot.Puffin, ContentOffset: 44, ContentSize: 40})},
		{Equality: []*snapshot.DataFile{{Path: "b", Content: snapshot.EqualityDeletes, EqualityIDs: []int{2}}}},
	}
	seen := map[string]int{}
	for i, f := range files {
		if j, dup := seen[key(f)]; dup {
			t.Errorf("delete sets %d and %d have one key", i, j)
		}
		seen[key(f)] = i
	}
	x := snapshot.File{Positions: []*snapshot.DataFile{a, {Path: "c"}}}
	y := snapshot.File{Positions: []*snapshot.DataFile{{Path: "c"}, a}}
	if key(x) != key(y) {
		t.Error("the key depends on the order of the files")
	}
}
