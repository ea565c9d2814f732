package warehouse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/snapshot"
)

// The metadata is decoded here rather than by iceberg-go/table, which refuses
// whole tables for what does not concern readers (logs out of order, fields of
// a later version, refs to expired snapshots) and whose import costs 75 ms and
// 32 MB in every process. Schemas, partition specs and name mappings are
// iceberg-go's.

// metadataFile is a table metadata file (Iceberg spec, "Table Metadata").
type metadataFile struct {
	FormatVersion   int                        `json:"format-version"`
	UUID            string                     `json:"table-uuid"`
	Location        string                     `json:"location"`
	LastUpdated     int64                      `json:"last-updated-ms"`
	Schema          json.RawMessage            `json:"schema"` // v1
	Schemas         []json.RawMessage          `json:"schemas"`
	CurrentSchemaID *int                       `json:"current-schema-id"`
	PartitionSpec   json.RawMessage            `json:"partition-spec"` // v1: the fields alone
	PartitionSpecs  []json.RawMessage          `json:"partition-specs"`
	Properties      map[string]json.RawMessage `json:"properties"`
	CurrentSnapshot *int64                     `json:"current-snapshot-id"`
	Snapshots       []json.RawMessage          `json:"snapshots"`
	SnapshotLog     []logEntry                 `json:"snapshot-log"`
	MetadataLog     []metadataLogEntry         `json:"metadata-log"`
	Refs            map[string]refEntry        `json:"refs"`
	EncryptionKeys  []json.RawMessage          `json:"encryption-keys"`
}

type logEntry struct {
	SnapshotID int64 `json:"snapshot-id"`
	Timestamp  int64 `json:"timestamp-ms"`
}

type metadataLogEntry struct {
	File string `json:"metadata-file"`
}

type refEntry struct {
	SnapshotID int64  `json:"snapshot-id"`
	Type       string `json:"type"`
}

type snapshotEntry struct {
	ID             *int64   `json:"snapshot-id"`
	Parent         *int64   `json:"parent-snapshot-id"`
	SequenceNumber int64    `json:"sequence-number"`
	Timestamp      int64    `json:"timestamp-ms"`
	SchemaID       *int     `json:"schema-id"`
	ManifestList   string   `json:"manifest-list"`
	Manifests      []string `json:"manifests"`
	KeyID          string   `json:"key-id"`
}

// maxFormatVersion is the newest format version that can be read.
const maxFormatVersion = 3

