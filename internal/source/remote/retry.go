package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/icefs/icefs/internal/source"
)

// Times of a request. Stores ask for backoff from a tenth of a second on; a pause
// of a few seconds ends soon enough after an outage.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 3 * time.Second
	// DefaultStall is how long a request may go without a byte before it is given
	// up and made again: far above a loaded store's slowest answer.
	DefaultStall = 15 * time.Second
)

// errShort is an answer whose body is not as long as it says.
var errShort = errors.New("the answer ends early")

// try makes a request until it succeeds, fails for good, or the time is up.
// request is called with a context of its own, which ends when the request
// stalls; it calls progress for every piece of an answer.
func (s *Stores) try(ctx context.Context, request func(ctx context.Context, progress func()) error) error {
	if s.opt.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opt.Timeout)
		defer cancel()
	}
	var last error
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := s.once(ctx, request)
		if err == nil || ctx.Err() == nil && !passes(err) {
			return err
		}
		if ctx.Err() == nil {
			last = err
			s.opt.Stats.Retries.Add(1)
			wait(ctx, pause/2+rand.N(pause/2))
		}
		if ctx.Err() != nil {
			return s.late(ctx, last)
		}
	}
}

// late is the error of a read whose time is up, with what it last failed of.
func (s *Stores) late(ctx context.Context, last error) error {
	if last == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return fmt.Errorf("%w; last: %w", ctx.Err(), last)
}

// once makes a request when it is its turn.
func (s *Stores) once(ctx context.Context, request func(context.Context, func()) error) error {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turns }()
	s.opt.Stats.Requests.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(s.opt.Stall, func() { cancel(errStalled) })
	defer stall.Stop()
	err := request(ctx, func() { stall.Reset(s.opt.Stall) })
	if err != nil && context.Cause(ctx) == errStalled {
		return errStalled
	}
	return err
}

var errStalled = errors.New("the store does not answer")

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// doubts is how often a store is asked again that says of an object which it has
// had, in the version asked for, that it is not there or has no such bytes: over
// half a second. Some say so for a moment, of one of their nodes.
const doubts = 3

// doubtful is an answer that is not believed yet.
type doubtful struct{ error }

func (d doubtful) Unwrap() error { return d.error }

// doubt returns what marks the first answers of a request that there is no such
// object or range as doubtful. Where the last request has had it confirmed, they
// are believed at once.
func (o *object) doubt() func(error) error {
	left := doubts
	if o.missed.Load() {
		left = 0
	}
	return func(err error) error {
		var status *StatusError
		if !errors.As(err, &status) || !status.missing() {
			return err
		}
		if left == 0 {
			o.missed.Store(true)
			return err
		}
		left--
		return doubtful{err}
	}
}

// missing reports an answer that there is no such object or range.
func (e *StatusError) missing() bool {
	switch e.Code {
	case http.StatusNotFound, http.StatusGone, http.StatusRequestedRangeNotSatisfiable:
		return true
	}
	return false
}

// passes reports whether an error may be another one if the request is made
// again.
func passes(err error) bool {
	if errors.As(err, new(doubtful)) {
		return true
	}
	var status *StatusError
	if !errors.As(err, &status) {
		return !errors.Is(err, source.ErrChanged) && !errors.Is(err, source.ErrRead) && !errors.Is(err, errDenied)
	}
	switch status.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusTooEarly:
		return true
	case http.StatusBadRequest:
		return status.Reason == "RequestTimeout" // S3: no bytes for a while
	}
	return status.Code >= 500 && status.Code != http.StatusNotImplemented
}

// errDenied is wrapped where no credentials can be had.
var errDenied = errors.New("access denied")

// Denied returns an error of a Bucket or of Scheme.Open that cannot pass: there
// are no credentials, or they cannot be used.
func Denied(err error) error { return fmt.Errorf("%w: %w", errDenied, err) }

// classify adds the sentinel of package source to an error, and the location.
func classify(err error, location string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	sentinel := source.ErrRead
	var status *StatusError
	switch {
	case errors.Is(err, source.ErrChanged), errors.Is(err, source.ErrRead):
		return fmt.Errorf("%w: %s", err, location)
	case errors.As(err, &status):
		switch status.Code {
		case http.StatusNotFound, http.StatusGone:
			sentinel = source.ErrNotFound
		case http.StatusPreconditionFailed:
			sentinel = source.ErrChanged
		case http.StatusRequestedRangeNotSatisfiable:
			sentinel = source.ErrTruncated
		}
	}
	return fmt.Errorf("%w: %s: %w", sentinel, location, err)
}

// readBody fills p from an answer's body.
func readBody(body io.Reader, p []byte, progress func()) error {
	for n := 0; n < len(p); {
		m, err := body.Read(p[n:])
		n += m
		progress()
		if err == io.EOF && n < len(p) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errShort
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}
