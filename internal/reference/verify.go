package reference

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/icefs/icefs/internal/source"
)

// View is what is verified: one file of a snapshot directory.
type View interface {
	Size(ctx context.Context) (int64, error)
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

// Views are the files of one snapshot directory; nil ones are not verified.
type Views struct {
	Parquet, CSV, JSONL View
	Parts               []View // by the plan's files
}

// Problem is a view, or a file of the table, that is not as it has to be.
type Problem struct {
	Name string // of the view, or the path of the file
	Err  error
}

// Report is what Verify found.
type Report struct {
	Rows     int64 // visible rows
	Views    int   // views that hold exactly them
	Vectors  int   // deletion vectors whose Puffin footer agrees with the manifest
	Refused  int   // views that cannot be served, and rightly so
	Problems []Problem
	// Unverified tells what the naive merge cannot judge.
	Unverified []Problem
}

// ErrDiffers: a view does not hold the rows that it has to.
var ErrDiffers = errors.New("view differs from the naive merge")

// Verify decodes every view fully and compares it with the naive merge, and
// compares Puffin footers with the manifests. The error is only for what ends
// the work; what is wrong is in the report.
func Verify(ctx context.Context, m *Merge, views Views, opt TextOptions) (*Report, error) {
	r := &Report{}
	m = m.withMetadata()
	if err := r.vectors(ctx, m); err != nil {
		return r, err
	}
	for rec, err := range m.Rows(ctx) {
		if rec == nil || err != nil {
			break
		}
		r.Rows++
	}
	whole := []struct {
		name    string
		view    View
		compare func(context.Context, *Merge, View, iter.Seq2[Record, error]) error
	}{
		{"data.parquet", views.Parquet, compareParquet},
		{"data.csv", views.CSV, opt.compareCSV},
		{"data.jsonl", views.JSONL, compareJSONL},
	}
	for _, w := range whole {
		if w.view != nil {
			r.add(w.name, w.compare(ctx, m, w.view, m.Rows(ctx)), m.Rows(ctx))
		}
	}
	for i, part := range views.Parts {
		if part != nil {
			name := "parts of " + m.Plan.Files[i].Path
			r.add(name, compareParquet(ctx, m, part, m.FileRows(ctx, i)), m.FileRows(ctx, i))
		}
	}
	return r, ctx.Err()
}

// add judges a comparison with rows.
func (r *Report) add(name string, compared error, rows iter.Seq2[Record, error]) {
	if compared == nil {
		r.Views++
		return
	}
	var refusal error // why the naive merge ends early, if it does
	for _, err := range rows {
		refusal = err
	}
	switch {
	case refusal == nil || errors.Is(compared, ErrDiffers):
		r.Problems = append(r.Problems, Problem{name, compared})
	case errors.Is(compared, errView):
		r.Refused++
	case errors.Is(refusal, ErrUnsupported):
		r.Unverified = append(r.Unverified, Problem{name, refusal})
	default:
		r.Problems = append(r.Problems, Problem{name, fmt.Errorf("is served, but has to be refused: %w", refusal)})
	}
}

// errView marks errors of reading a view, as opposed to what it holds.
var errView = errors.New("view cannot be read")

// different is an ErrDiffers.
func different(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDiffers, fmt.Sprintf(format, args...))
}

// watched notes the first error that is not about the end of the view.
type watched struct {
	View
	size int64
	err  error
}

// open asks for a view's size.
func open(ctx context.Context, v View) (*watched, error) {
	size, err := v.Size(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errView, err)
	}
	return &watched{View: v, size: size}, nil
}

func (w *watched) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := w.View.ReadAt(ctx, p, off)
	if err != nil && off+int64(len(p)) <= w.size && n < len(p) && w.err == nil {
		w.err = err
	}
	return n, err
}

// object lets pqfile read a view.
type object struct{ *watched }

func (o object) Size() int64      { return o.size }
func (o object) Version() string  { return "" }
func (o object) Location() string { return "view" }

var _ source.Object = object{}
