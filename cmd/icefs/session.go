package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/fs"
	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source/remote"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// session is an opened SOURCE with everything wired together.
type session struct {
	opt     options
	log     *slog.Logger
	logFile *os.File // nil = standard error
	ballast []byte   // never touched: see ballastBytes
	source  string
	started time.Time

	catalog *warehouse.Catalog
	memory  *cache.Cache
	disk    *cache.Disk // nil = none
	stores  *remote.Stores
	engine  *merge.Engine
	tree    *tree.Tree

	activity *activity.Log        // nil without control
	calls    *calls               // of activity
	registry *prometheus.Registry // of .icefs and --metrics-addr
	reads    sourceReads

	counters  merge.Counters
	equality  deletes.Counters
	parquet   pqfile.Stats
	warehouse warehouse.Stats
	kernel    fs.Stats
	requests  remote.Stats
}

// openSession opens SOURCE and builds the tree over it. control adds .icefs.
func openSession(ctx context.Context, src string, opt options, out console, control bool) (*session, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	log, file, err := opt.logging.open(out.err)
	if err != nil {
		return nil, err
	}
	s := &session{reads: sourceReads{timeout: opt.timeout}, opt: opt, log: log, logFile: file, source: absolute(src), started: time.Now()}
	if err := s.open(ctx, control); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// processBytes is what the process has resident outside Go's memory: most of it
// the program itself, and what the collector exceeds its limit by.
const processBytes = 112 << 20

// absolute makes SOURCE independent of the working directory if it is a path.
func absolute(src string) string {
	if _, err := os.Lstat(src); err != nil {
		return src
	}
	if abs, err := filepath.Abs(src); err == nil {
		return abs
	}
	return src
}

func (s *session) open(ctx context.Context, control bool) error {
	// The budget is divided up in shares (merge.CacheShare); the collector works
	// harder before the whole is exceeded.
	limit := s.opt.memory - min(s.opt.memory/4, processBytes)
	if s.opt.memory >= roomyBytes {
		debug.SetGCPercent(roomyPercent)
		s.ballast = make([]byte, ballastBytes)
		limit += ballastBytes
	}
	debug.SetMemoryLimit(limit)
	var err error
	if s.memory, err = cache.New(cache.Options{MaxBytes: s.opt.off.cacheBytes(s.opt.memory)}); err != nil {
		return err
	}
	if err := s.openDisk(); err != nil {
		return err
	}
	properties, err := s.opt.stores.read()
	if err != nil {
		return err
	}
	s.stores = s.openStores()
	if err := s.openCatalog(ctx, properties); err != nil {
		return explainSource(s.source, err)
	}
	if control {
		s.calls = newCalls()
		s.activity = activity.New(activity.Options{Log: s.log, Slow: s.slow(), Work: s.work, Observe: s.calls.observe})
		s.registry = s.newRegistry()
	}
	if s.tree, err = tree.New(ctx, s.treeOptions(control)); err != nil {
		return explainSource(s.source, err)
	}
	return nil
}

// errNoTable: the source is a folder or a file, but not of tables.
var errNoTable = errors.New("there is no table in it")

// checkRoot lists the root, for a command that is given no path in it, and
// refuses a source that shows nothing: a folder without any table, or a file that is no table's metadata. (The folder of a
// table that cannot be loaded is shown, with its error.txt.)
func (s *session) checkRoot(ctx context.Context) error {
	entries, err := s.tree.Root().Entries(ctx)
	if err != nil {
		return explainSource(s.source, err)
	}
	if !s.catalog.Folders() {
		return nil // a catalog may be empty
	}
	info, err := os.Stat(s.source)
	if err != nil || info.IsDir() {
		if !slices.ContainsFunc(entries, func(e tree.Entry) bool { return e.Name != ".icefs" }) {
			return explainSource(s.source, errNoTable)
		}
		return nil
	}
	if _, table, err := s.catalog.Root(ctx); err == nil && table != nil {
		if _, err := table.Load(ctx); err != nil {
			return explainSource(s.source, err)
		}
	}
	return nil
}

// slow turns 0, "none", into what Options take for it.
func (s *session) slow() time.Duration {
	if s.opt.watching.slow <= 0 {
		return -1
	}
	return s.opt.watching.slow
}

// behindShare is the share of the memory budget that may wait to be written to the
// disk cache: the chunks of a query of many columns over some 100 MB.
const behindShare = 4

// roomyPercent lets the heap grow to three times what is in use, where --memory is
// roomyBytes or more, before it is collected: a collection costs as much as making
// some chunks. With less the limit is soon exceeded.
const (
	roomyPercent = 200
	roomyBytes   = 1 << 30
	// ballastBytes of heap that is not resident keep the collector from running
	// before three times as much is in use: else the heap of a server that has just
	// started, or has little to keep, is collected several times for one layout.
	ballastBytes = 32 << 20
)

// openDisk opens the disk cache. A folder that nobody has asked for may fail: a
// service has no home.
func (s *session) openDisk() error {
	if s.opt.cacheDir == "" || s.opt.cacheSize == 0 {
		return nil
	}
	err := s.checkCacheDir()
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(s.opt.cacheDir), 0o700); err == nil {
			s.disk, err = cache.OpenDisk(s.opt.cacheDir, cache.DiskOptions{
				MaxBytes: s.opt.cacheSize, Log: s.log, BehindBytes: s.opt.memory / behindShare,
			})
		}
	}
	if err == nil {
		return nil
	}
	s.disk = nil
	err = fmt.Errorf("cache folder: %w (choose another with --cache-dir)", err)
	if !s.opt.cacheFlag.Changed {
		s.log.Warn("there is no disk cache", "err", err)
		return nil
	}
	return err
}

