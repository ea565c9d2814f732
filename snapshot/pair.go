package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/apache/iceberg-go"
)

// Sentinels of File.Err.
var (
	// ErrAmbiguousDeletes: the deletes that apply to a file cannot be told.
	ErrAmbiguousDeletes = errors.New("deletes of the file cannot be told")
)

// Entries are the live files of a snapshot as its manifests list them.
type Entries struct {
	SnapshotID    int64
	FormatVersion int
	Data          []*DataFile
	Deletes       []*DataFile
	Specs         map[int]iceberg.PartitionSpec
	Schema        *iceberg.Schema // the table's current schema: types of bounds
}

// Pair pairs every live data file with the delete files that apply to it
// (Iceberg spec, "Scan Planning"):
//
//   - a position delete if seq(data) <= seq(delete), and the delete names the
//     file, or names none and is of the same spec and partition; none if a
//     deletion vector applies;
//   - a deletion vector that references the file, if seq(data) <= seq(vector);
//   - an equality delete if seq(data) < seq(delete), and it is of the same spec
//     and partition or of an unpartitioned spec; left out only if column bounds
//     prove that no row can match.
//
// Doubt is File.Err, never a delete left out. Paths compare as raw strings, but
// the spellings file:/x, file:///x and /x are one.
func Pair(e Entries) *Plan {
	files := make([]File, len(e.Data))
	for i, f := range e.Data {
		files[i].DataFile = f
	}
	slices.SortFunc(files, func(a, b File) int {
		if e.FormatVersion >= 2 {
			if c := cmp.Compare(a.Sequence, b.Sequence); c != 0 {
				return c
			}
		}
		return strings.Compare(a.Path, b.Path)
	})
	if len(e.Deletes) > 0 {
		x := newDeleteIndex(&e)
		for i := range files {
			x.attach(&files[i])
		}
	}
	return &Plan{SnapshotID: e.SnapshotID, Files: files}
}

// deleteIndex finds the deletes of a data file. Every list in it is ordered by
// (sequence, path), so that the deletes at least as new as a file are a tail.
type deleteIndex struct {
	fieldIDs map[int][]int // of each spec

	vectors     map[string][]*DataFile // by comparable path of the file
	lostVectors map[string][]*DataFile // without one, by partition
	byPath      map[string][]*DataFile // position deletes of one file
	byPartition map[string][]*DataFile // the other position deletes

	global   []*equalityGroup
	scoped   map[string]*[]*equalityGroup // by partition
	doubtful []*DataFile                  // equality deletes that could cover anything

	key []byte // scratch of partition
}

func newDeleteIndex(e *Entries) *deleteIndex {
	x := &deleteIndex{
		fieldIDs:    map[int][]int{},
		vectors:     map[string][]*DataFile{},
		lostVectors: map[string][]*DataFile{},
		byPath:      map[string][]*DataFile{},
		byPartition: map[string][]*DataFile{},
		scoped:      map[string]*[]*equalityGroup{},
	}
	for id, spec := range e.Specs {
		x.fieldIDs[id] = FieldIDs(spec)
	}
	deletes := slices.Clone(e.Deletes)
	slices.SortFunc(deletes, bySequence)
	paths := newPathSet(e)
	columns := newColumns(e.Schema)
	for _, d := range deletes {
		switch {
		case d.IsDV():
			x.addVector(d)
		case d.Content == PositionDeletes:
			x.addPositions(d, paths)
		default:
			x.addEquality(d, e, columns)
		}
	}
	return x
}

func bySequence(a, b *DataFile) int {
	if c := cmp.Compare(a.Sequence, b.Sequence); c != 0 {
		return c
	}
	if c := strings.Compare(a.Path, b.Path); c != 0 {
		return c
	}
	return cmp.Compare(a.ContentOffset, b.ContentOffset)
}

// partition returns the key of f's spec and partition, good until the next call.
func (x *deleteIndex) partition(f *DataFile) []byte {
	x.key = appendPartition(x.key[:0], f.SpecID, x.fieldIDs[f.SpecID], f.Partition)
	return x.key
}

func (x *deleteIndex) samePartition(a, b *DataFile) bool {
	key := string(x.partition(a))
	return key == string(x.partition(b))
}

func (x *deleteIndex) addVector(d *DataFile) {
	if !d.HasReferenced || d.Referenced == "" {
		key := string(x.partition(d))
		x.lostVectors[key] = append(x.lostVectors[key], d)
		return
	}
	path := comparablePath(d.Referenced)
	x.vectors[path] = append(x.vectors[path], d)
}

// addPositions files a position delete under the one data file it can cover, or
// under its partition. One that can cover no live file is dropped.
func (x *deleteIndex) addPositions(d *DataFile, paths *pathSet) {
	if d.HasReferenced && d.Referenced != "" {
		path := comparablePath(d.Referenced)
		x.byPath[path] = append(x.byPath[path], d)
		return
	}
	if bound, ok := equalPathBounds(d); ok {
		switch exact, longer := paths.find(comparablePath(bound)); {
		case exact && !longer:
			path := comparablePath(bound)
			x.byPath[path] = append(x.byPath[path], d)
			return
		case !exact && !longer:
			return
		}
	}
	key := string(x.partition(d))
	x.byPartition[key] = append(x.byPartition[key], d)
}

