// Package reference is a second opinion: it merges a snapshot's data and delete
// files row by row, as slowly and plainly as the Iceberg spec describes it, and
// compares views with the result. Tests use it, and `icefs verify`.
//
// It shares no code with packages merge and deletes. What it does share, and so
// cannot judge, is the snapshot it is given: which files are live and which
// delete files go with them (packages warehouse and snapshot; random tables of
// known content check those), and the store that opens them. Parquet files are
// decoded by arrow-go; only chunks that arrow-go cannot decompress (LZ4 in
// Hadoop's framing) go through pqfile. Deletion vectors, Avro rows, projection
// and the text of values are read and written by plain code of its own.
//
// Every value is boxed. The forms, which Equal compares, are
//
//	boolean, int, long, float, double   bool, int32, int64, float32, float64
//	decimal                             iceberg.Decimal of the type's scale
//	date, time                          iceberg.Date, iceberg.Time
//	timestamp(tz), timestamp(tz)_ns     iceberg.Timestamp, iceberg.TimestampNano
//	string, uuid                        string, uuid.UUID
//	binary, fixed, geometry, geography  []byte
//	struct, list, map                   Record, List, Map
//	variant                             Variant
//	NULL                                nil
package reference

import "errors"

// Sentinels; errors name the file or column once.
var (
	ErrCorrupt     = errors.New("corrupt data or delete file")
	ErrUnsupported = errors.New("not supported by the naive merge")
)
