package warehouse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// remoteMembers are what a catalog names in one of its namespaces. Namespaces
// are listed whole, for they are few; tables are listed as they come, and asked
// for one by one.
type remoteMembers struct {
	env    *env
	remote remote
	shared *sharedAccess
	levels []string

	gate     gate // guards the next three
	at       time.Time
	children map[string]*Namespace
	err      error

	mu     sync.Mutex        // guards below; nothing is asked while it is held
	found  map[string]*Table // those asked for that exist
	listed *listing          // the newest, perhaps still growing
	whole  *listing          // the newest complete one
}

var _ contents = (*remoteMembers)(nil)

// newRemoteNamespace returns the namespace of a catalog at levels, none for the
// root.
func newRemoteNamespace(e *env, r remote, s *sharedAccess, levels []string) *Namespace {
	return &Namespace{contents: &remoteMembers{env: e, remote: r, shared: s, levels: levels, gate: newGate(), found: map[string]*Table{}}}
}

// lastKnown reports whether an answer from before a failure may stand in for the
// one that failed: the catalog did not say that anything is otherwise now.
func lastKnown(err error) bool {
	return errors.Is(err, ErrUnavailable)
}

func (m *remoteMembers) namespaces(ctx context.Context) (map[string]*Namespace, error) {
	if err := m.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer m.gate.leave()
	if m.env.fresh(m.at) {
		return m.children, m.err
	}
	asking := ctx
	if m.children != nil {
		asking = WithPatience(ctx, lastKnownPatience)
	}
	names, err := m.remote.namespaces(asking, m.levels)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && m.children != nil && lastKnown(err):
		m.at = time.Now()
		return m.children, nil
	case err != nil:
		m.children, m.err, m.at = nil, err, time.Now()
		return nil, err
	}
	children := make(map[string]*Namespace, len(names))
	for _, name := range names {
		if children[name] = m.children[name]; children[name] == nil {
			levels := append(slices.Clone(m.levels), name)
			children[name] = newRemoteNamespace(m.env, m.remote, m.shared, levels)
		}
	}
	m.children, m.err, m.at = children, nil, time.Now()
	return children, nil
}

// tables follows the newest listing, and begins one if that is too old.
func (m *remoteMembers) tables(ctx context.Context) iter.Seq2[string, error] {
	return m.current(ctx).all(ctx)
}

func (m *remoteMembers) current(ctx context.Context) *listing {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listed != nil {
		if _, done, _, _ := m.listed.state(); !done || m.env.fresh(m.listed.began) {
			return m.listed
		}
	}
	l, before := newListing(), m.whole
	m.listed = l
	asking := context.WithoutCancel(ctx)
	if before != nil {
		asking = WithPatience(asking, lastKnownPatience)
	}
	go func() {
		l.fill(tooMany(m.remote.tables(asking, m.levels)), before)
		m.mu.Lock()
		defer m.mu.Unlock()
		if l.err == nil {
			m.whole = l
		}
	}()
	return l
}

// table asks for a table, unless a listing that is fresh says that there is none.
// It was asked for before it was known to exist: what comes with the answer is
// used when the table is read.
func (m *remoteMembers) table(ctx context.Context, name string) (*Table, error) {
	m.mu.Lock()
	t := m.found[name]
	if l := m.listed; t == nil && l != nil && m.env.fresh(l.began) {
		if has, known := l.has(name); known && !has {
			m.mu.Unlock()
			return nil, fmt.Errorf("%w: %s", ErrGone, name)
		}
	}
	if t == nil {
		t = newTable(m.env, &catalogTable{env: m.env, remote: m.remote, shared: m.shared, namespace: m.levels, name: name})
	}
	m.mu.Unlock()
	_, err := t.Load(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case errors.Is(err, ErrGone):
		if m.found[name] == t {
			delete(m.found, name)
		}
		return nil, err
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrDenied):
		return nil, err
	}
	if other := m.found[name]; other != nil {
		return other, nil // another caller was faster
	}
	m.found[name] = t
	return t, nil
}

// dotted is how a namespace or table is named in messages.
func dotted(namespace []string, name string) string {
	return strings.Join(append(slices.Clone(namespace), name), ".")
}
