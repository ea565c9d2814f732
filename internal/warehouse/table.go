package warehouse

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
	"weak"

	"github.com/klauspost/compress/zstd"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Table is a table of a catalog. What is parsed of its metadata is there as long
// as somebody holds the Loaded: a warehouse may have more tables than memory has
// room for, and who uses them knows best which to keep.
type Table struct {
	env     *env
	finder  finder
	columns keyColumns

	gate     gate // guards all below, and finder
	at       time.Time
	loaded   weak.Pointer[Loaded]
	origin   origin    // of loaded
	version  string    // of the metadata file that loaded or err come from
	err      error     // of the last Load
	reported string    // the last error that was logged
	doubted  time.Time // since when the current metadata file looks half-written
}

// origin is what a Loaded was read from, to read it again if nothing newer can be
// had. A metadata file that a catalog has sent is not kept: it is as long as what
// is parsed of it.
type origin struct {
	object source.Object // nil = none
	access *access
}

func originOf(o source.Object, a *access) origin {
	if _, inline := o.(*inlineMetadata); inline {
		return origin{}
	}
	return origin{o, a}
}

// halfWritten is how long a metadata file may look half-written, as writers
// without an atomic rename leave it, before the table fails: until then the
// version before it is shown.
const halfWritten = time.Minute

func newTable(e *env, f finder) *Table { return &Table{env: e, finder: f, gate: newGate()} }

// Load returns the table at its current metadata version: the same Loaded while
// the metadata file is the same and the Loaded in use. It looks again when the
// last look is older than the refresh interval; until then a failure stays, too. A
// failure is logged once. While a catalog does not answer, what was loaded last
// stays.
func (t *Table) Load(ctx context.Context) (*Loaded, error) {
	if err := t.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer t.gate.leave()
	known := t.loaded.Value() // held from here on
	have := known != nil || t.err != nil
	if have && t.env.fresh(t.at) {
		return known, t.err
	}
	asking := ctx
	if known != nil || t.origin.object != nil {
		asking = WithPatience(ctx, lastKnownPatience)
	}
	o, a, err := t.finder.find(asking)
	if have && err == nil && o.Version() == t.version {
		t.at = time.Now()
		return known, t.err
	}
	var loaded *Loaded
	if err == nil {
		loaded, err = t.read(ctx, o, a)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if before := t.before(ctx, known, err); before != nil {
		t.at = time.Now()
		return before, nil
	}
	t.loaded, t.origin, t.err, t.version, t.at = weak.Make(loaded), origin{}, err, "", time.Now()
	if o != nil && !unread(err) {
		t.version = o.Version()
	}
	if err == nil {
		t.origin = originOf(o, a)
	}
	t.report(err)
	return loaded, err
}

// before returns what is shown in the place of what failed with err: the version
// from before, read again if it was given up; nil if the failure is shown.
func (t *Table) before(ctx context.Context, known *Loaded, err error) *Loaded {
	whole := known != nil || t.origin.object != nil
	if !t.unfinished(whole, err) && !(whole && lastKnown(err)) {
		return nil
	}
	if known == nil {
		if known, err = t.read(ctx, t.origin.object, t.origin.access); err != nil {
			return nil
		}
		t.loaded = weak.Make(known)
	}
	return known
}

// unfinished reports whether err may come from a metadata file that is being
// written, next to a version that is known to be whole.
func (t *Table) unfinished(whole bool, err error) bool {
	looks := errors.Is(err, errJSON) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, source.ErrChanged) || errors.Is(err, source.ErrTruncated)
	if !whole || !looks {
		t.doubted = time.Time{}
		return false
	}
	if t.doubted.IsZero() {
		t.doubted = time.Now()
		t.env.log.Warn("a metadata file looks half-written: the version before it is shown for now", "err", err)
	}
	return time.Since(t.doubted) < halfWritten
}

func (t *Table) report(err error) {
	switch {
	case err == nil:
		t.reported = ""
	case err.Error() != t.reported && !errors.Is(err, ErrGone) && !errors.Is(err, ErrUnavailable):
		t.reported = err.Error()
		t.env.log.Error("table cannot be loaded", "err", err)
	}
}

