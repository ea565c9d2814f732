package warehouse

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/snapshot"
)

// document is metadata with parts put in; each may be empty.
func document(version int, parts ...string) []byte {
	return fmt.Appendf(nil, `{"format-version":%d,"table-uuid":"u","location":"file:///wh/t","last-updated-ms":1796009730868,
		"schemas":[{"type":"struct","schema-id":3,"fields":[{"id":1,"name":"b","required":true,"type":"long"}]}],"current-schema-id":3,
		"partition-specs":[{"spec-id":0,"fields":[]}]%s}`, version, strings.Join(append([]string{""}, parts...), ","))
}

func parse(t *testing.T, raw []byte) *snapshot.Table {
	t.Helper()
	table, _, err := parseMetadata(raw, newLimits(0), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

const twoSnapshots = `"snapshots":[
	{"snapshot-id":1,"timestamp-ms":1000,"manifest-list":"file:/wh/t/metadata/a.avro"},
	{"snapshot-id":2,"parent-snapshot-id":1,"timestamp-ms":2000,"schema-id":null,"summary":{},"manifest-list":"file:/wh/t/metadata/b.avro"}]`

func TestMetadataOfAllVersions(t *testing.T) {
	for version := 1; version <= 3; version++ {
		table := parse(t, document(version, twoSnapshots, `"current-snapshot-id":2`, `"next-row-id":5`, `"unknown":{"x":[1]}`))
		if table.FormatVersion != version || table.UUID != "u" || table.Location != "file:///wh/t" || table.CurrentSchema != 3 {
			t.Errorf("%+v", table)
		}
		if got := table.LastUpdated.Format("2006-01-02T15:04:05.000Z07:00"); got != "2026-11-30T03:35:30.868Z" {
			t.Errorf("last updated %s", got)
		}
		s := table.Snapshots[1]
		if s.ID != 2 || s.ParentID != 1 || s.SchemaID != -1 || s.Time.UnixMilli() != 2000 || s.ManifestList != "file:/wh/t/metadata/b.avro" {
			t.Errorf("%+v", s)
		}
		if want := `{"snapshot-id":1,"timestamp-ms":1000,"manifest-list":"file:/wh/t/metadata/a.avro"}`; string(table.Snapshots[0].JSON) != want {
			t.Errorf("snapshot JSON is %s", table.Snapshots[0].JSON)
		}
	}
}

func TestCurrentSnapshotForms(t *testing.T) {
	for _, c := range []struct {
		parts   []string
		current int64
		refs    string
	}{
		{nil, -1, "[]"},
		{[]string{`"current-snapshot-id":-1`}, -1, "[]"},
		{[]string{`"current-snapshot-id":null`, `"refs":{}`}, -1, "[]"},
		{[]string{`"current-snapshot-id":2`}, 2, "[{main 2 false}]"},
		{[]string{`"current-snapshot-id":2`, `"refs":{"main":{"snapshot-id":2,"type":"branch"},"a tag":{"snapshot-id":1,"type":"tag"}}`}, 2, "[{a tag 1 true} {main 2 false}]"},
		{[]string{`"refs":{"main":{"snapshot-id":2,"type":"branch"}}`}, 2, "[{main 2 false}]"},
		// CREATE OR REPLACE TABLE: no current snapshot, old ones stay.
		{[]string{`"current-snapshot-id":-1`, `"refs":{"old":{"snapshot-id":1,"type":"branch"}}`}, -1, "[{old 1 false}]"},
	} {
		table := parse(t, document(2, append(c.parts, twoSnapshots)...))
		if table.Current != c.current || fmt.Sprint(table.Refs) != c.refs {
			t.Errorf("%v: current %d, refs %v", c.parts, table.Current, table.Refs)
		}
		if len(table.Snapshots) != 2 {
			t.Errorf("%v: %d snapshots", c.parts, len(table.Snapshots))
		}
	}
}

func TestSnapshotLog(t *testing.T) {
	ids := func(table *snapshot.Table) (list []string) {
		for _, e := range table.Log {
			list = append(list, fmt.Sprintf("%d@%d", e.SnapshotID, e.Time.UnixMilli()))
		}
		return list
	}
	for _, c := range []struct {
		name  string
		parts []string
		want  []string
	}{
		{"as it is, in the order of time", []string{twoSnapshots, `"current-snapshot-id":2`,
			`"snapshot-log":[{"snapshot-id":2,"timestamp-ms":3000},{"snapshot-id":1,"timestamp-ms":1000},{"snapshot-id":2,"timestamp-ms":1000}]`},
			[]string{"1@1000", "2@1000", "2@3000"}},
		{"absent: the ancestors", []string{twoSnapshots, `"current-snapshot-id":2`}, []string{"1@1000", "2@2000"}},
		{"empty: the ancestors", []string{twoSnapshots, `"current-snapshot-id":1`, `"snapshot-log":[]`}, []string{"1@1000"}},
		{"no current snapshot", []string{twoSnapshots}, nil},
		{"a circle of parents", []string{`"current-snapshot-id":2`, `"snapshots":[{"snapshot-id":1,"parent-snapshot-id":2,"timestamp-ms":1},{"snapshot-id":2,"parent-snapshot-id":1,"timestamp-ms":2}]`},
			[]string{"1@1", "2@2"}},
		{"an expired parent", []string{`"current-snapshot-id":2`, `"snapshots":[{"snapshot-id":2,"parent-snapshot-id":1,"timestamp-ms":2}]`}, []string{"2@2"}},
	} {
		if got := ids(parse(t, document(2, c.parts...))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOldAndForeignForms(t *testing.T) {
	old := []byte(`{"format-version":1,"location":"/t","last-updated-ms":5,
		"schema":{"type":"struct","fields":[{"id":1,"name":"x","required":false,"type":"string"},{"id":2,"name":"a","required":false,"type":"int"}]},
		"partition-spec":[{"name":"x","transform":"identity","source-id":1},{"name":"y","transform":"bucket[4]","source-id":2}],
		"snapshots":[{"snapshot-id":4,"timestamp-ms":7,"manifests":["/t/metadata/m.avro"]}],"current-snapshot-id":4}`)
	table := parse(t, old)
	if s := table.Schema(table.CurrentSchema); s == nil || s.Field(0).Name != "x" || s.Field(1).Name != "a" {
		t.Errorf("schema %v", s)
	}
	if ids := snapshot.FieldIDs(table.Specs[0]); !slices.Equal(ids, []int{1000, 1001}) {
		t.Errorf("partition fields %v", ids)
	}
	if got := table.Snapshots[0].Manifests; !slices.Equal(got, []string{"/t/metadata/m.avro"}) {
		t.Errorf("manifests %v", got)
	}

	mapping := parse(t, document(2, `"properties":{"schema.name-mapping.default":"[{\"field-id\":1,\"names\":[\"b\",\"c\"]}]","n":3,"x":"y"}`))
	if len(mapping.NameMapping) != 1 || mapping.Properties["x"] != "y" {
		t.Errorf("%v, %v", mapping.NameMapping, mapping.Properties)
	}
	if broken := parse(t, document(2, `"properties":{"schema.name-mapping.default":"["}`)); broken.NameMapping != nil {
		t.Error("a broken name mapping was taken")
	}
	// What a reader needs nothing of may be odd: log order, refs to nothing, a
	// sort order, a spec whose source column is gone, an unknown transform.
	parse(t, document(2, twoSnapshots, `"current-snapshot-id":2`, `"sort-orders":[]`, `"metadata-log":[{"metadata-file":"/x","timestamp-ms":9},{"metadata-file":"/y","timestamp-ms":1}]`,
		`"refs":{"main":{"snapshot-id":2,"type":"branch"},"gone":{"snapshot-id":77,"type":"tag"}}`))
	dropped := parse(t, []byte(strings.Replace(string(document(2)), `"fields":[]`, `"fields":[{"source-id":9,"field-id":1000,"name":"p","transform":"zorder[3]"}]`, 1)))
	if len(dropped.Specs) != 1 {
		t.Errorf("specs %v", dropped.Specs)
	}
}

func TestEncryptedTables(t *testing.T) {
	for name, part := range map[string]string{
		"keys":   `"encryption-keys":[{"key-id":"1","encrypted-key-metadata":"x"}]`,
		"key id": `"snapshots":[{"snapshot-id":1,"timestamp-ms":1,"key-id":"k","manifest-list":"/m"}]`,
	} {
		if !parse(t, document(3, part)).Encrypted {
			t.Errorf("%s: not told", name)
		}
	}
	if parse(t, document(3, `"encryption-keys":[]`)).Encrypted {
		t.Error("an empty list of keys is no encryption")
	}
}

func TestMetadataRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		raw  []byte
		want error
		text string
	}{
		{"version 4", []byte(`{"format-version":4,"snapshots":"of another shape"}`), ErrUnsupported, "format version 4 is not supported"},
		{"no version", []byte(`{}`), ErrCorrupt, "format version 0"},
		{"negative version", []byte(`{"format-version":-1}`), ErrCorrupt, ""},
		{"empty", nil, ErrCorrupt, ""},
		{"cut", document(2)[:100], ErrCorrupt, ""},
		{"array", []byte(`[]`), ErrCorrupt, ""},
		{"no schema", []byte(`{"format-version":2,"current-schema-id":0}`), ErrCorrupt, "no schema 0"},
		{"broken current schema", []byte(`{"format-version":2,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"novel"}]}],"current-schema-id":0}`), ErrCorrupt, "schema"},
		{"snapshot without id", document(2, `"snapshots":[{"timestamp-ms":1}]`), ErrCorrupt, "without an id"},
		{"two snapshots of one id", document(2, `"snapshots":[{"snapshot-id":1,"timestamp-ms":1},{"snapshot-id":1,"timestamp-ms":2}]`), ErrCorrupt, "one id"},
		{"broken spec", document(2, `"partition-specs":[{"spec-id":0}]`), ErrCorrupt, "spec"},
	} {
		_, _, err := parseMetadata(c.raw, newLimits(0), slog.New(slog.DiscardHandler))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	// A broken schema of the past does not fail the table.
	past := strings.Replace(string(document(2)), `"schemas":[`, `"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"novel"}]},`, 1)
	if table := parse(t, []byte(past)); len(table.Schemas) != 1 || table.Schema(3) == nil {
		t.Errorf("schemas %v", table.Schemas)
	}
}

func TestBakedFolders(t *testing.T) {
	for _, c := range []struct {
		name           string
		parts          []string
		metadata, data []string
	}{
		{"manifest lists, newest first", []string{`"snapshots":[{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"file:/old/m/a.avro"},{"snapshot-id":2,"timestamp-ms":2,"manifest-list":"s3://b/m/b.avro"},{"snapshot-id":3,"timestamp-ms":3,"manifest-list":"s3://b/m/c.avro"}]`},
			[]string{"s3://b/m", "file:/old/m"}, []string{"file:///wh/t"}},
		{"inline manifests", []string{`"snapshots":[{"snapshot-id":1,"timestamp-ms":1,"manifests":["/in/m.avro"]}]`}, []string{"/in"}, []string{"file:///wh/t"}},
		{"metadata log", []string{`"metadata-log":[{"metadata-file":"file:/a/m/1.metadata.json","timestamp-ms":1},{"metadata-file":"file:/b/m/2.metadata.json","timestamp-ms":2}]`},
			[]string{"file:/b/m", "file:/a/m"}, []string{"file:///wh/t"}},
		{"location", []string{`"properties":{"write.data.path":"file:/d","write.metadata.path":"file:/m"}`},
			[]string{"file:///wh/t/metadata"}, []string{"file:///wh/t", "file:/d", "file:/m"}},
		{"a file at the root", []string{`"snapshots":[{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"/a.avro"}]`}, []string{"/"}, []string{"file:///wh/t"}},
	} {
		_, b, err := parseMetadata(document(2, c.parts...), newLimits(0), slog.New(slog.DiscardHandler))
		if err != nil || !slices.Equal(b.metadata, c.metadata) || !slices.Equal(b.data, c.data) {
			t.Errorf("%s: %q, %q, %v", c.name, b.metadata, b.data, err)
		}
	}
}
