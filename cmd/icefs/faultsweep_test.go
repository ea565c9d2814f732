package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/pqfile"
)

const (
	// sweepEnv makes TestFaultSweep long: the tables that it names, or "all", more
	// flips, and every mount again on the cache folder of the one that met the
	// fault.
	sweepEnv = "ICEFS_FAULTS"
	// sweepRefresh lets a mount look at a table about once while it is read, and
	// soon again once the fault is gone.
	sweepRefresh = 500 * time.Millisecond
)

// sweptTables are tables of testdata that have, together, every kind of delete,
// Parquet and Avro data, history and schemas that changed.
func sweptTables(named string) []string {
	switch named {
	case "":
		return []string{"eq_default_v3", "types_java_avro"}
	case "all":
		return []string{"eq_default_v3", "types_java_avro", "avro_data", "v1_to_v3", "types_v3", "eq_avro_deletes", "part_identity", "branches_tags",
			"eq_evo", "imported", "row_lineage_mor", "meta_gzip"}
	}
	return strings.Split(named, ",")
}

// sweep is one table read through a source that fails.
type sweep struct {
	*testing.T
	warehouse string
	source    *faultSource
	server    *mountServer
	clean     wholeTree
	long      bool
	tally     *tally
}

// tally counts outcomes. Safe for concurrent use.
type tally struct {
	mu sync.Mutex
	of map[string]int
}

func (t *tally) add(outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[outcome]++
}

// sweepers is how many faults are met at a time, each in a source of its own:
// mounts come and go with much waiting.
const sweepers = 4

// TestFaultSweep makes each call to the source go wrong in turn, in a real mount
// that is then read as a whole. Whatever happens, the mount goes on; a path shows
// its bytes, or fails with an errno and a line of the log that names the file; and
// once the fault is gone it is as before.
func TestFaultSweep(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("as root only: the source is a mount of this process")
		return
	}
	named := os.Getenv(sweepEnv)
	long := named != ""
	server := startMountServer(t)
	for _, table := range sweptTables(named) {
		t.Run(table, func(t *testing.T) {
			s := newSweep(t, server, table, long)
			s.run()
		})
	}
	const bound = 512 << 20
	if peak := peakMemory(t, server.cmd.Process.Pid); peak > bound {
		t.Errorf("%d MiB were resident at the most, at most %d expected", peak>>20, bound>>20)
	}
}

func newSweep(t *testing.T, server *mountServer, table string, long bool) *sweep {
	t.Helper()
	warehouse := t.TempDir()
	if err := os.CopyFS(filepath.Join(warehouse, table), os.DirFS(filepath.Join("../../testdata/warehouse/db", table))); err != nil {
		t.Fatal(err)
	}
	s := &sweep{T: t, warehouse: warehouse, server: server, long: long, tally: &tally{of: map[string]int{}}}
	s.source = s.newSource()
	return s
}

func (s *sweep) newSource() *faultSource {
	limit := 8 * time.Minute
	if s.long {
		limit = time.Hour
	}
	return newFaultSource(s.T, s.warehouse, limit)
}

// run meets every fault there is.
func (s *sweep) run() {
	begun := time.Now()
	stop := s.source.calls.record()
	m := s.mount(s.TempDir())
	s.clean = readTree(m.dir)
	m.unmount()
	calls := stop()
	if failed := s.clean.failed(); len(failed) > 0 || len(s.clean) < 20 {
		s.Fatalf("%d paths, and without a fault these fail: %v", len(s.clean), failed)
	}
	reads := 0
	var faults []*fault
	for _, c := range calls {
		if c.what == readCall {
			reads++
		}
		faults = append(faults, s.faultsOf(c)...)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range sweepers {
		sweeper := *s
		sweeper.source = s.newSource()
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(faults)); i = next.Add(1) - 1 {
				if sweeper.meet(faults[i]); s.Failed() && !s.long {
					return // of hundreds, the first will do
				}
			}
		})
	}
	all.Wait()
	s.Logf("%d paths, %d calls, %d of them reads, %d faults in %v: %v", len(s.clean), len(calls), reads, len(faults),
		time.Since(begun).Round(time.Millisecond), s.tally.of)
}

