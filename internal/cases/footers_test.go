package cases

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/viewtest"
)

// footer splits a Parquet file into what is before its footer, and that.
func footer(t *testing.T, file []byte) ([]byte, *pqfile.FileMetaData) {
	t.Helper()
	end := len(file) - 8
	start := end - int(binary.LittleEndian.Uint32(file[end:]))
	m, err := pqfile.UnmarshalFileMetaData(file[start:end])
	if err != nil {
		t.Fatal(err)
	}
	return file[:start], m
}

// patch changes the footer of a file on disk.
func patch(t *testing.T, path string, edit func(*pqfile.FileMetaData)) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body, m := footer(t, file)
	edit(m)
	b := m.Marshal()
	out := append(bytes.Clone(body), b...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b)))
	if err := os.WriteFile(path, append(out, "PAR1"...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// patchChunks changes every chunk of the footer.
func patchChunks(edit func(*pqfile.ColumnMetaData)) func(*pqfile.FileMetaData) {
	return func(m *pqfile.FileMetaData) {
		for _, g := range m.RowGroups {
			for _, c := range g.Columns {
				edit(c.MetaData)
			}
		}
	}
}

// page is a page of a view.
type page struct {
	header pqfile.PageHeader
	body   []byte
}

// checkFooter checks what readers rely on in the footer of data.parquet: row
// groups lie one after the other, their file_offset is where they start, the
// pages of a chunk fill it with their headers, dictionary first, and indexes and
// filters of the sources are not referred to. It returns all pages.
func checkFooter(t *testing.T, v viewtest.View) (*pqfile.FileMetaData, []page) {
	t.Helper()
	file := viewtest.Bytes(t, v)
	body, m := footer(t, file)
	var pages []page
	rows := int64(0)
	var places [][2]int64 // of chunks
	for i, g := range m.RowGroups {
		if g.FileOffset != nil && *g.FileOffset != start(g.Columns[0].MetaData) {
			t.Errorf("row group %d: file_offset %d, its first chunk is at %d", i, *g.FileOffset, start(g.Columns[0].MetaData))
		}
		rows += g.NumRows
		stored, total := int64(0), int64(0)
		for j, c := range g.Columns {
			if c.OffsetIndexOffset != nil || c.ColumnIndexOffset != nil || c.MetaData.BloomFilterOffset != nil {
				t.Errorf("row group %d, column %d has an index or filter", i, j)
			}
			at := start(c.MetaData)
			end := at + c.MetaData.TotalCompressedSize
			places = append(places, [2]int64{at, end})
			stored, total = stored+c.MetaData.TotalCompressedSize, total+c.MetaData.TotalUncompressedSize
			pages = append(pages, chunkPages(t, fmt.Sprintf("row group %d, column %d", i, j), body[at:end], c.MetaData)...)
		}
		if g.TotalCompressedSize != nil && *g.TotalCompressedSize != stored || g.TotalByteSize != total {
			t.Errorf("row group %d: %d bytes; chunks have %d, uncompressed %d of %d", i, *g.TotalCompressedSize, stored, g.TotalByteSize, total)
		}
	}
	slices.SortFunc(places, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	before := int64(4)
	for _, p := range places {
		if p[0] < before {
			t.Errorf("a chunk starts at %d, before %d", p[0], before)
		}
		before = p[1]
	}
	if rows != m.NumRows {
		t.Errorf("%d rows in row groups, %d in all", rows, m.NumRows)
	}
	return m, pages
}

// start is where a chunk's first page is by its footer entry.
func start(m *pqfile.ColumnMetaData) int64 {
	if m.DictionaryPageOffset != nil {
		return *m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

// chunkPages walks a chunk's pages.
func chunkPages(t *testing.T, what string, chunk []byte, m *pqfile.ColumnMetaData) []page {
	t.Helper()
	var pages []page
	values, size := int64(0), int64(0)
	for rest := chunk; len(rest) > 0; {
		var p page
		n, err := pqfile.UnmarshalPageHeader(rest, &p.header)
		if err != nil || n+int(p.header.CompressedSize) > len(rest) {
			t.Fatalf("%s: page of %d bytes in %d: %v", what, p.header.CompressedSize, len(rest), err)
		}
		switch {
		case p.header.Data != nil:
			values += int64(p.header.Data.NumValues)
		case p.header.DataV2 != nil:
			values += int64(p.header.DataV2.NumValues)
		case len(pages) > 0 || m.DictionaryPageOffset == nil:
			t.Errorf("%s: a dictionary as page %d, or not told by the footer", what, len(pages))
		}
		first := m.DictionaryPageOffset != nil && len(pages) == 1 || m.DictionaryPageOffset == nil && len(pages) == 0
		if at := start(m) + int64(len(chunk)-len(rest)); first && at != m.DataPageOffset {
			t.Errorf("%s: the first data page is at %d, not %d", what, at, m.DataPageOffset)
		}
		p.body = rest[n : n+int(p.header.CompressedSize)]
		rest = rest[n+int(p.header.CompressedSize):]
		size += int64(n) + int64(p.header.UncompressedSize)
		pages = append(pages, p)
	}
	if values != m.NumValues || size > m.TotalUncompressedSize { // which may count frames of stored bodies
		t.Errorf("%s: pages have %d values and %d bytes, the footer says %d and %d", what, values, size, m.NumValues, m.TotalUncompressedSize)
	}
	return pages
}

// words are rows with few and many different texts, and their lines.
func words(first, n int) (rows []fixture.Row, lines []string) {
	for id := first; id < first+n; id++ {
		s := fmt.Sprintf("word %d", id%7)
		rows, lines = append(rows, fixture.Row{"id": id, "s": s}), append(lines, fmt.Sprintf("%d,%s", id, s))
	}
	return rows, lines
}

// Chunks start at their first page whatever the footers say that real writers
// give their offsets.
func TestPageOffsets(t *testing.T) {
	both := func(m *pqfile.ColumnMetaData) {
		if m.DictionaryPageOffset != nil {
			m.DataPageOffset = *m.DictionaryPageOffset
		}
	}
	for name, c := range map[string]struct {
		parquet fixture.ParquetOptions
		edit    func(*pqfile.ColumnMetaData)
	}{
		"data offset is the dictionary's":                     {fixture.ParquetOptions{}, both},
		"dictionary offset zero, plain data":                  {fixture.ParquetOptions{NoDictionary: true}, func(m *pqfile.ColumnMetaData) { m.DictionaryPageOffset = new(int64) }},
		"dictionary offset absent, data offset the data's":    {fixture.ParquetOptions{}, func(m *pqfile.ColumnMetaData) { m.DictionaryPageOffset = nil }},
		"dictionary offset absent, data offset its":           {fixture.ParquetOptions{}, func(m *pqfile.ColumnMetaData) { both(m); m.DictionaryPageOffset = nil }},
		"dictionary offset zero, data offset the dictionarys": {fixture.ParquetOptions{PageV2: true}, func(m *pqfile.ColumnMetaData) { both(m); m.DictionaryPageOffset = new(int64) }},
		"data offset too small": {fixture.ParquetOptions{PageV2: true, CreatedBy: "DuckDB"}, func(m *pqfile.ColumnMetaData) {
			m.DataPageOffset -= 15
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.parquet.RowGroup = 20
			rows, lines := words(1, 50)
			build := func(edit func(*pqfile.FileMetaData)) (*fixture.Table, *fixture.File) {
				tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: c.parquet})
				var f *fixture.File
				commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
				patch(t, f.Local, edit)
				return tab, f
			}
			// The naive merge reads a twin with the right offsets: its reader takes
			// fewer wrong ones.
			tab, f := build(patchChunks(c.edit))
			twin, g := build(func(*pqfile.FileMetaData) {})
			check := func(lines ...string) {
				t.Helper()
				for _, o := range []*opened{open(t, tab), open(t, tab).apart()} {
					views, all := o.views(o.scan(0, nil))
					for _, v := range all {
						viewtest.Check(t, v)
					}
					if got := csv(t, views.CSV); got != "id,s\n"+strings.Join(lines, "\n")+"\n" {
						t.Errorf("data.csv is\n%s", got)
					}
					checkFooter(t, views.Parquet)
					right := open(t, twin)
					views.Parts = nil // those without deletes are their files
					if report := right.report(right.scan(0, nil), views); len(report.Problems) > 0 || report.Views < 3 {
						t.Errorf("report: %+v", *report)
					}
				}
			}
			check(lines...)
			commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0, 25, 49) })
			commit(twin, func(tx *fixture.Tx) { tx.DeletePositions(g, 0, 25, 49) })
			check(append(append([]string{}, lines[1:25]...), lines[26:49]...)...)
		})
	}
}

