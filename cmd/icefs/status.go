package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/merge"
)

// status is .icefs/status.json.
type status struct {
	Version      string           `json:"version"`
	LayoutFormat int              `json:"layout_format"`
	PID          int              `json:"pid"`
	Source       string           `json:"source"`
	Started      time.Time        `json:"started"`
	Refresh      string           `json:"refresh"`
	MemoryBytes  int64            `json:"memory_bytes"`
	Counters     map[string]int64 `json:"counters"`
	// Measuring lists the text views whose size is being found.
	Measuring []merge.Measuring `json:"measuring"`
	// CatalogDown is since when the catalog has not answered, and why.
	CatalogDown  *time.Time `json:"catalog_down_since,omitempty"`
	CatalogError string     `json:"catalog_error,omitempty"`
}

// metric is a number about the mount.
type metric struct {
	name    string // of Prometheus, without the prefix icefs_
	help    string
	value   int64
	counter bool // only grows; else a gauge
}

// control are the files of .icefs.
func (s *session) control() []tree.ControlFile {
	return []tree.ControlFile{
		{Name: "status.json", Content: s.statusJSON},
		{Name: "metrics", Content: s.metricsText},
		{Name: "version", Content: func(context.Context) ([]byte, error) { return []byte(versionText()), nil }},
	}
}

func (s *session) metrics() []metric {
	c := s.memory.Stats()
	return []metric{
		{"raw_bytes_total", "Bytes served from sources as they are.", s.counters.RawBytes.Load(), true},
		{"passthrough_opens_total", "Files opened whose reads the kernel takes from the source by itself.", s.kernel.PassthroughOpens.Load(), true},
		{"spliced_bytes_total", "Bytes spliced from local sources to the kernel.", s.kernel.SplicedBytes.Load(), true},
		{"copied_bytes_total", "Bytes copied to the kernel.", s.kernel.CopiedBytes.Load(), true},
		{"chunks_rewritten_total", "Column chunks, or page runs, rewritten.", s.counters.ChunksRewritten.Load(), true},
		{"chunks_loaded_total", "Rewritten column chunks found in the cache folder.", s.counters.ChunksLoaded.Load(), true},
		{"chunks_measured_total", "Column chunks measured because no bound was close enough.", s.counters.ChunksMeasured.Load(), true},
		{"chunks_coalesced_total", "Column chunks made of several small ones.", s.counters.ChunksCoalesced.Load(), true},
		{"groups_measured_total", "Row groups measured for text.", s.counters.GroupsMeasured.Load(), true},
		{"pages_copied_total", "Pages of rewritten chunks kept as stored.", s.counters.PagesCopied.Load(), true},
		{"footers_read_total", "Parquet footers parsed.", s.parquet.Footers.Load(), true},
		{"data_pages_decoded_total", "Parquet data pages decompressed or decoded.", s.parquet.DataPages.Load(), true},
		{"chunks_decoded_total", "Parquet column chunks of which any data page was decoded.", s.parquet.Chunks.Load(), true},
		{"metadata_read_total", "Table metadata files parsed.", s.warehouse.MetadataRead.Load(), true},
		{"manifest_lists_read_total", "Manifest lists parsed.", s.warehouse.ListsRead.Load(), true},
		{"manifests_read_total", "Manifests parsed.", s.warehouse.ManifestsRead.Load(), true},
		{"store_requests_total", "Requests to object stores.", s.requests.Requests.Load(), true},
		{"store_retries_total", "Requests to object stores that failed and were made again.", s.requests.Retries.Load(), true},
		{"store_bytes_total", "Bytes fetched from object stores.", s.requests.Bytes.Load(), true},
		{"store_extents_cached_total", "Ranges of objects found in the cache folder.", s.requests.FromDisk.Load(), true},
		{"cache_hits_total", "Values found in memory.", c.Hits, true},
		{"cache_misses_total", "Values not found in memory.", c.Misses, true},
		{"cache_bytes", "Bytes of the values kept in memory.", c.Bytes, false},
		{"cache_max_bytes", "Budget of the values kept in memory.", c.MaxBytes, false},
	}
}

func (s *session) statusJSON(context.Context) ([]byte, error) {
	st := status{
		Version:      version(),
		LayoutFormat: merge.LayoutFormat,
		PID:          os.Getpid(),
		Source:       redact(s.source),
		Started:      s.started.UTC().Truncate(time.Millisecond),
		Refresh:      s.opt.refresh.String(),
		MemoryBytes:  s.opt.memory,
		Counters:     make(map[string]int64),
		Measuring:    s.engine.Measuring(),
	}
	if since, err := s.catalog.Outage(); err != nil {
		since = since.UTC().Truncate(time.Millisecond)
		st.CatalogDown, st.CatalogError = &since, err.Error()
	}
	for _, m := range s.metrics() {
		st.Counters[m.name] = m.value
	}
	b, err := json.MarshalIndent(st, "", "  ")
	return append(b, '\n'), err
}

func (s *session) metricsText(context.Context) ([]byte, error) {
	var b bytes.Buffer
	for _, m := range s.metrics() {
		kind := "gauge"
		if m.counter {
			kind = "counter"
		}
		fmt.Fprintf(&b, "# HELP icefs_%s %s\n# TYPE icefs_%s %s\nicefs_%s %d\n", m.name, m.help, m.name, kind, m.name, m.value)
	}
	return b.Bytes(), nil
}

// redact takes passwords and query values out of a URL; a path stays as it is.
func redact(src string) string {
	if !strings.Contains(src, "://") {
		return src
	}
	u, err := url.Parse(src)
	if err != nil {
		return "(a URL)"
	}
	if u.User != nil {
		u.User = url.User("redacted")
	}
	q := u.Query()
	for name := range q {
		if name != "catalog" && name != "warehouse" {
			q.Set(name, "redacted")
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}
