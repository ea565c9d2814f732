package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/fixture/random"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/viewtest"
)

// keptEngine returns an engine that keeps every layout, and its work.
func keptEngine(p deletes.Persist, opt Options) (*Engine, *pqfile.Stats) {
	opt.Persist = p
	e, stats, _ := workEngine(opt)
	e.limits.leastKept = 0
	return e, stats
}

// drop removes what is kept by keys of a prefix.
func (p *memoryPersist) drop(prefix string) {
	p.values.Range(func(key, _ any) bool {
		if strings.HasPrefix(key.(string), prefix) {
			p.values.Delete(key)
		}
		return true
	})
}

// checkKept compares a view whose layout was kept with the same made, with and
// without the chunks being kept. It reports whether the view has a layout that can
// be.
func checkKept(t *testing.T, what string, opt Options, view func(*Engine) View) bool {
	t.Helper()
	p := &memoryPersist{}
	e, _ := keptEngine(p, opt)
	made := view(e)
	if _, err := made.Size(t.Context()); err != nil {
		return false
	}
	data := viewtest.Bytes(t, made)
	sum, err := made.(Summarizer).Summary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, without := range []string{"nothing", "pages|", "viewfooter|"} {
		p.drop(without)
		again, stats := keptEngine(p, opt)
		v := view(again)
		size, err := v.Size(t.Context())
		if err != nil {
			t.Fatalf("%s, without %s: %v", what, without, err)
		}
		l, err := v.(*parquetView).layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !l.kept {
			if l.whole == nil && len(v.(*parquetView).files) > 0 {
				t.Errorf("%s: layout was not kept", what)
			}
			return false
		}
		if without == "nothing" {
			if _, err := v.ReadAt(t.Context(), make([]byte, 8), size-8); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if n := stats.Footers.Load() + stats.HeaderProbes.Load() + stats.DataPages.Load(); n != 0 {
			t.Errorf("%s: footers, headers and pages read for a kept layout: %d", what, n)
		}
		if got, err := v.(Summarizer).Summary(t.Context()); err != nil || got != sum {
			t.Errorf("%s: summary %+v, %v; want %+v", what, got, err, sum)
		}
		if got := viewtest.Bytes(t, handleView{v}); !bytes.Equal(got, data) {
			t.Errorf("%s, without %s: other bytes", what, without)
		}
		if without == "nothing" && len(v.(*parquetView).files) > 1 {
			viewtest.Check(t, v)
		}
	}
	return true
}

// checkKeptScan does so for all Parquet views of a snapshot.
func checkKeptScan(t *testing.T, what string, opt Options, scan Scan) (kept int) {
	t.Helper()
	if checkKept(t, what, opt, func(e *Engine) View { return e.Parquet(scan) }) {
		kept++
	}
	for i := range scan.Plan.Files {
		if checkKept(t, fmt.Sprintf("%s, part %d", what, i), opt, func(e *Engine) View { return e.Part(scan, i) }) {
			kept++
		}
	}
	return kept
}

func TestKeptLayoutsOfRealTables(t *testing.T) {
	kept := 0
	for _, x := range expectedTables(t) {
		if strings.HasPrefix(x.Source, "object-store") {
			continue
		}
		l := x.load(t)
		if l == nil {
			continue
		}
		snapshots := l.Table().Snapshots
		for i := max(0, len(snapshots)-2); i < len(snapshots); i++ {
			s := &snapshots[i]
			what := fmt.Sprintf("%s, snapshot %d", x.Name, s.ID)
			kept += checkKeptScan(t, what, Options{NoSplice: i%4 == 1, NoCoalesce: i%2 == 1}, scanOf(t, l, s))
		}
	}
	if kept < 50 {
		t.Errorf("only %d layouts were kept", kept)
	}
}

func TestKeptLayoutsOfRandomTables(t *testing.T) {
	kept := 0
	for seed := range uint64(12) {
		tab := random.New(t.TempDir(), seed, random.Options{Commits: 5, MaxRows: 40})
		l := openFixture(t, tab)
		snapshots := l.Table().Snapshots
		kept += checkKeptScan(t, fmt.Sprintf("seed %d", seed), Options{NoCoalesce: seed%2 == 1}, scanOf(t, l, &snapshots[len(snapshots)-1]))
	}
	if kept < 20 {
		t.Errorf("only %d layouts were kept", kept)
	}
}

// Layouts by pages, of which some stay as they are stored and some runs are long
// enough to be kept.
func TestKeptLayoutByPages(t *testing.T) {
	gone := append(append([]int64{5}, span(256, 512)...), 600)
	tab, _, _ := pagedTable(t, fixture.ParquetOptions{DictionaryLimit: 2000}, gone)
	scan := currentScan(t, tab)
	byPages := func(e *Engine) View {
		e.limits.keptRows, e.limits.pieceBytes = 8, 1
		return e.Parquet(scan)
	}
	if !checkKept(t, "by pages", Options{}, byPages) {
		t.Error("not kept")
	}
	p := &memoryPersist{}
	for range 2 {
		e, _ := keptEngine(p, Options{})
		v := byPages(e)
		viewtest.Bytes(t, v)
		l, err := v.(*parquetView).layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pages := 0
		for _, s := range l.segments {
			if k, ok := s.(*keptPages); ok {
				pages += len(k.pages)
			}
		}
		if pages == 0 {
			t.Errorf("kept %v: no page stays", l.kept)
		}
	}
}

// Rewritten chunks and the footer come from what is kept, and the engine is not
// asked to make them.
func TestKeptLayoutMakesNothing(t *testing.T) {
	scan := currentScan(t, sortedTable(t, 20_005, 39_000))
	p := &memoryPersist{}
	e, _ := keptEngine(p, Options{})
	data := viewtest.Bytes(t, e.Parquet(scan))
	again, stats := keptEngine(p, Options{})
	v := again.Parquet(scan)
	l, err := v.(*parquetView).layout(t.Context())
	if err != nil || !l.kept {
		t.Fatalf("not kept: %v", err)
	}
	runs := 0
	for i, s := range l.segments {
		k, ok := s.(*keptSegment)
		if !ok || k.key == "" {
			continue
		}
		runs++
		b := make([]byte, k.n)
		if _, err := v.ReadAt(t.Context(), b, l.starts[i]); err != nil || !bytes.Equal(b, data[l.starts[i]:][:k.n]) {
			t.Fatalf("segment %d: %v", i, err)
		}
	}
	if runs < 5 || stats.Footers.Load() != 0 || stats.DataPages.Load() != 0 || stats.HeaderProbes.Load() != 0 {
		t.Errorf("%d kept segments, %d footers, %d pages and %d headers read", runs, stats.Footers.Load(), stats.DataPages.Load(), stats.HeaderProbes.Load())
	}
}

// A kept layout is that of the files it was made of, the options and what the
// manifests say.
func TestKeptLayoutOfOtherFiles(t *testing.T) {
	tab, file, _ := pagedTable(t, fixture.ParquetOptions{}, []int64{5, 600})
	scan := currentScan(t, tab)
	p := &memoryPersist{}
	e, _ := keptEngine(p, Options{})
	data := viewtest.Bytes(t, e.Parquet(scan))
	isKept := func(scan Scan, opt Options) (bool, error) {
		t.Helper()
		e, _ := keptEngine(p, opt)
		v := e.Parquet(scan).(*parquetView)
		l, err := v.layout(t.Context())
		if err != nil {
			return false, err
		}
		if opt.Statistics == StatisticsExact && !opt.NoSplice && !opt.NoCoalesce && !bytes.Equal(viewtest.Bytes(t, v), data) {
			t.Error("other bytes")
		}
		return l.kept, nil
	}
	if ok, err := isKept(scan, Options{}); !ok || err != nil {
		t.Fatalf("the same again: %v, %v", ok, err)
	}
	for _, opt := range []Options{{Statistics: StatisticsNone}, {NoSplice: true}, {NoCoalesce: true}} {
		if ok, err := isKept(scan, opt); ok || err != nil {
			t.Errorf("%+v: %v, %v", opt, ok, err)
		}
	}
	puffin := scan.Plan.Files[0].DV.Path
	for _, path := range []string{file.Local, strings.TrimPrefix(puffin, "file://")} {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		// Another mount: this one keeps to the file that it has met.
		if ok, err := isKept(currentScan(t, tab), Options{}); ok || err != nil {
			t.Errorf("%s was replaced: %v, %v", path, ok, err)
		}
		if ok, err := isKept(currentScan(t, tab), Options{}); !ok || err != nil {
			t.Errorf("once it was made again: %v, %v", ok, err)
		}
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := isKept(currentScan(t, tab), Options{}); !errors.Is(err, source.ErrNotFound) {
			t.Errorf("%s is missing: %v", path, err)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}

// Every way of making views that can be turned off is part of what a layout is kept
// by.
func TestKeptKeyHasEveryWay(t *testing.T) {
	seen := map[string]string{(&parquetView{engine: NewEngine(Options{})}).keptKey(""): "none"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		if f.Type.Kind() != reflect.Bool && f.Type != reflect.TypeFor[Statistics]() {
			continue
		}
		var opt Options
		if v := reflect.ValueOf(&opt).Elem().FieldByIndex(f.Index); f.Type.Kind() == reflect.Bool {
			v.SetBool(true)
		} else {
			v.SetInt(int64(StatisticsAll))
		}
		key := (&parquetView{engine: NewEngine(opt)}).keptKey("")
		if other, ok := seen[key]; ok {
			t.Errorf("layouts with %s are kept as those with %s", f.Name, other)
		}
		seen[key] = f.Name
	}
	if len(seen) < 5 {
		t.Errorf("%d ways", len(seen))
	}
}

// A chunk that has to be made after all is one of the same layout, or none.
func TestKeptLayoutThatIsNot(t *testing.T) {
	scan := currentScan(t, sortedTable(t, 20_005, 39_000))
	p := &memoryPersist{}
	e, _ := keptEngine(p, Options{})
	viewtest.Bytes(t, e.Parquet(scan))
	p.drop("pages|")
	again, _ := keptEngine(p, Options{})
	v := again.Parquet(scan).(*parquetView)
	l, err := v.layout(t.Context())
	if err != nil || !l.kept {
		t.Fatal(err)
	}
	for i, s := range l.segments {
		if k, ok := s.(*keptSegment); ok {
			l.starts[i]++
			if err := k.readAt(t.Context(), nil, make([]byte, 1), 0); i < len(l.segments)-1 && !errors.Is(err, ErrCorrupt) {
				t.Errorf("segment %d: %v", i, err)
			}
			l.starts[i]--
		}
	}
}

// Whatever the bytes of a kept layout are, decoding them gives a layout or none,
// within the files.
func TestDamagedKeptLayout(t *testing.T) {
	gone := append(append([]int64{5}, span(256, 512)...), 600)
	tab, _, _ := pagedTable(t, fixture.ParquetOptions{DictionaryLimit: 2000}, gone)
	scan := currentScan(t, tab)
	p := &memoryPersist{}
	e, _ := keptEngine(p, Options{})
	e.limits.keptRows, e.limits.pieceBytes = 8, 1
	v := e.Parquet(scan).(*parquetView)
	viewtest.Bytes(t, v)
	var good []byte
	p.values.Range(func(key, value any) bool {
		if strings.HasPrefix(key.(string), "layout|") {
			good = value.([]byte)
		}
		return true
	})
	objects, state, err := v.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	decode := func(b []byte) *layout {
		d := layoutDecoder{b: b, view: v, objects: objects, footerKey: "f"}
		return d.layout(state)
	}
	l := decode(good)
	if l == nil || len(l.segments) < 20 {
		t.Fatal("the good bytes are refused")
	}
	for i := range good {
		if decode(good[:i]) != nil {
			t.Fatalf("cut to %d bytes: taken", i)
		}
		for _, flip := range []byte{1, 0x80, 0xFF} {
			bad := bytes.Clone(good)
			bad[i] ^= flip
			l := decode(bad)
			if l != nil && i < len(keptForm)+len(state) {
				t.Fatalf("byte %d: a layout of something else was taken", i)
			}
			if l == nil {
				continue
			}
			for _, s := range l.segments {
				if r, ok := s.(*rawSegment); ok && (r.from < 0 || r.n < 0 || r.from+r.n > r.object.Size()) {
					t.Fatalf("byte %d: bytes %d+%d of a file of %d", i, r.from, r.n, r.object.Size())
				}
			}
		}
	}
	if decode(append(bytes.Clone(good), 0)) != nil {
		t.Error("a byte more was taken")
	}
}

// rangedPersist is a memoryPersist whose values can be read in part.
type rangedPersist struct {
	memoryPersist
	reads int
}

func (p *rangedPersist) ReadAt(key string, size int64, b []byte, off int64) bool {
	v, ok := p.Get(key)
	if !ok || int64(len(v)) != size {
		return false
	}
	p.reads++
	copy(b, v[off:])
	return true
}

// Parts of kept chunks are read as such, with and without a kept layout.
func TestKeptChunksAreReadInPart(t *testing.T) {
	scan := currentScan(t, sortedTable(t, 20_005, 39_000))
	p := &rangedPersist{}
	e, _ := keptEngine(p, Options{})
	data := viewtest.Bytes(t, e.Parquet(scan))
	for _, least := range []int64{0, 1 << 40} {
		again, stats := keptEngine(p, Options{})
		if again.limits.leastKept = least; least > 0 {
			p.drop("layout|")
		}
		p.reads = 0
		b := make([]byte, 1000)
		v := again.Parquet(scan)
		h := v.(Opener).Open()
		for off := 0; off < len(data); off += len(b) {
			n, err := h.ReadAt(context.Background(), b, int64(off))
			if n < len(b) && off+n < len(data) || !bytes.Equal(b[:n], data[off:off+n]) {
				t.Fatalf("at %d: %d bytes, %v", off, n, err)
			}
		}
		h.Close()
		if p.reads < 10 || stats.DataPages.Load() > 1 { // one chunk is too short to be kept
			t.Errorf("%d reads of parts, %d pages decoded", p.reads, stats.DataPages.Load())
		}
	}
}

// A copy of a table, which has all but its place in common with it, may lack files
// that the other one has.
func TestLayoutIsNotThatOfACopy(t *testing.T) {
	tab := sortedTable(t, 20_005)
	first := currentScan(t, tab)
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(tab.Dir())); err != nil {
		t.Fatal(err)
	}
	l := loadFolder(t, dir)
	plan, err := l.Plan(t.Context(), l.Table().Current)
	if err != nil {
		t.Fatal(err)
	}
	second := Scan{Table: l.Table(), Schema: tab.Schema(), Plan: plan, Store: l.Store()}
	e, _ := keptEngine(&memoryPersist{}, Options{})
	if _, err := e.Parquet(second).Size(t.Context()); err != nil {
		t.Fatalf("the copy is not readable: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	e, _ = keptEngine(&memoryPersist{}, Options{})
	viewtest.Bytes(t, e.Parquet(first))
	if n, err := e.Parquet(second).Size(t.Context()); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("a copy without data files: %d bytes, %v", n, err)
	}
}
