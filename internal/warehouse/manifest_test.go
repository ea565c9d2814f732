package warehouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/faulty"
	"github.com/icefs/icefs/snapshot"
)

// The schemas of manifests and manifest lists, with the fields that readers
// need. %s is the type of the partition.
const (
	entryFields = `{"type":"record","name":"manifest_entry","fields":[
		{"name":"status","type":"int","field-id":0},
		{"name":"snapshot_id","type":["null","long"],"default":null,"field-id":1},
		{"name":"sequence_number","type":["null","long"],"default":null,"field-id":3},
		{"name":"file_sequence_number","type":["null","long"],"default":null,"field-id":4},
		{"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[
			{"name":"content","type":"int","field-id":134},
			{"name":"file_path","type":"string","field-id":100},
			{"name":"file_format","type":"string","field-id":101},
			{"name":"partition","field-id":102,"type":{"type":"record","name":"r102","fields":[%s]}},
			{"name":"record_count","type":"long","field-id":103},
			{"name":"file_size_in_bytes","type":"long","field-id":104},
			{"name":"key_metadata","type":["null","bytes"],"default":null,"field-id":131},
			{"name":"equality_ids","type":["null",{"type":"array","items":"int","element-id":136}],"default":null,"field-id":135},
			{"name":"first_row_id","type":["null","long"],"default":null,"field-id":142},
			{"name":"referenced_data_file","type":["null","string"],"default":null,"field-id":143},
			{"name":"content_offset","type":["null","long"],"default":null,"field-id":144},
			{"name":"content_size_in_bytes","type":["null","long"],"default":null,"field-id":145}]}}]}`
	listFields = `{"type":"record","name":"manifest_file","fields":[
		{"name":"manifest_path","type":"string","field-id":500},
		{"name":"manifest_length","type":"long","field-id":501},
		{"name":"partition_spec_id","type":"int","field-id":502},
		{"name":"content","type":"int","field-id":517},
		{"name":"sequence_number","type":"long","field-id":515},
		{"name":"min_sequence_number","type":"long","field-id":516},
		{"name":"added_snapshot_id","type":"long","field-id":503},
		{"name":"added_files_count","type":"int","field-id":504},
		{"name":"existing_files_count","type":"int","field-id":505},
		{"name":"deleted_files_count","type":"int","field-id":506},
		{"name":"added_rows_count","type":"long","field-id":512},
		{"name":"existing_rows_count","type":"long","field-id":513},
		{"name":"deleted_rows_count","type":"long","field-id":514},
		{"name":"key_metadata","type":["null","bytes"],"default":null,"field-id":519},
		{"name":"first_row_id","type":["null","long"],"default":null,"field-id":520}]}`
	identityField  = `{"name":"p","type":["null","string"],"default":null,"field-id":1000}`
	fieldWithoutID = `{"name":"p","type":["null","string"],"default":null}`
)

type record = map[string]any

// avroFile writes an Avro file of records.
func avroFile(t *testing.T, schema string, meta map[string]string, records ...record) string {
	t.Helper()
	return avroFileWith(t, schema, meta, nil, records...)
}

func avroFileWith(t testing.TB, schema string, meta map[string]string, opts []ocf.WriterOpt, records ...record) string {
	t.Helper()
	s, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string][]byte{}
	for key, value := range meta {
		raw[key] = []byte(value)
	}
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, s, append(opts, ocf.WithSchema(schema), ocf.WithMetadata(raw))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// entryOf is a manifest entry of a file, with changes as "key", value, …
func entryOf(status int, path string, changes ...any) record {
	file := record{
		"content": 0, "file_path": path, "file_format": "PARQUET", "partition": record{}, "record_count": int64(10),
		"file_size_in_bytes": int64(100), "key_metadata": nil, "equality_ids": nil, "first_row_id": nil,
		"referenced_data_file": nil, "content_offset": nil, "content_size_in_bytes": nil,
	}
	e := record{"status": status, "snapshot_id": nil, "sequence_number": nil, "file_sequence_number": nil, "data_file": file}
	for i := 0; i < len(changes); i += 2 {
		key := changes[i].(string)
		if _, ok := file[key]; ok {
			file[key] = changes[i+1]
		} else {
			e[key] = changes[i+1]
		}
	}
	return e
}

