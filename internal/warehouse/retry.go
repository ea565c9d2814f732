package warehouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"
)

// DefaultTimeout bounds how long a catalog service is waited for. It is far
// above what a service takes to restart, and below what a caller would wait.
const DefaultTimeout = 60 * time.Second

// Pauses between tries: they double from the first to the longest, and each is
// shortened by up to a half at random, so that mounts do not ask in step.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// retry asks a service again that does not answer, for as long as patience
// lasts.
type retry struct {
	patience time.Duration
	log      *slog.Logger
}

func (e *env) retry() retry { return retry{patience: e.opt.Timeout, log: e.log} }

// retryLater is a failure of a service that says when to ask again.
type retryLater struct {
	error
	after time.Duration
}

func (r retryLater) Unwrap() error { return r.error }

type patienceKey struct{}

// WithPatience shortens how long a catalog service is waited for.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, d)
}

// do calls try until it succeeds, fails otherwise than with ErrUnavailable, or
// patience runs out. The context of a try ends with it.
func (r retry) do(ctx context.Context, try func(context.Context) error) error {
	patience := r.patience
	if patience <= 0 {
		patience = DefaultTimeout
	}
	if d, ok := ctx.Value(patienceKey{}).(time.Duration); ok && d < patience {
		patience = d
	}
	limited, cancel := context.WithTimeoutCause(ctx, patience, ErrUnavailable)
	defer cancel()
	pause := firstPause
	for {
		err := try(limited)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || !errors.Is(err, ErrUnavailable) {
			return err
		}
		wait := pause - rand.N(pause/2)
		var later retryLater
		if errors.As(err, &later) && later.after > wait {
			wait = later.after
		}
		if deadline, _ := limited.Deadline(); time.Until(deadline) < wait {
			return err
		}
		r.log.Debug("a catalog does not answer: asked again", "in", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, longestPause)
	}
}

// unavailable is what a failed connection is. A context that ended is left as
// it is: do tells whose.
func unavailable(err error) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, plainError(err))
}

// plainError takes the URL off an error of net/http: the caller names it.
func plainError(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}
