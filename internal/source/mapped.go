package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Prefix maps the locations at and below the folder From, as metadata spells
// it, to those at and below To. The spellings file:/x, file:///x and /x of From
// are one; prefixes end at a slash.
type Prefix struct{ From, To string }

// Apply returns the location that p maps location to.
func (p Prefix) Apply(location string) (string, bool) {
	from := Spelling(p.From)
	rest, ok := strings.CutPrefix(Spelling(location), from)
	if !ok || rest != "" && rest[0] != '/' && !strings.HasSuffix(from, "/") {
		return "", false
	}
	return strings.TrimSuffix(p.To, "/") + "/" + strings.TrimPrefix(rest, "/"), true
}

// Spelling returns one spelling of the three that a local path has, /x, file:/x
// and file:///x, and any other location as it is.
func Spelling(location string) string {
	rest, ok := strings.CutPrefix(location, "file:/")
	if !ok {
		return location
	}
	rest = strings.TrimPrefix(rest, "//")
	return "/" + rest
}

type mapped struct {
	store    Store
	prefixes []Prefix // longest From first
}

// Mapped returns a store for a table that has moved: a location is opened where
// its prefixes are mapped to, longest prefix first, and as it is if nothing is
// there. Targets are subject to s's own rules.
func Mapped(s Store, prefixes []Prefix) Store {
	if len(prefixes) == 0 {
		return s
	}
	sorted := slices.Clone(prefixes)
	slices.SortStableFunc(sorted, func(a, b Prefix) int { return len(Spelling(b.From)) - len(Spelling(a.From)) })
	return &mapped{store: s, prefixes: sorted}
}

// InStore implements Classifier: it goes by the first prefix.
func (m *mapped) InStore(location string) bool {
	for _, p := range m.prefixes {
		if target, ok := p.Apply(location); ok {
			return InStore(m.store, target)
		}
	}
	return InStore(m.store, location)
}

// Placed is a Store that opens locations elsewhere than where they say: equal
// locations of two of them are files of one place only if their Places are equal.
type Placed interface {
	Store
	Place() string
}

// PlaceOf returns a store's Place, which is empty if it is not Placed.
func PlaceOf(s Store) string {
	if p, ok := s.(Placed); ok {
		return p.Place()
	}
	return ""
}

// Place implements Placed: it spells out the prefixes.
func (m *mapped) Place() string { return fmt.Sprintf("%q", m.prefixes) }

// Open implements Store. If nothing is found, the error is the one that says
// most: not found before outside before unsupported.
func (m *mapped) Open(ctx context.Context, location string) (Object, error) {
	var failure error
	try := func(target string) (Object, bool) {
		o, err := m.store.Open(ctx, target)
		if err == nil {
			return o, true
		}
		if failure == nil || rank(err) < rank(failure) {
			failure = err
		}
		return nil, rank(err) == 0 // a file that is there but fails is the one meant
	}
	for _, p := range m.prefixes {
		target, ok := p.Apply(location)
		if !ok {
			continue
		}
		if o, done := try(target); done {
			return renamed(o, location, failure)
		}
	}
	o, _ := try(location)
	if o != nil {
		failure = nil
	}
	return renamed(o, location, failure)
}

func rank(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return 1
	case errors.Is(err, ErrOutside):
		return 2
	case errors.Is(err, ErrUnsupported):
		return 3
	default:
		return 0
	}
}

// renamed returns o under the location that metadata gives it.
func renamed(o Object, location string, err error) (Object, error) {
	if o == nil {
		return nil, err
	}
	switch o := o.(type) {
	case Filer:
		return &renamedFile{Filer: o, location: location}, nil
	case Remote:
		return &renamedRemote{Remote: o, location: location}, nil
	}
	return &renamedObject{Object: o, location: location}, nil
}

type renamedObject struct {
	Object
	location string
}

func (o *renamedObject) Location() string { return o.location }

type renamedFile struct {
	Filer
	location string
}

func (o *renamedFile) Location() string { return o.location }

var (
	_ Placed     = (*mapped)(nil)
	_ Classifier = (*mapped)(nil)
	_ Filer      = (*renamedFile)(nil)
)

// OpenFile implements Filer.
func (o *renamedFile) OpenFile() (*os.File, error) { return o.Filer.OpenFile() }