// A chunk size that leaves the dictionary's header out, as parquet-mr 1.2.8 has
// it, cuts no page; of a writer that is not known for it, pages that miss a part
// are an error as soon as they are looked into.
func TestShortChunkSizes(t *testing.T) {
	build := func(createdBy string) (*fixture.Table, *fixture.File, []string) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{CreatedBy: createdBy, PageSize: 64}})
		rows, lines := words(1, 50)
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...); tx.Append(numbered(51, 51)...) })
		patch(t, f.Local, patchChunks(func(m *pqfile.ColumnMetaData) { m.TotalCompressedSize -= 15 }))
		return tab, f, lines
	}
	tab, f, lines := build("parquet-mr version 1.2.8")
	open(t, tab).apart().rows(append(append([]string{"id,s"}, lines...), "51,")...)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 49) })
	open(t, tab).apart().rows(append(append([]string{"id,s"}, lines[:49]...), "51,")...)
	tab, f, _ = build("parquet-mr version 1.12.3 (build x)")
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 49) })
	open(t, tab).apart().refuses("corrupt Parquet file", 0)
}

// The footer is icefs's own: what one file's footer says holds for that file
// alone, and statistics that only their writer's name gives away as wrong are
// not passed on under another name.
func TestFooterWideFields(t *testing.T) {
	schema := "schema of Arrow"
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	for i, createdBy := range []string{"parquet-mr version 1.6.0", fixture.DefaultCreatedBy, "somebody"} {
		var f *fixture.File
		opt := fixture.FileOptions{Parquet: &fixture.ParquetOptions{CreatedBy: createdBy}}
		commit(tab, func(tx *fixture.Tx) {
			f = tx.AppendFile(opt, fixture.Row{"id": i, "s": "x"}, fixture.Row{"id": -i, "s": "\xc3\xa9"}, fixture.Row{"id": 9, "s": "z"})
		})
		index := fmt.Sprintf(`{"index_columns":[{"kind":"range","start":%d,"stop":3}]}`, i)
		patch(t, f.Local, func(m *pqfile.FileMetaData) {
			m.KeyValue = []pqfile.KeyValue{{Key: "pandas", Value: &index}, {Key: "ARROW:schema", Value: &schema}, {Key: "other"}}
			for _, g := range m.RowGroups {
				if i == 0 { // the deprecated pair alone, compared as signed bytes
					g.Columns[1].MetaData.Statistics = &pqfile.Statistics{Min: []byte("\xc3\xa9"), Max: []byte("z"), NullCount: new(int64)}
				}
			}
		})
	}
	lines := []string{"id,s", "0,x", "0,é", "9,z", "1,x", "-1,é", "9,z", "2,x", "-2,é", "9,z"}
	open(t, tab).rows(lines...)
	o := open(t, tab).apart()
	o.rows(lines...)
	views, _ := o.views(o.scan(0, nil))
	m, _ := checkFooter(t, views.Parquet)
	if !regexp.MustCompile(`^icefs version \S+ \(build .+\)$`).MatchString(*m.CreatedBy) {
		t.Errorf("created_by is %q", *m.CreatedBy)
	}
	for _, kv := range m.KeyValue {
		if kv.Key == "pandas" || kv.Key == "ARROW:schema" || kv.Key == "other" {
			t.Errorf("key %q is one file's", kv.Key)
		}
	}
	r := openView(t, views.Parquet)
	for g := range r.NumRowGroups() {
		c, err := r.MetaData().RowGroup(g).ColumnChunk(1)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Statistics()
		if err != nil || s == nil {
			continue
		}
		if b := s.(*metadata.ByteArrayStatistics); b.HasMinMax() && (string(b.Min()) > "x" || string(b.Max()) < "\xc3\xa9") {
			t.Errorf("row group %d: s from %q to %q", g, b.Min(), b.Max())
		}
		if old := m.RowGroups[g].Columns[1].MetaData.Statistics; old != nil && (old.Min != nil || old.Max != nil) {
			t.Errorf("row group %d has statistics in the deprecated form", g)
		}
	}
}

