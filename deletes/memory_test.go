package deletes

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// memStore is a source.Store over bytes. Locations are taken as they are.
type memStore struct {
	files map[string][]byte
	reads atomic.Int64
}

func newMemStore() *memStore { return &memStore{files: map[string][]byte{}} }

func (s *memStore) Open(_ context.Context, location string) (source.Object, error) {
	b, ok := s.files[location]
	if !ok {
		return nil, fmt.Errorf("%w: %s", source.ErrNotFound, location)
	}
	return &memObject{store: s, location: location, data: b}, nil
}

type memObject struct {
	store    *memStore
	location string
	data     []byte
}

func (o *memObject) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	o.store.reads.Add(1)
	if off < 0 || off > int64(len(o.data))-int64(len(p)) {
		return 0, fmt.Errorf("%w: %s", source.ErrTruncated, o.location)
	}
	return copy(p, o.data[off:]), nil
}

func (o *memObject) Size() int64      { return int64(len(o.data)) }
func (o *memObject) Location() string { return o.location }
func (o *memObject) Version() string {
	return fmt.Sprintf("mem:%s:%08x:%d", o.location, crc32.ChecksumIEEE(o.data), len(o.data))
}

// mapCache keeps everything.
type mapCache struct {
	mu     sync.Mutex
	values map[string]any
}

func (c *mapCache) Get(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	c.mu.Lock()
	v, ok := c.values[key]
	c.mu.Unlock()
	if ok {
		return v, nil
	}
	v, _, err := load(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string]any{}
	}
	c.values[key] = v
	return v, nil
}

// mapPersist is a Persist in memory.
type mapPersist struct {
	mu         sync.Mutex
	values     map[string][]byte
	gets, hits int
}

func (p *mapPersist) Get(key string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.values[key]
	p.gets++
	if ok {
		p.hits++
	}
	return bytes.Clone(v), ok
}

func (p *mapPersist) Put(key string, value []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values = map[string][]byte{}
	}
	p.values[key] = bytes.Clone(value)
}

// parquetOf writes rows as a Parquet file, with the given rows per group.
func parquetOf[T any](t testing.TB, perGroup int, rows []T, opts ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, opts...)
	for len(rows) > 0 {
		n := min(perGroup, len(rows))
		if _, err := w.Write(rows[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		rows = rows[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lab is a table's files in memory, for one data file "data".
type lab struct {
	*memStore
	table *snapshot.Table
	file  snapshot.File
}

func newLab(schemas ...*iceberg.Schema) *lab {
	l := &lab{memStore: newMemStore(), table: &snapshot.Table{UUID: "u", Schemas: schemas}}
	if len(schemas) > 0 {
		l.table.CurrentSchema = schemas[len(schemas)-1].ID
	}
	l.file.DataFile = &snapshot.DataFile{Path: "data", Format: snapshot.Parquet}
	return l
}

func (l *lab) deletesFile(name string, content snapshot.Content, b []byte, ids ...int) *snapshot.DataFile {
	l.files[name] = b
	return &snapshot.DataFile{Path: name, Content: content, Format: snapshot.Parquet, EqualityIDs: ids, ContentOffset: -1}
}

// addEquality adds an equality-delete file.
func (l *lab) addEquality(b []byte, ids ...int) *snapshot.DataFile {
	d := l.deletesFile(fmt.Sprintf("equality-%d", len(l.file.Equality)), snapshot.EqualityDeletes, b, ids...)
	l.file.Equality = append(l.file.Equality, d)
	return d
}

// addPositions adds a position-delete file.
func (l *lab) addPositions(b []byte) *snapshot.DataFile {
	d := l.deletesFile(fmt.Sprintf("positions-%d", len(l.file.Positions)), snapshot.PositionDeletes, b)
	l.file.Positions = append(l.file.Positions, d)
	return d
}

// resolve returns the deleted ranges of the first 2^40 positions as text.
func (l *lab) resolve(r *Resolver) (string, error) {
	p, err := r.Resolve(context.Background(), l.table, l, &l.file)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(p.DeletedRanges([]Range{}, 0, 1<<40)), nil
}

// want fails unless the deleted ranges are as told.
func (l *lab) want(t testing.TB, want string) {
	t.Helper()
	got, err := l.resolve(NewResolver(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("deleted %s, want %s", got, want)
	}
}
