package reference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/iceberg-go"
)

// compareParquet compares a Parquet view with rows, in order.
func compareParquet(ctx context.Context, m *Merge, v View, rows iter.Seq2[Record, error]) error {
	w, err := open(ctx, v)
	if err != nil {
		return err
	}
	f, err := openParquet(ctx, w, w.size, nil)
	if err != nil {
		return w.wrap(err)
	}
	f.decode = hadoopDecoder(ctx, object{w})
	if err := sameColumns(f, m.Schema); err != nil {
		return err
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	p := &projector{table: m.Table}
	count := 0
	for g := range f.NumRowGroups() {
		stored, err := f.rowGroup(g)
		if err != nil {
			return w.wrap(fmt.Errorf("row group %d: %w", g, err))
		}
		if len(stored) == 0 {
			return different("row group %d has no rows", g)
		}
		if err := f.checkStatistics(g, stored); err != nil {
			return err
		}
		for _, s := range stored {
			got, err := p.record(m.Schema.Fields(), s)
			switch {
			case errors.Is(err, ErrUnsupported):
				return err
			case err != nil:
				return different("row %d: %v", count, err)
			}
			want, err, more := next()
			switch {
			case err != nil:
				return err
			case !more:
				return different("more than %d rows", count)
			case !Equal(got, want):
				return different("row %d (row group %d) is %v, has to be %v", count, g, got, want)
			}
			count++
		}
	}
	switch _, err, more := next(); {
	case err != nil:
		return err
	case more:
		return different("only %d rows", count)
	}
	return nil
}

// sameColumns compares names, order and field ids of the top level.
func sameColumns(f *parquetFile, schema *iceberg.Schema) error {
	var got, want []string
	for _, n := range f.root.children {
		got = append(got, fmt.Sprintf("%d %q", n.id, n.name))
	}
	for _, field := range schema.Fields() {
		want = append(want, fmt.Sprintf("%d %q", field.ID, field.Name))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return different("columns are %v, have to be %v", got, want)
	}
	return nil
}

// wrap tells errors of reading the view from errors in what it holds.
func (w *watched) wrap(err error) error {
	if w.err != nil {
		return fmt.Errorf("%w: %w", errView, w.err)
	}
	return different("%v", err)
}

// compareCSV compares a CSV view with rows, byte by byte.
func (o TextOptions) compareCSV(ctx context.Context, m *Merge, v View, rows iter.Seq2[Record, error]) error {
	return compareLines(ctx, v, o.csvHeader(m.Schema), rows, func(rec Record) string { return o.csvRow(m.Schema, rec) })
}

// compareJSONL compares a JSON Lines view with rows, byte by byte.
func compareJSONL(ctx context.Context, m *Merge, v View, rows iter.Seq2[Record, error]) error {
	return compareLines(ctx, v, "", rows, func(rec Record) string { return jsonRow(m.Schema, rec) })
}

// compareLines compares a text view with the lines it has to have.
func compareLines(ctx context.Context, v View, header string, rows iter.Seq2[Record, error], line func(Record) string) error {
	w, err := open(ctx, v)
	if err != nil {
		return err
	}
	r := &sequential{ctx: ctx, view: w}
	if err := r.expect([]byte(header), "the header"); err != nil {
		return err
	}
	count := 0
	for rec, err := range rows {
		if err != nil {
			// The rows end with an error; so does the view, or it is wrong.
			if _, viewErr := r.next(1); viewErr != nil && !errors.Is(viewErr, io.EOF) {
				return viewErr
			}
			return err
		}
		if err := r.expect([]byte(line(rec)), fmt.Sprintf("row %d", count)); err != nil {
			return err
		}
		count++
	}
	if r.off != w.size {
		return different("%d bytes after %d rows, size is %d", r.off, count, w.size)
	}
	return nil
}

// sequential reads a view from its start.
type sequential struct {
	ctx  context.Context
	view *watched
	off  int64 // of the bytes compared so far
	buf  []byte
}

// next returns the next n bytes, fewer only at the view's end.
func (s *sequential) next(n int) ([]byte, error) {
	const step = 1 << 17
	for len(s.buf) < n && s.off+int64(len(s.buf)) < s.view.size {
		at := s.off + int64(len(s.buf))
		p := make([]byte, min(step, s.view.size-at))
		got, err := s.view.ReadAt(s.ctx, p, at)
		if got < len(p) {
			return nil, fmt.Errorf("%w: at %d: %w", errView, at, err)
		}
		s.buf = append(s.buf, p...)
	}
	return s.buf[:min(n, len(s.buf))], nil
}

// expect compares the next bytes.
func (s *sequential) expect(want []byte, what string) error {
	got, err := s.next(len(want))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return different("%s at byte %d is %.300q, has to be %.300q", what, s.off, got, want)
	}
	s.off += int64(len(want))
	s.buf = s.buf[len(want):]
	return nil
}
