package warehouse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/internal/source"
)

// finder finds a table's current metadata file.
type finder interface {
	// find opens the file. It also returns what the files of the table's snapshots
	// are opened with.
	find(ctx context.Context) (source.Object, *access, error)
}

// pinnedFile is a table mounted at one metadata file.
type pinnedFile struct {
	env  *env
	path string
}

func (p pinnedFile) find(ctx context.Context) (source.Object, *access, error) {
	return p.env.open(ctx, p.path)
}

// open opens a metadata file of a folder: without it there is no table.
func (e *env) open(ctx context.Context, location string) (source.Object, *access, error) {
	o, err := e.reach.Open(ctx, location)
	if err != nil {
		return nil, nil, gone(err)
	}
	return o, &e.access, nil
}

// folderTable finds the current metadata file of a table's folder:
//
//   - the version that version-hint.text names, if it is there, then forward as
//     long as the next version is;
//   - else the highest number, unless a lower one has a newer last-updated-ms:
//     that is a table dropped and created again in place. A difference below
//     clockSkew within one table (by uuid) is the writers' clocks instead.
//
// Not safe for concurrent use: Table.gate guards it.
type folderTable struct {
	env   *env
	dir   string          // of the metadata files
	heads map[string]head // by version of the file
	tie   string          // the last choice that was logged
}

var _ finder = (*folderTable)(nil)

// newFolderTable returns the finder of the table with its metadata files in dir.
func newFolderTable(e *env, dir string) *folderTable {
	return &folderTable{env: e, dir: dir, heads: map[string]head{}}
}

// metadataName is a parsed name of a metadata file.
type metadataName struct {
	name   string
	number int64 // -1 if the name has none
	hadoop bool  // vN.metadata.json, as file-system catalogs number them
}

// parseMetadataName parses vN.metadata.json, NNNNN-uuid.metadata.json and their
// compressed spellings .gz.metadata.json and .metadata.json.gz (also .zstd). A
// bare uuid is a file that its writer has not renamed yet: it has no number.
func parseMetadataName(name string) (metadataName, bool) {
	stem := name
	for _, codec := range []string{".gz", ".zstd"} {
		stem = strings.TrimSuffix(stem, codec)
	}
	stem, ok := strings.CutSuffix(stem, ".metadata.json")
	if !ok || strings.HasPrefix(name, ".") {
		return metadataName{}, false
	}
	for _, codec := range []string{".gz", ".zstd"} {
		stem = strings.TrimSuffix(stem, codec)
	}
	m := metadataName{name: name, number: -1}
	digits, rest, ok := leadingDigits(strings.TrimPrefix(stem, "v"))
	switch {
	case !ok || isUUID(stem):
	case rest == "" && stem[0] == 'v':
		m.number, m.hadoop = digits, true
	case len(rest) > 1 && rest[0] == '-':
		m.number = digits
	}
	return m, true
}

// leadingDigits splits off the number that a name begins with.
func leadingDigits(name string) (number int64, rest string, ok bool) {
	end := 0
	for end < len(name) && '0' <= name[end] && name[end] <= '9' {
		end++
	}
	number, err := strconv.ParseInt(name[:end], 10, 64)
	return number, name[end:], err == nil
}

// isUUID reports whether a name has the form 8-4-4-4-12.
func isUUID(name string) bool {
	for i, c := range []byte(name) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
		if dash && c != '-' || !dash && !hex {
			return false
		}
	}
	return len(name) == 36
}

// find implements finder.
func (t *folderTable) find(ctx context.Context) (source.Object, *access, error) {
	location, err := t.locate(ctx)
	if err != nil {
		return nil, nil, err
	}
	return t.env.open(ctx, location)
}