// testManifest is a manifest and its entry in the manifest list.
type testManifest struct {
	partition string
	meta      map[string]string
	list      record
	entries   []record
	raw       string // instead of entries
}

func v2Meta(content string) map[string]string {
	return map[string]string{"format-version": "2", "content": content, "partition-spec-id": "0", "schema-id": "3"}
}

// tableOf writes a table of one snapshot (7, sequence 5) with these manifests.
func tableOf(t *testing.T, listMeta map[string]string, manifests ...testManifest) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t")
	var list []record
	for i, m := range manifests {
		path := filepath.Join(dir, "metadata", fmt.Sprintf("m%d.avro", i))
		raw := m.raw
		if raw == "" {
			raw = avroFile(t, fmt.Sprintf(entryFields, m.partition), m.meta, m.entries...)
		}
		write(t, path, raw)
		entry := record{
			"manifest_path": path, "manifest_length": int64(0), "partition_spec_id": 0, "content": 0, "sequence_number": int64(5),
			"min_sequence_number": int64(0), "added_snapshot_id": int64(7), "added_files_count": 1, "existing_files_count": 0,
			"deleted_files_count": 0, "added_rows_count": int64(10), "existing_rows_count": int64(0), "deleted_rows_count": int64(0),
			"key_metadata": nil, "first_row_id": nil,
		}
		for key, value := range m.list {
			entry[key] = value
		}
		list = append(list, entry)
	}
	listPath := write(t, filepath.Join(dir, "metadata", "list.avro"), avroFile(t, listFields, listMeta, list...))
	metadata := string(document(3, `"current-snapshot-id":7`, `"snapshots":[{"snapshot-id":7,"timestamp-ms":1,"manifest-list":"`+listPath+`"}]`))
	metadata = strings.Replace(metadata, `"partition-specs":[`, `"partition-specs":[{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"name":"p","transform":"identity"}]},`, 1)
	write(t, filepath.Join(dir, "metadata", "v1.metadata.json"), metadata)
	return dir
}

func planOf(t *testing.T, dir string) (*snapshot.Plan, error) {
	t.Helper()
	return load(t, openTable(t, dir, Options{})).Plan(context.Background(), 7)
}

