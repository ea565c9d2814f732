package source

import "context"

// Pool bounds the open descriptors of local objects.
type Pool struct{}

// NewPool returns a pool of at most max idle descriptors; 0 = DefaultOpenFiles.
func NewPool(max int) *Pool { panic("skeleton") }

// DefaultOpenFiles leaves room under the common soft limit of 256 descriptors.
const DefaultOpenFiles = 128

// Local is a Store of the local file system below its roots.
type Local struct{}

var _ Store = (*Local)(nil)

// NewLocal returns a store of the folders roots.
func NewLocal(pool *Pool, roots ...string) (*Local, error) { panic("skeleton") }

// With returns a store of l's roots and further ones.
func (l *Local) With(roots ...string) (*Local, error) { panic("skeleton") }

// Open implements Store. A location is a path, file:/path or file:///path.
func (l *Local) Open(ctx context.Context, location string) (Object, error) { panic("skeleton") }