// locate returns the location of the current metadata file.
func (t *folderTable) locate(ctx context.Context) (string, error) {
	var names []metadataName
	hinted := false
	err := t.env.reach.ReadDir(ctx, t.dir, func(d os.DirEntry) bool {
		if m, ok := parseMetadataName(d.Name()); ok {
			names = append(names, m)
		}
		hinted = hinted || d.Name() == hintName
		return true
	})
	if err != nil {
		return "", gone(err)
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%w: no metadata file in %s", ErrGone, t.dir)
	}
	if hinted {
		if name, err := t.hinted(ctx, names); name != "" || err != nil {
			return join(t.dir, name), err
		}
	}
	name, err := t.newest(ctx, names)
	if err != nil {
		return "", err
	}
	return join(t.dir, name), nil
}

const hintName = "version-hint.text"

// maxHint bounds what is read of version-hint.text: a number or a file name.
const maxHint = 1024

// hinted returns the file that version-hint.text leads to; empty if it does not
// resolve, or is gone by now.
func (t *folderTable) hinted(ctx context.Context, names []metadataName) (string, error) {
	o, err := t.env.reach.Open(ctx, join(t.dir, hintName))
	if errors.Is(err, source.ErrNotFound) || err == nil && o.Size() > maxHint {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text := make([]byte, o.Size())
	if _, err := o.ReadAt(ctx, text, 0); errors.Is(err, source.ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	at, ok := resolveHint(strings.TrimSpace(string(text)), names)
	if !ok {
		return "", nil
	}
	for at.number >= 0 {
		next := numbered(names, at.number+1, at.hadoop)
		if len(next) == 0 {
			break
		}
		if len(next) > 1 {
			return "", nil // several files of one number: decided by their contents
		}
		at = next[0]
	}
	return at.name, nil
}

// unread reports whether err says that bytes could not be had: it tells nothing
// of what they are, and may be over at the next try.
func unread(err error) bool {
	for _, e := range []error{source.ErrRead, source.ErrNotFound, source.ErrTruncated, source.ErrChanged, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// resolveHint finds the file a hint means: a number (of vN, else of the only
// NNNNN-uuid with it), or a file name with or without its extension.
func resolveHint(hint string, names []metadataName) (metadataName, bool) {
	if n, err := strconv.ParseInt(hint, 10, 64); err == nil {
		for _, hadoop := range []bool{true, false} {
			if found := numbered(names, n, hadoop); len(found) == 1 {
				return found[0], true
			}
		}
		return metadataName{}, false
	}
	i := slices.IndexFunc(names, func(m metadataName) bool {
		return m.name == hint || hint != "" && strings.HasPrefix(m.name, hint+".")
	})
	if i < 0 {
		return metadataName{}, false
	}
	return names[i], true
}

func numbered(names []metadataName, number int64, hadoop bool) (found []metadataName) {
	for _, m := range names {
		if m.number == number && m.hadoop == hadoop {
			found = append(found, m)
		}
	}
	return found
}

// clockSkew is how far apart the clocks of one table's writers may be (the
// tolerance of the Java implementation when it checks its logs).
const clockSkew = 60_000 // ms

// newest chooses by number and last-updated-ms, and logs what was not plain. A
// file that cannot be read might be the newest: it is an error.
func (t *folderTable) newest(ctx context.Context, names []metadataName) (string, error) {
	slices.SortFunc(names, func(a, b metadataName) int {
		if a.number != b.number {
			return int(max(-1, min(1, b.number-a.number)))
		}
		return strings.Compare(b.name, a.name)
	})
	best := names[0]
	if len(names) == 1 {
		return best.name, nil
	}
	heads := map[string]head{}
	if source.IsURL(t.dir) {
		if err := t.readHeads(ctx, names, heads); err != nil {
			return "", err
		}
	}
	bestHead, err := t.head(ctx, best.name, heads)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if unread(err) {
			return "", err
		}
		t.heads = heads
		return best.name, nil // its parse will say what is wrong
	}
	reason := ""
	for _, m := range names[1:] {
		if m.number < 0 && best.number >= 0 {
			break // not renamed yet
		}
		h, err := t.head(ctx, m.name, heads)
		if err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			if unread(err) && !errors.Is(err, source.ErrNotFound) {
				return "", err
			}
			continue
		}
		newer := h.LastUpdated > bestHead.LastUpdated
		if m.number < best.number && h.UUID == bestHead.UUID {
			newer = h.LastUpdated > bestHead.LastUpdated+clockSkew
		}
		switch {
		case newer && m.number < best.number:
			reason = "a lower version is newer: taken for a table created again"
		case m.number == best.number:
			reason = "several metadata files of one version: the newest is taken"
		}
		if newer {
			best, bestHead = m, h
		}
	}
	t.heads = heads
	if reason != "" && t.tie != best.name {
		t.tie = best.name
		t.env.log.Warn(reason, "file", join(t.dir, best.name))
	}
	return best.name, nil
}

// head is the part of a metadata file that tells which is current.
type head struct {
	LastUpdated int64
	UUID        string
}

// readHeads reads the heads of files in an object store, several at a time. There
// a name with a uuid stands for its bytes: it is not asked for again.
func (t *folderTable) readHeads(ctx context.Context, names []metadataName, keep map[string]head) error {
	read := make([]map[string]head, len(names))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(remoteListings)
	for i, m := range names {
		if h, ok := t.heads[m.name]; ok && !m.hadoop {
			keep[m.name] = h
			continue
		}
		g.Go(func() error {
			read[i] = map[string]head{}
			_, _ = t.head(gctx, m.name, read[i]) // whoever needs it meets the error
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return ctx.Err()
	}
	for i, m := range names {
		for version, h := range read[i] {
			keep[version] = h
			if !m.hadoop {
				keep[m.name] = h
			}
		}
	}
	return nil
}

// head reads the head of a metadata file, once for each version of the file.
func (t *folderTable) head(ctx context.Context, name string, keep map[string]head) (head, error) {
	if h, ok := keep[name]; ok {
		return h, nil
	}
	o, err := t.env.reach.Open(ctx, join(t.dir, name))
	if err != nil {
		return head{}, err
	}
	h, ok := t.heads[o.Version()]
	if !ok {
		if h, err = readHead(ctx, o, t.env.limits.metadata); err != nil {
			return head{}, err
		}
	}
	keep[o.Version()] = h
	return h, nil
}

// readHead decodes a metadata file only as far as its head, which writers put
// first. Other members are passed over token by token.
func readHead(ctx context.Context, o source.Object, limit int64) (h head, err error) {
	plain, _, err := decompress(bufio.NewReaderSize(&sequential{ctx: ctx, object: o}, 4<<10))
	if err != nil {
		return h, err
	}
	corrupt := func(err error) (head, error) {
		return head{}, fmt.Errorf("%w: %s: %w", ErrCorrupt, o.Location(), err)
	}
	d := json.NewDecoder(io.LimitReader(plain, limit))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return corrupt(errors.New("not a JSON object"))
	}
	for seen := 0; seen < 2; {
		token, err := d.Token()
		if err != nil {
			return corrupt(err)
		}
		switch token {
		case json.Delim('}'):
			if seen == 0 {
				return corrupt(errors.New("no last-updated-ms"))
			}
			return h, nil
		case "last-updated-ms":
			err = d.Decode(&h.LastUpdated)
			seen++
		case "table-uuid":
			err = d.Decode(&h.UUID)
			seen++
		default:
			err = passValue(d)
		}
		if err != nil {
			return corrupt(err)
		}
	}
	return h, nil
}

// passValue passes over a value.
func passValue(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxNesting {
				return errNested
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// sequential reads an object from its beginning.
type sequential struct {
	ctx    context.Context
	object source.Object
	off    int64
}

// Read implements io.Reader.
func (s *sequential) Read(p []byte) (int, error) {
	left := s.object.Size() - s.off
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := s.object.ReadAt(s.ctx, p[:min(int64(len(p)), left)], s.off)
	s.off += int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
