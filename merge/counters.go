package merge

import "sync/atomic"

// Counters prove which paths ran, for status.json and tests. All only grow.
type Counters struct {
	RawBytes        atomic.Int64 // bytes served from sources as they are
	ChunksRewritten atomic.Int64 // chunks (or page runs) rewritten
	ChunksLoaded    atomic.Int64 // rewritten chunks, and footers, read from their start on disk
	ChunksMeasured  atomic.Int64 // chunks measured because no bound was close enough
	ChunksCoalesced atomic.Int64
	GroupsMeasured  atomic.Int64 // text: row groups measured by decoding
	PagesCopied     atomic.Int64 // pages of rewritten chunks kept as stored
	ExtentsAhead    atomic.Int64 // ranges of objects in a store asked for before readers of Parquet views came to them
}
