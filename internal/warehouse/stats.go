package warehouse

import (
	"io/fs"
	"sync/atomic"
)

// Stats count what was read. All only grow.
type Stats struct {
	MetadataRead  atomic.Int64 // metadata files parsed
	ListsRead     atomic.Int64 // manifest lists parsed
	ManifestsRead atomic.Int64 // manifests parsed
}

type goneError struct{}

func (goneError) Error() string { return "no such table or namespace" }
func (goneError) Unwrap() error { return fs.ErrNotExist }
