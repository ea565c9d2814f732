package pqfile

// Values is a run of non-NULL values of one physical type, in one of four
// forms: Fixed (INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY),
// Bools, byte arrays (Data and Offsets), or dictionary-coded (Dict and Index).
// Values are borrowed: valid until the reader that gave them is used again,
// unless it says otherwise.
type Values struct {
	Type  Type
	Width int // bytes of one fixed value: 4, 8, 12 or the type length
	N     int

	Fixed   []byte   // N*Width little-endian bytes, as PLAIN stores them
	Bools   []byte   // N bytes of 0 or 1
	Data    []byte   // byte arrays: value i is Data[Offsets[i]:Offsets[i+1]]
	Offsets []uint32 // N+1

	// Dictionary-coded: value i is Dict's value Index[i]. Dict is never used for
	// other values: it may be kept.
	Dict  *Values
	Index []uint32 // N; every index is checked against Dict.N
}

// Vector is a run of rows of one leaf column, in the view's levels and type.
type Vector struct {
	Rows int
	// Def holds one definition level per entry; nil when every entry is present
	// (then there are Values.N entries). Rep holds one repetition level per
	// entry; nil for a column that is not repeated (then entries are rows).
	Def, Rep []uint8
	// Values holds the entries whose level is the leaf's MaxDef.
	Values Values
	// Repeat marks a constant column (a default or partition value): Values has
	// one value, which stands for every entry that is present.
	Repeat bool
}
