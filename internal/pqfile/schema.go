package pqfile

// Kind of a logical schema node.
type Kind int

const (
	KindLeaf Kind = iota
	KindStruct
	KindList
	KindMap
	KindVariant // a group of metadata, value and, when shredded, typed_value
)

// Node is one logical node of a schema: a file's, or a view's. List and map
// wrappers, old and new, are folded in: a list has one child (its element), a
// map two (key, value).
//
// Levels. Walking down from the root, an optional node adds one definition
// level and a list or map adds one definition and one repetition level for its
// repeated group. Present is the definition level from which the node itself is
// not NULL; for a list or map Entry (= Present+1) is the level from which it
// has an entry, and Repeat the repetition level of its further entries.
//
//	optional list a { repeated group { optional int32 element } }
//	a: Present 1, Entry 2, Repeat 1;  element: Present 3
type Node struct {
	Name     string
	FieldID  int // -1 if the file gives none
	Kind     Kind
	Optional bool
	Present  int // definition level from which this node is not NULL
	Entry    int // list, map: definition level from which it has an entry
	Repeat   int // repetition level in force at this node's entries (list, map: of its further entries)
	Children []*Node
	Parent   *Node // nil at the root
	Legacy   bool  // list or map not in the three-level form, or with names of its own that readers need changed
	// Leaves only.
	Leaf       int // column index in the row groups of its file, or in the view
	Type       Type
	TypeLength int         // FIXED_LEN_BYTE_ARRAY: bytes
	Logical    LogicalType // converted types are folded in
	MaxDef     int
	MaxRep     int
	Path       []string // physical path in the schema, as in ColumnMetaData.Path
}

// Schema is a logical schema tree with its leaves in column order.
type Schema struct {
	Root   *Node // a required struct
	Leaves []*Node
	// HasIDs reports whether any node carries a field id.
	HasIDs bool
}