func TestInheritance(t *testing.T) {
	dir := tableOf(t, nil, // a list without format-version
		testManifest{meta: v2Meta("data"), list: record{"first_row_id": int64(1000)}, entries: []record{
			entryOf(1, "added"),
			entryOf(2, "deleted without a sequence number"),
			entryOf(0, "existing", "sequence_number", int64(2), "file_sequence_number", int64(3)),
			entryOf(1, "explicit", "sequence_number", int64(4), "first_row_id", int64(77)),
			entryOf(1, "last", "file_format", "parquet", "key_metadata", []byte("k")),
		}},
		testManifest{meta: map[string]string{}, list: record{"sequence_number": int64(0)}, entries: []record{ // written in v1
			entryOf(0, "v1 existing"), entryOf(1, "v1 added", "file_format", "orc"),
		}},
		testManifest{meta: v2Meta("deletes"), list: record{"content": 1}, entries: []record{
			entryOf(1, "pos", "content", 1, "file_format", "Avro"),
			entryOf(1, "dv", "content", 1, "file_format", "puffin", "referenced_data_file", "existing",
				"content_offset", int64(4), "content_size_in_bytes", int64(40)),
			entryOf(1, "eq", "content", 2, "equality_ids", []int{1}),
		}},
	)
	plan, err := planOf(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range plan.Files {
		line := fmt.Sprintf("%s %s seq=%d file=%d row=%d", f.Path, f.Format, f.Sequence, f.FileSequence, f.FirstRowID)
		if f.EncryptedKey {
			line += " key"
		}
		if f.DV != nil {
			line += fmt.Sprintf(" dv=%d+%d", f.DV.ContentOffset, f.DV.ContentSize)
		}
		for _, d := range f.Positions {
			line += fmt.Sprintf(" pos=%s %s", d.Path, d.Format)
		}
		for _, d := range f.Equality {
			line += fmt.Sprintf(" eq=%v", d.EqualityIDs)
		}
		got = append(got, line)
	}
	want := []string{
		"v1 added ORC seq=0 file=0 row=-1 pos=pos AVRO eq=[1]",
		"v1 existing PARQUET seq=0 file=0 row=-1 pos=pos AVRO eq=[1]",
		"existing PARQUET seq=2 file=3 row=1010 dv=4+40 eq=[1]",
		"explicit PARQUET seq=4 file=5 row=77 pos=pos AVRO eq=[1]",
		"added PARQUET seq=5 file=5 row=1000 pos=pos AVRO",
		"last PARQUET seq=5 file=5 row=1020 key pos=pos AVRO",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInlineManifests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	partitioned := avroFile(t, fmt.Sprintf(entryFields, identityField), map[string]string{"partition-spec-id": "1"},
		entryOf(1, "b", "partition", record{"p": "x"}))
	plain := avroFile(t, fmt.Sprintf(entryFields, ""), nil, entryOf(0, "a"), entryOf(2, "c"))
	var paths []string
	for name, raw := range map[string]string{"m1.avro": partitioned, "m2.avro": plain} {
		paths = append(paths, `"`+write(t, filepath.Join(dir, "metadata", name), raw)+`"`)
	}
	metadata := string(document(1, `"current-snapshot-id":7`, `"snapshots":[{"snapshot-id":7,"timestamp-ms":1,"manifests":[`+strings.Join(paths, ",")+`]}]`))
	metadata = strings.Replace(metadata, `"partition-specs":[`, `"partition-specs":[{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"name":"p","transform":"identity"}]},`, 1)
	write(t, filepath.Join(dir, "metadata", "v1.metadata.json"), metadata)
	plan, err := planOf(t, dir)
	if err != nil || len(plan.Files) != 2 {
		t.Fatalf("%v, %v", plan, err)
	}
	a, b := plan.Files[0], plan.Files[1]
	if a.Path != "a" || a.SpecID != 0 || b.Path != "b" || b.SpecID != 1 || b.Partition[1000] != "x" {
		t.Errorf("%+v, %+v", a.DataFile, b.DataFile)
	}
}

func TestManifestsRefused(t *testing.T) {
	data := func(entries ...record) testManifest { return testManifest{meta: v2Meta("data"), entries: entries} }
	partitioned := func(field string, value record) testManifest {
		m := data(entryOf(1, "a", "partition", value))
		m.partition, m.list = field, record{"partition_spec_id": 1}
		return m
	}
	encrypted := data(entryOf(1, "a"))
	encrypted.list = record{"key_metadata": []byte("k")}
	for _, c := range []struct {
		name     string
		manifest testManifest
		want     error
		text     string
	}{
		{"existing without a sequence number", data(entryOf(0, "a")), ErrCorrupt, "without a sequence number"},
		{"negative sequence number", data(entryOf(1, "a", "sequence_number", int64(-7))), ErrCorrupt, "sequence number"},
		{"negative count", data(entryOf(1, "a", "record_count", int64(-1))), ErrCorrupt, "record count -1"},
		{"unknown status", data(entryOf(3, "a")), ErrCorrupt, "status"},
		{"unknown content", data(entryOf(1, "a", "content", 3)), ErrCorrupt, "content"},
		{"delete file in a data manifest", data(entryOf(1, "a", "content", 1)), ErrCorrupt, "delete file"},
		{"partition without its field", partitioned("", record{}), ErrCorrupt, "partition without field 1000"},
		{"partition field without id", partitioned(fieldWithoutID, record{"p": "x"}), ErrCorrupt, "partition without field 1000"},
		{"encrypted", encrypted, ErrUnsupported, "encrypted"},
		{"Parquet", testManifest{raw: "PAR1xxxxPAR1"}, ErrUnsupported, "format version 4"},
		{"encrypted file", testManifest{raw: "AGS1xxxx"}, ErrUnsupported, "encrypted"},
		{"empty", testManifest{raw: "\x00"}, ErrCorrupt, ""},
		{"not a manifest", testManifest{raw: avroFile(t, `{"type":"record","name":"x","fields":[{"name":"a","type":"int"}]}`, v2Meta("data"), record{"a": 1})}, ErrCorrupt, ""},
		{"other content than listed", testManifest{meta: v2Meta("deletes"), entries: []record{entryOf(1, "a", "content", 1)}}, ErrCorrupt, "content"},
		{"newer than its list", testManifest{meta: map[string]string{"format-version": "9", "content": "data"}, entries: []record{entryOf(1, "a")}}, ErrCorrupt, "version"},
	} {
		dir := tableOf(t, nil, c.manifest)
		_, err := planOf(t, dir)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Count(err.Error(), "m0.avro") != 1 {
			t.Errorf("%s: %v, want %v with %q and the manifest's name once", c.name, err, c.want, c.text)
		}
	}
	dir := tableOf(t, nil, data(entryOf(1, "a")))
	l := load(t, openTable(t, dir, Options{}))
	if _, err := l.Plan(context.Background(), 8); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a snapshot that is not there: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "metadata", "m0.avro")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Plan(context.Background(), 7); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("a manifest that is missing: %v", err)
	}
}

