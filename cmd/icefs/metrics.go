package main

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/merge"
)

// metric is a number about the mount.
type metric struct {
	name    string // of Prometheus, without the prefix icefs_
	help    string
	value   func() int64
	counter bool // only grows; else a gauge
}

func (s *session) metrics() []metric {
	return append([]metric{
		{"raw_bytes_total", "Bytes served from sources as they are.", s.counters.RawBytes.Load, true},
		{"passthrough_opens_total", "Files opened whose reads the kernel takes from the source by itself.", s.kernel.PassthroughOpens.Load, true},
		{"spliced_bytes_total", "Bytes spliced from local sources to the kernel.", s.kernel.SplicedBytes.Load, true},
		{"copied_bytes_total", "Bytes copied to the kernel.", s.kernel.CopiedBytes.Load, true},
		{"chunks_rewritten_total", "Column chunks, or page runs, rewritten.", s.counters.ChunksRewritten.Load, true},
		{"chunks_loaded_total", "Rewritten column chunks found in the cache folder.", s.counters.ChunksLoaded.Load, true},
		{"chunks_measured_total", "Column chunks measured because no bound was close enough.", s.counters.ChunksMeasured.Load, true},
		{"chunks_coalesced_total", "Column chunks made of several small ones.", s.counters.ChunksCoalesced.Load, true},
		{"groups_measured_total", "Row groups measured for text.", s.counters.GroupsMeasured.Load, true},
		{"pages_copied_total", "Pages of rewritten chunks kept as stored.", s.counters.PagesCopied.Load, true},
		{"equality_key_files_total", "Times that an equality-delete file was opened for its keys.", s.equality.KeyFiles.Load, true},
		{"equality_passes_total", "Passes over data files for keys of equality deletes.", s.equality.Passes.Load, true},
		{"equality_groups_read_total", "Row groups whose key columns were read.", s.equality.Groups.Load, true},
		{"equality_groups_skipped_total", "Row groups passed over for their statistics or dictionaries.",
			func() int64 { return s.equality.ByStatistics.Load() + s.equality.ByDictionary.Load() }, true},
		{"equality_columns_kept_total", "Key columns that were still decoded from an earlier pass.", s.equality.KeptColumns.Load, true},
		{"footers_read_total", "Parquet footers parsed.", s.parquet.Footers.Load, true},
		{"data_pages_decoded_total", "Parquet data pages decompressed or decoded.", s.parquet.DataPages.Load, true},
		{"chunks_decoded_total", "Parquet column chunks of which any data page was decoded.", s.parquet.Chunks.Load, true},
		{"metadata_read_total", "Table metadata files parsed.", s.warehouse.MetadataRead.Load, true},
		{"manifest_lists_read_total", "Manifest lists parsed.", s.warehouse.ListsRead.Load, true},
		{"manifests_read_total", "Manifests parsed.", s.warehouse.ManifestsRead.Load, true},
		{"source_reads_total", "Reads from local sources.", s.reads.count.Load, true},
		{"source_read_bytes_total", "Bytes read from local sources.", s.reads.bytes.Load, true},
		{"source_read_failures_total", "Reads from local sources that failed.", s.reads.failed.Load, true},
		{"source_read_milliseconds_total", "Time of all reads from local sources together.",
			func() int64 { return s.reads.nanos.Load() / int64(time.Millisecond) }, true},
	}, append(s.storeMetrics(), s.stateMetrics()...)...)
}

// storeMetrics are of object stores.
func (s *session) storeMetrics() []metric {
	return []metric{
		{"store_requests_total", "Requests to object stores.", s.requests.Requests.Load, true},
		{"store_retries_total", "Requests to object stores that failed and were made again.", s.requests.Retries.Load, true},
		{"store_bytes_total", "Bytes fetched from object stores.", s.requests.Bytes.Load, true},
		{"store_extents_ahead_total", "Ranges of objects asked for before readers of Parquet files came to them.", s.counters.ExtentsAhead.Load, true},
		{"store_extents_prefetched_total", "Ranges of objects fetched before they were needed, together with others.", s.requests.Prefetched.Load, true},
		{"store_extents_cached_total", "Ranges of objects found in the cache folder.", s.requests.FromDisk.Load, true},
	}
}

