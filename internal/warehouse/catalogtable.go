package warehouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/icefs/icefs/internal/source"
)

// catalogTable finds the metadata that a catalog names or sends. Table.gate
// guards it.
type catalogTable struct {
	env       *env
	remote    remote
	shared    *sharedAccess
	namespace []string
	name      string

	tag    string        // of the last answer
	object source.Object // that it led to, unless sent is set
	sent   weak.Pointer[inlineMetadata]
	access *access
	reach  string // what access was made for (accessKey)
}

var _ finder = (*catalogTable)(nil)

// find implements finder.
func (t *catalogTable) find(ctx context.Context) (source.Object, *access, error) {
	last := t.last()
	if last == nil { // an answer that it is unchanged would be of no use
		t.tag = ""
	}
	f, err := t.remote.table(ctx, t.namespace, t.name, t.tag)
	if err != nil {
		return nil, nil, fmt.Errorf("table %s: %w", dotted(t.namespace, t.name), err)
	}
	if f.unchanged && last != nil {
		return last, t.access, nil
	}
	t.tag = ""
	o, a, err := t.open(ctx, f)
	if err != nil {
		return nil, nil, fmt.Errorf("table %s: %w", dotted(t.namespace, t.name), err)
	}
	t.tag, t.object, t.access = f.tag, o, a
	if sent, ok := o.(*inlineMetadata); ok { // the Loaded that is made of it holds it
		t.object, t.sent = nil, weak.Make(sent)
	}
	return o, a, nil
}

// last returns the metadata file that the last answer led to, nil if there is none
// or it was given up.
func (t *catalogTable) last() source.Object {
	if t.object != nil {
		return t.object
	}
	if sent := t.sent.Value(); sent != nil {
		return sent
	}
	return nil
}

// open opens the metadata.
func (t *catalogTable) open(ctx context.Context, f found) (source.Object, *access, error) {
	place, a, err := t.place(ctx, f)
	switch {
	case err != nil:
		return nil, nil, err
	case f.inline != nil:
		return newInlineMetadata(place, f.inline), a, nil
	case t.object != nil && t.object.Location() == place && source.IsURL(place):
		return t.object, a, nil // a metadata file is written once
	}
	o, err := a.reach.Open(ctx, place) // its absence is not ErrGone: the catalog has the table
	return o, a, err
}

// place is where the metadata lies, and what the table's files are opened with.
// Files that the catalog names but that are not there have been moved: they are
// looked for below the roots. So are those in an object store if there are local
// roots.
func (t *catalogTable) place(ctx context.Context, f found) (string, *access, error) {
	mine, reach := &t.env.access, t.env.reach
	exists := func(location string) bool { return reach.Exists(ctx, location) }
	if source.IsURL(f.location) {
		if place, ok := findBelow(reach.Local().Roots(), f.location, exists); ok {
			return place, mine, nil
		}
		a, err := t.accessTo(f)
		return f.location, a, err
	}
	if exists(f.location) {
		return f.location, mine, nil
	}
	if place, ok := findBelow(reach.Roots(), f.location, exists); ok {
		return place, mine, nil
	}
	if f.inline != nil && reach.IsDir(ctx, folderOf(f.location)) {
		return f.location, mine, nil
	}
	if _, err := reach.Open(ctx, f.location); err != nil {
		return "", nil, fmt.Errorf("%w (name the folder that tables lie in with the catalog's warehouse=DIR or --allow-path=DIR)", err)
	}
	return f.location, mine, nil
}

// access is what a table's files are opened with.
type access struct {
	reach *source.Files // with all its roots
	files source.Store  // the same, for files that snapshots refer to: each keeps its first version
}

func newAccess(reach *source.Files) *access { return &access{reach, source.Pinned(reach)} }

