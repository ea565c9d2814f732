package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/cache"
	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/snapshot"
)

func TestAvroGroups(t *testing.T) {
	type block struct{ rows, size int64 }
	const k, m = 1 << 10, 1 << 20
	for _, c := range []struct {
		name   string
		blocks []block
		want   string // rows:bytes of groups
	}{
		{"none", nil, ""},
		{"one", []block{{5, 100}}, "5:100"},
		{"small blocks", []block{{5, 100}, {6, 100}, {7, 100}}, "18:300"},
		{"as many rows as may be", []block{{64 * k, 100}, {64 * k, 100}}, "131072:200"},
		{"one row more", []block{{64 * k, 100}, {64 * k, 100}, {1, 100}}, "131072:200 1:100"},
		{"blocks are not cut for rows", []block{{100 * k, 100}, {100 * k, 100}}, "102400:100 102400:100"},
		{"as many bytes as may be", []block{{10, 4 * m}, {10, 4 * m}, {10, 4 * m}}, "20:8388608 10:4194304"},
		{"a block of many rows", []block{{3, 100}, {300 * k, 3 * k}, {4, 100}}, "3:100 102400:1024 102400:1024 102404:1124"},
		{"a block of many bytes", []block{{3, 100}, {10, 18 * m}, {4, 100}}, "3:100 3:6291456 3:6291456 8:6291556"},
		{"long rows", []block{{1, 100 * m}, {2, 100 * m}}, "1:104857600 1:52428800 1:52428800"},
	} {
		var blocks []avrofile.Block
		rows := int64(0)
		for _, b := range c.blocks {
			blocks = append(blocks, avrofile.Block{FirstRow: rows, Rows: b.rows, Size: b.size})
			rows += b.rows
		}
		starts, stored := avroGroups(blocks)
		var got []string
		for i := range stored {
			got = append(got, fmt.Sprintf("%d:%d", starts[i+1]-starts[i], stored[i]))
		}
		if text := strings.Join(got, " "); text != c.want || len(starts) != len(stored)+1 || starts[len(stored)] != rows {
			t.Errorf("%s: groups %q (%v), want %q", c.name, text, starts, c.want)
		}
	}
}

// memoryStore has objects by location.
type memoryStore map[string][]byte

// namedObject is an object with a location and version of its own.
type namedObject struct {
	memoryObject
	name string
}

func (o namedObject) Version() string  { return o.name }
func (o namedObject) Location() string { return o.name }

func (s memoryStore) Open(_ context.Context, location string) (source.Object, error) {
	b, ok := s[location]
	if !ok {
		return nil, source.ErrNotFound
	}
	return namedObject{b, location}, nil
}

// avroBytes writes an Avro file of so many rows, block by block.
func avroBytes(t testing.TB, schema string, rows, block int, row func(i int) map[string]any) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, avro.MustParse(schema), ocf.WithCodec(ocf.SnappyCodec()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err = w.Encode(row(i)); err == nil && i%block == block-1 {
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// avroTable is a table of one Avro file of so many rows, of which position
// deletes, in Avro too, take those from 131,000 to 262,000 and every tenth of the
// first ones. 270,000 rows are three row groups.
func avroTable(t testing.TB, rows int) (scan Scan, want []string) {
	t.Helper()
	gone := func(i int) bool { return i >= 131_000 && i < 262_000 || i < 100_000 && i%10 == 3 }
	var positions []int
	for i := range rows {
		if gone(i) {
			positions = append(positions, i)
		} else {
			row := map[string]any{"id": i, "s": fmt.Sprintf("value %d", i%1000), "l": []any{i, nil}, "f": float64(i) / 4}
			if i%7 == 0 {
				row["s"], row["l"] = nil, []any{}
			}
			want = append(want, canonical(normalJSON(row)))
		}
	}
	slices.Sort(want)
	store := memoryStore{
		"data.avro": avroBytes(t, `{"type":"record","name":"r","fields":[
			{"name":"id","type":"long","field-id":1},
			{"name":"s","type":["null","string"],"field-id":2},
			{"name":"l","type":{"type":"array","items":["null","int"],"element-id":4},"field-id":3},
			{"name":"f","type":"double","field-id":5}]}`, rows, 1000, func(i int) map[string]any {
			row := map[string]any{"id": int64(i), "s": fmt.Sprintf("value %d", i%1000), "l": []any{int32(i), nil}, "f": float64(i) / 4}
			if i%7 == 0 {
				row["s"], row["l"] = nil, []any{}
			}
			return row
		}),
		"deletes.avro": avroBytes(t, `{"type":"record","name":"r","fields":[
			{"name":"file_path","type":"string","field-id":2147483546},
			{"name":"pos","type":"long","field-id":2147483545}]}`, len(positions), 5000, func(i int) map[string]any {
			return map[string]any{"file_path": "data.avro", "pos": int64(positions[i])}
		}),
	}
	list := &iceberg.ListType{ElementID: 4, Element: iceberg.PrimitiveTypes.Int32}
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "l", Type: list},
		iceberg.NestedField{ID: 5, Name: "f", Type: iceberg.PrimitiveTypes.Float64})
	file := snapshot.File{
		DataFile:  &snapshot.DataFile{Path: "data.avro", Format: snapshot.Avro, Records: int64(rows)},
		Positions: []*snapshot.DataFile{{Path: "deletes.avro", Content: snapshot.PositionDeletes, Format: snapshot.Avro, Records: int64(len(positions))}},
	}
	table := &snapshot.Table{Schemas: []*iceberg.Schema{schema}}
	return Scan{Table: table, Schema: schema, Plan: &snapshot.Plan{Files: []snapshot.File{file}}, Store: store}, want
}