// withStore loads a table of testdata and puts another store under it.
func withStore(t *testing.T, table string, wrap func(source.Store) source.Store) *Loaded {
	t.Helper()
	l := load(t, openTable(t, filepath.Join(testdata, table), Options{}))
	l.store = wrap(l.store)
	return l
}

// TestEveryFaultSurfaces fails read and open 1, 2, 3, … until a plan succeeds.
func TestEveryFaultSurfaces(t *testing.T) {
	ctx := context.Background()
	clean := load(t, openTable(t, testdata+"/warehouse/db/eq_part", Options{}))
	want, err := clean.Plan(ctx, clean.Table().Current)
	if err != nil {
		t.Fatal(err)
	}
	for kind, options := range map[string]func(n int64) faulty.Options{
		"read":  func(n int64) faulty.Options { return faulty.Options{FailRead: n} },
		"short": func(n int64) faulty.Options { return faulty.Options{ShortRead: n} },
		"open":  func(n int64) faulty.Options { return faulty.Options{FailOpen: n} },
	} {
		for n := int64(1); ; n++ {
			l := withStore(t, "warehouse/db/eq_part", func(s source.Store) source.Store { return faulty.New(s, options(n)) })
			plan, err := l.Plan(ctx, l.Table().Current)
			if err == nil {
				if n < 5 {
					t.Errorf("%s: only %d faults", kind, n-1)
				}
				if plan.Digest() != want.Digest() {
					t.Errorf("%s %d: another plan", kind, n)
				}
				break
			}
			if !errors.Is(err, faulty.ErrInjected) {
				t.Errorf("%s %d: %v", kind, n, err)
			}
			if plan, err := l.Plan(ctx, l.Table().Current); err != nil || plan.Digest() != want.Digest() {
				t.Errorf("%s %d: the failure stays: %v", kind, n, err)
			}
		}
	}
}

// TestDamagedManifests flips bits all over the manifests: errors or plans, but
// no panic.
func TestDamagedManifests(t *testing.T) {
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	failed := 0
	const rounds = 120
	for range rounds {
		l := withStore(t, "warehouse/db/eq_default_v3", func(s source.Store) source.Store {
			return faulty.New(s, faulty.Options{Damage: func(_ string, _ int64, p []byte) {
				for range 1 + random.IntN(3) {
					if len(p) > 0 {
						p[random.IntN(len(p))] ^= 1 << random.IntN(8)
					}
				}
			}})
		})
		l.env.opt.Cache = &memo{}
		if _, err := l.Plan(ctx, l.Table().Current); err != nil {
			failed++
		}
	}
	if failed < rounds/2 {
		t.Errorf("only %d of %d damaged snapshots failed", failed, rounds)
	}
}

func TestCancelledPlan(t *testing.T) {
	l := load(t, openTable(t, testdata+"/warehouse/db/eq_part", Options{}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Plan(ctx, l.Table().Current); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := l.Plan(context.Background(), l.Table().Current); err != nil {
		t.Errorf("after a caller left: %v", err)
	}
}
