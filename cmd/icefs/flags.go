package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

// options are the flags that all commands on a SOURCE share.
type options struct {
	show       tree.Shown
	csv        merge.CSVOptions // NoHeader is set by check
	csvHeader  bool
	statistics merge.Statistics
	metadata   []string // metadata columns
	refresh    time.Duration
	memory     int64
	cacheDir   string
	cacheFlag  *pflag.Flag // of cacheDir
	cacheSize  int64
	timeout    time.Duration
	allowPaths []string
	history    tree.History
	off        switchedOff
	stores     storeOptions
	logging    logging
	watching   watching // of mount and serve alone
	workers    int      // that compute at a time; 0 = GOMAXPROCS
}

// defaultTimeout bounds one read from a source: an object store's slowest reply,
// far below what a reader would wait for a dead disk.
const defaultTimeout = 60 * time.Second

// add declares the shared flags.
func (o *options) add(set *pflag.FlagSet) {
	o.show = tree.DefaultShown()
	set.Var(&textFlag{"parquet,csv,jsonl,parts", "LIST", func(s string) (err error) { o.show, err = tree.ParseShown(s); return }},
		"views", "data files to show: parquet, csv, jsonl, parts, parts.csv, parts.jsonl")
	set.Var(&textFlag{"all", "WHICH", func(s string) (err error) { o.history, err = tree.ParseHistory(s); return }}, "history",
		"snapshots to show beside those of current, branches and tags: all, the newest N, those up to an age (36h, 30d, 2w), refs (none), hidden (all, but not listed)")
	o.addCSV(set)
	o.statistics = merge.StatisticsAuto
	set.Var(&textFlag{"auto", "POLICY", o.setStatistics}, "statistics",
		"min/max in Parquet footers of rewritten row groups: exact (where they can prune), none, all; auto is exact, but none in object stores")
	set.Var(&textFlag{"none", "LIST", func(s string) (err error) { o.metadata, err = merge.ParseMetadataColumns(s); return }},
		"metadata-columns", "add columns that tell where rows come from: "+strings.Join(merge.AllMetadataColumns(), ", ")+"; alone: all of them")
	set.Lookup("metadata-columns").NoOptDefVal = "all"
	set.DurationVar(&o.refresh, "refresh", warehouse.DefaultRefresh, "how old listings and table metadata may get, as a `DURATION`")
	o.memory = cache.DefaultMaxBytes
	set.Var(sizeFlag{&o.memory}, "memory", "memory to use")
	set.StringVar(&o.cacheDir, "cache-dir", defaultCacheDir(), "`DIR` of the disk cache, which holds table data; empty: none")
	o.cacheFlag = set.Lookup("cache-dir")
	o.cacheSize = cache.DefaultDiskBytes
	set.Var(sizeFlag{&o.cacheSize}, "cache-size", "size of the disk cache")
	set.DurationVar(&o.timeout, "timeout", defaultTimeout, "longest wait for one read from the source, as a `DURATION`; 0: forever")
	set.StringArrayVar(&o.allowPaths, "allow-path", nil, "further `DIR` that table files may lie in, a folder or one in an object store (repeatable)")
	o.stores.add(set)
	o.off.add(set)
	o.logging.add(set)
}

func (o *options) addCSV(set *pflag.FlagSet) {
	set.StringVar(&o.csv.Null, "csv-null", "", "`TEXT` of NULL in CSV (default an empty unquoted field)")
	set.Var(&textFlag{",", "CHAR", o.setDelimiter}, "csv-delimiter", `delimiter of CSV; tab or \t for a tab`)
	set.BoolVar(&o.csvHeader, "csv-header", true, "write column names in the first line of CSV")
	set.BoolVar(&o.csv.BOM, "csv-bom", false, "begin CSV with a byte order mark, as Excel wants it")
}

func (o *options) setStatistics(s string) error {
	switch s {
	case "auto":
		o.statistics = merge.StatisticsAuto
	case "exact":
		o.statistics = merge.StatisticsExact
	case "none":
		o.statistics = merge.StatisticsNone
	case "all":
		o.statistics = merge.StatisticsAll
	default:
		return fmt.Errorf("want auto, exact, none or all")
	}
	return nil
}

func (o *options) setDelimiter(s string) error {
	if s == "tab" || s == `\t` {
		s = "\t"
	}
	if len(s) != 1 || s[0] >= 0x80 || strings.ContainsAny(s, "\"\r\n\x00") {
		return fmt.Errorf("want one ASCII character that is neither a quote nor a line break")
	}
	o.csv.Delimiter = s[0]
	return nil
}