// read parses a metadata file. Versions are compared by the file's own, so that
// a file that cannot be parsed is not read again until it changes.
func (t *Table) read(ctx context.Context, o source.Object, a *access) (*Loaded, error) {
	raw, err := readMetadata(ctx, o, t.env.limits.metadata)
	if err != nil {
		return nil, err
	}
	t.env.stats.MetadataRead.Add(1)
	table, baked, err := parseMetadata(raw, t.env.limits, t.env.log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Location(), err)
	}
	prefixes := relocate(ctx, a.reach, folderOf(placeOf(o.Location())), baked)
	byID := make(map[int64]int, len(table.Snapshots))
	for i := range table.Snapshots {
		byID[table.Snapshots[i].ID] = i
	}
	loaded := &Loaded{
		env:     t.env,
		table:   table,
		byID:    byID,
		columns: &t.columns,
		origin:  o,
		store:   source.Mapped(a.files, prefixes),
	}
	t.env.newest.Store(loaded)
	return loaded, nil
}

// RawMetadata returns the current metadata JSON, decompressed, if it can be
// read even though Load fails.
func (t *Table) RawMetadata(ctx context.Context) ([]byte, error) {
	if err := t.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer t.gate.leave()
	if known := t.loaded.Value(); t.env.fresh(t.at) && known != nil {
		return known.table.Metadata, nil
	}
	o, _, err := t.finder.find(ctx)
	if err != nil {
		return nil, err
	}
	return readMetadata(ctx, o, t.env.limits.metadata)
}

// readMetadata reads a metadata file of at most so many bytes and decompresses
// it. It does so twice, and first to find out how long it is: nothing is allocated
// for a file that only claims to be one.
func readMetadata(ctx context.Context, o source.Object, limit int64) ([]byte, error) {
	stored, err := stored(ctx, o, limit)
	if err != nil {
		return nil, err
	}
	corrupt := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, o.Location(), err)
	}
	plain, compressed, err := decompress(bufio.NewReader(bytes.NewReader(stored)))
	if err != nil {
		return corrupt(err)
	}
	if !compressed {
		return stored, nil
	}
	n, err := io.Copy(io.Discard, io.LimitReader(plain, limit+1))
	if err != nil {
		return corrupt(err)
	}
	if n > limit {
		return nil, tooLarge(o.Location(), limit)
	}
	if plain, _, err = decompress(bufio.NewReader(bytes.NewReader(stored))); err != nil {
		return corrupt(err)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(plain, raw); err != nil {
		return corrupt(err)
	}
	return raw, nil
}

// stored returns a metadata file as it is stored: what a catalog has sent is not
// copied.
func stored(ctx context.Context, o source.Object, limit int64) ([]byte, error) {
	if sent, ok := o.(*inlineMetadata); ok && o.Size() <= limit {
		return sent.content, nil
	}
	return readAll(ctx, o, limit)
}

// readAll reads a whole object of at most so many bytes.
func readAll(ctx context.Context, o source.Object, limit int64) ([]byte, error) {
	if o.Size() > limit {
		return nil, tooLarge(o.Location(), limit)
	}
	b := make([]byte, o.Size())
	if _, err := o.ReadAt(ctx, b, 0); err != nil {
		return nil, err
	}
	return b, nil
}

// maxWindow bounds the window of zstd, twice what writers use at their highest
// usual level.
const maxWindow = 16 << 20

// decompress tells gzip and zstd by their first bytes: names do not always say.
func decompress(r *bufio.Reader) (plain io.Reader, compressed bool, err error) {
	magic, err := r.Peek(4)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(r)
		return plain, true, err
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		plain, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		return plain, true, err
	}
	return r, false, nil
}

// Loaded is a table at one metadata version. Immutable, but for what it has
// found out for its own use.
type Loaded struct {
	env    *env
	table  *snapshot.Table
	byID   map[int64]int // places in table.Snapshots
	origin source.Object // the metadata file
	store  source.Store

	columns  *keyColumns // the Table's
	recent   recent      // manifests
	foreseen atomic.Bool
}

// Table returns the table's values.
func (l *Loaded) Table() *snapshot.Table { return l.table }

// Store opens the table's files, wherever they have been moved to. A file that
// is replaced while it is in use stays source.ErrChanged.
func (l *Loaded) Store() source.Store { return l.store }
