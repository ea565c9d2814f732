package merge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/faulty"
)

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A long measurement is listed and logged while it lasts. One who waits for it
// can leave at once, and the others get its result.
func TestTextMeasuring(t *testing.T) {
	scans, want := bigTable(t)
	scan := scans[0]
	scan.Store = faulty.New(scan.Store, faulty.Options{Delay: 20 * time.Millisecond})
	log := &lockedBuffer{}
	e := testEngine(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	e.texts.long = 10 * time.Millisecond
	v := e.CSV(scan)
	sized := make(chan error, 1)
	go func() {
		size, err := v.Size(context.Background())
		if err == nil && size != int64(len(want[0])) {
			err = errors.New("another size")
		}
		sized <- err
	}()
	var list []Measuring
	for len(list) == 0 {
		time.Sleep(time.Millisecond)
		list = e.Measuring()
	}
	m := list[0]
	if m.Form != "csv" || m.Rows != 24_000 || m.Files != 2 || m.RowsDone > m.Rows || m.Snapshot != scan.Plan.SnapshotID || m.Table == "" || m.Started.IsZero() {
		t.Errorf("measuring %+v", m)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := v.Size(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reader that leaves: %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("leaving took %v", took)
	}
	if err := <-sized; err != nil {
		t.Errorf("the reader that stays: %v", err)
	}
	if list := e.Measuring(); len(list) != 0 {
		t.Errorf("measuring %+v afterwards", list)
	}
	for _, line := range []string{"measuring a text view for its size", "text view measured"} {
		if !strings.Contains(log.String(), line) || !strings.Contains(log.String(), "rows=24000") {
			t.Errorf("log without %q:\n%s", line, log)
		}
	}
}

// openings counts what is opened.
type openings struct {
	source.Store
	n atomic.Int64
}

func (s *openings) Open(ctx context.Context, location string) (source.Object, error) {
	s.n.Add(1)
	return s.Store.Open(ctx, location)
}

// A data file that another snapshot shows alike is not opened to be measured.
func TestMeasuredFilesStayShut(t *testing.T) {
	table := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})})
	for i := range int64(3) {
		tx := table.Begin()
		tx.Append(fixture.Row{"id": i})
		tx.Commit()
	}
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	l := loadFolder(t, table.Dir())
	e := NewEngine(Options{Cache: &mapCache{}, Deletes: deletes.NewResolver(deletes.Options{})})
	for i := range l.Table().Snapshots {
		scan := scanOf(t, l, &l.Table().Snapshots[i])
		store := &openings{Store: scan.Store}
		scan.Store = store
		size, err := e.CSV(scan).Size(t.Context())
		if want := int64(len("id\n") + 2*(i+1)); err != nil || size != want {
			t.Errorf("snapshot %d: %d bytes, %v, want %d", i, size, err, want)
		}
		if n := store.n.Load(); n != 1 {
			t.Errorf("snapshot %d: %d files opened, want the new one alone", i, n)
		}
	}
}
