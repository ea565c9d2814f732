package deletes

import "sync/atomic"

// Counters tell what resolving equality deletes has cost.
type Counters struct {
	KeyFiles     atomic.Int64 // times that a delete file was opened for its keys
	Passes       atomic.Int64 // passes over data files
	Groups       atomic.Int64 // row groups whose key columns were read
	ByStatistics atomic.Int64 // row groups passed over: their statistics exclude all keys
	ByBloom      atomic.Int64 // row groups passed over: a Bloom filter excludes all keys
	ByDictionary atomic.Int64 // row groups passed over: no value of a dictionary is in a key
	KeptColumns  atomic.Int64 // key columns of row groups that were there from an earlier pass
	Rows         atomic.Int64 // rows looked up: those whose hashes tell nothing
}