func (x *deleteIndex) addEquality(d *DataFile, e *Entries, columns columns) {
	spec, known := e.Specs[d.SpecID]
	if len(d.EqualityIDs) == 0 || !known {
		x.doubtful = append(x.doubtful, d)
		return
	}
	if spec.IsUnpartitioned() {
		x.global = addToGroup(x.global, d, columns)
		return
	}
	key := x.partition(d)
	groups, ok := x.scoped[string(key)]
	if !ok {
		groups = new([]*equalityGroup)
		x.scoped[string(key)] = groups
	}
	*groups = addToGroup(*groups, d, columns)
}

// attach sets the deletes of f.
func (x *deleteIndex) attach(f *File) {
	path := comparablePath(f.Path)
	key := x.partition(f.DataFile)
	positions := since(x.byPartition[string(key)], f.Sequence)
	lost := since(x.lostVectors[string(key)], f.Sequence)
	x.setEquality(f, x.scoped[string(key)])
	x.setVector(f, lost, path)
	if f.DV == nil {
		f.Positions = merge(since(x.byPath[path], f.Sequence), positions)
	}
	if doubtful := since(x.doubtful, f.Sequence+1); len(doubtful) > 0 && f.Err == nil {
		f.Err = fmt.Errorf("%w: %s: equality delete %s has no equality ids or an unknown partition spec",
			ErrAmbiguousDeletes, f.Path, doubtful[0].Path)
	}
}

// setVector sets the deletion vector of f; lost are vectors of its partition
// that may be its.
func (x *deleteIndex) setVector(f *File, lost []*DataFile, path string) {
	vectors := since(x.vectors[path], f.Sequence)
	if len(lost) > 0 {
		f.Err = fmt.Errorf("%w: %s: deletion vector in %s references no data file",
			ErrAmbiguousDeletes, f.Path, lost[0].Path)
	}
	switch {
	case len(vectors) == 0:
		return
	case len(vectors) > 1:
		f.Err = fmt.Errorf("%w: %s: two deletion vectors, in %s and %s",
			ErrAmbiguousDeletes, f.Path, vectors[0].Path, vectors[1].Path)
	case !x.samePartition(vectors[0], f.DataFile):
		f.Err = fmt.Errorf("%w: %s: deletion vector in %s is of another partition",
			ErrAmbiguousDeletes, f.Path, vectors[0].Path)
	}
	f.DV = vectors[0]
}

// setEquality sets the equality deletes that can match rows of f, of the global
// ones and those of its partition.
func (x *deleteIndex) setEquality(f *File, scoped *[]*equalityGroup) {
	groups := 0
	add := func(list []*equalityGroup) {
		for _, g := range list {
			hits := g.matching(f.DataFile)
			if len(hits) == 0 {
				continue
			}
			if groups++; groups == 1 {
				f.Equality = hits
				continue
			}
			f.Equality = append(slices.Clip(f.Equality), hits...)
		}
	}
	add(x.global)
	if scoped != nil {
		add(*scoped)
	}
	if groups > 1 {
		slices.SortFunc(f.Equality, bySequence)
	}
}

// since returns the tail of an ordered list with sequence numbers >= sequence.
// It shares the list's memory and cannot be appended to in place.
func since(list []*DataFile, sequence int64) []*DataFile {
	i := sort.Search(len(list), func(i int) bool { return list[i].Sequence >= sequence })
	return list[i:len(list):len(list)]
}

// merge returns the files of two ordered lists in order.
func merge(a, b []*DataFile) []*DataFile {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	both := append(slices.Clone(a), b...)
	slices.SortFunc(both, bySequence)
	return both
}

// pathSet is the sorted comparable paths of the live data files, made when it
// is first asked.
type pathSet struct {
	files []*DataFile
	paths []string
}

func newPathSet(e *Entries) *pathSet { return &pathSet{files: e.Data} }

// find reports whether path is a live data file's, and whether it is the
// beginning of another one's.
func (s *pathSet) find(path string) (exact, longer bool) {
	if s.paths == nil {
		s.paths = make([]string, len(s.files))
		for i, f := range s.files {
			s.paths[i] = comparablePath(f.Path)
		}
		slices.Sort(s.paths)
		s.paths = slices.Compact(s.paths)
	}
	i, exact := slices.BinarySearch(s.paths, path)
	if exact {
		i++
	}
	return exact, i < len(s.paths) && strings.HasPrefix(s.paths[i], path)
}

// PathFieldID is the field id of a position-delete file's file_path column.
const PathFieldID = 2147483546

// equalPathBounds returns the common value of both bounds of a position-delete
// file's file_path column. Bounds may have been truncated, so all that they
// prove is that every path in the file begins with the value.
func equalPathBounds(d *DataFile) (string, bool) {
	m := d.Column(PathFieldID)
	if len(m.Lower) == 0 || string(m.Lower) != string(m.Upper) {
		return "", false
	}
	return string(m.Lower), true
}
