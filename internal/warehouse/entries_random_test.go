package warehouse

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/icefs/icefs/snapshot"
)

// writer appends random values of one type, in Avro's binary encoding.
type writer func(dst []byte) []byte

// schemaMaker makes random schemas together with what writes their values: an
// encoder that uses whatever the encoding allows.
type schemaMaker struct {
	r     *rand.Rand
	names int
	known []known // named types so far
}

type known struct {
	name  string
	write writer
}

func (g *schemaMaker) name() string {
	g.names++
	// Of one short name in several namespaces each is another type.
	return fmt.Sprintf("ns%d.n%d", g.names, g.names%3)
}

// named spells a name of g.name in one of two ways.
func (g *schemaMaker) named(name string) string {
	if space, short, _ := strings.Cut(name, "."); g.r.IntN(2) == 0 {
		return fmt.Sprintf(`"name":%q,"namespace":%q`, short, space)
	}
	return fmt.Sprintf(`"name":%q`, name)
}

func long(dst []byte, n int64) []byte { return binary.AppendVarint(dst, n) }

func (g *schemaMaker) bytes(dst []byte) []byte {
	n := g.r.IntN(9)
	dst = long(dst, int64(n))
	for range n {
		dst = append(dst, byte('a'+g.r.IntN(26)))
	}
	return dst
}

// blocks writes n items in blocks, some with a negative count and their size.
func (g *schemaMaker) blocks(dst []byte, n int, item writer) []byte {
	for n > 0 {
		k := 1 + g.r.IntN(n)
		var body []byte
		for range k {
			body = item(body)
		}
		if g.r.IntN(2) == 0 {
			dst = long(long(dst, int64(-k)), int64(len(body)))
		} else {
			dst = long(dst, int64(k))
		}
		dst = append(dst, body...)
		n -= k
	}
	return long(dst, 0)
}

// any makes a type of any kind.
func (g *schemaMaker) any(depth int) (schema string, write writer) {
	r := g.r
	kind := r.IntN(16)
	if depth > 3 {
		kind = r.IntN(11)
	}
	switch kind {
	case 0:
		return `"null"`, func(dst []byte) []byte { return dst }
	case 1:
		return `"boolean"`, func(dst []byte) []byte { return append(dst, byte(r.IntN(2))) }
	case 2:
		return `"int"`, func(dst []byte) []byte { return long(dst, int64(int32(r.Uint32()))) }
	case 3:
		return `{"type":"int","logicalType":"date"}`, func(dst []byte) []byte { return long(dst, int64(r.IntN(40_000))) }
	case 4:
		return `"long"`, func(dst []byte) []byte { return long(dst, int64(r.Uint64())) }
	case 5:
		return `{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true}`, func(dst []byte) []byte { return long(dst, r.Int64N(1<<50)) }
	case 6:
		return `"float"`, func(dst []byte) []byte { return binary.LittleEndian.AppendUint32(dst, r.Uint32()) }
	case 7:
		return `"double"`, func(dst []byte) []byte { return binary.LittleEndian.AppendUint64(dst, r.Uint64()) }
	case 8:
		return `"bytes"`, g.bytes
	case 9:
		return `"string"`, g.bytes
	case 10:
		if len(g.known) > 0 {
			k := g.known[r.IntN(len(g.known))]
			return fmt.Sprintf("%q", k.name), k.write
		}
		return `{"type":"string","avro.java.string":"String"}`, g.bytes
	case 11:
		n, name := 1+r.IntN(5), g.name()
		write := func(dst []byte) []byte { return append(dst, make([]byte, n)...) }
		g.known = append(g.known, known{name, write})
		return fmt.Sprintf(`{"type":"fixed",%s,"size":%d}`, g.named(name), n), write
	case 12:
		name := g.name()
		write := func(dst []byte) []byte { return long(dst, int64(r.IntN(3))) }
		g.known = append(g.known, known{name, write})
		return fmt.Sprintf(`{"type":"enum",%s,"symbols":["A","B","C"]}`, g.named(name)), write
	case 13:
		item, write := g.any(depth + 1)
		for item == `"null"` || strings.Contains(item, `"record"`) || strings.HasPrefix(item, `"ns`) { // items of no bytes are refused
			item, write = `"long"`, func(dst []byte) []byte { return long(dst, 7) }
		}
		return fmt.Sprintf(`{"type":"array","items":%s}`, item), func(dst []byte) []byte { return g.blocks(dst, r.IntN(5), write) }
	case 14:
		item, write := g.any(depth + 1)
		return fmt.Sprintf(`{"type":"map","values":%s}`, item), func(dst []byte) []byte {
			i := 0
			return g.blocks(dst, r.IntN(5), func(dst []byte) []byte {
				i++
				return write(append(long(dst, 1), byte('a'+i)))
			})
		}
	default:
		name := g.name()
		var fields []string
		var writers []writer
		for i := range r.IntN(4) {
			s, w := g.any(depth + 1)
			if r.IntN(3) == 0 && !strings.HasPrefix(s, `"null"`) {
				s, w = g.optional(s, w, func() bool { return r.IntN(2) == 0 })
			}
			fields, writers = append(fields, fmt.Sprintf(`{"name":"f%d","type":%s}`, i, s)), append(writers, w)
		}
		write := func(dst []byte) []byte {
			for _, w := range writers {
				dst = w(dst)
			}
			return dst
		}
		g.known = append(g.known, known{name, write})
		return fmt.Sprintf(`{"type":"record",%s,"fields":[%s]}`, g.named(name), strings.Join(fields, ",")), write
	}
}

