package warehouse

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
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
	FormatVersion   int
	UUID            string
	Location        string
	LastUpdated     int64
	Schema          json.RawMessage // v1
	Schemas         []json.RawMessage
	CurrentSchemaID *int
	PartitionSpec   json.RawMessage // v1: the fields alone
	PartitionSpecs  []json.RawMessage
	Properties      map[string]string // those that are text
	CurrentSnapshot *int64
	Snapshots       [][]byte
	SnapshotLog     []logEntry
	MetadataLog     []string // folders of its files, each once, oldest first
	Refs            map[string]refEntry
	Encrypted       bool // it lists encryption keys
}

type logEntry struct {
	SnapshotID int64
	Timestamp  int64
}

type refEntry struct {
	SnapshotID int64  `json:"snapshot-id"`
	Type       string `json:"type"`
}

// readMetadataFile decodes the members that are used. The texts in it are parts
// of raw. What comes after a member that cannot be decoded is decoded all the
// same: the format version may.
func readMetadataFile(raw []byte) (*metadataFile, error) {
	m := &metadataFile{}
	values := map[string]any{
		"format-version": &m.FormatVersion, "table-uuid": &m.UUID, "location": &m.Location, "last-updated-ms": &m.LastUpdated,
		"current-schema-id": &m.CurrentSchemaID, "current-snapshot-id": &m.CurrentSnapshot,
	}
	lists := map[string]func(value []byte) error{
		"schemas":         listOf(&m.Schemas, textsOf(&m.Schemas, "schemas", maxTableSchemas)),
		"partition-specs": listOf(&m.PartitionSpecs, textsOf(&m.PartitionSpecs, "partition specs", maxSpecs)),
		"snapshots":       listOf(&m.Snapshots, textsOf(&m.Snapshots, "snapshots", maxSnapshots)),
		"snapshot-log":    listOf(&m.SnapshotLog, m.addLogEntry),
		"metadata-log":    listOf(&m.MetadataLog, m.addMetadataFolder),
		"encryption-keys": func(value []byte) error {
			return elements(value, func([]byte) error { m.Encrypted = true; return nil })
		},
	}
	var failure error
	err := members(raw, func(key, value []byte) error {
		var err error
		switch target, list := values[string(key)], lists[string(key)]; {
		case target != nil:
			err = json.Unmarshal(value, target)
		case list != nil:
			err = list(value)
		case string(key) == "schema":
			m.Schema = value
		case string(key) == "partition-spec":
			m.PartitionSpec = value
		case string(key) == "properties":
			m.Properties, err = properties(value)
		case string(key) == "refs":
			m.Refs, err = readRefs(value)
		}
		if err != nil && failure == nil {
			failure = fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	return m, cmp.Or(err, failure)
}

// listOf reads an array into a list by add. Of two members of one name the last
// counts.
func listOf[T any](list *[]T, add func(e []byte) error) func(value []byte) error {
	return func(value []byte) error {
		*list = nil
		return elements(value, add)
	}
}

// textsOf adds the texts of an array's elements to a list.
func textsOf[T ~[]byte](list *[]T, what string, limit int) func(e []byte) error {
	return func(e []byte) error {
		if len(*list) == limit {
			return overCount(what, limit)
		}
		*list = append(*list, e)
		return nil
	}
}

func (m *metadataFile) addLogEntry(text []byte) error {
	if len(m.SnapshotLog) == maxSnapshots {
		return overCount("entries of the snapshot log", maxSnapshots)
	}
	var e logEntry
	err := members(text, func(key, value []byte) (err error) {
		switch string(key) {
		case "snapshot-id":
			e.SnapshotID, err = jsonInt(value)
		case "timestamp-ms":
			e.Timestamp, err = jsonInt(value)
		}
		return err
	})
	m.SnapshotLog = append(m.SnapshotLog, e)
	return err
}

// addMetadataFolder adds the folder of an entry of the metadata log. Of more than
// maxBaked the newest are kept.
func (m *metadataFile) addMetadataFolder(text []byte) error {
	var file string
	err := members(text, func(key, value []byte) (err error) {
		if string(key) == "metadata-file" {
			file, err = jsonText(value)
		}
		return err
	})
	folder := folderOf(file)
	m.MetadataLog = slices.DeleteFunc(m.MetadataLog, func(f string) bool { return f == folder })
	m.MetadataLog = append(m.MetadataLog, folder)
	if len(m.MetadataLog) > maxBaked {
		m.MetadataLog = slices.Delete(m.MetadataLog, 0, 1)
	}
	return err
}

// readRefs decodes the branches and tags.
func readRefs(object []byte) (map[string]refEntry, error) {
	if isNull(object) {
		return nil, nil
	}
	refs := map[string]refEntry{}
	err := members(object, func(key, value []byte) error {
		if len(refs) == maxRefs {
			return overCount("branches and tags", maxRefs)
		}
		var r refEntry
		err := json.Unmarshal(value, &r)
		refs[string(key)] = r
		return err
	})
	return refs, err
}

// maxFormatVersion is the newest format version that can be read.
const maxFormatVersion = 3

// parseMetadata decodes table metadata, and returns the folders that it was
// written for. The snapshots' JSON is a part of raw.
func parseMetadata(raw []byte, bounds limits, log *slog.Logger) (*snapshot.Table, baked, error) {
	m, err := readMetadataFile(raw)
	if m.FormatVersion > maxFormatVersion { // of which nothing else need be as it is here
		return nil, baked{}, fmt.Errorf("%w: format version %d is not supported", ErrUnsupported, m.FormatVersion)
	}
	if errors.Is(err, ErrUnsupported) {
		return nil, baked{}, err
	}
	if err != nil {
		return nil, baked{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if m.FormatVersion < 1 {
		return nil, baked{}, fmt.Errorf("%w: format version %d", ErrCorrupt, m.FormatVersion)
	}
	t := &snapshot.Table{
		UUID:          m.UUID,
		Location:      m.Location,
		FormatVersion: m.FormatVersion,
		LastUpdated:   time.UnixMilli(m.LastUpdated).UTC(),
		Properties:    m.Properties,
		Metadata:      raw,
		Encrypted:     m.Encrypted,
	}
	if err := m.checkSchemas(bounds); err != nil {
		return nil, baked{}, err
	}
	for _, step := range []func(*snapshot.Table, *metadataFile) error{setSchemas, setSpecs, setSnapshots} {
		if err := step(t, m); err != nil {
			return nil, baked{}, err
		}
	}
	setNameMapping(t, log)
	setRefs(t, m)
	setLog(t, m)
	return t, bakedFolders(t, m), nil
}

// properties keeps what is text.
func properties(object []byte) (map[string]string, error) {
	p := map[string]string{}
	if isNull(object) {
		return p, nil
	}
	err := members(object, func(key, value []byte) error {
		if len(p) == maxProperties {
			return overCount("properties", maxProperties)
		}
		if text, err := jsonText(value); err == nil {
			p[string(key)] = text
		}
		return nil
	})
	return p, err
}

// checkSchemas refuses schemas whose values would take too much memory or time.
func (m *metadataFile) checkSchemas(bounds limits) error {
	total := int64(0)
	for _, raw := range append(m.Schemas, m.Schema) {
		if total += int64(len(raw)); total > bounds.schemas {
			return tooLarge("the JSON of the schemas", bounds.schemas)
		}
		if deep := nesting(raw); deep*len(raw) > maxSchemaWork {
			return fmt.Errorf("%w: a schema of %d bytes that is nested %d deep", ErrUnsupported, len(raw), deep)
		}
	}
	return nil
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
	t.Snapshots = make([]snapshot.Snapshot, 0, len(m.Snapshots))
	seen := make(map[int64]bool, len(m.Snapshots))
	for _, raw := range m.Snapshots {
		s, encrypted, err := readSnapshot(raw)
		if err != nil {
			return fmt.Errorf("%w: snapshot: %w", ErrCorrupt, err)
		}
		if s.ID == noSnapshot || seen[s.ID] {
			return fmt.Errorf("%w: a snapshot without an id, or two with one id", ErrCorrupt)
		}
		seen[s.ID] = true
		t.Encrypted = t.Encrypted || encrypted
		t.Snapshots = append(t.Snapshots, s)
	}
	return nil
}

// noSnapshot is no snapshot's id.
const noSnapshot = -1

// readSnapshot decodes an entry of the metadata's snapshots, and tells whether
// its manifest list is encrypted.
func readSnapshot(raw []byte) (s snapshot.Snapshot, encrypted bool, err error) {
	s = snapshot.Snapshot{ID: noSnapshot, ParentID: noSnapshot, SchemaID: -1, JSON: raw}
	var millis, schema int64 = 0, -1
	err = members(raw, func(key, value []byte) (err error) {
		if isNull(value) {
			return nil
		}
		switch string(key) {
		case "snapshot-id":
			s.ID, err = jsonInt(value)
		case "parent-snapshot-id":
			s.ParentID, err = jsonInt(value)
		case "sequence-number":
			s.SequenceNumber, err = jsonInt(value)
		case "timestamp-ms":
			millis, err = jsonInt(value)
		case "schema-id":
			schema, err = jsonInt(value)
		case "manifest-list":
			s.ManifestList, err = jsonText(value)
		case "manifests":
			err = json.Unmarshal(value, &s.Manifests)
		case "key-id":
			encrypted = string(value) != `""`
		}
		return err
	})
	s.Time, s.SchemaID = time.UnixMilli(millis).UTC(), int(schema)
	return s, encrypted, err
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
	err := errNested
	if deep := nesting([]byte(text)); deep <= maxNesting && deep*len(text) <= maxSchemaWork {
		err = json.Unmarshal([]byte(text), &mapping)
	}
	if err != nil {
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
		for _, folder := range slices.Backward(m.MetadataLog) {
			add(&b.metadata, folder)
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

// join returns the location of a name in a folder.
func join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// folderOf returns the folder of a location, as it is spelled.
func folderOf(location string) string {
	dir, _ := path.Split(location)
	for len(dir) > 1 && dir[len(dir)-1] == '/' {
		dir = dir[:len(dir)-1]
	}
	return dir
}
