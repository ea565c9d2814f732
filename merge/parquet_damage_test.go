package merge

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/viewtest"
)

// refooted replaces a file's footer by an edited one.
func refooted(t *testing.T, path string, edit func(m *pqfile.FileMetaData)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	m, err := pqfile.UnmarshalFileMetaData(b[len(b)-8-n : len(b)-8])
	if err != nil {
		t.Fatal(err)
	}
	edit(m)
	foot := m.Marshal()
	b = append(b[:len(b)-8-n], foot...)
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(foot))), magic...)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Writers get the offsets of pages wrong in several ways. Views mend them, with
// and without deletes.
func TestWrongPageOffsets(t *testing.T) {
	each := func(edit func(c *pqfile.ColumnMetaData)) func(m *pqfile.FileMetaData) {
		return func(m *pqfile.FileMetaData) {
			for g := range m.RowGroups {
				for c := range m.RowGroups[g].Columns {
					edit(m.RowGroups[g].Columns[c].MetaData)
				}
			}
		}
	}
	for name, edit := range map[string]func(m *pqfile.FileMetaData){
		"as written": func(*pqfile.FileMetaData) {},
		"data offset is the dictionary's": each(func(c *pqfile.ColumnMetaData) {
			if c.DictionaryPageOffset != nil {
				c.DataPageOffset = *c.DictionaryPageOffset
			}
		}),
		"dictionary offset 0": each(func(c *pqfile.ColumnMetaData) {
			if c.DictionaryPageOffset == nil {
				c.DictionaryPageOffset = new(int64)
			}
		}),
		"dictionary offset absent": each(func(c *pqfile.ColumnMetaData) {
			if c.DictionaryPageOffset != nil {
				c.DataPageOffset, c.DictionaryPageOffset = *c.DictionaryPageOffset, nil
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: formsSchema(), Parquet: fixture.ParquetOptions{RowGroup: 200}})
			tx := tab.Begin()
			file := tx.Append(formsRows(0, 400)...)
			tx.Commit()
			stored, err := os.ReadFile(file.Local)
			if err != nil {
				t.Fatal(err)
			}
			all := arrowRowsInOrder(t, stored)
			refooted(t, file.Local, edit)
			for _, gone := range [][]int64{nil, {3, 4, 399}} {
				if gone != nil {
					tx := tab.Begin()
					tx.DeleteVector(file, gone...)
					tx.Commit()
				}
				checkForm(t, "offsets", currentScan(t, tab), "kept apart", without(all, gone))
			}
		})
	}
}

// A footer that lies about sizes fails the read; it never shifts a row.
func TestLyingFooter(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: formsSchema(), Parquet: fixture.ParquetOptions{NoDictionary: true}})
	tx := tab.Begin()
	file := tx.Append(formsRows(0, 5000)...)
	tx.Commit()
	tx = tab.Begin()
	tx.DeleteVector(file, 1)
	tx.Commit()
	refooted(t, file.Local, func(m *pqfile.FileMetaData) {
		for c := range m.RowGroups[0].Columns {
			meta := m.RowGroups[0].Columns[c].MetaData
			meta.TotalUncompressedSize = 10
			meta.SizeStatistics = nil
		}
	})
	e := NewEngine(Options{Cache: &mapCache{}, Deletes: deletes.NewResolver(deletes.Options{})})
	v := e.Parquet(currentScan(t, tab))
	size, err := v.Size(t.Context())
	if err != nil {
		return // noticed at once
	}
	if _, err := v.ReadAt(t.Context(), make([]byte, size), 0); err == nil {
		t.Error("a chunk longer than its reserve was served")
	}
}

// failing fails the n-th read of all its objects together.
type failing struct {
	source.Store
	left *int
}

func (s failing) Open(ctx context.Context, location string) (source.Object, error) {
	o, err := s.Store.Open(ctx, location)
	return failingObject{o, s.left}, err
}

type failingObject struct {
	source.Object
	left *int
}

func (o failingObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if *o.left--; *o.left == 0 {
		return 0, source.ErrRead
	}
	return o.Object.ReadAt(ctx, p, off)
}

// Whichever read of a source fails, the view fails or has its bytes.
func TestEveryFailingRead(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{FormatVersion: 3, Schema: formsSchema(), Parquet: fixture.ParquetOptions{RowGroup: 100, Tighten: true}})
	tx := tab.Begin()
	file := tx.Append(formsRows(0, 300)...)
	tx.Commit()
	tx = tab.Begin()
	tx.DeleteVector(file, 5, 6, 250)
	tx.Commit()
	scan := currentScan(t, tab)
	opt := Options{NoCoalesce: true, Statistics: StatisticsAll, Workers: 1}
	opt.Deletes = deletes.NewResolver(deletes.Options{})
	want := viewtest.Bytes(t, handleView{NewEngine(Options{NoCoalesce: true, Statistics: StatisticsAll, Cache: &mapCache{}, Deletes: opt.Deletes}).Parquet(scan)})
	faults := 0
	for n := 1; ; n++ {
		left := n
		broken := scan
		broken.Store = failing{scan.Store, &left}
		opt.Cache = &mapCache{}
		v := NewEngine(opt).Parquet(broken)
		got := make([]byte, len(want))
		_, err := v.ReadAt(t.Context(), got, 0)
		if left > 0 {
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("no fault: %v", err)
			}
			break
		}
		if err == nil {
			t.Fatalf("read %d failed unnoticed", n)
		}
		faults++
		// The fault leaves no trace.
		if _, err := v.ReadAt(t.Context(), got, 0); err != nil || !slices.Equal(got, want) {
			t.Fatalf("after fault %d: %v", n, err)
		}
	}
	if faults < 20 {
		t.Errorf("only %d reads", faults)
	}
}