// stateMetrics are of the caches and of the calls.
func (s *session) stateMetrics() []metric {
	return []metric{
		{"cache_hits_total", "Values found in memory.", func() int64 { return s.memory.Stats().Hits }, true},
		{"cache_misses_total", "Values not found in memory.", func() int64 { return s.memory.Stats().Misses }, true},
		{"cache_bytes", "Bytes of the values kept in memory.", func() int64 { return s.memory.Stats().Bytes }, false},
		{"cache_max_bytes", "Budget of the values kept in memory.", func() int64 { return s.memory.Stats().MaxBytes }, false},
		{"metadata_bytes", "Bytes of what is kept of tables: metadata, and the files of snapshots.",
			func() int64 { kept, _ := s.tree.MetadataBytes(); return kept }, false},
		{"metadata_max_bytes", "Budget of what is kept of tables; the one used last may be larger.",
			func() int64 { _, limit := s.tree.MetadataBytes(); return limit }, false},
		{"disk_cache_bytes", "Bytes in use in the cache folder, of all mounts that share it.", s.disk.Bytes, false},
		{"calls_running", "Calls under way.", func() int64 { _, n := s.activity.Status(0); return int64(n) }, false},
		{"failures_total", "Failures told in the log.", func() int64 { st, _ := s.activity.Status(0); return st.Failed }, true},
	}
}

// work is what the slow log compares.
func (s *session) work() activity.Work {
	var w activity.Work
	w[activity.SourceReads] = s.reads.count.Load() + s.requests.Requests.Load()
	w[activity.SourceBytes] = s.reads.bytes.Load() + s.requests.Bytes.Load()
	w[activity.SourceNanos] = s.reads.nanos.Load()
	w[activity.Manifests] = s.warehouse.ManifestsRead.Load()
	w[activity.Footers] = s.parquet.Footers.Load()
	w[activity.ChunksRewritten] = s.counters.ChunksRewritten.Load()
	w[activity.ChunksMeasured] = s.counters.ChunksMeasured.Load()
	w[activity.GroupsMeasured] = s.counters.GroupsMeasured.Load()
	w[activity.PagesDecoded] = s.parquet.DataPages.Load()
	return w
}

// calls are the metrics of the calls served, by name.
type calls struct {
	seconds *prometheus.HistogramVec
	failed  *prometheus.CounterVec
}

func newCalls() *calls {
	label := []string{"call"}
	return &calls{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "icefs_call_seconds",
			Help:    "How long calls took, by kind.",
			Buckets: []float64{1e-4, 1e-3, 1e-2, 0.1, 0.5, 1, 5, 10, 60},
		}, label),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "icefs_calls_failed_total",
			Help: "Calls that were answered with an error, by kind.",
		}, label),
	}
}

// observe notes a call that ended.
func (c *calls) observe(call string, took time.Duration, failed bool) {
	c.seconds.WithLabelValues(call).Observe(took.Seconds())
	if failed {
		c.failed.WithLabelValues(call).Inc()
	}
}

// newRegistry returns all metrics of a session.
func (s *session) newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(s.calls.seconds, s.calls.failed, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "icefs_build_info",
			Help:        "1; its labels tell the version.",
			ConstLabels: prometheus.Labels{"version": version(), "layout_format": strconv.Itoa(merge.LayoutFormat)},
		}, func() float64 { return 1 }))
	for _, m := range s.metrics() {
		value := func() float64 { return float64(m.value()) }
		if m.counter {
			r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "icefs_" + m.name, Help: m.help}, value))
		} else {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "icefs_" + m.name, Help: m.help}, value))
		}
	}
	return r
}

// metricsText is .icefs/metrics, in Prometheus's text format.
func (s *session) metricsText(context.Context) ([]byte, error) {
	families, err := s.registry.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := out.Encode(f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
