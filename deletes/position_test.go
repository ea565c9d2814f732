package deletes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// posRow is a row of a position-delete file as writers make it.
type posRow struct {
	Path string `parquet:"file_path,id(2147483546)"`
	Pos  int64  `parquet:"pos,id(2147483545)"`
}

// posRows returns rows of one path.
func posRows(path string, pos ...int64) []posRow {
	rows := make([]posRow, len(pos))
	for i, p := range pos {
		rows[i] = posRow{path, p}
	}
	return rows
}

func TestPositionDeletes(t *testing.T) {
	l := newLab()
	l.files["data"] = nil
	rows := append(posRows("data", 7, 3, 3, 1<<33, 5), posRows("other", 0, 1, 2)...)
	rows = append(rows, posRows("data", 4, 1_000_000, 3)...)
	rows = append(rows, posRows("gone", 9)...)
	rows = append(rows, posRows("data", 10)...)
	for _, perGroup := range []int{1, 3, 1000} {
		l.file.Positions = nil
		l.addPositions(parquetOf(t, perGroup, rows))
		l.want(t, "[{3 6} {7 8} {10 11} {1000000 1000001} {8589934592 8589934593}]")
	}
	// A second file: the union, duplicates and all.
	l.addPositions(parquetOf(t, 10, posRows("data", 0, 6, 7)))
	l.want(t, "[{0 1} {3 8} {10 11} {1000000 1000001} {8589934592 8589934593}]")
	l.file.Path, l.files["nowhere"] = "nowhere", nil
	l.want(t, "[]")
}

func TestPositionDeletesDictionary(t *testing.T) {
	type row struct {
		Path string `parquet:"file_path,id(2147483546),dict"`
		Pos  int64  `parquet:"pos,id(2147483545),dict"`
	}
	l := newLab()
	l.files["data"] = nil
	var rows []row
	for i := range int64(50_000) {
		rows = append(rows, row{[]string{"data", "b", "c"}[i%3], i / 3})
	}
	l.addPositions(parquetOf(t, 20_000, rows))
	l.want(t, fmt.Sprintf("[{0 %d}]", 50_000/3+1))
}

func TestPositionDeletesSpellings(t *testing.T) {
	for _, data := range []string{"/wh/f.parquet", "file:/wh/f.parquet", "file:///wh/f.parquet"} {
		for _, named := range []string{"/wh/f.parquet", "file:/wh/f.parquet", "file:///wh/f.parquet"} {
			l := newLab()
			l.file.Path, l.files[data] = data, nil
			l.addPositions(parquetOf(t, 10, posRows(named, 2)))
			l.want(t, "[{2 3}]")
		}
	}
	for _, named := range []string{"/wh/f%2Eparquet", "/WH/f.parquet", "s3://wh/f.parquet", "/wh//f.parquet"} {
		l := newLab()
		l.file.Path, l.files["/wh/f.parquet"] = "/wh/f.parquet", nil
		l.addPositions(parquetOf(t, 10, posRows(named, 2)))
		l.want(t, "[]")
	}
}

func TestPositionDeleteColumns(t *testing.T) {
	type swapped struct {
		Row *struct {
			ID   int64  `parquet:"id,id(1)"`
			Path string `parquet:"file_path,id(2)"`
		} `parquet:"row,optional,id(2147483544)"`
		Pos  *int64  `parquet:"pos_of_row,optional,id(2147483545)"`
		Path *string `parquet:"path_of_file,optional,id(2147483546)"`
	}
	pos, path := int64(3), "data"
	type noIDs struct {
		Path string `parquet:"file_path"`
		Pos  int64  `parquet:"pos"`
	}
	type narrow struct {
		Path string `parquet:"file_path,id(2147483546)"`
		Pos  int32  `parquet:"pos,id(2147483545)"`
	}
	for name, b := range map[string][]byte{
		"other names, order and a row": parquetOf(t, 10, []swapped{{Pos: &pos, Path: &path}}),
		"no ids at all":                parquetOf(t, 10, []noIDs{{"data", 3}}),
		"32-bit positions":             parquetOf(t, 10, []narrow{{"data", 3}}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			l.files["data"] = nil
			l.addPositions(b)
			l.want(t, "[{3 4}]")
		})
	}
}

