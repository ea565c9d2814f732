package pqfile

import (
	"github.com/apache/iceberg-go"
)

// Target says what a data file is read as: an Iceberg schema over a file that
// may be older, wider, narrower, or without field ids.
type Target struct {
	Schema *iceberg.Schema
	// NameMapping gives ids to columns of files without any (nil = none; then
	// such a file is ErrNoFieldIDs).
	NameMapping iceberg.NameMapping
	// Constants holds identity-partition values by source field id, for columns
	// that the file does not store: an Iceberg value as DataFile.Partition gives
	// it, or nil for NULL.
	Constants map[int]any
	// Origin gives values to the metadata columns of the view (_file, _pos, …);
	// nil = they are columns like all others.
	Origin *Origin
	// View holds the nodes to produce. If nil, ViewOf(Schema).
	View *Schema
}

// Projection maps every leaf of a view schema to a file: Columns[i] is for
// View.Leaves[i].
type Projection struct {
	View    *Schema
	Columns []Column
	// Extra reports that the file has columns that the view does not show.
	Extra bool
}

// Column tells where a view's leaf comes from in one file.
//
// A column missing in the file has Source nil. Its value is Constant (one
// value, or N = 0 for NULL) wherever its parent is present; if the parent is a
// nested node that the file has, the parent's levels come from the leaf Levels.
type Column struct {
	Leaf   *Node // in the view
	Source *Node // in the file, or nil
	Levels *Node // Source nil and a nested ancestor in the file: a leaf below that ancestor
	// DefMap maps each definition level of Source (or Levels) to the view's;
	// LevelForbidden stands for levels that must not occur: NULL where the view
	// is required. With neither Source nor Levels it has one entry, the level of
	// every row.
	DefMap []uint8
	// RepKeep: entries of Levels whose repetition level is above it are dropped
	// (they belong to lists below the ancestor).
	RepKeep int
	// Constant is the value of a missing column in the leaf's physical type.
	Constant Values
	// Fill gives values to rows that have none stored; nil = they are NULL, or
	// Constant. Then the view's leaf is a flat INT64 and never NULL.
	Fill *Fill
	// Shredding tells of which columns a variant's value is put together; Source
	// is then the variant's metadata, whose entries are those of the value.
	Shredding *Shredding
	// Convert tells how stored values become the view's (ConvertNone: the bytes
	// are the same).
	Convert Conversion
	// SameLevels reports that DefMap is the identity and the level widths agree,
	// so that encoded levels can be served as they are.
	SameLevels bool
	// AddsOptional reports a flat leaf that is REQUIRED in the file and OPTIONAL
	// in the view.
	AddsOptional bool
}

// LevelForbidden in a DefMap marks a definition level that makes the file
// corrupt as the view's type: NULL in a required field.
const LevelForbidden uint8 = 255

// Conversion of stored values to the view's physical form.
type Conversion struct {
	Kind  ConversionKind
	From  *Node // the stored leaf
	Width int   // target bytes for fixed-length targets
}

// ConversionKind names what a conversion does.
type ConversionKind int

const (
	ConvertNone         ConversionKind = iota
	ConvertInt32ToInt64                // int -> long, and any 32-bit stored form of a 64-bit type
	ConvertInt64ToInt32                // a narrow column stored wide; out of range is ErrCorrupt
	ConvertFloatToDouble
	ConvertInt96ToMicros // timestamps; INT96 Julian days to INT64 microseconds
	ConvertInt96ToNanos
	ConvertScale   // date, time or timestamp to another unit: multiply or divide (floor)
	ConvertDecimal // any stored form of a decimal to the view's form, by sign extension
	ConvertBytes   // byte array <-> fixed length of the same bytes
)