// parseMetadata decodes table metadata, and returns the folders that it was
// written for.
func parseMetadata(raw []byte, log *slog.Logger) (*snapshot.Table, baked, error) {
	var version struct {
		FormatVersion int `json:"format-version"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, baked{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if v := version.FormatVersion; v > maxFormatVersion {
		return nil, baked{}, fmt.Errorf("%w: format version %d is not supported", ErrUnsupported, v)
	} else if v < 1 {
		return nil, baked{}, fmt.Errorf("%w: format version %d", ErrCorrupt, v)
	}
	var m metadataFile
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, baked{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	t := &snapshot.Table{
		UUID:          m.UUID,
		Location:      m.Location,
		FormatVersion: m.FormatVersion,
		LastUpdated:   time.UnixMilli(m.LastUpdated).UTC(),
		Properties:    properties(m.Properties),
		Metadata:      raw,
		Encrypted:     len(m.EncryptionKeys) > 0,
	}
	for _, step := range []func(*snapshot.Table, *metadataFile) error{setSchemas, setSpecs, setSnapshots} {
		if err := step(t, &m); err != nil {
			return nil, baked{}, err
		}
	}
	setNameMapping(t, log)
	setRefs(t, &m)
	setLog(t, &m)
	return t, bakedFolders(t, &m), nil
}

// properties keeps what is text.
func properties(raw map[string]json.RawMessage) map[string]string {
	p := make(map[string]string, len(raw))
	for key, value := range raw {
		var text string
		if json.Unmarshal(value, &text) == nil {
			p[key] = text
		}
	}
	return p
}

// setSchemas takes the list, or the one schema of old v1 metadata. An old schema
// that cannot be read only fails the snapshots that need it.
func setSchemas(t *snapshot.Table, m *metadataFile) error {
	raws := m.Schemas
	if len(raws) == 0 && len(m.Schema) > 0 {
		raws = []json.RawMessage{m.Schema}
	}
	var failure error
	for _, raw := range raws {
		s := new(iceberg.Schema)
		if err := json.Unmarshal(raw, s); err != nil {
			failure = err
			continue
		}
		s, err := exactDefaults(s, raw)
		if err != nil {
			failure = err
			continue
		}
		t.Schemas = append(t.Schemas, s)
	}
	switch {
	case m.CurrentSchemaID != nil:
		t.CurrentSchema = *m.CurrentSchemaID
	case len(t.Schemas) == 1:
		t.CurrentSchema = t.Schemas[0].ID
	}
	if t.Schema(t.CurrentSchema) == nil {
		if failure != nil {
			return fmt.Errorf("%w: schema: %w", ErrCorrupt, failure)
		}
		return fmt.Errorf("%w: no schema %d", ErrCorrupt, t.CurrentSchema)
	}
	return nil
}

// setSpecs takes the list, or the one spec of old v1 metadata.
func setSpecs(t *snapshot.Table, m *metadataFile) error {
	t.Specs = make(map[int]iceberg.PartitionSpec, len(m.PartitionSpecs))
	raws := m.PartitionSpecs
	if len(raws) == 0 && len(m.PartitionSpec) > 0 {
		raws = []json.RawMessage{fmt.Appendf(nil, `{"spec-id":0,"fields":%s}`, m.PartitionSpec)}
	}
	for _, raw := range raws {
		var spec iceberg.PartitionSpec
		if err := json.Unmarshal(raw, &spec); err != nil {
			return fmt.Errorf("%w: partition spec: %w", ErrCorrupt, err)
		}
		t.Specs[spec.ID()] = spec
	}
	return nil
}

func setSnapshots(t *snapshot.Table, m *metadataFile) error {
	seen := make(map[int64]bool, len(m.Snapshots))
	for _, raw := range m.Snapshots {
		var e snapshotEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%w: snapshot: %w", ErrCorrupt, err)
		}
		if e.ID == nil || seen[*e.ID] {
			return fmt.Errorf("%w: a snapshot without an id, or two with one id", ErrCorrupt)
		}
		seen[*e.ID] = true
		t.Encrypted = t.Encrypted || e.KeyID != ""
		t.Snapshots = append(t.Snapshots, snapshot.Snapshot{
			ID:             *e.ID,
			ParentID:       valueOr(e.Parent, -1),
			SequenceNumber: e.SequenceNumber,
			Time:           time.UnixMilli(e.Timestamp).UTC(),
			SchemaID:       valueOr(e.SchemaID, -1),
			ManifestList:   e.ManifestList,
			Manifests:      e.Manifests,
			JSON:           raw,
		})
	}
	return nil
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// nameMappingKey is the property with the name mapping of files without ids.
const nameMappingKey = "schema.name-mapping.default"

func setNameMapping(t *snapshot.Table, log *slog.Logger) {
	text, ok := t.Properties[nameMappingKey]
	if !ok {
		return
	}
	var mapping iceberg.NameMapping
	if err := json.Unmarshal([]byte(text), &mapping); err != nil {
		log.Warn("name mapping cannot be read: files without field ids will fail", "table", t.Location, "err", err)
		return
	}
	t.NameMapping = mapping
}

const mainBranch = "main"

// setRefs sets the refs and the current snapshot. Metadata without refs has
// main alone, at the current snapshot; -1, null and no value are none.
func setRefs(t *snapshot.Table, m *metadataFile) {
	t.Current = valueOr(m.CurrentSnapshot, -1)
	if main, ok := m.Refs[mainBranch]; ok && t.Current < 0 {
		t.Current = main.SnapshotID
	}
	for _, name := range slices.Sorted(maps.Keys(m.Refs)) {
		ref := m.Refs[name]
		if name != mainBranch {
			t.Refs = append(t.Refs, snapshot.Ref{Name: name, SnapshotID: ref.SnapshotID, Tag: ref.Type == "tag"})
		}
	}
	if t.Current >= 0 {
		t.Refs = append(t.Refs, snapshot.Ref{Name: mainBranch, SnapshotID: t.Current})
	}
	slices.SortFunc(t.Refs, func(a, b snapshot.Ref) int { return cmp.Compare(a.Name, b.Name) })
}

// setLog sets the snapshot log in the order of time, from main's ancestors if
// the metadata has none.
func setLog(t *snapshot.Table, m *metadataFile) {
	for _, e := range m.SnapshotLog {
		t.Log = append(t.Log, snapshot.LogEntry{SnapshotID: e.SnapshotID, Time: time.UnixMilli(e.Timestamp).UTC()})
	}
	if len(t.Log) == 0 {
		t.Log = ancestors(t)
	}
	slices.SortStableFunc(t.Log, func(a, b snapshot.LogEntry) int { return a.Time.Compare(b.Time) })
}

// ancestors returns the current snapshot and its ancestors, oldest first.
func ancestors(t *snapshot.Table) (log []snapshot.LogEntry) {
	byID := make(map[int64]*snapshot.Snapshot, len(t.Snapshots))
	for i := range t.Snapshots {
		byID[t.Snapshots[i].ID] = &t.Snapshots[i]
	}
	for id := t.Current; ; {
		s := byID[id]
		if s == nil {
			break
		}
		delete(byID, id) // parents may not form a circle
		log = append(log, snapshot.LogEntry{SnapshotID: s.ID, Time: s.Time})
		id = s.ParentID
	}
	slices.Reverse(log)
	return log
}

// baked are the folders that metadata was written for.
type baked struct {
	metadata []string // of its metadata files and manifests, newest first
	data     []string // of the table and its data
}

// maxBaked bounds how many metadata folders of one table are considered; each
// stands for one time that the table was moved.
const maxBaked = 16

func bakedFolders(t *snapshot.Table, m *metadataFile) (b baked) {
	add := func(list *[]string, folder string) {
		if folder != "" && folder != "." && !slices.Contains(*list, folder) && len(*list) < maxBaked {
			*list = append(*list, folder)
		}
	}
	for _, s := range slices.Backward(t.Snapshots) {
		switch {
		case s.ManifestList != "":
			add(&b.metadata, folderOf(s.ManifestList))
		case len(s.Manifests) > 0:
			add(&b.metadata, folderOf(s.Manifests[0]))
		}
	}
	if len(b.metadata) == 0 {
		for _, e := range slices.Backward(m.MetadataLog) {
			add(&b.metadata, folderOf(e.File))
		}
	}
	if len(b.metadata) == 0 && t.Location != "" {
		add(&b.metadata, folderOf(t.Location+"/"+metadataFolder+"/x"))
	}
	add(&b.data, t.Location)
	for _, key := range []string{"write.data.path", "write.object-storage.path", "write.folder-storage.path", "write.metadata.path"} {
		add(&b.data, t.Properties[key])
	}
	return b
}

// folderOf returns the folder of a location, as it is spelled.
func folderOf(location string) string {
	dir, _ := path.Split(location)
	for len(dir) > 1 && dir[len(dir)-1] == '/' {
		dir = dir[:len(dir)-1]
	}
	return dir
}
