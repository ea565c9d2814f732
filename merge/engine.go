package merge

import (
	"context"
	"runtime"
)

func (e *Engine) workers() int {
	if e.opt.Workers > 0 {
		return e.opt.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// cached gets a value through the cache, or just loads it if there is none.
func (e *Engine) cached(ctx context.Context, key string, load func(context.Context) (any, int64, error)) (any, error) {
	if e.opt.Cache == nil {
		v, _, err := load(ctx)
		return v, err
	}
	return e.opt.Cache.Get(ctx, key, load)
}

func (e *Engine) count(add func(*Counters)) {
	if e.opt.Counters != nil {
		add(e.opt.Counters)
	}
}

// keptWriter is the longest arena that a writer keeps for the next chunk: those
// of a few long chunks would stay as long as others are made.
const keptWriter = 8 << 20

// putWriter keeps a writer's buffers for another chunk.
func (e *Engine) putWriter(w *pageWriter) {
	if cap(w.levels)+cap(w.plain)+cap(w.dictionary) <= keptWriter {
		e.writers.Put(w)
	}
}
