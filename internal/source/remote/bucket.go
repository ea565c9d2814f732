package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/icefs/icefs/internal/source"
)

// Scheme is a kind of object store.
type Scheme struct {
	// Names are the schemes of its URLs, without "://".
	Names []string
	// Split takes a URL behind its "://" apart. What it calls bucket is all that
	// Open needs; key is empty for the bucket itself.
	Split func(rest string) (bucket, key string, err error)
	// Open returns a bucket. It makes no request for objects, but may ask for
	// credentials where the environment gives them.
	Open func(ctx context.Context, bucket string, properties map[string]string) (Bucket, error)
}

// SplitBucket is the Split of stores whose URLs are those of scheme with
// BUCKET/KEY behind it. Nothing is decoded.
func SplitBucket(scheme string) func(rest string) (bucket, key string, err error) {
	return func(rest string) (bucket, key string, err error) {
		bucket, key, _ = strings.Cut(rest, "/")
		if bucket == "" || strings.ContainsAny(bucket, "@?#:%\\ ") {
			return "", "", fmt.Errorf("the name of a bucket comes after %s://", scheme)
		}
		return bucket, key, nil
	}
}

// Bucket makes requests, each once. An answer of the store that is not success is
// a *StatusError; other errors are taken for those of the network.
type Bucket interface {
	// Endpoint tells which store it is, for cache keys: equal endpoints, buckets
	// and keys are one object. It has no secret.
	Endpoint() string
	// Get asks for a range of an object.
	Get(ctx context.Context, r Request) (*Reply, error)
	// Head asks for an object's version and size.
	Head(ctx context.Context, key string) (Info, error)
	// List asks for a page of the names below a prefix, up to the next slash.
	List(ctx context.Context, prefix, token string) (*Page, error)
}

// Request is a range of an object.
type Request struct {
	Key string
	// Off and Len are the range; Off < 0 asks for the last -Off bytes, or all.
	Off, Len int64
	// Match is the version that the object has to be; empty = any.
	Match string
}

// Info is what a store tells about an object.
type Info struct {
	Size int64
	// Version changes whenever the bytes do: an ETag or a generation.
	Version string
}

// Reply is an answer with a body of Len bytes, those from Off of the object.
type Reply struct {
	Info
	Off, Len int64
	Body     io.ReadCloser
}

// ParseContentRange parses the header of that name: "bytes FIRST-LAST/SIZE".
func ParseContentRange(s string) (off, n, size int64, err error) {
	var last int64
	var rest string
	if k, _ := fmt.Sscanf(s, "bytes %d-%d/%d%s", &off, &last, &size, &rest); k != 3 || off < 0 || last < off || last >= size {
		return 0, 0, 0, fmt.Errorf("%w: the answer's Content-Range is %q", source.ErrRead, s)
	}
	return off, last - off + 1, size, nil
}

// Page is a page of a listing. Names are those below the prefix, without it.
type Page struct {
	Folders []string
	Objects []string
	Next    string // token of the next page; empty if this is the last
}

// ErrNoAnswer is an answer of success without what it has to have: an object's
// version, a listing. Something on the way has answered, or the store in a bad
// moment: the request is made again.
var ErrNoAnswer = errors.New("the store's answer is empty")

// StatusError is an answer that is not success. HTTP's codes stand for their
// meanings also where a store does not speak HTTP.
type StatusError struct {
	Code int
	// Reason is the store's own word: SlowDown, NoSuchKey.
	Reason string
}

// Error implements error.
func (e *StatusError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("the store answers %d", e.Code)
	}
	return fmt.Sprintf("the store answers %d %s", e.Code, e.Reason)
}
