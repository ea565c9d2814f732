package cases

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/viewtest"
)

// Rows of a file with more than 2 GiB of text in one row group.
const (
	hugeRows = 500
	hugeText = 5_000_000
)

// A row group of more text than 2 GiB: the size of the CSV is known without
// having it, and no view holds all of it to serve a part.
func TestHugeTexts(t *testing.T) {
	t.Run("dictionary", func(t *testing.T) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{DictionaryLimit: 16 << 20}})
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Append(textRows(strings.Repeat("x", hugeText))...) })
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 250) })
		checkHuge(t, tab)
	})
	t.Run("plain", func(t *testing.T) {
		tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText(), Parquet: fixture.ParquetOptions{NoDictionary: true}})
		var f *fixture.File
		commit(tab, func(tx *fixture.Tx) { f = tx.Append(textRows("x")...) })
		commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 250); tx.DeleteEqual([]int{2}, fixture.Row{"s": "x"}) })
		if err := tab.Err(); err != nil {
			t.Fatal(err)
		}
		growTexts(t, f.Local)
		checkHuge(t, tab)
	})
}

// textRows are rows with one text.
func textRows(s string) []fixture.Row {
	var rows []fixture.Row
	for i := range hugeRows {
		rows = append(rows, fixture.Row{"id": 1000 + i, "s": s})
	}
	return rows
}

// growTexts gives the second column of a file a page with one long text for
// each of its rows. All are the same bytes, compressed once: no writer has to
// hold them.
func growTexts(t *testing.T, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, m := footer(t, file)
	chunk := m.RowGroups[0].Columns[1].MetaData
	levels := []byte{1 << 1, 1} // a run of one level 1
	text := append(binary.LittleEndian.AppendUint32(nil, hugeText), bytes.Repeat([]byte("x"), hugeText)...)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	raw := append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...), text...)
	body := encoder.EncodeAll(raw, nil)
	h := pqfile.PageHeader{Type: pqfile.DataPage, UncompressedSize: int32(len(raw)), CompressedSize: int32(len(body)),
		Data: &pqfile.DataPageHeader{NumValues: 1, Encoding: pqfile.Plain, DefinitionEncoding: pqfile.RLE, RepetitionEncoding: pqfile.RLE}}
	out := file[:start(chunk)]
	chunk.Codec, chunk.DictionaryPageOffset, chunk.Statistics, chunk.SizeStatistics = pqfile.Zstd, nil, nil, nil
	chunk.Encodings = []pqfile.Encoding{pqfile.Plain, pqfile.RLE}
	chunk.DataPageOffset, chunk.TotalUncompressedSize = int64(len(out)), 0
	for range hugeRows {
		at := len(out)
		out = append(h.Append(out), body...)
		chunk.TotalUncompressedSize += int64(len(out)-at-len(body)) + int64(h.UncompressedSize)
	}
	chunk.TotalCompressedSize = int64(len(out)) - chunk.DataPageOffset
	m.RowGroups[0].TotalCompressedSize = nil // and TotalByteSize is far too small
	b := m.Marshal()
	out = binary.LittleEndian.AppendUint32(append(out, b...), uint32(len(b)))
	if err := os.WriteFile(path, append(out, "PAR1"...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkHuge reads views of a table whose row 250 is deleted. They may take up to
// half the column's length: runs of 64 MiB in several forms, not yet collected.
func checkHuge(t *testing.T, tab *fixture.Table) {
	t.Helper()
	runtime.GC() // what made the table
	peak := watchHeap(t)
	o := open(t, tab).cached(64 << 20)
	views, _ := o.views(o.scan(0, nil))
	const line = 4 + 1 + hugeText + 1
	size, err := views.CSV.Size(t.Context())
	if err != nil || size != 5+(hugeRows-1)*line {
		t.Fatalf("data.csv has %d bytes, not %d: %v", size, 5+(hugeRows-1)*line, err)
	}
	for row, id := range map[int64]string{0: "1000,xx", 249: "1249,xx", 250: "1251,xx", hugeRows - 2: "1499,xx"} {
		got := make([]byte, len(id))
		if _, err := views.CSV.ReadAt(t.Context(), got, 5+row*line); err != nil || string(got) != id {
			t.Errorf("row %d starts with %q, %v", row, got, err)
		}
	}
	if n := footerRows(t, views.Parquet); n != hugeRows-1 {
		t.Errorf("data.parquet has %d rows", n)
	}
	if n := peak(); n > hugeRows*hugeText/2 {
		t.Errorf("a heap of %d MB for a column of %d MB", n>>20, hugeRows*hugeText>>20)
	}
}

// footerRows reads the footer of a view alone.
func footerRows(t *testing.T, v viewtest.View) int64 {
	t.Helper()
	size, err := v.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tail := make([]byte, min(size, 64<<10))
	if _, err := v.ReadAt(t.Context(), tail, size-int64(len(tail))); err != nil {
		t.Fatal(err)
	}
	_, m := footer(t, tail)
	return m.NumRows
}

// watchHeap samples the heap until the test ends; the result is its peak so far.
func watchHeap(t *testing.T) func() int64 {
	var peak atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	sample := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak.Store(max(peak.Load(), int64(m.HeapInuse)))
	}
	sample()
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				sample()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return peak.Load
}
