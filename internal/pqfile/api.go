package pqfile

import (
	"context"
)

// Project maps the target's view onto f.
func (f *File) Project(t Target) (*Projection, error) { panic("skeleton") }

// ColumnReader reads one view column of one row group as vectors.
type ColumnReader struct{ _ int }

// Column starts reading column col (of f.Project) at the first row of a row
// group. A missing column decodes nothing, or only Levels' levels.
func (f *File) Column(rowGroup int, col *Column) (*ColumnReader, error) { panic("skeleton") }

// Read returns the next n rows (fewer only at the row group's end; io.EOF after
// it). The vector is valid until the next call. NULL in a required leaf is
// ErrCorrupt.
func (r *ColumnReader) Read(ctx context.Context, n int) (*Vector, error) { panic("skeleton") }

// Skip passes over n rows, decoding as little as the pages allow.
func (r *ColumnReader) Skip(ctx context.Context, n int64) error { panic("skeleton") }

// Close returns the reader's buffers.
func (r *ColumnReader) Close() { panic("skeleton") }