// optional makes a union with null, in either order.
func (g *schemaMaker) optional(schema string, write writer, null func() bool) (string, writer) {
	at := int64(g.r.IntN(2)) // of null
	text := fmt.Sprintf(`["null",%s]`, schema)
	if at == 1 {
		text = fmt.Sprintf(`[%s,"null"]`, schema)
	}
	return text, func(dst []byte) []byte {
		if null() {
			return long(dst, at)
		}
		return write(long(dst, 1-at))
	}
}

// entrySchema makes the schema of a manifest's entries: the fields that are
// used in any order, optional ones as they please or not at all, among others.
func (g *schemaMaker) entrySchema(deletes bool) (string, writer) {
	r := g.r
	number := func(schema string, values ...int64) (string, writer) {
		return schema, func(dst []byte) []byte { return long(dst, values[r.IntN(len(values))]) }
	}
	ids := func(values ...int64) writer {
		return func(dst []byte) []byte {
			i := r.IntN(len(values))
			return g.blocks(dst, len(values), func(dst []byte) []byte {
				i++
				return long(dst, values[i%len(values)])
			})
		}
	}
	pairs := func(name, value string, write writer) (string, writer) {
		n := g.name()
		return fmt.Sprintf(`{"type":"array","logicalType":"map","items":{"type":"record","name":%q,"fields":[{"name":"key","type":"int"},{"name":"value","type":%q}]}}`, n, value),
			func(dst []byte) []byte {
				id := int64(0)
				return g.blocks(dst, r.IntN(6), func(dst []byte) []byte {
					id++
					return write(long(dst, id))
				})
			}
	}
	count := func(dst []byte) []byte { return long(dst, r.Int64N(1_000)) }
	var file fieldList
	add := func(l *fieldList, name string, required bool, schema string, write writer) {
		if !required {
			switch r.IntN(4) {
			case 0:
				return
			case 1, 2:
				schema, write = g.optional(schema, write, func() bool { return r.IntN(3) == 0 })
			}
		}
		l.add(name, schema, write)
	}
	content := []int64{0}
	if deletes {
		content = []int64{1, 2}
	}
	s, w := number(`"int"`, content...)
	add(&file, "content", true, s, w)
	add(&file, "file_path", true, `"string"`, g.bytes)
	add(&file, "file_format", true, `"string"`, func(dst []byte) []byte { return append(long(dst, 7), "PARQUET"...) })
	add(&file, "partition", true, fmt.Sprintf(`{"type":"record","name":%q,"fields":[]}`, g.name()), func(dst []byte) []byte { return dst })
	add(&file, "record_count", true, `"long"`, count)
	add(&file, "file_size_in_bytes", false, `"long"`, count)
	for _, name := range []string{"value_counts", "null_value_counts", "nan_value_counts"} {
		s, w := pairs(name, "long", count)
		add(&file, name, false, s, w)
	}
	for _, name := range []string{"lower_bounds", "upper_bounds"} {
		s, w := pairs(name, "bytes", g.bytes)
		add(&file, name, false, s, w)
	}
	add(&file, "key_metadata", false, `"bytes"`, g.bytes)
	add(&file, "equality_ids", false, `{"type":"array","items":"int"}`, ids(1, 2))
	add(&file, "referenced_data_file", false, `"string"`, g.bytes)
	add(&file, "content_offset", false, `"long"`, count)
	add(&file, "content_size_in_bytes", false, `"long"`, count)
	var entry fieldList
	s, w = number(`"int"`, 0, 1, 2)
	add(&entry, "status", true, s, w)
	add(&entry, "sequence_number", false, `"long"`, count)
	add(&entry, "file_sequence_number", false, `"long"`, count)
	g.strangers(&file)
	s, w = file.record(g)
	add(&entry, "data_file", true, s, w)
	g.strangers(&entry)
	return entry.record(g)
}