// checkCacheDir refuses a cache in a folder of tables: nothing is written there.
func (s *session) checkCacheDir() error {
	root := cmp.Or(tableFolder(s.source), s.source)
	source, err := realPath(root)
	if info, statErr := os.Stat(root); err != nil || statErr != nil || !info.IsDir() {
		return nil // no folder
	}
	dir, err := realPath(s.opt.cacheDir)
	if err == nil && within(dir, source) {
		return fmt.Errorf("%s lies in the source %s, where nothing is written", s.opt.cacheDir, root)
	}
	return nil
}

func (s *session) treeOptions(control bool) tree.Options {
	resolver := deletes.NewResolver(deletes.Options{
		Cache: s.memory, Persist: s.disk, Log: s.log, Stats: &s.parquet, Counters: &s.equality, KeyBytes: min(s.opt.memory/8, deletes.DefaultKeyBytes),
		MemoryBytes: s.opt.memory, Workers: s.opt.workers,
	})
	options := merge.Options{
		Cache:           s.memory,
		Persist:         s.disk,
		Deletes:         resolver,
		Log:             s.log,
		CSV:             s.opt.csv,
		Statistics:      s.opt.statistics,
		MetadataColumns: s.opt.metadata,
		Stats:           &s.parquet,
		Counters:        &s.counters,
		MemoryBytes:     s.opt.memory,
		Workers:         s.opt.workers,
	}
	s.opt.off.apply(&options)
	s.engine = merge.NewEngine(options)
	opt := tree.Options{
		Catalog:        catalog{s.catalog, &s.reads},
		Views:          s.engine,
		Show:           s.opt.show,
		History:        s.opt.history,
		ParquetOptions: s.opt.parquetIdentity(),
		CSVOptions:     s.opt.csvIdentity(),
		JSONLOptions:   s.opt.columnsIdentity(),
		MetadataBytes:  int64(merge.MetadataShare * float64(s.opt.memory)),
	}
	if control {
		opt.Control = s.control()
	}
	return opt
}

// close frees what the session holds. Readers fail after it.
func (s *session) close() {
	if s.catalog != nil {
		s.catalog.Close()
	}
	if s.memory != nil {
		s.memory.Close()
	}
	if s.stores != nil {
		s.stores.Close()
	}
	if s.disk != nil {
		s.disk.Close()
	}
	if s.logFile != nil {
		s.logFile.Close()
	}
}
