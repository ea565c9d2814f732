// Package pqfile reads Parquet files: footers, column chunks, pages and
// columns by field id, over a source.Object. It writes nothing to storage, but
// owns the thrift codec that package merge writes footers and page headers
// with.
//
// Layers, bottom up:
//
//   - metadata.go, thrift*.go: the footer's and the page header's structs, and
//     a compact-protocol codec of our own (bounded, with absent fields kept
//     absent);
//   - schema*.go, view.go: a logical tree of Nodes with field ids and levels, of
//     a file or of an Iceberg schema;
//   - chunk.go, page.go: a chunk's extent, its pages as stored and decoded;
//   - values.go, decode*.go: pages to Values;
//   - project*.go, convert*.go: an Iceberg schema over a file: which leaf, which
//     levels, which conversion, which constant;
//   - column*.go: a column of a row group as Vectors in the view's terms.
//
// Everything read from a file is untrusted: sizes are checked before they are
// allocated, indexes before they are used, and a decoder that panics is an
// ErrCorrupt. A File is immutable and safe for concurrent use; readers and
// scanners belong to one goroutine.
package pqfile
