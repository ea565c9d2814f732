package pqfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
)

// page is a page to be made of a column of optional lists of optional INT32:
// entries of repetition and definition level; an entry at level 3 has its
// number in the column as value.
type page struct {
	v2      bool
	entries [][2]uint8
}

// listFile writes pages by hand, as a file of one column and of rows rows.
func listFile(t *testing.T, rows int64, pages ...page) *File {
	t.Helper()
	b := []byte(magic)
	values, next := int64(0), uint32(0)
	for _, p := range pages {
		var rep, def, plain []byte
		starts := int32(0)
		for _, e := range p.entries {
			rep, def = append(rep, 2, e[0]), append(def, 2, e[1]) // RLE runs of one
			if e[0] == 0 {
				starts++
			}
			if e[1] == 3 {
				plain = binary.LittleEndian.AppendUint32(plain, next)
			}
			next++
		}
		n := int32(len(p.entries))
		values += int64(n)
		h := PageHeader{Type: DataPage, Data: &DataPageHeader{NumValues: n, Encoding: Plain, DefinitionEncoding: RLE, RepetitionEncoding: RLE}}
		var body []byte
		if p.v2 {
			no := false
			h = PageHeader{Type: DataPageV2, DataV2: &DataPageHeaderV2{NumValues: n, NumRows: starts, Encoding: Plain,
				DefinitionLength: int32(len(def)), RepetitionLength: int32(len(rep)), IsCompressed: &no}}
			body = append(append(rep, def...), plain...)
		} else {
			body = binary.LittleEndian.AppendUint32(body, uint32(len(rep)))
			body = append(body, rep...)
			body = binary.LittleEndian.AppendUint32(body, uint32(len(def)))
			body = append(append(body, def...), plain...)
		}
		h.UncompressedSize, h.CompressedSize = int32(len(body)), int32(len(body))
		b = append(h.Append(b), body...)
	}
	size := int64(len(b) - len(magic))
	m := &FileMetaData{Version: 1, NumRows: rows,
		Schema: []SchemaElement{root(1), el("a", Optional, group(1), converted(ConvertedList), withID(1)), el("list", Repeated, group(1)), el("element", Optional, typed(Int32), withID(2))},
		RowGroups: []RowGroup{{NumRows: rows, TotalByteSize: size, Columns: []ColumnChunk{{MetaData: &ColumnMetaData{
			Type: Int32, Encodings: []Encoding{Plain, RLE}, Path: []string{"a", "list", "element"}, NumValues: values,
			TotalUncompressedSize: size, TotalCompressedSize: size, DataPageOffset: int64(len(magic))}}}}}}
	return open(t, &memory{data: appendFooter(b, m)})
}

func listTarget() Target {
	return Target{Schema: schemaOf(field(1, "a", &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.Int64}, false))}
}

// Rows that go on over one and several V1 pages, an empty page, V2 pages
// between.
func TestReadRowsOverPages(t *testing.T) {
	first := [][2]uint8{{0, 3}, {1, 2}, {0, 0}, {0, 3}}
	goesOn := [][2]uint8{{1, 3}, {1, 3}}
	ends := [][2]uint8{{1, 2}, {0, 1}, {0, 3}}
	for name, pages := range map[string][]page{
		"V1":       {{entries: first}, {entries: goesOn}, {}, {entries: goesOn}, {entries: ends}},
		"V2 after": {{entries: first}, {entries: goesOn}, {v2: true}, {entries: goesOn}, {entries: ends}, {v2: true, entries: first}, {v2: true, entries: first}},
		"V2 first": {{v2: true, entries: ends[1:]}, {entries: first}, {entries: goesOn}, {entries: goesOn}, {entries: ends}},
	} {
		rows, next := []string{}, 0
		for _, p := range pages {
			for _, e := range p.entries {
				value := map[uint8]string{0: "null", 1: "", 2: "null", 3: fmt.Sprint(next)}[e[1]]
				next++
				switch {
				case e[0] > 0:
					rows[len(rows)-1] += "," + value
				case e[1] == 0:
					rows = append(rows, value)
				default:
					rows = append(rows, "["+value)
				}
			}
		}
		for i, row := range rows {
			if row != "null" {
				row += "]"
			}
			rows[i] = `{"a":` + row + `}`
		}
		f := listFile(t, int64(len(rows)), pages...)
		got := rowsOf(t, f, projectOnto(t, f, listTarget()))
		if fmt.Sprint(got) != fmt.Sprint(rows) {
			t.Errorf("%s: %v, not %v", name, got, rows)
		}
	}
}

func TestReadWrongRowCounts(t *testing.T) {
	two := [][2]uint8{{0, 3}, {1, 3}, {0, 0}}
	for name, f := range map[string]*File{
		"too few":             listFile(t, 3, page{entries: two}),
		"too many":            listFile(t, 1, page{entries: two}),
		"too many in V2":      listFile(t, 2, page{entries: two}, page{v2: true, entries: two}),
		"too few in V2":       listFile(t, 5, page{v2: true, entries: two}, page{v2: true, entries: two}),
		"starts inside a row": listFile(t, 2, page{entries: [][2]uint8{{1, 3}, {0, 3}, {0, 0}}}),
		"V2 inside a row":     listFile(t, 3, page{entries: two}, page{v2: true, entries: [][2]uint8{{1, 3}, {0, 3}}}),
	} {
		p := projectOnto(t, f, listTarget())
		for _, n := range []int{1, 2, 100} {
			if _, err := tryEntries(t, f, &p.Columns[0], func() int { return n }); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %d rows at a time: %v", name, n, err)
			}
		}
	}
}