func (s *sweep) mount(cache string) *mounted {
	s.Helper()
	m, err := s.server.mount(s.T, s.source.mountpoint, cache, "--refresh", sweepRefresh.String(), "--memory", "64MiB")
	if err != nil {
		s.Fatal(err)
	}
	return m
}

// faultsOf returns the ways in which a call can go wrong.
func (s *sweep) faultsOf(c call) (list []*fault) {
	add := func(k faultKind) { list = append(list, &fault{kind: k, at: c}) }
	switch c.what {
	case listCall:
		add(failingList)
	case statCall:
		add(failingStat)
		// Without its newest metadata file a table is the one of the version before.
		info, err := os.Stat(filepath.Join(s.source.dir, c.file))
		if err == nil && info.Mode().IsRegular() && !strings.HasSuffix(c.file, ".metadata.json") {
			add(vanishedFile)
		}
	case openCall:
		add(failingOpen)
		add(vanishedOpen)
	case readCall:
		for _, k := range []faultKind{failingRead, shortRead, slowRead} {
			add(k)
		}
		list = append(list, s.flipsOf(c)...)
	}
	return list
}

// flipsOf returns flips of bits all over what a read gives, always the same.
func (s *sweep) flipsOf(c call) (list []*fault) {
	h := fnv.New64a()
	fmt.Fprint(h, c)
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	n := 2
	if s.long {
		n = 8
	}
	info, err := os.Stat(filepath.Join(s.source.dir, c.file))
	if err != nil {
		s.Fatal(err)
	}
	for range min(n, c.n) {
		at := c.off + random.Int64N(min(int64(c.n), info.Size()-c.off))
		list = append(list, &fault{kind: flippedRead, at: c, flip: at, bit: uint(random.IntN(8))})
	}
	return list
}

// meet mounts the table with one fault, and reads it.
func (s *sweep) meet(f *fault) {
	name := fmt.Sprintf("%v of %+v", f.kind, f.at)
	if f.kind == flippedRead {
		name += fmt.Sprintf(" at %d, bit %d", f.flip, f.bit)
	}
	cache := "" // none
	if s.long {
		var err error
		if cache, err = os.MkdirTemp("", "icefs-faults"); err != nil {
			s.Error(err)
			return
		}
		defer os.RemoveAll(cache)
	}
	s.source.fault.Store(f)
	defer s.source.fault.Store(nil)
	m, err := s.server.mount(s.T, s.source.mountpoint, cache, "--refresh", sweepRefresh.String(), "--memory", "64MiB")
	if err != nil {
		s.tally.add("refused")
		// A folder that cannot be listed may have no table in it.
		if f.at.what == readCall || !f.named(err.Error()) && !strings.Contains(err.Error(), errNoTable.Error()) {
			s.Errorf("%s: not mounted: %v", name, err)
		}
		return
	}
	got := readTree(m.dir)
	s.source.fault.Store(nil)
	s.judge(name, f, m, got)
	if s.strict(f) {
		s.again(name, m, got)
	}
	if !m.unmount() {
		s.Errorf("%s: the mount did not live", name)
	}
	if s.long && s.strict(f) {
		m, err := s.server.mount(s.T, s.source.mountpoint, cache)
		if err != nil {
			s.Error(err)
			return
		}
		for _, d := range readTree(m.dir).differences(s.clean) {
			s.Errorf("%s: mounted again on the same cache folder: %v", name, d)
		}
		m.unmount()
	}
}

// strict reports whether a fault has to be noticed. A flipped bit is by checksums
// alone: metadata and footers have none.
func (s *sweep) strict(f *fault) bool {
	if f.kind != flippedRead {
		return true
	}
	safe, _ := guarded(s.T, filepath.Join(s.source.dir, f.at.file))
	return within64(safe, f.flip)
}

