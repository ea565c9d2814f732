package snapshot

import "github.com/apache/iceberg-go"

// Entries are the live files of a snapshot as its manifests list them.
type Entries struct {
	SnapshotID    int64
	FormatVersion int
	Data          []*DataFile
	Deletes       []*DataFile
	Specs         map[int]iceberg.PartitionSpec
	Schema        *iceberg.Schema // the table's current schema: types of bounds
}

// Pair pairs every live data file with the delete files that apply to it.
func Pair(e Entries) *Plan { panic("skeleton") }
