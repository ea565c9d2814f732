// Package deletes turns delete files into one bitmap of deleted positions per
// data file, and answers which ranges of rows are live.
package deletes

// Range is a half-open run [Start, End) of positions.
type Range struct{ Start, End int64 }

// Positions is the immutable set of deleted positions of one data file. A nil
// *Positions has none. Positions at or past the file's rows are harmless.
type Positions struct{ _ int }

// CountRange returns how many positions in [start, end) are deleted.
func (p *Positions) CountRange(start, end int64) int64 { panic("skeleton") }

// LiveRanges appends the maximal live ranges within [start, end) to dst, in
// ascending order. A fully live or fully dead window costs O(1).
func (p *Positions) LiveRanges(dst []Range, start, end int64) []Range { panic("skeleton") }

// LiveWords fills dst with one bit per position of [start, end), set if live,
// lowest bit first; bits past end are clear. dst is grown as needed.
func (p *Positions) LiveWords(dst []uint64, start, end int64) []uint64 { panic("skeleton") }

// DeletedRanges appends the maximal deleted ranges within [start, end).
func (p *Positions) DeletedRanges(dst []Range, start, end int64) []Range { panic("skeleton") }

// Bytes estimates the heap kept, for a cache's budget.
func (p *Positions) Bytes() int64 { panic("skeleton") }
