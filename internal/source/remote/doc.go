// Package remote reads objects in object stores: what S3, GCS and Azure have in
// common, over a Bucket that each of them gives.
//
//	Stores -> Folders (an Access: roots, properties) -> object -> Bucket
//
// A Bucket makes one request and does not try again. Everything else is here:
//
//   - Every request is conditional on the version that the object had when it
//     was opened, and its answer is checked: version, range, length. Bytes of two
//     versions never meet; a replaced object is source.ErrChanged, for good.
//   - A request that failed for a reason that may pass (5xx, 429, a timeout, a
//     reset, a body that ends early or stalls) is made again, with backoff and
//     jitter, until the read's time is up.
//   - A bounded number of requests is under way at a time.
//   - An object is read in extents (source.Remote). An extent is fetched once for
//     all that wait for it, kept in memory while there is room, and on disk, where
//     other mounts find it: its key is endpoint, bucket, key, version, size and
//     range.
//   - Opening an object that was never seen reads its last bytes with its version
//     and size, in one request: that is where a Parquet footer is, and a small
//     object is all there. One that was seen before is asked for its version.
//
// Locations come from table metadata, which is untrusted: only what lies below
// an Access's roots is ever asked for. Secrets are in Access.Properties and the
// Buckets made of them; no error and no log line has them.
//
// All types are safe for concurrent use. Locks are held for map operations only.
package remote