// judge looks at what a mount with a fault shows.
func (s *sweep) judge(name string, f *fault, m *mounted, got wholeTree) {
	failed := got.failed()
	outcome := "unnoticed"
	if f.fired.Load() == 0 {
		outcome = "not met"
	} else if len(failed) > 0 {
		outcome = "errno"
	}
	if f.kind == slowRead && len(failed) > 0 {
		s.Errorf("%s: %v fail", name, failed)
	}
	s.checkLog(name, f, m, got, failed)
	if !s.strict(f) {
		s.tally.add(fmt.Sprintf("%v without checksum: %s", f.kind, outcome))
		s.structure(name, f, got)
		return
	}
	for _, d := range got.differences(s.clean) {
		if f.kind == flippedRead && s.readerTells(d.path, got[d.path].data) {
			outcome = "left to the reader"
			continue
		}
		s.Errorf("%s: %v", name, d)
	}
	if table := got.unloadable(); table != "" && outcome == "unnoticed" {
		outcome = "error.txt"
		if text := string(got[table].data); !f.named(text) {
			s.Errorf("%s: %s does not name the file: %s", name, table, text)
		}
	}
	s.tally.add(fmt.Sprintf("%v: %s", f.kind, outcome))
	if outcome == "unnoticed" && testing.Verbose() && f.kind != slowRead {
		s.Logf("%s: unnoticed", name)
	}
}

// named reports whether a message names the file that failed, or its folder: that
// is listed with a stat of each file in it.
func (f *fault) named(message string) bool {
	return f.at.file == "" || strings.Contains(message, filepath.Base(f.at.file)) ||
		f.at.what == statCall && strings.Contains(message, filepath.Base(filepath.Dir(f.at.file)))
}

// unloadable is the error.txt of a table that cannot be loaded.
func (t wholeTree) unloadable() string {
	for p := range t {
		if filepath.Base(p) == "error.txt" {
			return p
		}
	}
	return ""
}

// readerTells reports whether a Parquet view has a page as it is stored, which
// its reader finds damaged by the page's own checksum.
func (s *sweep) readerTells(path string, data []byte) bool {
	if filepath.Ext(path) != ".parquet" || len(data) != len(s.clean[path].data) {
		return false
	}
	err := eachPage(data, func(*pqfile.RawPage) {})
	return err != nil && strings.Contains(err.Error(), "checksum")
}

// structure is what can be asked of a mount that was told plausible lies.
func (s *sweep) structure(name string, f *fault, got wholeTree) {
	for p, e := range got {
		if e.wrong != "" {
			s.Errorf("%s: %s: %s", name, p, e.wrong)
		}
	}
	_, pages := guarded(s.T, filepath.Join(s.source.dir, f.at.file))
	if !within64(pages, f.flip) || strings.Contains(f.at.file, "deletes") {
		return
	}
	for p, want := range s.clean {
		if e := got[p]; filepath.Base(p) == "data.jsonl" && e.err == nil && bytes.Count(e.data, []byte("\n")) != bytes.Count(want.data, []byte("\n")) {
			s.Errorf("%s: %s has another number of rows", name, p)
		}
	}
}

// checkLog wants an errno of the contract for each path that failed, and a line
// of the log that names the path, and the file of the source.
func (s *sweep) checkLog(name string, f *fault, m *mounted, got wholeTree, failed []string) {
	allowed := []syscall.Errno{syscall.EIO}
	if f.kind == flippedRead {
		allowed = append(allowed, syscall.EOPNOTSUPP, syscall.ESTALE)
	}
	checkFailures(s.T, name, m.said(), got, failed, allowed, func(cause string) bool { return f.named(cause) || f.kind == flippedRead })
	if len(failed) > 0 && f.kind == slowRead {
		s.Errorf("%s: fails: %v", name, failed)
	}
}

// again reads what failed once more, without the fault.
func (s *sweep) again(name string, m *mounted, got wholeTree) {
	if got.unloadable() != "" {
		time.Sleep(sweepRefresh)
		for _, d := range readTree(m.dir).differences(s.clean) {
			s.Errorf("%s: once it is gone: %v", name, d)
		}
		return
	}
	for _, p := range got.failed() {
		want, ok := s.clean[p]
		if !ok {
			continue
		}
		if want.mode.IsDir() {
			below := wholeTree{}
			below.walk(m.dir, p)
			for q, e := range below {
				if e.err != nil || !bytes.Equal(e.data, s.clean[q].data) {
					s.Errorf("%s: once it is gone: %s: %v", name, q, e.err)
				}
			}
			continue
		}
		if e := readShown(filepath.Join(m.dir, p), want.mode); e.err != nil || e.target != want.target || !bytes.Equal(e.data, want.data) {
			s.Errorf("%s: once it is gone: %s: %v", name, p, e.err)
		}
	}
}
