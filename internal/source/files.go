package source

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Access says how the files of a catalog, or of one table in it, are reached in
// object stores. Its properties may hold secrets: an Access is never printed.
type Access struct {
	// Roots are the locations (s3://bucket/warehouse) that files have to lie at
	// or below.
	Roots []string
	// Properties are file-IO properties by the names that Iceberg's
	// implementations share: s3.endpoint, s3.region, s3.access-key-id,
	// gcs.oauth2.token, adls.sas-token.… (docs/object-stores.md lists them).
	Properties map[string]string
	// Renew returns Properties anew when those given, vended by a catalog for a
	// time, are no longer accepted. Nil: they last.
	Renew func(ctx context.Context) (map[string]string, error)
}

// Folders is a Store of objects that can be listed like folders. Safe for
// concurrent use.
type Folders interface {
	Store
	// ReadDir calls each with the entries of the folder at a location, in no
	// order, until it returns false. A folder without entries is ErrNotFound:
	// object stores know none. Entries have names and types alone.
	ReadDir(ctx context.Context, location string, each func(fs.DirEntry) bool) error
}

// Remotes opens the object stores behind URLs. It is safe for concurrent use,
// and stores of equal properties share connections.
type Remotes interface {
	// Folders returns what can be reached by a. It makes no request. A location
	// of a scheme that the program was built without is ErrUnsupported, one
	// outside the roots ErrOutside.
	Folders(a Access) (Folders, error)
}

// Files is a Store of what may be read: local files below the roots of a Local,
// and objects below those of a Folders. A location goes to one or the other by
// its spelling, never to both. Safe for concurrent use.
type Files struct {
	local  *Local
	remote Folders // nil = none
	roots  []string
}

var (
	_ Folders    = (*Files)(nil)
	_ Classifier = (*Files)(nil)
)

// NewFiles returns a store of local's files and remote's (which may be nil)
// objects. remoteRoots are the roots that remote was made with.
func NewFiles(local *Local, remote Folders, remoteRoots ...string) *Files {
	return &Files{local: local, remote: remote, roots: append(local.Roots(), remoteRoots...)}
}

// IsURL reports whether a location has a scheme other than file:.
func IsURL(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	return ok && scheme != "file" && scheme != "" && !strings.ContainsAny(scheme, "/.")
}

// SameURL reports whether two URLs name one object or folder. Some stores have
// several schemes: that of Hadoop's client, s3a (and s3n), is s3.
func SameURL(a, b string) bool {
	return strings.TrimSuffix(StoreURL(a), "/") == strings.TrimSuffix(StoreURL(b), "/")
}

// StoreURL returns a URL with the one scheme that its store is known by here.
// It changes nothing else: position deletes name files as they are spelled.
func StoreURL(location string) string {
	for _, scheme := range []string{"s3a://", "s3n://"} {
		if rest, ok := strings.CutPrefix(location, scheme); ok {
			return "s3://" + rest
		}
	}
	return location
}

// Local returns the local side.
func (f *Files) Local() *Local { return f.local }

// Remote reports whether an object store can be reached.
func (f *Files) Remote() bool { return f.remote != nil }

// Roots returns the roots of both sides, local ones first.
func (f *Files) Roots() []string { return slices.Clone(f.roots) }

// side returns the store that a location belongs to.
func (f *Files) side(location string) (Folders, error) {
	if !IsURL(location) {
		return f.local, nil
	}
	if f.remote == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, location)
	}
	return f.remote, nil
}

// InStore implements Classifier.
func (f *Files) InStore(location string) bool { return f.remote != nil && IsURL(location) }

// Open implements Store.
func (f *Files) Open(ctx context.Context, location string) (Object, error) {
	s, err := f.side(location)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, location)
}

// ReadDir implements Folders.
func (f *Files) ReadDir(ctx context.Context, location string, each func(fs.DirEntry) bool) error {
	s, err := f.side(location)
	if err != nil {
		return err
	}
	return s.ReadDir(ctx, location, each)
}

// IsDir reports whether a location is a folder below a root; in an object store,
// whether anything lies below it.
func (f *Files) IsDir(ctx context.Context, location string) bool {
	if !IsURL(location) {
		return f.local.IsDir(location)
	}
	found := false
	err := f.ReadDir(ctx, location, func(fs.DirEntry) bool {
		found = true
		return false
	})
	return found && err == nil
}

// Exists reports whether a location is a file below a root.
func (f *Files) Exists(ctx context.Context, location string) bool {
	if !IsURL(location) {
		return f.local.Exists(location)
	}
	_, err := f.Open(ctx, location)
	return err == nil
}