// normalJSON makes the numbers of a row those of encoding/json.
func normalJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = normalJSON(v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = normalJSON(v[i])
		}
		return v
	case int:
		return floatValue(float64(v))
	case float64:
		return floatValue(v)
	}
	return v
}

func TestLargeAvroFile(t *testing.T) {
	scan, want := avroTable(t, 270_000)
	counters := &Counters{}
	v := testEngine(t, Options{Counters: counters}).Part(scan, 0)
	data := viewtest.Bytes(t, v)
	checkParquet(t, data)
	if got := arrowRows(t, data); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	m := footerOf(t, data)
	if len(m.RowGroups) != 2 {
		t.Errorf("%d row groups, want 2: of three one is deleted", len(m.RowGroups))
	}
	if n := counters.ChunksMeasured.Load(); n != 2*4 {
		t.Errorf("%d chunks measured, want 8", n)
	}
	if n := counters.ChunksRewritten.Load(); n != 2*4 {
		t.Errorf("%d chunks made, want 8: what was measured is kept", n)
	}
	for g := range m.RowGroups {
		for c, chunk := range m.RowGroups[g].Columns {
			if st := chunk.MetaData.Statistics; (st != nil) != (c != 2) {
				t.Errorf("row group %d: statistics of %v: %v", g, chunk.MetaData.Path, st)
			}
		}
	}
	whole := testEngine(t, Options{Statistics: StatisticsNone}).Parquet(scan)
	viewtest.Check(t, whole, func() viewtest.View {
		return testEngine(t, Options{Statistics: StatisticsNone, Workers: 1}).Parquet(scan)
	})
}

// A reader without a cache takes all columns of a row group from one pass over
// its rows.
func TestAvroHandleDecodesOnce(t *testing.T) {
	scan, _ := avroTable(t, 3000)
	counters := &Counters{}
	e := NewEngine(Options{Counters: counters, Deletes: deletes.NewResolver(deletes.Options{}), Workers: 1})
	h := e.Parquet(scan).(Opener).Open()
	defer h.Close()
	p := make([]byte, 1)
	if _, err := h.ReadAt(t.Context(), p, 0); err != nil { // makes the layout
		t.Fatal(err)
	}
	before := counters.ChunksRewritten.Load()
	layout := h.(*handle).layout
	for j := range 4 {
		if _, err := h.ReadAt(t.Context(), p, layout.footer.groups[0].chunks[j].offset); err != nil {
			t.Fatal(err)
		}
	}
	if n := counters.ChunksRewritten.Load() - before; n != 4 {
		t.Errorf("%d chunks made for reads of 4", n)
	}
}

