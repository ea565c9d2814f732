package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/faulty"
	"github.com/icefs/icefs/internal/viewtest"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/snapshot"
)

// bigTable writes a table of several MiB of text: two files, row groups of
// 4,000 rows in small pages, deletes in runs, at random, and of a whole group.
// Its second snapshot has more deletes. want is each snapshot's CSV.
func bigTable(t *testing.T) (scans []Scan, want []string) {
	t.Helper()
	table := fixture.New(t.TempDir(), fixture.Options{
		FormatVersion: 3,
		Schema: iceberg.NewSchema(0,
			iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String},
			iceberg.NestedField{ID: 3, Name: "f", Type: iceberg.PrimitiveTypes.Float64},
		),
		Parquet: fixture.ParquetOptions{RowGroup: 4_000, PageSize: 16 << 10},
	})
	rng := rand.New(rand.NewPCG(1, 2))
	lines := map[int64]string{}
	rows := func(from, to int64) (out []fixture.Row) {
		for id := from; id < to; id++ {
			s := strings.Repeat("x,", rng.IntN(160))
			f := float64(rng.IntN(1000)) / 8
			out = append(out, fixture.Row{"id": id, "s": s, "f": f})
			if s = `"` + s + `"`; s == `""` {
				s = `""`
			}
			lines[id] = fmt.Sprintf("%d,%s,%v\n", id, s, f)
		}
		return out
	}
	tx := table.Begin()
	a := tx.Append(rows(0, 14_000)...)
	b := tx.Append(rows(14_000, 24_000)...)
	tx.Commit()
	dead := map[int64]bool{}
	var inA, inB []int64
	kill := func(id int64) {
		if dead[id] {
			return
		}
		dead[id] = true
		if id < 14_000 {
			inA = append(inA, id)
		} else {
			inB = append(inB, id-14_000)
		}
	}
	text := func() string {
		var out strings.Builder
		out.WriteString("id,s,f\n")
		for id := range int64(24_000) {
			if !dead[id] {
				out.WriteString(lines[id])
			}
		}
		return out.String()
	}
	for _, step := range []func(){
		func() {},
		func() {
			for id := int64(4_000); id < 8_000; id++ { // a whole row group
				kill(id)
			}
			for id := int64(8_400); id < 10_800; id++ { // a long run
				kill(id)
			}
			for range 1_200 {
				kill(rng.Int64N(14_000))
			}
		},
		func() {
			for id := int64(14_000); id < 24_000; id += 2 {
				kill(id)
			}
			kill(13_999)
		},
	} {
		if step(); len(dead) > 0 {
			tx := table.Begin()
			tx.DeleteVector(a, inA...)
			if len(inB) > 0 {
				tx.DeleteVector(b, inB...)
			}
			tx.Commit()
		}
		want = append(want, text())
	}
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	l := loadFolder(t, table.Dir())
	for i := range l.Table().Snapshots {
		scans = append(scans, scanOf(t, l, &l.Table().Snapshots[i]))
	}
	return scans, want
}

// loadFolder loads the table in a folder.
func loadFolder(t *testing.T, dir string) *warehouse.Loaded {
	t.Helper()
	c, err := warehouse.Open(t.Context(), dir, warehouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := c.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := table.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stored is a persistent store in memory.
type stored struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (s *stored) Get(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.m[key]
	return b, ok
}

func (s *stored) Put(key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string][]byte{}
	}
	s.m[key] = value
}

// plainEngine has no cache: every handle lives on what it owns.
func plainEngine(opt Options) *Engine {
	opt.Deletes = deletes.NewResolver(deletes.Options{})
	return NewEngine(opt)
}