func TestPositionDeletesRefused(t *testing.T) {
	type nullable struct {
		Path *string `parquet:"file_path,optional,id(2147483546)"`
		Pos  *int64  `parquet:"pos,optional,id(2147483545)"`
	}
	type foreignIDs struct {
		Path string `parquet:"file_path,id(1)"`
		Pos  int64  `parquet:"pos,id(2)"`
	}
	type strayID struct {
		Path string `parquet:"file_path"`
		Pos  int64  `parquet:"pos"`
		Row  int64  `parquet:"row,id(1)"`
	}
	type noPos struct {
		Path string `parquet:"file_path,id(2147483546)"`
	}
	type textPos struct {
		Path string `parquet:"file_path,id(2147483546)"`
		Pos  string `parquet:"pos,id(2147483545)"`
	}
	path, pos := "data", int64(1)
	good := parquetOf(t, 10, posRows("data", 1, 2, 3))
	for _, c := range []struct {
		name   string
		b      []byte
		format snapshot.Format
		want   error
		say    string
	}{
		{"negative", parquetOf(t, 10, posRows("data", 1, -1)), snapshot.Parquet, ErrCorrupt, "position -1"},
		{"negative, other file", parquetOf(t, 10, posRows("other", -9)), snapshot.Parquet, ErrCorrupt, "position -9"},
		{"NULL position", parquetOf(t, 10, []nullable{{&path, &pos}, {&path, nil}}), snapshot.Parquet, ErrCorrupt, "pos"},
		{"NULL path", parquetOf(t, 10, []nullable{{nil, &pos}}), snapshot.Parquet, ErrCorrupt, "file_path"},
		{"ids of other columns", parquetOf(t, 10, []foreignIDs{{"data", 1}}), snapshot.Parquet, ErrCorrupt, "missing"},
		{"names beside another column's id", parquetOf(t, 10, []strayID{{"data", 1, 1}}), snapshot.Parquet, ErrCorrupt, "missing"},
		{"no positions", parquetOf(t, 10, []noPos{{"data"}}), snapshot.Parquet, ErrCorrupt, "pos"},
		{"positions as text", parquetOf(t, 10, []textPos{{"data", "1"}}), snapshot.Parquet, ErrUnsupported, "pos"},
		{"cut", good[:len(good)-9], snapshot.Parquet, ErrCorrupt, ""},
		{"no Parquet", []byte("file_path,pos\ndata,1\n"), snapshot.Parquet, ErrCorrupt, ""},
		{"empty", nil, snapshot.Parquet, ErrCorrupt, ""},
		{"ORC", good, snapshot.ORC, ErrUnsupported, "ORC"},
		{"unknown format", good, "TEXT", ErrUnsupported, "TEXT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab()
			l.files["data"] = nil
			l.addPositions(c.b).Format = c.format
			got, err := l.resolve(NewResolver(Options{Cache: &mapCache{}}))
			if !errors.Is(err, c.want) {
				t.Fatalf("%s, error %v, want %v", got, err, c.want)
			}
			if strings.Count(err.Error(), "positions-0") != 1 || !strings.Contains(err.Error(), c.say) {
				t.Errorf("error %q", err)
			}
		})
	}
}

func TestPositionDeletesMissing(t *testing.T) {
	l := newLab()
	l.files["data"] = nil
	l.addPositions(nil)
	delete(l.files, "positions-0")
	if _, err := l.resolve(NewResolver(Options{})); !errors.Is(err, source.ErrNotFound) || strings.Count(err.Error(), "positions-0") != 1 {
		t.Errorf("error %v", err)
	}
}

// TestPositionDeletesReadOnce: a delete file of many data files is decoded once.
func TestPositionDeletesReadOnce(t *testing.T) {
	var rows []posRow
	for i := range 20 {
		rows = append(rows, posRows(fmt.Sprint("data", i), int64(i), int64(i)+100)...)
	}
	l := newLab()
	l.addPositions(parquetOf(t, 7, rows))
	var stats pqfile.Stats
	r := NewResolver(Options{Cache: &mapCache{}, Stats: &stats})
	pages := int64(0)
	for i := range 20 {
		l.file.DataFile = &snapshot.DataFile{Path: fmt.Sprint("data", i)}
		l.files[l.file.Path] = nil
		got, err := l.resolve(r)
		if want := fmt.Sprintf("[{%d %d} {%d %d}]", i, i+1, i+100, i+101); got != want || err != nil {
			t.Fatalf("%s, %v, want %s", got, err, want)
		}
		if i == 0 {
			pages = stats.DataPages.Load()
		}
	}
	if n := stats.DataPages.Load(); n != pages || pages == 0 || stats.Footers.Load() != 1 {
		t.Errorf("%d pages for one data file, %d for twenty, %d footers", pages, n, stats.Footers.Load())
	}
}

func FuzzPositionDeletes(f *testing.F) {
	f.Add(parquetOf(f, 10, posRows("data", 1, 2, 3)))
	f.Add(parquetOf(f, 2, posRows("data", 1, 2, 1<<40), parquet.Compression(&parquet.Zstd)))
	f.Add(parquetOf(f, 100, append(posRows("data", span(0, 50)...), posRows("b", 1)...), parquet.DataPageVersion(1)))
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b := parquetOf(f, 10, posRows("data", 1, 2, 3))
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLab()
		l.files["data"] = nil
		l.addPositions(b)
		p, err := NewResolver(Options{}).Resolve(context.Background(), l.table, l, &l.file)
		if err != nil {
			if p != nil {
				t.Error("positions beside an error")
			}
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, source.ErrTruncated) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		if p.CountRange(0, 1<<62)+p.CountRange(1<<62, 1<<63-1) > int64(len(b))<<20 {
			t.Errorf("%d positions from %d bytes", p.Count(), len(b))
		}
	})
}
