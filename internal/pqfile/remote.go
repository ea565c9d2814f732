package pqfile

import (
	"context"

	"github.com/icefs/icefs/internal/source"
)

// Prefetch lets the chunks of a row group that columns are made of be fetched
// together, if the file is in an object store. It does not wait. What is not read
// until ctx ends is dropped.
func (f *File) Prefetch(ctx context.Context, rowGroup int, columns []Column) {
	if remote, ok := f.Object.(source.Remote); ok {
		remote.Prefetch(ctx, f.Extents(rowGroup, columns))
	}
}

// Extents returns the extents in which the chunks of a row group that columns are
// made of are fetched from an object store.
func (f *File) Extents(rowGroup int, columns []Column) []source.Range {
	var extents []source.Range
	for i := range columns {
		for _, leaf := range columns[i].Stored() {
			if c, err := f.Chunk(rowGroup, leaf); err == nil {
				extents = append(extents, source.Extents(source.Range{Off: c.Start, Len: c.Length})...)
			}
		}
	}
	return extents
}

// fillRemote makes the window hold n bytes of a file in an object store. Its
// extents are those of the whole chunk, whatever part of it is scanned: an extent
// that holds all that is wanted becomes the window as it is.
func (s *PageScanner) fillRemote(ctx context.Context, remote source.Remote, n int64) error {
	for have := int64(len(s.window)); have < n; have = int64(len(s.window)) {
		at := s.pos + have
		start := s.chunk.Start + (at-s.chunk.Start)/source.MaxExtent*source.MaxExtent
		extent, err := remote.Extent(ctx, start, min(source.MaxExtent, s.chunk.Start+s.chunk.Length-start))
		if err != nil {
			return err
		}
		extent = extent[at-start : min(int64(len(extent)), s.to-start)]
		if have == 0 {
			s.window = extent[:len(extent):len(extent)]
			continue
		}
		s.window = append(s.window[:have:have], extent...)
	}
	return nil
}
