package warehouse

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"
)

// listing is the names of the tables in a namespace, as far as a catalog has
// named them. Any number of readers follow it while it grows.
type listing struct {
	began time.Time

	mu    sync.Mutex // guards below
	names []string
	seen  map[string]bool // of names
	done  bool
	err   error         // if done
	news  chan struct{} // closed, and replaced, at each change
}

func newListing() *listing {
	return &listing{began: time.Now(), seen: map[string]bool{}, news: make(chan struct{})}
}

// add appends a name, unless it is there: a page may repeat one of those before
// it if tables come and go meanwhile.
func (l *listing) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[name] {
		return
	}
	l.seen[name] = true
	l.names = append(l.names, name)
	l.tell()
}

func (l *listing) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done, l.err = true, err
	l.tell()
}

// tell wakes those who wait. The caller holds mu.
func (l *listing) tell() {
	close(l.news)
	l.news = make(chan struct{})
}

// state returns the names so far, and what is closed when there are more.
func (l *listing) state() (names []string, done bool, err error, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names, l.done, l.err, l.news
}

// has reports whether a complete listing holds a name; known is false for one
// that is not complete.
func (l *listing) has(name string) (has, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[name], l.done && l.err == nil
}

// all yields the names as they come.
func (l *listing) all(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for at := 0; ; {
			names, done, err, news := l.state()
			for ; at < len(names); at++ {
				if !yield(names[at], nil) {
					return
				}
			}
			if done {
				if err != nil {
					yield("", err)
				}
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				yield("", ctx.Err())
				return
			}
		}
	}
}

// fill reads a listing to its end. If the catalog fails in the middle and before
// is a complete listing from earlier, what before has stays known.
func (l *listing) fill(names iter.Seq2[string, error], before *listing) {
	for name, err := range names {
		if err == nil {
			l.add(name)
			continue
		}
		if before == nil || !lastKnown(err) {
			l.end(err)
			return
		}
		for _, name := range before.names {
			l.add(name)
		}
		break
	}
	l.end(nil)
}

// tooMany ends a listing without end.
func tooMany(names iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n := 0
		for name, err := range names {
			if n++; n > maxNames {
				yield("", fmt.Errorf("%w: a namespace of more than %d tables", ErrUnsupported, maxNames))
				return
			}
			if !yield(name, err) {
				return
			}
		}
	}
}
