package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/icefs/icefs/internal/pqfile"
)

// What bombs expand to. Those of zstd and gzip are a piece many times over.
const (
	pieceBytes = 16 << 20
	smallBomb  = 64 << 20
	hugeBomb   = 2 << 30
)

// bombs are bodies that expand to far more than they take, by codec.
type bombs struct {
	page       map[pqfile.Codec][]byte
	deflate    []byte
	zstd, gzip []byte // as long
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newBombs(t *testing.T) *bombs {
	t.Helper()
	piece, small := bytes.Repeat([]byte(" "), pieceBytes), make([]byte, smallBomb)
	var zip, brot, def bytes.Buffer
	zw := must[*gzip.Writer](t)(gzip.NewWriterLevel(&zip, gzip.BestSpeed))
	zw.Write(piece)
	zw.Close()
	bw := brotli.NewWriterLevel(&brot, 1)
	bw.Write(small)
	bw.Close()
	fw := must[*flate.Writer](t)(flate.NewWriter(&def, flate.BestSpeed))
	for range 6 { // half as much again as a block may have
		fw.Write(piece)
	}
	fw.Close()
	encoder := must[*zstd.Encoder](t)(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)))
	defer encoder.Close()
	block := make([]byte, lz4.CompressBlockBound(len(small)))
	block = block[:must[int](t)(lz4.CompressBlock(small, block, nil))]
	b := &bombs{
		deflate: def.Bytes(),
		zstd:    bytes.Repeat(encoder.EncodeAll(piece, nil), hugeBomb/pieceBytes),
		gzip:    bytes.Repeat(zip.Bytes(), hugeBomb/pieceBytes),
	}
	b.page = map[pqfile.Codec][]byte{
		pqfile.Zstd: b.zstd, pqfile.Gzip: b.gzip, pqfile.Brotli: brot.Bytes(), pqfile.Snappy: snappy.Encode(nil, small), pqfile.LZ4Raw: block,
	}
	return b
}

