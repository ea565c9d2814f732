package cases

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
)

// everySecond deletes rows 1, 3, … and leaves the others' lines.
func everySecond(tab *fixture.Table, f *fixture.File, lines []string) []string {
	var dead []int64
	kept := []string{"id,s"}
	for i, line := range lines {
		if i%2 == 1 {
			dead = append(dead, int64(i))
		} else {
			kept = append(kept, line)
		}
	}
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, dead...) })
	return kept
}

// Columns that give their dictionary up half-way, in both page versions, keep
// their values.
func TestDictionaryFallback(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{PageV2: v2, DictionaryLimit: 128, PageSize: 512}})
		var rows []fixture.Row
		var lines []string
		for i := range 2000 {
			s := fmt.Sprintf("text number %09d", i)
			row := fixture.Row{"id": i, "s": s}
			if i%5 == 3 {
				row["s"], s = nil, ""
			}
			rows, lines = append(rows, row), append(lines, fmt.Sprintf("%d,%s", i, s))
		}
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
		open(t, tab).apart().rows(append([]string{"id,s"}, lines...)...)
		kept := everySecond(tab, f, lines)
		open(t, tab).apart().rows(kept...)
	}
}

// Pages of version 2 without any value, by every codec; icefs's own do not call
// an empty body compressed.
func TestEmptyBodies(t *testing.T) {
	for _, codec := range []fixture.Codec{fixture.Snappy, fixture.Zstd, fixture.Gzip, fixture.Uncompressed} {
		for _, plain := range []bool{false, true} {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{PageV2: true, Codec: codec, NoDictionary: plain}})
			var f *fixture.File
			commit(tab, func(tx *fixture.Tx) { f = tx.Append(numbered(0, 9)...) })
			var lines []string
			for i := range 10 {
				lines = append(lines, fmt.Sprintf("%d,", i))
			}
			open(t, tab).apart().rows(append([]string{"id,s"}, lines...)...)
			kept := everySecond(tab, f, lines)
			o := open(t, tab).apart()
			o.rows(kept...)
			views, _ := o.views(o.scan(0, nil))
			_, pages := checkFooter(t, views.Parquet)
			for _, p := range pages {
				h := p.header.DataV2
				if h != nil && len(p.body) == int(h.DefinitionLength+h.RepetitionLength) && (h.IsCompressed == nil || *h.IsCompressed) {
					t.Errorf("%s: a page without body is called compressed", codec)
				}
			}
		}
	}
}

// Pages of version 2 that are stored as they are, in a chunk with a codec.
func TestUncompressedPages(t *testing.T) {
	for _, codec := range []pqfile.Codec{pqfile.Snappy, pqfile.Zstd, pqfile.LZ4Raw} {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{
			PageV2: true, Codec: fixture.Uncompressed, NoDictionary: true, PageSize: 128}})
		rows, lines := words(0, 60)
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
		if err := tab.Err(); err != nil {
			t.Fatal(err)
		}
		storeRaw(t, f.Local, codec)
		open(t, tab).apart().rows(append([]string{"id,s"}, lines...)...)
		kept := everySecond(tab, f, lines)
		open(t, tab).apart().rows(kept...)
	}
}

// A codec that cannot be decoded, or is not known, is an error: of the views that
// show its column, and never bytes under the name of another codec.
func TestUndecodableCodecs(t *testing.T) {
	for _, codec := range []pqfile.Codec{pqfile.LZO, 99} {
		for _, deleted := range []bool{false, true} {
			tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
			rows, _ := words(0, 20)
			var f *fixture.File
			commit(tab, func(tx *fixture.Tx) { tx.Append(numbered(100, 101)...); f = tx.Append(rows...) })
			if deleted {
				commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 3) })
			}
			patch(t, f.Local, func(m *pqfile.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.Codec = codec })
			open(t, tab).refuses("unsupported", 1)
		}
	}
}

// storeRaw gives the chunks of an uncompressed file of one row group a codec and
// says of each page that its values are not compressed.
func storeRaw(t *testing.T, path string, codec pqfile.Codec) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body, m := footer(t, file)
	out := append([]byte{}, body[:4]...)
	for _, c := range m.RowGroups[0].Columns {
		at, raw := int64(len(out)), false
		for _, p := range chunkPages(t, path, body[start(c.MetaData):start(c.MetaData)+c.MetaData.TotalCompressedSize], c.MetaData) {
			p.header.DataV2.IsCompressed = &raw
			out = append(p.header.Append(out), p.body...)
		}
		c.MetaData.Codec, c.MetaData.DataPageOffset = codec, at
		c.MetaData.TotalCompressedSize = int64(len(out)) - at
		c.MetaData.TotalUncompressedSize = c.MetaData.TotalCompressedSize
	}
	b := m.Marshal()
	out = binary.LittleEndian.AppendUint32(append(out, b...), uint32(len(b)))
	if err := os.WriteFile(path, append(out, "PAR1"...), 0o644); err != nil {
		t.Fatal(err)
	}
}
