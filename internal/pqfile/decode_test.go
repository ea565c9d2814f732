package pqfile

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const fixtures = "../../testdata/pqfile/"

// leafData is a leaf's content: levels, and the values at MaxDef as PLAIN
// stores them (a byte array without its length), in hexadecimal.
type leafData struct {
	rep, def []uint8
	values   []string
	pages    int
}

// readLeaf decodes a leaf of all row groups.
func readLeaf(t testing.TB, f *File, leaf *Node) (leafData, error) {
	t.Helper()
	var data leafData
	for g := range f.Metadata.RowGroups {
		c, err := f.Chunk(g, leaf)
		if err != nil {
			return data, err
		}
		if err := data.readChunk(t, c); err != nil {
			return data, err
		}
	}
	return data, nil
}

func (data *leafData) readChunk(t testing.TB, c *Chunk) error {
	d := c.NewDecoder()
	defer d.Release()
	for s := c.Scan(c.Start, c.Start+c.Length); ; {
		p, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.Header.Type == DictionaryPage {
			if err := d.SetDictionary(p); err != nil {
				return err
			}
			continue
		}
		if err := data.readPage(c.Node, d, p); err != nil {
			return err
		}
	}
}

func (data *leafData) readPage(node *Node, d *PageDecoder, p *RawPage) error {
	pd, err := d.Uncompress(p)
	if err != nil {
		return err
	}
	rep, def, err := d.Levels(&pd)
	if err != nil {
		return err
	}
	n := pd.NumValues
	if node.MaxDef > 0 {
		n = 0
		for _, l := range def {
			if int(l) == node.MaxDef {
				n++
			}
		}
	}
	v, err := d.Values(&pd, n)
	if err != nil {
		return err
	}
	if v.N != n {
		return fmt.Errorf("%d values, not %d", v.N, n)
	}
	data.pages++
	data.rep, data.def = append(data.rep, rep...), append(data.def, def...)
	for i := range n {
		data.values = append(data.values, hex.EncodeToString(valueAt(&v, i)))
	}
	return nil
}

func valueAt(v *Values, i int) []byte {
	switch {
	case v.Dict != nil:
		return valueAt(v.Dict, int(v.Index[i]))
	case v.Type == Boolean:
		return v.Bools[i : i+1]
	case v.Type == ByteArray:
		return v.Data[v.Offsets[i]:v.Offsets[i+1]]
	}
	return v.Fixed[i*v.Width : (i+1)*v.Width]
}

// shred turns the rows of a column, as values.json has them, into levels and
// values.
func shred(rows []any, leaf *Node) (data leafData) {
	level := func(list *[]uint8, maxLevel int, v int) {
		if maxLevel > 0 {
			*list = append(*list, uint8(v))
		}
	}
	entry := func(v any, rep, null int) {
		level(&data.rep, leaf.MaxRep, rep)
		if v == nil {
			level(&data.def, leaf.MaxDef, null)
			return
		}
		level(&data.def, leaf.MaxDef, leaf.MaxDef)
		data.values = append(data.values, v.(string))
	}
	for _, row := range rows {
		list, isList := row.([]any)
		switch {
		case !isList:
			entry(row, 0, 0)
		case len(list) == 0:
			entry(nil, 0, 1)
		}
		for i, v := range list {
			entry(v, min(i, 1), 2)
		}
	}
	return data
}