// strangers adds fields that nothing is known of.
func (g *schemaMaker) strangers(l *fieldList) {
	for i := range g.r.IntN(5) {
		s, w := g.any(0)
		l.add(fmt.Sprint("stranger_", i), s, w)
	}
}

// fieldList is the fields of a record.
type fieldList struct {
	schemas []string
	writers []writer
}

func (l *fieldList) add(name, schema string, write writer) {
	l.schemas, l.writers = append(l.schemas, fmt.Sprintf(`{"name":%q,"type":%s}`, name, schema)), append(l.writers, write)
}

// record puts the fields into any order in which no name comes before its type.
func (l *fieldList) record(g *schemaMaker) (string, writer) {
	order := g.r.Perm(len(l.schemas))
	var schemas []string
	for _, i := range order {
		schemas = append(schemas, l.schemas[i])
	}
	text := fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, g.name(), strings.Join(schemas, ","))
	if _, err := avro.Parse(text); err != nil && len(l.schemas) > 1 { // a name before its type
		order = order[:0]
		for i := range l.schemas {
			order = append(order, i)
		}
		text = fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, g.name(), strings.Join(l.schemas, ","))
	}
	return text, func(dst []byte) []byte {
		for _, i := range order {
			dst = l.writers[i](dst)
		}
		return dst
	}
}

// fileOf makes the file of an entry that twmb/avro decoded.
func fileOf(entry map[string]any, metricIDs []int, inherited int64) (f snapshot.DataFile, live bool) {
	file := entry["data_file"].(map[string]any)
	number := func(r map[string]any, name string, otherwise int64) int64 {
		switch n := r[name].(type) {
		case int32:
			return int64(n)
		case int64:
			return n
		}
		return otherwise
	}
	text := func(name string) string { s, _ := file[name].(string); return s }
	f = snapshot.DataFile{
		Path: text("file_path"), Content: snapshot.Content(number(file, "content", 0)), Format: snapshot.Parquet,
		Records: number(file, "record_count", -1), Size: number(file, "file_size_in_bytes", 0), FirstRowID: -1,
		Sequence: number(entry, "sequence_number", inherited), Referenced: text("referenced_data_file"), HasReferenced: file["referenced_data_file"] != nil,
		ContentOffset: number(file, "content_offset", -1), ContentSize: number(file, "content_size_in_bytes", -1),
	}
	f.FileSequence = number(entry, "file_sequence_number", -1)
	if f.FileSequence < 0 {
		f.FileSequence = f.Sequence
		if number(entry, "status", -1) == 1 {
			f.FileSequence = inherited
		}
	}
	if key, ok := file["key_metadata"].([]byte); ok {
		f.EncryptedKey = len(key) > 0
	}
	if ids, ok := file["equality_ids"].([]any); ok {
		for _, id := range ids {
			f.EqualityIDs = append(f.EqualityIDs, int(id.(int32)))
		}
	}
	switch f.Content {
	case snapshot.PositionDeletes:
		metricIDs = []int{snapshot.PathFieldID}
	case snapshot.EqualityDeletes:
		metricIDs = f.EqualityIDs
	}
	for _, id := range metricIDs {
		m := snapshot.NoMetrics(id)
		pair := func(name string, set func(any)) {
			list, _ := file[name].([]any)
			for _, item := range list {
				if kv := item.(map[string]any); kv["key"] == int32(id) {
					set(kv["value"])
				}
			}
		}
		pair("value_counts", func(v any) { m.Values = v.(int64) })
		pair("null_value_counts", func(v any) { m.Nulls = v.(int64) })
		pair("nan_value_counts", func(v any) { m.NaNs = v.(int64) })
		pair("lower_bounds", func(v any) { m.Lower = v.([]byte) })
		pair("upper_bounds", func(v any) { m.Upper = v.([]byte) })
		f.Metrics = append(f.Metrics, m)
	}
	return f, number(entry, "status", -1) != 2
}

