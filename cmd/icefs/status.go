package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/icefs/icefs/internal/activity"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/merge"
)

// status is .icefs/status.json.
type status struct {
	Version       string           `json:"version"`
	LayoutFormat  int              `json:"layout_format"`
	PID           int              `json:"pid"`
	Source        string           `json:"source"`
	Started       time.Time        `json:"started"`
	UptimeSeconds int64            `json:"uptime_seconds"`
	Refresh       string           `json:"refresh"`
	Memory        memoryStatus     `json:"memory"`
	Caches        cachesStatus     `json:"caches"`
	Goroutines    int              `json:"goroutines"`
	OpenFiles     int              `json:"open_files"` // descriptors of the process; -1 = unknown
	Calls         callsStatus      `json:"calls"`
	Failures      failuresStatus   `json:"failures"`
	Counters      map[string]int64 `json:"counters"`
	// Measuring lists the text views whose size is being found.
	Measuring []merge.Measuring `json:"measuring"`
	// CatalogDown is since when the catalog has not answered, and why.
	CatalogDown  *time.Time `json:"catalog_down_since,omitempty"`
	CatalogError string     `json:"catalog_error,omitempty"`
}

// memoryStatus is in bytes.
type memoryStatus struct {
	Budget   int64  `json:"budget_bytes"` // --memory
	Heap     uint64 `json:"heap_bytes"`   // in use by Go values
	Runtime  uint64 `json:"runtime_bytes"`
	Resident int64  `json:"resident_bytes"` // as the kernel counts; -1 = unknown
}

type cachesStatus struct {
	Memory   memoryCacheStatus   `json:"memory"`
	Metadata metadataCacheStatus `json:"metadata"`
	Disk     *diskCacheStatus    `json:"disk"` // null = none
}

// metadataCacheStatus is what is kept of tables.
type metadataCacheStatus struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

type memoryCacheStatus struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
	Hits     int64 `json:"hits"`
	Misses   int64 `json:"misses"`
	Rejected int64 `json:"rejected"`
}

type diskCacheStatus struct {
	Dir      string `json:"dir"`
	Bytes    int64  `json:"bytes"` // in use, of all mounts that share it
	MaxBytes int64  `json:"max_bytes"`
}

// callsStatus are the calls under way; the oldest are spelled out.
type callsStatus struct {
	Running int                `json:"running"`
	Oldest  []activity.Running `json:"oldest"`
}

// failuresStatus are the failures told in the log; the last are spelled out.
type failuresStatus struct {
	Total int64              `json:"total"`
	Last  []activity.Failure `json:"last"`
}

// oldestCalls is how many calls under way are spelled out.
const oldestCalls = 10

// control are the files of .icefs.
func (s *session) control() []tree.ControlFile {
	return []tree.ControlFile{
		{Name: "status.json", Content: s.statusJSON},
		{Name: "metrics", Content: s.metricsText},
		{Name: "version", Content: func(context.Context) ([]byte, error) { return []byte(versionText()), nil }},
	}
}

func (s *session) statusJSON(context.Context) ([]byte, error) {
	st := status{
		Version:       version(),
		LayoutFormat:  merge.LayoutFormat,
		PID:           os.Getpid(),
		Source:        redact(s.source),
		Started:       s.started.UTC().Truncate(time.Millisecond),
		UptimeSeconds: int64(time.Since(s.started).Seconds()),
		Refresh:       s.opt.refresh.String(),
		Memory:        memoryStatus{Budget: s.opt.memory, Resident: -1},
		Goroutines:    runtime.NumGoroutine(),
		OpenFiles:     -1,
		Counters:      make(map[string]int64),
		Measuring:     s.engine.Measuring(),
	}
	if since, err := s.catalog.Outage(); err != nil {
		since = since.UTC().Truncate(time.Millisecond)
		st.CatalogDown, st.CatalogError = &since, err.Error()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	st.Memory.Heap, st.Memory.Runtime = m.HeapAlloc, m.Sys
	if self, err := procfs.Self(); err == nil {
		if stat, err := self.Stat(); err == nil {
			st.Memory.Resident = int64(stat.ResidentMemory())
		}
		if n, err := self.FileDescriptorsLen(); err == nil {
			st.OpenFiles = n
		}
	}
	c := s.memory.Stats()
	st.Caches.Memory = memoryCacheStatus{c.Bytes, c.MaxBytes, c.Hits, c.Misses, c.Rejected}
	st.Caches.Metadata.Bytes, st.Caches.Metadata.MaxBytes = s.tree.MetadataBytes()
	if s.disk != nil {
		st.Caches.Disk = &diskCacheStatus{s.opt.cacheDir, s.disk.Bytes(), s.opt.cacheSize}
	}
	seen, running := s.activity.Status(oldestCalls)
	// Lists, also when they are empty.
	st.Calls = callsStatus{running, append([]activity.Running{}, seen.Running...)}
	st.Failures = failuresStatus{seen.Failed, append([]activity.Failure{}, seen.Failures...)}
	for _, m := range s.metrics() {
		st.Counters[m.name] = m.value()
	}
	b, err := json.MarshalIndent(st, "", "  ")
	return append(b, '\n'), err
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
