// Package source reads immutable objects by range: data files, delete files,
// manifests and metadata, in local folders and object stores.
//
// An Object never changes under its reader: the bytes behind it are checked
// against its Version whenever a descriptor is opened anew, and after each read,
// and a difference is ErrChanged, for good. Objects need no closing (descriptors are pooled) and
// are safe for concurrent use.
//
// Every location comes from table metadata, which is untrusted: a Store opens
// only what lies under its roots.
package source

import (
	"context"
	"errors"
	"os"
)

// Sentinels; every error of this package wraps one of them (or a context
// error) and names the location once.
var (
	ErrNotFound    = errors.New("no such object")
	ErrTruncated   = errors.New("object is shorter than its metadata says")
	ErrChanged     = errors.New("object was replaced while mounted")
	ErrOutside     = errors.New("location is outside the allowed paths")
	ErrUnsupported = errors.New("location scheme is not supported")
	ErrRead        = errors.New("read failed")
)

// Object is one immutable object.
type Object interface {
	// ReadAt fills p with the bytes at off, or fails: n < len(p) only with an
	// error. A range past Size is ErrTruncated, never a short read. It returns
	// early when ctx ends.
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
	// Size is the object's length in bytes, fixed when it was opened.
	Size() int64
	// Version identifies the bytes: endpoint, path, version or etag or mtime,
	// and size. Equal versions mean equal bytes; cache keys start with it.
	Version() string
	// Location is the location as the metadata spells it, for messages.
	Location() string
}

// Store opens objects by location, exactly as metadata spells it (a URL or a
// path; never percent-decoded).
type Store interface {
	Open(ctx context.Context, location string) (Object, error)
}

// Classifier is a Store that knows, without looking, which locations lead to an object
// store. It depends on the location and on where the store leads it alone.
type Classifier interface {
	Store
	InStore(location string) bool
}

// InStore reports whether a location leads to an object store, as far as s knows.
func InStore(s Store, location string) bool {
	p, ok := s.(Classifier)
	return ok && p.InStore(location)
}

// Filer is an Object on a local file system, whose descriptors can be handed
// out, verified against Version when they were opened.
type Filer interface {
	Object
	// OpenFile returns a descriptor of the caller's own, which it closes.
	OpenFile() (*os.File, error)
	// Borrow returns a descriptor that others read from as well. The caller calls
	// release once it is done, and neither closes nor seeks it. If release fails,
	// the file has changed, and what was read is worth nothing.
	Borrow() (f *os.File, release func() error, err error)
}