// check refuses combinations that no single flag can see.
func (o *options) check() error {
	o.csv.NoHeader = !o.csvHeader
	delimiter := o.csv.Delimiter
	if delimiter == 0 {
		delimiter = ','
	}
	if strings.ContainsAny(o.csv.Null, "\"\r\n"+string(rune(delimiter))) {
		return usageError{"--csv-null cannot hold a quote, a line break or the delimiter"}
	}
	if o.memory < 64<<20 {
		return usageError{"--memory has to be at least 64MiB"}
	}
	return nil
}

// csvIdentity spells out the CSV options that change bytes.
func (o *options) csvIdentity() string {
	return fmt.Sprintf("null=%q delimiter=%d noheader=%t bom=%t", o.csv.Null, o.csv.Delimiter, o.csv.NoHeader, o.csv.BOM) + o.columnsIdentity()
}

func (o *options) parquetIdentity() string {
	policy := o.statistics
	if policy == merge.StatisticsAuto {
		policy = merge.StatisticsExact // as far as options decide
	}
	return fmt.Sprintf("statistics=%d", policy) + o.columnsIdentity() + o.off.identity()
}

// columnsIdentity is what all forms have in common; empty by default.
func (o *options) columnsIdentity() string {
	if len(o.metadata) == 0 {
		return ""
	}
	return " metadata=" + strings.Join(o.metadata, ",")
}

// defaultCacheDir is in the user's cache folder, or none if there is no such.
func defaultCacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "icefs")
}

// logging are the flags of the log.
type logging struct {
	level  slog.Level
	format string
	file   string
}

func (l *logging) add(set *pflag.FlagSet) {
	set.Var(&textFlag{"info", "LEVEL", func(s string) error { return l.level.UnmarshalText([]byte(s)) }},
		"log-level", "debug, info, warn or error")
	l.format = "text"
	set.Var(&textFlag{"text", "FORMAT", l.setFormat}, "log-format", "text or json")
	set.StringVar(&l.file, "log-file", "", "append the log to `FILE` (default standard error)")
}

func (l *logging) setFormat(s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("want text or json")
	}
	l.format = s
	return nil
}

// open returns the logger, and the log file if there is one.
func (l *logging) open(stderr io.Writer) (*slog.Logger, *os.File, error) {
	w := stderr
	var f *os.File
	if l.file != "" {
		var err error
		if f, err = os.OpenFile(l.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return nil, nil, fmt.Errorf("log file: %w", err)
		}
		w = f
	}
	opt := &slog.HandlerOptions{Level: l.level}
	if l.format == "json" {
		return slog.New(slog.NewJSONHandler(w, opt)), f, nil
	}
	return slog.New(slog.NewTextHandler(w, opt)), f, nil
}

// watching are the flags of those who look at a running mount or server.
type watching struct {
	metricsAddr string
	slow        time.Duration
}

func (w *watching) add(set *pflag.FlagSet) {
	set.StringVar(&w.metricsAddr, "metrics-addr", "", "serve Prometheus metrics and pprof over HTTP on `ADDR`; without a host, such as :9110, on the loopback address (default none)")
	set.DurationVar(&w.slow, "slow-log", activity.DefaultSlow, "log calls that take longer than this `DURATION`, with the reason; 0: none")
}

// textFlag is a flag that a function checks.
type textFlag struct {
	value string
	kind  string
	set   func(string) error
}

func (f *textFlag) String() string { return f.value }
func (f *textFlag) Type() string   { return f.kind }

func (f *textFlag) Set(s string) error {
	if err := f.set(s); err != nil {
		return err
	}
	f.value = s
	return nil
}

// sizeFlag is a number of bytes, with or without a unit (1GiB, 500MB).
type sizeFlag struct{ bytes *int64 }

func (f sizeFlag) Type() string { return "SIZE" }

func (f sizeFlag) String() string {
	if f.bytes == nil {
		return ""
	}
	return strings.NewReplacer(".0 ", "", " ", "").Replace(humanize.IBytes(uint64(*f.bytes)))
}

func (f sizeFlag) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > 1<<62 {
		return fmt.Errorf("want a size like 512MiB or 1GB")
	}
	*f.bytes = int64(n)
	return nil
}