func values(t testing.TB, name string) map[string][]any {
	t.Helper()
	b, err := os.ReadFile(fixtures + name)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string][]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func check(t *testing.T, f *File, want map[string][]any) {
	t.Helper()
	for _, leaf := range f.Schema.Leaves {
		name := leaf.Path[0]
		got, err := readLeaf(t, f, leaf)
		if err != nil {
			t.Error(err)
			continue
		}
		got.pages = 0
		if want := shred(want[name], leaf); !reflect.DeepEqual(got, want) {
			t.Errorf("column %s:\ngot  %v\nwant %v", name, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	want := values(t, "values.json")
	files, err := filepath.Glob(fixtures + "*-v[12].parquet")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	encodings := map[Encoding]bool{}
	codecs := map[Codec]bool{}
	for _, path := range files {
		if strings.Contains(path, "fallback") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := open(t, load(t, path))
			check(t, f, want)
			for i := range f.Metadata.RowGroups[0].Columns {
				m := f.Metadata.RowGroups[0].Columns[i].MetaData
				codecs[m.Codec] = true
				for _, e := range m.Encodings {
					encodings[e] = true
				}
			}
		})
	}
	for _, e := range []Encoding{Plain, RLE, DeltaBinaryPacked, DeltaLengthByteArray, DeltaByteArray, RLEDictionary, ByteStreamSplit} {
		if !encodings[e] {
			t.Errorf("no file has encoding %d", e)
		}
	}
	for _, c := range []Codec{Uncompressed, Snappy, Gzip, Brotli, Zstd, LZ4Raw} {
		if !codecs[c] {
			t.Errorf("no file has codec %d", c)
		}
	}
}

func TestDecodeManyPages(t *testing.T) {
	f := open(t, load(t, fixtures+"plain-v1.parquet"))
	data, err := readLeaf(t, f, f.Schema.Leaves[1])
	if err != nil || data.pages < 4 {
		t.Errorf("%d pages, %v: the fixtures should have several a chunk", data.pages, err)
	}
	if n := f.stats.DataPages.Load(); n != int64(data.pages) {
		t.Errorf("DataPages = %d of %d", n, data.pages)
	}
	if n := f.stats.Chunks.Load(); n != 2 {
		t.Errorf("Chunks = %d", n)
	}
}

// Chunks that start with dictionary-coded pages and go on with PLAIN ones.
func TestDictionaryFallback(t *testing.T) {
	var rows []any
	for i := range 2000 {
		if i%7 == 0 {
			rows = append(rows, nil)
		} else {
			rows = append(rows, hex.EncodeToString(fmt.Appendf(nil, "value %015d", i)))
		}
	}
	for _, name := range []string{"fallback-v1.parquet", "fallback-v2.parquet"} {
		f := open(t, load(t, fixtures+name))
		check(t, f, map[string][]any{"s": rows})
		kinds := map[Encoding]int{}
		c, err := f.Chunk(0, f.Schema.Leaves[0])
		if err != nil {
			t.Fatal(err)
		}
		for s := c.Scan(c.Start, c.Start+c.Length); ; {
			p, err := s.Next(t.Context())
			if err != nil {
				break
			}
			switch p.Header.Type {
			case DataPage:
				kinds[p.Header.Data.Encoding]++
			case DataPageV2:
				kinds[p.Header.DataV2.Encoding]++
			}
		}
		if kinds[RLEDictionary] == 0 || kinds[Plain] == 0 {
			t.Errorf("%s: pages by encoding %v: not a fallback", name, kinds)
		}
	}
}

func TestDecodeInt96(t *testing.T) {
	f := open(t, load(t, fixtures+"int96.parquet"))
	// Nanoseconds of the day (8 bytes), Julian day (4).
	check(t, f, map[string][]any{"t": {"18fc4e91944e00008b3d2500", nil, "0000000000000000bf8e2500"}})
}

func TestDictionaryIsKept(t *testing.T) {
	f := open(t, load(t, fixtures+"none-v1.parquet"))
	c, err := f.Chunk(0, f.Schema.Leaves[6])
	if err != nil {
		t.Fatal(err)
	}
	s := c.Scan(c.Start, c.Start+c.Length)
	p, err := s.Next(t.Context())
	if err != nil || p.Header.Type != DictionaryPage {
		t.Fatal(p, err)
	}
	info, err := c.Dictionary(t.Context())
	want := DictionaryInfo{true, int(p.Header.Dictionary.NumValues), len(p.Body), len(p.Body), p.HeaderLen}
	if err != nil || info != want {
		t.Errorf("Dictionary: %+v, %v; want %+v", info, err, want)
	}
	d := c.NewDecoder()
	body, err := d.DictionaryBody(p)
	if err != nil || string(body) != string(p.Body) {
		t.Errorf("DictionaryBody: %x, %v", body, err)
	}
	if err := d.SetDictionary(p); err != nil {
		t.Fatal(err)
	}
	dict := d.Dict()
	before := string(dict.Data)
	for i := range p.Body {
		p.Body[i] = 0xff
	}
	if string(dict.Data) != before {
		t.Error("the dictionary aliases the page")
	}
	if err := d.SetDictionary(p); !errors.Is(err, ErrCorrupt) {
		t.Errorf("second dictionary: %v", err)
	}
	d.Release()
}