// accessTo returns what the files of a table are opened with. In an object store
// that is whatever lies below the roots that the user gave; or what the catalog
// has lent credentials for; or, if there is neither, the bucket that the catalog
// names for the table's metadata. What metadata itself says grants nothing.
func (t *catalogTable) accessTo(f found) (*access, error) {
	var roots []string
	for _, root := range append(t.env.reach.Roots(), f.granted...) {
		if source.IsURL(root) {
			roots = append(roots, root)
		}
	}
	if !slices.ContainsFunc(roots, func(root string) bool { return isBelow(f.location, root) }) {
		roots = append(roots, bucketOf(f.location))
	}
	props := maps.Clone(f.access)
	if props == nil {
		props = map[string]string{}
	}
	maps.Copy(props, t.env.opt.Properties)
	if !f.vended {
		return t.shared.get(t.env, roots, props)
	}
	// Lent credentials change with every answer; Renew gets new ones when they have
	// run out. Files that are open stay open.
	key := accessKey(roots, props, true)
	if t.access != nil && t.reach == key {
		return t.access, nil
	}
	a, err := t.env.accessTo(source.Access{Roots: roots, Properties: props, Renew: t.renew})
	if err == nil {
		t.reach = key
	}
	return a, err
}

// renew asks the catalog for credentials. It is called while files are read, and
// takes no lock.
func (t *catalogTable) renew(ctx context.Context) (map[string]string, error) {
	f, err := t.remote.table(ctx, t.namespace, t.name, "")
	if err != nil {
		return nil, fmt.Errorf("table %s: new credentials: %w", dotted(t.namespace, t.name), err)
	}
	props := maps.Clone(f.access)
	maps.Copy(props, t.env.opt.Properties)
	return props, nil
}

// accessTo adds object stores to what can be reached anyhow.
func (e *env) accessTo(a source.Access) (*access, error) {
	if e.opt.Remotes == nil {
		return nil, fmt.Errorf("%w: %s", source.ErrUnsupported, a.Roots[0])
	}
	folders, err := e.opt.Remotes.Folders(a)
	if err != nil {
		return nil, err
	}
	return newAccess(source.NewFiles(e.reach.Local(), folders, a.Roots...)), nil
}

// sharedAccess keeps one access for all tables of a catalog that have the same
// roots and properties.
type sharedAccess struct {
	mu   sync.Mutex // guards made
	made map[string]*access
}

func newSharedAccess() *sharedAccess { return &sharedAccess{made: map[string]*access{}} }

func (s *sharedAccess) get(e *env, roots []string, props map[string]string) (*access, error) {
	key := accessKey(roots, props, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.made[key]; a != nil {
		return a, nil
	}
	a, err := e.accessTo(source.Access{Roots: roots, Properties: props})
	if err == nil {
		s.made[key] = a
	}
	return a, err
}

// accessKey tells one access from another. Lent ones differ by more than their
// credentials only.
func accessKey(roots []string, props map[string]string, lent bool) string {
	h := sha256.New()
	for _, root := range roots {
		fmt.Fprintf(h, "%q\n", root)
	}
	for _, key := range slices.Sorted(maps.Keys(props)) {
		if !lent || strings.HasSuffix(key, "endpoint") || strings.HasSuffix(key, "region") {
			fmt.Fprintf(h, "%q=%q\n", key, props[key])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// isBelow reports whether a URL is root or below it.
func isBelow(location, root string) bool {
	location, root = source.StoreURL(location), strings.TrimSuffix(source.StoreURL(root), "/")
	return location == root || strings.HasPrefix(location, root+"/")
}

// bucketOf returns the scheme and the host of a URL.
func bucketOf(location string) string {
	scheme, rest, _ := strings.Cut(location, "://")
	bucket, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + bucket
}

// inlineMetadata is a metadata file that a catalog has sent.
type inlineMetadata struct {
	location string
	version  string
	content  []byte
}

var _ source.Object = (*inlineMetadata)(nil)

func newInlineMetadata(location string, content []byte) *inlineMetadata {
	sum := sha256.Sum256(content)
	return &inlineMetadata{location, "catalog:" + location + "|" + hex.EncodeToString(sum[:]), content}
}

func (o *inlineMetadata) Size() int64      { return int64(len(o.content)) }
func (o *inlineMetadata) Version() string  { return o.version }
func (o *inlineMetadata) Location() string { return o.location }

// ReadAt implements source.Object.
func (o *inlineMetadata) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off > o.Size() {
		return 0, fmt.Errorf("%w: %s", source.ErrTruncated, o.location)
	}
	n := copy(p, o.content[off:])
	if n < len(p) {
		return n, fmt.Errorf("%w: %s: %w", source.ErrTruncated, o.location, io.ErrUnexpectedEOF)
	}
	return n, nil
}