func TestTextView(t *testing.T) {
	scans, want := bigTable(t)
	for i, scan := range scans {
		for _, workers := range []int{1, 3} {
			v := plainEngine(Options{Workers: workers}).CSV(scan)
			var out bytes.Buffer
			if err := v.(Streamer).WriteTo(t.Context(), &out); err != nil || out.String() != want[i] {
				t.Fatalf("snapshot %d: %d bytes streamed, want %d: %v", i, out.Len(), len(want[i]), err)
			}
			if got := viewtest.Bytes(t, v); string(got) != want[i] {
				t.Fatalf("snapshot %d: %d bytes read, want %d", i, len(got), len(want[i]))
			}
		}
	}
	last := scans[len(scans)-1]
	for name, open := range map[string]func(e *Engine) View{
		"csv": func(e *Engine) View { return e.CSV(last) }, "jsonl": func(e *Engine) View { return e.JSONL(last) },
	} {
		t.Run(name, func(t *testing.T) {
			viewtest.Check(t, open(testEngine(t, Options{})),
				func() viewtest.View { return open(plainEngine(Options{Workers: 1})) },
				func() viewtest.View { return oneHandle(t, open(plainEngine(Options{}))) },
				func() viewtest.View { return oneHandle(t, open(testEngine(t, Options{Workers: 2}))) })
		})
	}
}

// oneHandle reads a view through one handle that stays open.
func oneHandle(t *testing.T, v View) View {
	h := v.(Opener).Open()
	t.Cleanup(func() { h.Close() })
	return held{v, h}
}

type held struct {
	View
	h Handle
}

func (v held) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return v.h.ReadAt(ctx, p, off)
}