// Files with dictionaries, page indexes and Bloom filters: nothing of the view's
// footer points to where those were in their files, and its row groups lie apart
// so that readers who divide a file by offsets see each row once.
func TestMergedFooters(t *testing.T) {
	type record struct {
		ID int64  `parquet:"id"`
		S  string `parquet:"s,optional,dict"`
	}
	tab := imported(t, 2,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String})
	lines := []string{"id,s"}
	var first *fixture.File
	for i := range 4 {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[record](&b, parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(256), parquet.MaxRowsPerRowGroup(60),
			parquet.BloomFilters(parquet.SplitBlockFilter(10, "s"), parquet.SplitBlockFilter(10, "id")))
		rows, text := words(1000*i, 100)
		for _, r := range rows {
			if _, err := w.Write([]record{{int64(r["id"].(int)), r["s"].(string)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, m := footer(t, b.Bytes()); m.RowGroups[0].Columns[1].MetaData.BloomFilterOffset == nil || m.RowGroups[0].Columns[1].OffsetIndexOffset == nil {
			t.Fatal("the file has no Bloom filter or index")
		}
		path := filepath.Join(tab.Dir(), "data", fmt.Sprintf("bloom-%d.parquet", i))
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		commit(tab, func(tx *fixture.Tx) {
			if f := tx.Adopt(path, 100, nil); i == 0 {
				first = f
			}
		})
		lines = append(lines, text...)
	}
	for range 2 {
		for _, o := range []*opened{open(t, tab), open(t, tab).apart()} {
			o.rows(lines...)
			views, _ := o.views(o.scan(0, nil))
			checkFooter(t, views.Parquet)
		}
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(first, 0, 99) })
		lines = append([]string{"id,s"}, append(lines[2:100], lines[101:]...)...)
	}
}