// TestRandomSchemasAsAvroLibrary: entries under schemas of any shape are what
// twmb/avro decodes them to.
func TestRandomSchemasAsAvroLibrary(t *testing.T) {
	const inherited = 77
	compared := 0
	for seed := range uint64(3_000) {
		g := &schemaMaker{r: rand.New(rand.NewPCG(seed, 1))}
		deletes := g.r.IntN(2) == 0
		text, write := g.entrySchema(deletes)
		schema, err := avro.Parse(text)
		if err != nil {
			continue // a name that comes before its type
		}
		content := map[bool]string{false: "data", true: "deletes"}[deletes]
		raw := append([]byte("Obj\x01"), long(nil, 3)...)
		for _, kv := range []string{"avro.schema", text, "content", content, "format-version", "2"} {
			raw = append(long(raw, int64(len(kv))), kv...)
		}
		raw = append(append(raw, 0), make([]byte, syncSize)...)
		var want []snapshot.DataFile
		refused := false
		for range 1 + g.r.IntN(3) {
			var block []byte
			rows := 1 + g.r.IntN(4)
			for range rows {
				var decoded any
				bytes := write(nil)
				rest, err := schema.Decode(bytes, &decoded)
				if err != nil || len(rest) > 0 {
					t.Fatalf("seed %d: the library: %v, %d bytes left\n%s", seed, err, len(rest), text)
				}
				entry := decoded.(map[string]any)
				f, live := fileOf(entry, []int{1, 3}, inherited)
				status, ok := entry["status"].(int32)
				if _, has := entry["sequence_number"].(int64); status == 0 && ok && !has {
					refused = true // an existing entry without a sequence number
				}
				if live {
					want = append(want, f)
				}
				block = append(block, bytes...)
			}
			raw = long(long(raw, int64(rows)), int64(len(block)))
			raw = append(append(raw, block...), make([]byte, syncSize)...)
		}
		m := manifestFile{path: "m.avro", version: 2, sequence: inherited, snapshot: 7, firstRow: -1, deletes: deletes}
		r := entryReader{table: &snapshot.Table{}, manifest: m, schemas: &schemas{}, metricIDs: []int{1, 3}}
		if deletes {
			r.metricIDs = nil
		}
		err = r.read(raw)
		if err != nil && strings.HasPrefix(err.Error(), `type "ns`) {
			continue // a name before its type, which the library tolerates
		}
		if refused != (err != nil) {
			t.Fatalf("seed %d: %v, to be refused: %v\n%s", seed, err, refused, text)
		}
		if err != nil {
			continue
		}
		compared++
		if len(r.files) != len(want) {
			t.Fatalf("seed %d: %d files, want %d\n%s", seed, len(r.files), len(want), text)
		}
		for i := range want {
			if got := r.files[i]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want[i]) && !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("seed %d, file %d:\n%+v\nwant\n%+v\n%s", seed, i, got, want[i], text)
			}
		}
	}
	if compared < 1_000 {
		t.Errorf("only %d manifests compared", compared)
	}
}

// TestShortNamesOfTypes: a short name stands for the type of the namespace that
// it is used in.
func TestShortNamesOfTypes(t *testing.T) {
	const inner = `{"name":"g","type":{"type":"record","name":"q","namespace":"b","fields":[{"name":"h","type":{"type":"fixed","name":"x","size":2}},{"name":"hh","type":"x"}]}}`
	for _, c := range []struct {
		schema      string
		inner, last int
	}{
		{`{"type":"record","name":"r","namespace":"a","fields":[{"name":"f","type":{"type":"fixed","name":"x","size":4}},` + inner + `,{"name":"i","type":"x"}]}`, 2, 4},
		{`{"type":"record","name":"a.r","fields":[{"name":"f","type":{"type":"fixed","name":"x","size":4}},` + inner + `,{"name":"i","type":"b.x"}]}`, 2, 2},
		{`{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"fixed","name":"x","size":4}},` + inner + `,{"name":"i","type":"x"}]}`, 2, 4},
		{`{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"fixed","name":"x","size":4}},
			{"name":"g","type":{"type":"record","name":"b.q","fields":[{"name":"h","type":"int"},{"name":"hh","type":"x"}]}},{"name":"i","type":"x"}]}`, 4, 4},
	} {
		parsed, err := avro.Parse(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		a, err := newAvroType(parsed.Root(), avroNames{}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if in, last := a.fields[1].typ.fields[1].typ.size, a.fields[2].typ.size; in != c.inner || last != c.last {
			t.Errorf("%s: sizes %d and %d, want %d and %d", c.schema, in, last, c.inner, c.last)
		}
	}
}
