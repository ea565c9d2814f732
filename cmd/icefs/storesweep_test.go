package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/source/storetest"
)

const (
	// storePatience is what a mount waits for a store that answers wrongly once,
	// and storeHaste for one that never answers rightly: far more than a right
	// answer takes on a busy machine.
	storePatience = time.Minute
	storeHaste    = time.Second
	// storeSweepers is how many faults are met at a time: much of it is waiting.
	storeSweepers = 12
)

// sweptStoreTable is a table of the bucket.
type sweptStoreTable struct {
	folder string
	// turns is after how many of the faults of all its requests one is met, if the
	// sweep is not long.
	turns int
}

func sweptStoreTables() []sweptStoreTable { return []sweptStoreTable{{"wide", 9}, {"sales/s3_v2", 25}} }

// storeTables writes a bucket with a table that has real checksums and one of
// files that are more than their ends, and returns its folder.
func storeTables(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "icefs-bucket")
	if err := os.CopyFS(dir, os.DirFS("../../testdata/object-store/icefs-bucket")); err != nil {
		t.Fatal(err)
	}
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String})
	wide := fixture.New(filepath.Join(dir, "wh/wide"), fixture.Options{Schema: schema, FormatVersion: 3, Location: "s3://icefs-bucket/wh/wide",
		Parquet: fixture.ParquetOptions{Codec: fixture.Uncompressed, NoDictionary: true, PageSize: 16 << 10, RowGroup: 2000}})
	tx := wide.Begin()
	var files []*fixture.File
	for i := range 2 {
		var rows []fixture.Row
		for j := range 4000 {
			rows = append(rows, fixture.Row{"id": 10_000*i + j, "s": fmt.Sprintf("the value of row %d", j)})
		}
		files = append(files, tx.Append(rows...))
	}
	tx.Commit()
	tx = wide.Begin()
	tx.DeleteVector(files[0], 1, 2, 3, 1999, 2000, 3999)
	tx.DeleteEqual([]int{1}, fixture.Row{"id": 12_345})
	tx.Commit()
	if err := wide.Err(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// storeSweep is a table read from a store that answers a request wrongly.
type storeSweep struct {
	*testing.T
	server *mountServer
	store  *faultStore
	files  string // folder with the bucket's
	table  sweptStoreTable
	cache  string // folder; empty = none
	long   bool   // all kinds of faults of all requests, and all of history
	clean  wholeTree
	tally  *tally
}

// TestStoreFaultSweep makes each request to a store go wrong in turn, once and
// whenever it is made, in a real mount that is then read as a whole: without a
// cache folder, and on one that has everything. What passes is not noticed; else
// a path fails with an errno and a line of the log that names the object, or has
// its bytes. The mount goes on, and once the fault is gone it is as before; what a
// fault leaves in the cache folder is right.
func TestStoreFaultSweep(t *testing.T) {
	store := storetest.NewServer(t)
	bucket := storeTables(t)
	store.PutDir(t, filepath.Base(bucket), bucket)
	aStoreLogin(t)
	server := startMountServer(t)
	long := os.Getenv(sweepEnv) != ""
	for i, table := range sweptStoreTables() {
		caches := []string{"", t.TempDir()}
		if i > 0 && !long {
			caches = caches[:1]
		}
		for _, cache := range caches {
			name := table.folder + ", no cache folder"
			if cache != "" {
				name = table.folder + ", warm cache folder"
			}
			t.Run(name, func(t *testing.T) {
				s := &storeSweep{T: t, server: server, files: filepath.Dir(bucket), store: newFaultStore(t, store.Config.Handler), cache: cache,
					table: table, long: long, tally: &tally{of: map[string]int{}}}
				s.run()
			})
		}
	}
	const bound = 768 << 20
	if peak := peakMemory(t, server.cmd.Process.Pid); peak > bound {
		t.Errorf("%d MiB were resident at the most, at most %d expected", peak>>20, bound>>20)
	}
}

func (s *storeSweep) mount(timeout time.Duration) (*mounted, error) {
	flags := []string{"--s3-endpoint", s.store.URL, "--timeout", timeout.String(), "--refresh", sweepRefresh.String(), "--memory", "64MiB"}
	if !s.long {
		flags = append(flags, "--history", "1", "--views", "parquet,jsonl")
	}
	return s.server.mount(s.T, "s3://icefs-bucket/wh/"+s.table.folder, s.cache, flags...)
}

// look mounts the warehouse without a fault, and returns what it shows and what is
// asked of the store for it.
func (s *storeSweep) look() (wholeTree, []storeCall) {
	s.Helper()
	stop := s.store.calls.record()
	m, err := s.mount(storePatience)
	if err != nil {
		s.Fatal(err)
	}
	defer m.unmount()
	return readTree(m.dir), stop()
}

// run meets every fault there is.
func (s *storeSweep) run() {
	begun := time.Now()
	tree, calls := s.look()
	if s.cache != "" {
		tree, calls = s.look()
	}
	s.clean = tree
	if failed := s.clean.failed(); len(failed) > 0 || len(s.clean) < 10 {
		s.Fatalf("%d paths, and without a fault these fail: %v", len(s.clean), failed)
	}
	var faults []*storeCallFault
	possible := 0
	slices.SortFunc(calls, func(a, b storeCall) int { return strings.Compare(a.String(), b.String()) })
	for _, c := range calls {
		for _, f := range s.faultsOf(c) {
			if possible++; s.long || possible%s.table.turns == 0 {
				faults = append(faults, f)
			}
		}
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range storeSweepers {
		sweeper := *s
		sweeper.store = newFaultStore(s.T, s.store.store)
		all.Go(func() {
			if s.cache != "" {
				sweeper.look() // what is kept is by address
			}
			for i := next.Add(1) - 1; i < int64(len(faults)); i = next.Add(1) - 1 {
				if sweeper.meet(faults[i]); s.Failed() {
					return // of hundreds, the first will do
				}
			}
		})
	}
	all.Wait()
	if s.cache != "" {
		again, made := s.look()
		for _, d := range again.differences(s.clean) {
			s.Errorf("after all faults, on their cache folder: %v", d)
		}
		if i := slices.IndexFunc(made, func(c storeCall) bool { return c.method == "GET" && !c.listing() }); i >= 0 {
			s.Errorf("after all faults, on their cache folder: %v", made[i])
		}
	}
	s.Logf("%d paths, %d requests, %d of %d faults in %v: %v", len(s.clean), len(calls), len(faults), possible, time.Since(begun).Round(time.Millisecond), s.tally.of)
}

// faultsOf returns the ways in which the answer to a request can be wrong.
func (s *storeSweep) faultsOf(c storeCall) (list []*storeCallFault) {
	passing := []storeFault{answersLate, answers500, answers503, answersReset, answersNothing}
	lasting := []storeFault{answers403, answers404, answers503, answersReset, answersNever, answersNothing}
	if c.method == http.MethodGet {
		passing = append(passing, answersCut, answersShort)
		lasting = append(lasting, answersCut, answersShort)
	}
	if !c.listing() {
		lasting = append(lasting, answersNewer)
	}
	if c.bytes != "" {
		lasting = append(lasting, answers416, answersElse)
	}
	for _, k := range passing {
		list = append(list, &storeCallFault{kind: k, at: c})
	}
	for _, k := range lasting {
		list = append(list, &storeCallFault{kind: k, at: c, always: true})
	}
	return append(list, s.flipsOf(c)...)
}

// tires reports whether a fault is one that is waited for to pass, and does not.
func (f *storeCallFault) tires() bool {
	switch f.kind {
	case answers503, answersReset, answersNever, answersNothing, answersCut, answersShort:
		return f.always
	}
	return false
}

// flipsOf returns flips of bits all over what a request is answered, always the
// same.
func (s *storeSweep) flipsOf(c storeCall) (list []*storeCallFault) {
	if c.bytes == "" {
		return nil
	}
	from, to := s.rangeOf(c)
	h := fnv.New64a()
	fmt.Fprint(h, c)
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	n := 4
	if s.long {
		n = 32
	}
	for range min(n, int(to-from)) {
		list = append(list, &storeCallFault{kind: answersFlipped, at: c, always: true, flip: random.IntN(int(to - from))})
	}
	return list
}

func (s *storeSweep) file(c storeCall) string { return filepath.Join(s.files, c.object) }

// rangeOf is the range of the object that a request asks for.
func (s *storeSweep) rangeOf(c storeCall) (from, to int64) {
	info, err := os.Stat(s.file(c))
	if err != nil {
		s.Error(err)
		return 0, 0
	}
	if last, ok := strings.CutPrefix(c.bytes, "bytes=-"); ok {
		n, _ := strconv.ParseInt(last, 10, 64)
		return max(0, info.Size()-n), info.Size()
	}
	fmt.Sscanf(c.bytes, "bytes=%d-%d", &from, &to)
	return from, to + 1
}

// strict reports whether a fault has to be noticed: see sweep.strict.
func (s *storeSweep) strict(f *storeCallFault) bool {
	if f.kind != answersFlipped {
		return true
	}
	safe, _ := guarded(s.T, s.file(f.at))
	from, _ := s.rangeOf(f.at)
	return within64(safe, from+int64(f.flip))
}

// meet mounts the warehouse with one fault, and reads it.
func (s *storeSweep) meet(f *storeCallFault) {
	s.store.fault.Store(f)
	defer s.store.fault.Store(nil)
	timeout := storePatience
	if f.tires() {
		timeout = storeHaste
	}
	m, err := s.mount(timeout)
	if err != nil {
		s.tally.add(fmt.Sprintf("%v: refused", f.kind))
		if !f.always || !f.named(err.Error()) && !f.late(err.Error()) && !strings.Contains(err.Error(), errNoTable.Error()) {
			s.Errorf("%v: not mounted: %v", f, err)
		}
		return
	}
	got := readTree(m.dir)
	s.store.fault.Store(nil)
	s.judge(f, m, got)
	// An object that was another one stays so for the mount.
	if s.strict(f) && f.kind != answersNewer {
		s.again(f, m, got)
	}
	if !m.unmount() {
		s.Errorf("%v: the mount did not live", f)
	}
}

// named reports whether a message names the object, or the folder.
func (f *storeCallFault) named(message string) bool {
	return strings.Contains(message, path.Base(f.at.object+f.at.prefix))
}

// late reports whether a message is that of a hasty mount on a busy machine.
func (f *storeCallFault) late(message string) bool {
	return f.tires() && strings.Contains(message, context.DeadlineExceeded.Error())
}

// judge looks at what a mount with a fault shows.
func (s *storeSweep) judge(f *storeCallFault, m *mounted, got wholeTree) {
	failed := got.failed()
	outcome := "unnoticed"
	switch table := got.unloadable(); {
	case f.fired.Load() == 0:
		outcome = "not met"
	case len(failed) > 0:
		outcome = "errno"
	case table != "":
		outcome = "error.txt"
		if text := string(got[table].data); !f.named(text) && f.kind != answersFlipped {
			s.Errorf("%v: %s does not name it: %s", f, table, text)
		}
	}
	if !f.always && outcome != "unnoticed" && outcome != "not met" {
		s.Errorf("%v: %s: %v, %s", f, outcome, failed, got[got.unloadable()].data)
	}
	s.checkLog(f, m, got, failed)
	strict := s.strict(f)
	for _, d := range got.differences(s.clean) {
		switch local := (&sweep{T: s.T, clean: s.clean}); {
		case !strict && got[d.path].wrong == "":
		case strict && f.kind == answersFlipped && local.readerTells(d.path, got[d.path].data):
			outcome = "left to the reader"
		default:
			s.Errorf("%v: %v", f, d)
		}
	}
	kind := f.kind.String()
	if !f.always {
		kind += " once"
	} else if !strict {
		kind += " without checksum"
	}
	s.tally.add(kind + ": " + outcome)
}

// checkLog wants an errno of the contract for each path that failed, and a line
// of the log that names the path, and the object.
func (s *storeSweep) checkLog(f *storeCallFault, m *mounted, got wholeTree, failed []string) {
	allowed := []syscall.Errno{syscall.EIO, syscall.ETIMEDOUT}
	switch f.kind {
	case answersNewer:
		allowed = []syscall.Errno{syscall.ESTALE}
	case answersFlipped:
		allowed = append(allowed, syscall.EOPNOTSUPP, syscall.ESTALE)
	}
	checkFailures(s.T, f, m.said(), got, failed, allowed, func(cause string) bool {
		return f.named(cause) || f.kind == answersFlipped || f.late(cause)
	})
}

// again reads everything once more, without the fault.
func (s *storeSweep) again(f *storeCallFault, m *mounted, got wholeTree) {
	if len(got.failed()) == 0 && got.unloadable() == "" {
		return
	}
	var tree wholeTree
	for range 3 { // on a busy machine a hasty mount may be late again
		time.Sleep(2 * sweepRefresh) // a table is looked at again, and so is what was damaged
		if tree = readTree(m.dir); len(tree.failed()) == 0 {
			break
		}
	}
	for _, p := range tree.failed() {
		s.Errorf("%v: once it is gone: %s: %v", f, p, tree[p].err)
	}
	for _, d := range tree.differences(s.clean) {
		s.Errorf("%v: once it is gone: %v", f, d)
	}
}