// reforge changes a Parquet file: change gets what comes before the footer, and
// the footer, and returns the former.
func reforge(t *testing.T, path string, change func(body []byte, m *pqfile.FileMetaData) []byte) {
	t.Helper()
	file := must[[]byte](t)(os.ReadFile(path))
	n := len(file) - 8 - int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	m := must[*pqfile.FileMetaData](t)(pqfile.UnmarshalFileMetaData(file[n : len(file)-8]))
	body := change(file[:n:n], m)
	footer := m.Marshal()
	body = binary.LittleEndian.AppendUint32(append(body, footer...), uint32(len(footer)))
	if err := os.WriteFile(path, append(body, "PAR1"...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// setPage makes a body the only page of a file's column. claim is how long it is
// said to be when it is decompressed; values of its entries, if not 0, those of
// the file.
func setPage(t *testing.T, path string, column int, codec pqfile.Codec, claim int32, body []byte, values int32) {
	t.Helper()
	reforge(t, path, func(out []byte, m *pqfile.FileMetaData) []byte {
		g := &m.RowGroups[0]
		c := g.Columns[column].MetaData
		if values != 0 {
			m.NumRows, g.NumRows = int64(values), int64(values)
			for i := range g.Columns {
				g.Columns[i].MetaData.NumValues = int64(values)
			}
		}
		h := pqfile.PageHeader{Type: pqfile.DataPage, UncompressedSize: claim, CompressedSize: int32(len(body)), Data: &pqfile.DataPageHeader{
			NumValues: int32(g.NumRows), Encoding: pqfile.Plain, DefinitionEncoding: pqfile.RLE, RepetitionEncoding: pqfile.RLE,
		}}
		at := int64(len(out))
		out = append(h.Append(out), body...)
		c.Codec, c.DictionaryPageOffset, c.Statistics, c.SizeStatistics = codec, nil, nil, nil
		c.Encodings, c.DataPageOffset = []pqfile.Encoding{pqfile.Plain, pqfile.RLE}, at
		c.TotalCompressedSize, c.TotalUncompressedSize = int64(len(out))-at, 100
		return out
	})
}

// deepFooter nests the first column of a file in many groups.
func deepFooter(t *testing.T, path string) {
	reforge(t, path, func(out []byte, m *pqfile.FileMetaData) []byte {
		one, optional := int32(1), pqfile.Optional
		group := pqfile.SchemaElement{Name: "g", NumChildren: &one, Repetition: &optional}
		deep := append(m.Schema[:1:1], make([]pqfile.SchemaElement, 10_000)...)
		for i := range deep[1:] {
			deep[1+i] = group
		}
		m.Schema = append(deep, m.Schema[1:]...)
		return out
	})
}

// wideFooter adds columns that the table does not have.
func wideFooter(t *testing.T, path string) {
	reforge(t, path, func(out []byte, m *pqfile.FileMetaData) []byte {
		extra, g := m.Schema[1], &m.RowGroups[0]
		children := *m.Schema[0].NumChildren + 100_000
		m.Schema[0].NumChildren = &children
		for i := range 100_000 {
			e, meta, id := extra, *g.Columns[0].MetaData, int32(1000+i)
			e.Name = "x" + string(rune('a'+i%26)) + strings.Repeat("y", i%7)
			e.FieldID = &id
			meta.Path = []string{e.Name}
			m.Schema = append(m.Schema, e)
			g.Columns = append(g.Columns, pqfile.ColumnChunk{FileOffset: g.Columns[0].FileOffset, MetaData: &meta})
		}
		return out
	})
}

// claimFooter makes the end of a file say that its footer has so many bytes. A
// file that is too short for that becomes longer, with a hole, if it is to be.
func claimFooter(t *testing.T, path string, n uint32, whole bool) {
	t.Helper()
	f := must[*os.File](t)(os.OpenFile(path, os.O_RDWR, 0))
	defer f.Close()
	size := must[int64](t)(f.Seek(0, 2)) - 8
	if whole {
		size = int64(n) + 100
	}
	end := append(binary.LittleEndian.AppendUint32(nil, n), "PAR1"...)
	must[int](t)(f.WriteAt(end, size))
}

// avroFile is an Avro file taken apart.
type avroParts struct{ header, sync []byte }

func avroOf(t *testing.T, path string) avroParts {
	t.Helper()
	file := must[[]byte](t)(os.ReadFile(path))
	sync := file[len(file)-16:]
	return avroParts{file[:bytes.Index(file, sync)], sync}
}

// with returns the header of a file, and its sync marker, with another value for a
// key of its metadata.
func (a avroParts) with(t *testing.T, path, name, value string) []byte {
	t.Helper()
	key := append(binary.AppendVarint(nil, int64(len(name))), name...)
	before, after, ok := bytes.Cut(a.header, key)
	if !ok {
		t.Fatalf("%s has no %s", path, name)
	}
	n, k := binary.Varint(after)
	out := append(bytes.Clone(before), key...)
	out = append(binary.AppendVarint(out, int64(len(value))), value...)
	return append(append(out, after[k+int(n):]...), a.sync...)
}

// setBlock makes a block the only one of an Avro file, under a codec.
func setBlock(t *testing.T, path, codec string, rows int64, claim int, block []byte) {
	t.Helper()
	a := avroOf(t, path)
	out := a.with(t, path, "avro.codec", codec)
	out = binary.AppendVarint(binary.AppendVarint(out, rows), int64(claim))
	out = append(append(out, block...), a.sync...)
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// oneFile is the only file of a table whose path matches.
func oneFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	found := must[[]string](t)(filepath.Glob(filepath.Join(dir, pattern)))
	if len(found) != 1 {
		t.Fatalf("%s: %q", pattern, found)
	}
	return found[0]
}

// setSchema gives an Avro file without blocks another schema.
func setSchema(t *testing.T, path string, a avroParts, schema string) {
	t.Helper()
	if err := os.WriteFile(path, a.with(t, path, "avro.schema", schema), 0o644); err != nil {
		t.Fatal(err)
	}
}

// gzipOf compresses a text.
func gzipOf(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := must[*gzip.Writer](t)(gzip.NewWriterLevel(&out, gzip.BestSpeed))
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
