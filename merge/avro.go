package merge

import (
	"context"
	"fmt"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
)

// An Avro file has blocks but no row groups. A Parquet view cuts it into groups
// of at most avroGroupRows rows (a row group as engines like them) and about
// avroGroupBytes stored bytes (a few times that once decoded, for each of the
// groups that are made at a time), at the ends of blocks, or inside a block that
// is larger. The cuts follow from the file alone.
const (
	avroGroupRows  = 128 << 10
	avroGroupBytes = 8 << 20
)

// avroGroups returns the positions at which the groups begin, and the end, and
// how long each is as stored.
func avroGroups(blocks []avrofile.Block) (starts, stored []int64) {
	starts = []int64{0}
	bytes, end := int64(0), int64(0)
	cut := func(at int64) {
		if at > starts[len(starts)-1] {
			starts, stored = append(starts, at), append(stored, bytes)
		}
		bytes = 0
	}
	for _, b := range blocks {
		end = b.FirstRow + b.Rows
		if end-starts[len(starts)-1] > avroGroupRows || bytes+b.Size > avroGroupBytes {
			cut(b.FirstRow)
		}
		// A block that is too large by itself: equal pieces.
		pieces := max(ceilDiv(b.Rows, avroGroupRows), min(ceilDiv(b.Size, avroGroupBytes), b.Rows))
		for i := int64(1); i < pieces; i++ {
			bytes = b.Size / pieces
			cut(b.FirstRow + b.Rows*i/pieces)
		}
		bytes += b.Size / pieces
	}
	cut(end)
	return starts, stored
}

// ceilDiv divides rounding up.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// decodedRatio is a guess at how many bytes a stored one decodes to.
const decodedRatio = 4

// addRows decodes the visible rows of an Avro source once, into the writers of
// all runs.
func (t *together) addRows(ctx context.Context, s *groupSource, adders []adder) error {
	columns := make([]pqfile.Column, len(t.runs))
	for i, r := range t.runs {
		columns[i] = s.in.columns[r.form.leaf.Leaf]
	}
	reader, err := s.in.avro.RowReader(&pqfile.Projection{Columns: columns})
	if err != nil {
		return err
	}
	defer reader.Close()
	window := avroWindow(s.in.avro)
	var live []deletes.Range
	at := int64(0) // of the reader
	for from := s.first; from < s.first+s.rows; from += window {
		if err := ctx.Err(); err != nil {
			return err
		}
		live = s.in.deleted.LiveRanges(live[:0], from, min(from+window, s.first+s.rows))
		if len(live) == 0 {
			continue
		}
		start, end := live[0].Start, live[len(live)-1].End
		if err := reader.Skip(ctx, start-at); err != nil {
			return unexpectedEnd(err)
		}
		vectors, err := reader.Read(ctx, int(end-start))
		if err != nil {
			return unexpectedEnd(err)
		}
		at = end
		for i, v := range vectors {
			if int64(v.Rows) != end-start {
				return fmt.Errorf("%w: %s: %d rows where there should be %d", ErrCorrupt, s.in.file.Path, v.Rows, end-start)
			}
			if err := adders[i].add(v, live, start); err != nil {
				return fmt.Errorf("%s: column %q: %w", s.in.file.Path, columns[i].Leaf.Name, err)
			}
		}
		if encodedBytes(adders) > maxTogether {
			return fmt.Errorf("%w: %s: row group %d decodes to more than %d bytes", ErrUnsupported, s.in.file.Path, s.rowGroup, int64(maxTogether))
		}
	}
	return nil
}

// encodedBytes is how long the pages are that were made so far.
func encodedBytes(adders []adder) int64 {
	n := int64(0)
	for i := range adders {
		n += int64(len(adders[i].w.plain) + len(adders[i].w.levels))
	}
	return n
}

// avroWindow is how many rows of a file to decode at a time: about windowBytes
// of all columns.
func avroWindow(f *avrofile.File) int64 {
	stored := int64(0)
	for _, b := range f.Blocks {
		stored += b.Size
	}
	row := decodedRatio * stored / max(f.Rows, 1)
	return min(windowRows, max(windowBytes/max(row, 1), 1))
}
