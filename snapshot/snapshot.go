// Package snapshot holds immutable values that describe a table at a moment:
// Table, Snapshot, Ref, DataFile, and the Plan of a snapshot, which pairs every
// live data file with the delete files that apply to it.
//
// The package reads nothing; internal/warehouse builds its values from metadata
// and manifests. All values are safe for concurrent use and never change.
package snapshot

import (
	"strings"
	"time"

	"github.com/apache/iceberg-go"
)

// Table is a table's metadata at one metadata version.
type Table struct {
	UUID          string
	Location      string // as the metadata says
	FormatVersion int
	LastUpdated   time.Time
	Schemas       []*iceberg.Schema
	CurrentSchema int // schema id
	Specs         map[int]iceberg.PartitionSpec
	Properties    map[string]string
	NameMapping   iceberg.NameMapping // nil if none
	Snapshots     []Snapshot          // as in the metadata
	Refs          []Ref
	Log           []LogEntry // ascending by time; synthesized from main's ancestors if the metadata has none
	Current       int64      // snapshot id of main; -1 if none
	Metadata      []byte     // the metadata JSON, decompressed
	Encrypted     bool       // the metadata lists encryption keys
}

// Schema returns the schema with an id, or nil.
func (t *Table) Schema(id int) *iceberg.Schema {
	for _, s := range t.Schemas {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Snapshot is one entry of the metadata's snapshots.
type Snapshot struct {
	ID             int64
	ParentID       int64 // -1 if none
	SequenceNumber int64
	Time           time.Time
	SchemaID       int // -1 if the metadata gives none
	ManifestList   string
	Manifests      []string // v1 snapshots with manifests inline
	JSON           []byte   // as in the metadata
}

// Ref is a branch or a tag.
type Ref struct {
	Name       string
	SnapshotID int64
	Tag        bool
}

// LogEntry is a snapshot-log entry.
type LogEntry struct {
	SnapshotID int64
	Time       time.Time
}

// Content of a file.
type Content int

const (
	Data Content = iota
	PositionDeletes
	EqualityDeletes
)

// Format of a file, upper case as in manifests.
type Format string

const (
	Parquet Format = "PARQUET"
	Avro    Format = "AVRO"
	ORC     Format = "ORC"
	Puffin  Format = "PUFFIN"
)

// DataFile is a live data or delete file of a snapshot. Paths are the strings
// of the manifest, never decoded.
type DataFile struct {
	Path          string
	Content       Content
	Format        Format
	SpecID        int
	Partition     map[int]any // partition field id -> value, nil for NULL; iceberg-go's Go types
	Records       int64
	Size          int64 // as recorded: a hint, not to be trusted
	Sequence      int64 // data sequence number; 0 in v1
	FileSequence  int64
	FirstRowID    int64 // -1 if none
	EqualityIDs   []int
	Referenced    string // referenced_data_file, or "" if none
	HasReferenced bool
	ContentOffset int64 // DVs; -1 if none
	ContentSize   int64
	EncryptedKey  bool            // key_metadata is present
	Metrics       []ColumnMetrics // of the columns that pairing needs
}

// IsDV reports whether f is a deletion vector.
func (f *DataFile) IsDV() bool { return f.Content == PositionDeletes && f.Format == Puffin }

// ColumnMetrics are what a manifest says of one column of a file. A count is -1,
// a bound nil, if it says nothing.
type ColumnMetrics struct {
	ID                  int // field id
	Values, Nulls, NaNs int64
	Lower, Upper        []byte
}

// NoMetrics returns the metrics of a column of which a manifest says nothing.
func NoMetrics(id int) ColumnMetrics { return ColumnMetrics{ID: id, Values: -1, Nulls: -1, NaNs: -1} }

// Column returns the metrics of a column, NoMetrics if there are none.
func (f *DataFile) Column(id int) ColumnMetrics {
	for i := range f.Metrics {
		if f.Metrics[i].ID == id {
			return f.Metrics[i]
		}
	}
	return NoMetrics(id)
}

// File is a live data file with the deletes that apply to it.
type File struct {
	*DataFile
	DV        *DataFile   // replaces position deletes
	Positions []*DataFile // position-delete files, by (sequence, path)
	Equality  []*DataFile // equality-delete files, by (sequence, path)
	// Err is set if the deletes that apply cannot be told (two DVs, a DV of
	// another partition, …): every view of the file fails with it.
	Err error
}

// Alone returns a copy of f that does not hold on to the other files of its
// manifest, which the values of a manifest share their memory with. What is kept
// for one file of a large table is made of it. The files of equality deletes, which
// apply to many, are not copied.
func (f *File) Alone() File {
	alone := *f
	alone.DataFile, alone.DV = f.DataFile.alone(), f.DV.alone()
	alone.Positions = make([]*DataFile, len(f.Positions))
	for i, d := range f.Positions {
		alone.Positions[i] = d.alone()
	}
	return alone
}

func (f *DataFile) alone() *DataFile {
	if f == nil {
		return nil
	}
	alone := *f
	alone.Path, alone.Referenced = strings.Clone(f.Path), strings.Clone(f.Referenced)
	return &alone
}

// Plan is what a snapshot shows: its live data files in the order of its rows,
// by (data sequence number, path); in v1 tables by path.
type Plan struct {
	SnapshotID int64
	Files      []File
	// Bytes is about what the plan keeps in memory, with all the data and delete
	// files that it leads to; 0 if nobody has told.
	Bytes int64
}
