package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/pqfile"
)

// Batches are as large as keeps their cells and values in the processor's
// caches: at most batchRows rows, batchCells cells, and about batchBytes of
// decoded values (one row may have more).
const (
	batchRows  = 4096
	batchCells = 1 << 16
	batchBytes = 4 << 20
)

// textCursor formats the rows of one row group in order, whether to stream or
// to serve them, or measures them. Not safe for concurrent use.
type textCursor struct {
	in       *textInput
	reader   rowReader
	batch    *textBatch
	first    int64 // file position of row 0
	rows     int64 // of the row group
	row      int64 // next row to look at
	read     int64 // rows the reader has passed
	window   int64 // rows looked at at a time
	workers  int
	lengths  bool  // rows are measured: the batch has their lengths alone
	rowBytes int64 // decoded bytes of a row, estimated
	vectors  [][]*pqfile.Vector

	base int64           // row of the batch's first row
	live []deletes.Range // live rows of the batch, as batch rows
}

// cursor starts formatting row group g with up to workers columns at a time.
func (in *textInput) cursor(g, workers int) (*textCursor, error) {
	batch, err := in.setup.batch()
	if err != nil {
		return nil, err
	}
	reader, bytes, err := in.source.rows(g)
	if err != nil {
		return nil, err
	}
	first := in.source.groups()
	c := &textCursor{in: in, reader: reader, batch: batch, first: first[g], rows: first[g+1] - first[g], rowBytes: bytes, workers: min(workers, len(batch.columns))}
	leaves := 1
	for _, column := range batch.columns {
		c.vectors = append(c.vectors, make([]*pqfile.Vector, len(column.leaves)))
		leaves += len(column.leaves)
	}
	c.window = max(1, min(batchRows, int64(batchCells/leaves), batchBytes/max(bytes, 1)))
	return c, nil
}

// close releases the reader's and the batch's buffers.
func (c *textCursor) close() {
	c.reader.close()
	if c.batch != nil {
		c.in.setup.keep(c.batch)
		c.batch = nil
	}
}

// bytes estimates the heap that the cursor keeps: a page or dictionary a leaf,
// unless the row group is smaller, and the texts of a batch and of dictionaries.
func (c *textCursor) bytes() int64 {
	leaves := int64(len(c.in.setup.view.Leaves))
	return min(leaves<<19, c.rows*c.rowBytes) + batchBytes/4 + int64(c.batch.bytes())
}

// fill formats the next batch that has a live row before row end; false if
// there is none, and then row end is reached. Rows in long dead runs are not
// decoded.
func (c *textCursor) fill(ctx context.Context, end int64) (bool, error) {
	for c.row < end {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		from, to := c.row, min(c.row+c.window, end)
		c.row = to
		c.live = c.in.deleted.LiveRanges(c.live[:0], c.first+from, c.first+to)
		if len(c.live) == 0 {
			continue
		}
		c.base = c.live[0].Start - c.first
		n := int(c.live[len(c.live)-1].End - c.live[0].Start)
		for i := range c.live {
			c.live[i].Start -= c.first + c.base
			c.live[i].End -= c.first + c.base
		}
		if err := c.format(ctx, n); err != nil {
			return false, err
		}
		c.read = c.base + int64(n)
		return true, nil
	}
	return false, nil
}

// format formats or measures n rows from row base.
func (c *textCursor) format(ctx context.Context, n int) error {
	if err := c.reader.batch(ctx, c.base-c.read, n); err != nil {
		return err
	}
	c.batch.begin(n, c.workers)
	var next atomic.Int64
	work := func(ctx context.Context, worker int) error {
		for i := int(next.Add(1)) - 1; i < len(c.batch.columns); i = int(next.Add(1)) - 1 {
			if err := c.column(ctx, i, worker); err != nil {
				return err
			}
		}
		return nil
	}
	if c.workers < 2 {
		if err := work(ctx, 0); err != nil {
			return err
		}
	} else {
		g, ctx := errgroup.WithContext(ctx)
		for w := range c.workers {
			g.Go(func() error { return pqfile.Protect(func() error { return work(ctx, w) }) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	c.batch.finish()
	if !c.lengths {
		c.batch.setStrips()
	}
	return nil
}

// column reads top-level column i of the batch's rows and formats or measures it.
func (c *textCursor) column(ctx context.Context, i, worker int) error {
	column := c.batch.columns[i]
	for j, leaf := range column.leaves {
		v, err := c.reader.column(ctx, leaf)
		if err != nil {
			return err
		}
		c.vectors[i][j] = v
	}
	sum := c.batch.sums[worker]
	err := error(nil)
	if c.lengths {
		err = column.addLengths(sum, c.vectors[i])
	} else if err = column.format(c.batch.rows, c.vectors[i]); err == nil {
		column.cells.addLengths(sum)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.in.file.Path, errColumn(c.in.setup.view.Root.Children[i], err))
	}
	return nil
}

// appendTo appends the text of the live rows before row end.
func (c *textCursor) appendTo(ctx context.Context, dst []byte, end int64) ([]byte, error) {
	for {
		more, err := c.fill(ctx, end)
		if err != nil || !more {
			return dst, err
		}
		bytes := 0
		for _, live := range c.live {
			for _, n := range c.batch.lengths[live.Start:live.End] {
				bytes += n
			}
		}
		dst = c.batch.appendRows(dst, c.live, bytes, c.workers)
	}
}

// unexpectedEnd turns io.EOF, inside the rows that a footer promises, into an
// error that no reader takes for the end of the view.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: row group ends early", ErrCorrupt)
	}
	return err
}