// What was measured is kept: another process gets sizes, statistics and the
// footer without decoding a row.
func TestAvroIsMeasuredOnce(t *testing.T) {
	for _, x := range expectedTables(t) {
		if x.Name != "avro_data" && x.Name != "types_java_avro" {
			continue
		}
		l := x.load(t)
		disk, err := cache.OpenDisk(t.TempDir(), cache.DiskOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		for i := range l.Table().Snapshots {
			scan := scanOf(t, l, &l.Table().Snapshots[i])
			var first []byte
			for pass := range 2 {
				counters := &Counters{}
				resolver := deletes.NewResolver(deletes.Options{Persist: disk})
				e := testEngine(t, Options{Counters: counters, Persist: disk})
				e.opt.Deletes = resolver
				v := e.Parquet(scan)
				size, err := v.Size(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				foot := make([]byte, 8)
				if _, err := v.ReadAt(t.Context(), foot, size-8); err != nil {
					t.Fatal(err)
				}
				measured, made := counters.ChunksMeasured.Load(), counters.ChunksRewritten.Load()
				if pass == 1 && (measured > 0 || made > 0) {
					t.Errorf("%s, snapshot %d: %d chunks measured and %d made again", x.Name, scan.Plan.SnapshotID, measured, made)
				}
				data := viewtest.Bytes(t, v)
				if pass == 0 {
					first = data
				} else if !bytes.Equal(data, first) {
					t.Errorf("%s, snapshot %d: other bytes from what was kept", x.Name, scan.Plan.SnapshotID)
				}
			}
		}
	}
}

// Without the kept statistics a kept length is of no use: both or neither.
func TestAvroKeepsAllOrNothing(t *testing.T) {
	scan, _ := avroTable(t, 3000)
	kept := &lossyPersist{kept: map[string][]byte{}}
	bytesOf := func() []byte {
		e := NewEngine(Options{Persist: kept, Cache: &mapCache{}, Deletes: deletes.NewResolver(deletes.Options{}), Workers: 1})
		return viewtest.Bytes(t, e.Parquet(scan))
	}
	first := bytesOf()
	kept.lost = "statistics|"
	if !bytes.Equal(bytesOf(), first) {
		t.Error("other bytes after statistics were lost")
	}
	kept.lost = "measure|"
	if !bytes.Equal(bytesOf(), first) {
		t.Error("other bytes after lengths were lost")
	}
}

// lossyPersist has lost keys of one kind.
type lossyPersist struct {
	kept map[string][]byte
	lost string
}

func (p *lossyPersist) Get(key string) ([]byte, bool) {
	if p.lost != "" && strings.HasPrefix(key, p.lost) {
		return nil, false
	}
	v, ok := p.kept[key]
	return v, ok
}

func (p *lossyPersist) Put(key string, value []byte) { p.kept[key] = value }

// A damaged Avro file fails its views, and never shows fewer or other rows.
func TestDamagedAvroFile(t *testing.T) {
	scan, _ := avroTable(t, 3000)
	good := scan.Store.(memoryStore)
	for name, damage := range map[string]func(b []byte) []byte{
		"cut short": func(b []byte) []byte { return b[:len(b)-20] },
		"cut after a block": func(b []byte) []byte {
			sync := b[len(b)-16:]
			return b[:bytes.LastIndex(b[:len(b)-16], sync)+16]
		},
		"sync marker":   func(b []byte) []byte { b[len(b)-5] ^= 1; return b },
		"block's bytes": func(b []byte) []byte { b[len(b)-40] ^= 0x55; return b },
	} {
		bad := memoryStore{"deletes.avro": good["deletes.avro"], "data.avro": damage(bytes.Clone(good["data.avro"]))}
		s := scan
		s.Store = bad
		_, err := testEngine(t, Options{}).Parquet(s).Size(t.Context())
		if !errors.Is(err, avrofile.ErrCorrupt) || !strings.Contains(err.Error(), "data.avro") {
			t.Errorf("%s: %v", name, err)
		}
		s.Store = memoryStore{"data.avro": good["data.avro"], "deletes.avro": damage(bytes.Clone(good["deletes.avro"]))}
		_, err = testEngine(t, Options{}).Parquet(s).Size(t.Context())
		if !errors.Is(err, deletes.ErrCorrupt) || !strings.Contains(err.Error(), "deletes.avro") {
			t.Errorf("deletes, %s: %v", name, err)
		}
	}
}

// Files in ORC are refused by name, data files and delete files alike.
func TestORCIsRefused(t *testing.T) {
	scan, _ := avroTable(t, 3000)
	file := scan.Plan.Files[0]
	data, del := *file.DataFile, *file.Positions[0]
	data.Format, del.Format = snapshot.ORC, snapshot.ORC
	for want, f := range map[string]snapshot.File{
		"data.avro":    {DataFile: &data},
		"deletes.avro": {DataFile: file.DataFile, Positions: []*snapshot.DataFile{&del}},
	} {
		s := scan
		s.Plan = &snapshot.Plan{Files: []snapshot.File{f}}
		_, err := testEngine(t, Options{}).Parquet(s).Size(t.Context())
		if !errors.Is(err, ErrUnsupported) && !errors.Is(err, deletes.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s in ORC: %v", want, err)
		}
	}
}

// A struct that a file lacks has a value, or NULL, in every row: known without
// looking.
func TestStatisticsOfMissingStructs(t *testing.T) {
	top := &pqfile.Node{}
	parent := &pqfile.Node{Parent: top}
	leaf := &pqfile.Node{Type: pqfile.Int32, MaxDef: 2, Parent: parent}
	one := pqfile.Values{N: 1, Width: 4, Fixed: []byte{7, 0, 0, 0}}
	s := &groupSource{live: 9}
	null := missingStatistics(s, &pqfile.Column{DefMap: []uint8{0}, Constant: one}, leaf)
	if null == nil || *null.NullCount != 9 || null.MinValue != nil {
		t.Errorf("NULL parent: %+v", null)
	}
	all := missingStatistics(s, &pqfile.Column{DefMap: []uint8{2}, Constant: one}, leaf)
	if all == nil || *all.NullCount != 0 || !bytes.Equal(all.MinValue, one.Fixed) || !bytes.Equal(all.MaxValue, one.Fixed) {
		t.Errorf("default below: %+v", all)
	}
	if got := missingStatistics(s, &pqfile.Column{DefMap: []uint8{0, 1, 2}, Levels: leaf, Constant: one}, leaf); got != nil {
		t.Errorf("levels of another column: %+v", got)
	}
}
