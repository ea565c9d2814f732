package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iceberg-go"
)

// Table is a table in the making: a folder with manifests and metadata.
type Table struct {
	Dir       string
	Schema    *iceberg.Schema
	Spec      iceberg.PartitionSpec
	snapshots []map[string]any
	log       []map[string]any
	files     int
}

// tableUUID is the same in all tables: none of them is mounted with another.
const tableUUID = "5ca1ab1e-0000-4000-8000-000000000001"

// firstCommit is the time of a table's first snapshot, commitStep the time
// between two, in milliseconds.
const (
	firstCommit = 1_767_600_000_000
	commitStep  = 60_000
)

// NewTable starts a table of format version 2 in a folder.
func NewTable(dir string, schema *iceberg.Schema, spec iceberg.PartitionSpec) (*Table, error) {
	t := &Table{Dir: dir, Schema: schema, Spec: spec}
	for _, sub := range []string{"data", "metadata"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// SnapshotID of the n-th snapshot, from 1.
func SnapshotID(n int) int64 { return 1_000_000_000_000_000_000 + int64(n)*7_919 }

// Manifest writes a manifest of files that snapshot n (from 1) added.
func (t *Table) Manifest(n int, content iceberg.ManifestContent, files []iceberg.DataFile) (iceberg.ManifestFile, error) {
	t.files++
	path := filepath.Join(t.Dir, "metadata", fmt.Sprintf("m%07d.avro", t.files))
	id := SnapshotID(n)
	var body bytes.Buffer
	w, err := iceberg.NewManifestWriter(2, &body, t.Spec, t.Schema, id, iceberg.WithManifestWriterContent(content))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := w.Add(iceberg.NewManifestEntryBuilder(iceberg.EntryStatusADDED, &id, f).Build()); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	m, err := w.ToManifestFile("file://"+path, int64(body.Len()))
	if err != nil {
		return nil, err
	}
	return m, os.WriteFile(path, body.Bytes(), 0o644)
}

// Commit adds the next snapshot with these manifests, and returns them as its
// list has them: with their sequence numbers.
func (t *Table) Commit(manifests []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	n := len(t.snapshots) + 1
	id, sequence := SnapshotID(n), int64(n)
	path := filepath.Join(t.Dir, "metadata", fmt.Sprintf("snap-%d.avro", id))
	var body bytes.Buffer
	if err := iceberg.WriteManifestList(2, &body, id, nil, &sequence, 0, manifests); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, body.Bytes(), 0o644); err != nil {
		return nil, err
	}
	s := map[string]any{
		"snapshot-id": id, "sequence-number": sequence, "timestamp-ms": firstCommit + int64(n)*commitStep,
		"schema-id": t.Schema.ID, "manifest-list": "file://" + path,
		"summary": map[string]string{
			"operation": "append", "spark.app.id": "local-1767600000000", "added-data-files": "1", "added-records": "1000",
			"added-files-size": "1000000", "changed-partition-count": "1", "total-records": "20000", "total-files-size": "20000000",
			"total-data-files": "20", "total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0",
		},
	}
	if n > 1 {
		s["parent-snapshot-id"] = SnapshotID(n - 1)
	}
	t.snapshots = append(t.snapshots, s)
	t.log = append(t.log, map[string]any{"snapshot-id": id, "timestamp-ms": s["timestamp-ms"]})
	return iceberg.ReadManifestList(bytes.NewReader(body.Bytes()))
}

// Finish writes the metadata file and returns its path.
func (t *Table) Finish() (string, error) {
	last := len(t.snapshots)
	var fields []iceberg.PartitionField
	for _, f := range t.Spec.Fields() {
		fields = append(fields, f)
	}
	if fields == nil {
		fields = []iceberg.PartitionField{}
	}
	updated := firstCommit + int64(last)*commitStep
	body, err := json.Marshal(map[string]any{
		"format-version": 2, "table-uuid": tableUUID, "location": "file://" + t.Dir, "last-sequence-number": last,
		"last-updated-ms": updated, "last-column-id": t.Schema.HighestFieldID(), "current-schema-id": t.Schema.ID,
		"schemas": []any{t.Schema}, "default-spec-id": t.Spec.ID(), "last-partition-id": 1000,
		"partition-specs": []any{map[string]any{"spec-id": t.Spec.ID(), "fields": fields}}, "default-sort-order-id": 0,
		"sort-orders": []any{map[string]any{"order-id": 0, "fields": []any{}}}, "properties": map[string]string{},
		"current-snapshot-id": SnapshotID(last), "snapshots": t.snapshots, "snapshot-log": t.log, "metadata-log": []any{},
		"refs": map[string]any{"main": map[string]any{"snapshot-id": SnapshotID(last), "type": "branch"}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.Dir, "metadata", "v1.metadata.json")
	return path, os.WriteFile(path, body, 0o644)
}
