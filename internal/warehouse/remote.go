package warehouse

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// remote is a catalog that answers questions, rather than a folder that is
// searched. A failure to answer at all is ErrUnavailable, one to find something
// ErrGone, one to be let in ErrDenied.
type remote interface {
	// namespaces names the children of a namespace (of the root: no levels), each
	// once.
	namespaces(ctx context.Context, parent []string) ([]string, error)
	// tables names the tables in a namespace, as they come. Views are none.
	tables(ctx context.Context, namespace []string) iter.Seq2[string, error]
	// table says where a table's metadata is now. tag is that of the last answer:
	// if nothing has changed since, the catalog may say so.
	table(ctx context.Context, namespace []string, name, tag string) (found, error)
	// close lets go of connections.
	close()
}

// found is a catalog's answer about a table.
type found struct {
	unchanged bool   // since the answer that had the tag; all else is empty then
	location  string // of the metadata file
	inline    []byte // its content, if the catalog sends it
	tag       string
	// access are file-IO properties for the table; vended if they were lent for a
	// time, and then good for the locations below granted, if there are any.
	access  map[string]string
	vended  bool
	granted []string
}

// Parameters by which Hive's and Glue's catalogs mark a table of Iceberg.
const (
	paramKind     = "table_type"
	paramLocation = "metadata_location"
)

// isIceberg tells a table of Iceberg from others, and from views.
func isIceberg(params map[string]string) bool {
	return strings.EqualFold(params[paramKind], "iceberg") && params[paramLocation] != ""
}

// lastKnownPatience is how long a catalog is waited for where there is an older
// answer to fall back to.
const lastKnownPatience = 2 * time.Second

// watched is a remote whose outages are logged, once each.
type watched struct {
	remote
	name string
	log  *slog.Logger

	mu    sync.Mutex // guards below
	since time.Time  // of the outage; zero = it answers
	err   error
}

// note looks at the outcome of a question.
func (w *watched) note(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch down := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrDenied); {
	case down && w.since.IsZero():
		w.since, w.err = time.Now(), err
		w.log.Warn("the catalog does not answer: what is known of it stays as it is", "catalog", w.name, "err", err)
	case down:
		w.err = err
	case !w.since.IsZero():
		w.log.Info("the catalog answers again", "catalog", w.name, "after", time.Since(w.since).Round(time.Millisecond))
		w.since, w.err = time.Time{}, nil
	}
}

// outage returns since when the catalog has not answered, and why.
func (w *watched) outage() (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since, w.err
}

func (w *watched) namespaces(ctx context.Context, parent []string) ([]string, error) {
	names, err := w.remote.namespaces(ctx, parent)
	w.note(err)
	return names, err
}

func (w *watched) tables(ctx context.Context, namespace []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range w.remote.tables(ctx, namespace) {
			w.note(err)
			if !yield(name, err) {
				return
			}
		}
	}
}

func (w *watched) table(ctx context.Context, namespace []string, name, tag string) (found, error) {
	f, err := w.remote.table(ctx, namespace, name, tag)
	w.note(err)
	return f, err
}