// A sequential reader decodes each page once, in reads of any size, without
// help from a cache.
func TestTextReadsDecodeOnce(t *testing.T) {
	scans, want := bigTable(t)
	for _, step := range []int{4 << 10, 128 << 10, 3 << 20} {
		stats := &pqfile.Stats{}
		v := plainEngine(Options{Stats: stats}).CSV(scans[1])
		if _, err := v.Size(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := stats.DataPages.Load()
		if err := v.(Streamer).WriteTo(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		once := stats.DataPages.Load() - before
		h := v.(Opener).Open()
		before = stats.DataPages.Load()
		var got []byte
		for p := make([]byte, step); ; {
			n, err := h.ReadAt(t.Context(), p, int64(len(got)))
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		h.Close()
		// A page on the border of two blocks may be opened by both.
		if pages := stats.DataPages.Load() - before; string(got) != want[1] || once == 0 || pages > once {
			t.Errorf("reads of %d: %d pages for %d bytes, streaming decodes %d for %d", step, pages, len(got), once, len(want[1]))
		}
	}
}

// What has been measured is kept: another engine decodes nothing for a size,
// and a snapshot with other deletes neither.
func TestTextMeasuresOnce(t *testing.T) {
	scans, want := bigTable(t)
	disk := &stored{}
	for round := range 2 {
		for i, scan := range scans {
			stats, counters := &pqfile.Stats{}, &Counters{}
			v := plainEngine(Options{Persist: disk, Stats: stats, Counters: counters}).CSV(scan)
			if size, err := v.Size(t.Context()); err != nil || size != int64(len(want[i])) {
				t.Fatalf("snapshot %d: size %d %v, want %d", i, size, err, len(want[i]))
			}
			groups := int64(0)
			if round == 0 && i == 0 {
				groups = 7 // 4 and 3 row groups
			}
			if n := counters.GroupsMeasured.Load(); n != groups || (n == 0) != (stats.DataPages.Load() == 0) {
				t.Errorf("round %d, snapshot %d: measured %d row groups, %d pages; want %d", round, i, n, stats.DataPages.Load(), groups)
			}
		}
	}
	// Other options have other bytes, and a damaged entry is measured anew.
	counters := &Counters{}
	if _, err := plainEngine(Options{Persist: disk, Counters: counters, CSV: CSVOptions{Delimiter: ';'}}).CSV(scans[0]).Size(t.Context()); err != nil || counters.GroupsMeasured.Load() != 7 {
		t.Errorf("another delimiter: %d row groups measured, %v", counters.GroupsMeasured.Load(), err)
	}
	for key := range disk.m {
		disk.m[key] = disk.m[key][:len(disk.m[key])/2]
	}
	if size, err := plainEngine(Options{Persist: disk}).CSV(scans[2]).Size(t.Context()); err != nil || size != int64(len(want[2])) {
		t.Errorf("damaged entries: size %d %v, want %d", size, err, len(want[2]))
	}
}

// Mostly dead groups are measured by their live rows alone.
func TestTextMeasureOfDeadRows(t *testing.T) {
	scans, want := bigTable(t)
	v := plainEngine(Options{}).CSV(scans[2]).(*textView)
	if size, err := v.Size(t.Context()); err != nil || size != int64(len(want[2])) {
		t.Fatalf("size %d %v, want %d", size, err, len(want[2]))
	}
	u := &v.layout.units[1]
	if u.measure.size != 0 || u.measure.live != 0 || u.measure.blocks() != 0 {
		t.Errorf("a dead row group has %+v", u.measure)
	}
	in, err := v.engine.openText(t.Context(), v.scan, v.layout.setup, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.resolve(t.Context()); err != nil {
		t.Fatal(err)
	}
	for g := range v.layout.units[:4] {
		u, direct := &v.layout.units[g], &textMeasure{}
		if err := in.eachLengths(t.Context(), g, 1, direct.add); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(*direct) != fmt.Sprint(*u.measure) {
			t.Errorf("row group %d: %v by live rows, %v by all", g, *direct, *u.measure)
		}
		if again := decodeMeasure(direct.encode(), u.rows); again == nil && u.rows > 0 || fmt.Sprint(*again) != fmt.Sprint(*direct) {
			t.Errorf("row group %d: %v is kept as %v", g, *direct, again)
		}
	}
}

// Every fault of the store surfaces, changes no byte, and goes with the fault.
func TestTextFaults(t *testing.T) {
	scans, want := bigTable(t)
	scan := scans[1]
	inner := scan.Store
	for fail := int64(1); ; fail++ {
		store := faulty.New(inner, faulty.Options{FailRead: fail})
		scan.Store = store
		v := plainEngine(Options{Workers: 1}).CSV(scan)
		h := v.(Opener).Open()
		got := make([]byte, len(want[1]))
		_, err := h.ReadAt(t.Context(), got, 0)
		if err != nil && !errors.Is(err, source.ErrRead) {
			t.Fatalf("read %d: %v", fail, err)
		}
		if err == nil && string(got) != want[1] {
			t.Fatalf("read %d: other bytes", fail)
		}
		if err != nil {
			if _, err := h.ReadAt(t.Context(), got, 0); err != nil || string(got) != want[1] {
				t.Fatalf("after the fault of read %d: %v", fail, err)
			}
		}
		h.Close()
		if err == nil {
			if fail < 20 {
				t.Errorf("only %d reads", fail)
			}
			return
		}
	}
}

// A reader that gives up stops at once, and stops no other.
func TestTextCancel(t *testing.T) {
	scans, want := bigTable(t)
	v := testEngine(t, Options{}).CSV(scans[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Size(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("size: %v", err)
	}
	if size, err := v.Size(t.Context()); err != nil || size != int64(len(want[0])) {
		t.Errorf("size %d %v, want %d", size, err, len(want[0]))
	}
	h := v.(Opener).Open()
	defer h.Close()
	p := make([]byte, 1000)
	if _, err := h.ReadAt(ctx, p, 1<<20); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := h.ReadAt(t.Context(), p, 1<<20); err != nil || string(p) != want[0][1<<20:1<<20+1000] {
		t.Errorf("read after another was cancelled: %v", err)
	}
}

// A data file that was replaced after it was measured is an error.
func TestTextReplacedFile(t *testing.T) {
	scans, _ := bigTable(t)
	v := plainEngine(Options{}).CSV(scans[0])
	if _, err := v.Size(t.Context()); err != nil {
		t.Fatal(err)
	}
	path, _ := source.LocalPath(scans[0].Plan.Files[0].Path)
	now := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	if _, err := v.ReadAt(t.Context(), make([]byte, 10), 1<<20); !errors.Is(err, source.ErrChanged) {
		t.Errorf("read: %v", err)
	}
}

func TestTextRefuses(t *testing.T) {
	scans, _ := bigTable(t)
	doubt := errors.New("two deletion vectors")
	for name, c := range map[string]struct {
		change func(f *snapshot.File)
		want   error
	}{
		"doubtful deletes": {func(f *snapshot.File) { f.Err = doubt }, doubt},
		"encrypted":        {func(f *snapshot.File) { f.EncryptedKey = true }, ErrUnsupported},
		"ORC":              {func(f *snapshot.File) { f.Format = snapshot.ORC }, ErrUnsupported},
		"missing":          {func(f *snapshot.File) { f.Path += ".gone" }, source.ErrNotFound},
		"no Avro":          {func(f *snapshot.File) { f.Format = snapshot.Avro }, nil},
	} {
		scan := scans[1]
		plan := *scan.Plan
		plan.Files = append([]snapshot.File{}, plan.Files...)
		data := *plan.Files[0].DataFile
		plan.Files[0].DataFile = &data
		c.change(&plan.Files[0])
		scan.Plan = &plan
		v := plainEngine(Options{}).JSONL(scan)
		_, err := v.Size(t.Context())
		stream := v.(Streamer).WriteTo(t.Context(), io.Discard)
		if err == nil || stream == nil || c.want != nil && (!errors.Is(err, c.want) || !errors.Is(stream, c.want)) {
			t.Errorf("%s: %v and %v, want %v", name, err, stream, c.want)
		}
	}
}

// Handles together keep a bounded part of what they have read.
func TestTextHandlesAreBounded(t *testing.T) {
	scans, want := bigTable(t)
	e := plainEngine(Options{Workers: 1, MemoryBytes: 64 << 20})
	v := e.CSV(scans[0])
	p := make([]byte, 4096)
	var handles []Handle
	for i := range 300 {
		h := v.(Opener).Open()
		handles = append(handles, h)
		off := int64(i) * 9000
		if _, err := h.ReadAt(t.Context(), p, off); err != nil || string(p) != want[0][off:off+4096] {
			t.Fatalf("handle %d: %v", i, err)
		}
	}
	if total := e.memory.holdings.total; total > 8<<20 || total < 1<<20 {
		t.Errorf("%d bytes kept", total)
	}
	if _, err := handles[0].ReadAt(t.Context(), p, 5000); err != nil || string(p) != want[0][5000:9096] {
		t.Errorf("a handle that was trimmed: %v", err)
	}
	for _, h := range handles {
		h.Close()
	}
	if s := &e.memory.holdings; s.total != 0 || len(s.at) != 0 || s.order.Len() != 0 {
		t.Errorf("%d bytes kept by no handle", s.total)
	}
}

// The zone of the machine changes nothing.
func TestTextZone(t *testing.T) {
	was := time.Local
	defer func() { time.Local = was }()
	var out []string
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("", -5*3600)} {
		time.Local = zone
		got, err := formatted(t, schemaOf(field(1, "a", iceberg.PrimitiveTypes.TimestampTz), field(2, "b", iceberg.PrimitiveTypes.Date)), CSVOptions{}, false, 1,
			pqfile.Vector{Values: fixed64(-1)}, pqfile.Vector{Values: fixed32(0)})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got)
	}
	if out[0] != "a,b\n1969-12-31 23:59:59.999999Z,1970-01-01\n" || out[1] != out[0] {
		t.Errorf("%q", out)
	}
}
