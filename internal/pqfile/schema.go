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

// Flat reports whether a leaf has no list or map above it: its entries are rows.
func (n *Node) Flat() bool { return n.MaxRep == 0 }

// Relevel recomputes Present, Entry, Repeat, MaxDef and MaxRep after a caller
// changed Optional on nodes of s.
func (s *Schema) Relevel() {
	for _, child := range s.Root.Children {
		child.relevel(0, 0)
	}
}

// relevel sets the levels of n and of all below it; def and rep are those in
// force where n stands.
func (n *Node) relevel(def, rep int) {
	if n.Optional {
		def++
	}
	n.Present, n.Repeat = def, rep
	switch n.Kind {
	case KindLeaf:
		n.MaxDef, n.MaxRep = def, rep
	case KindList, KindMap:
		def, rep = def+1, rep+1
		n.Entry, n.Repeat = def, rep
	}
	for _, child := range n.Children {
		child.relevel(def, rep)
	}
}

// Clone copies the tree. Paths are shared: they are never changed in place.
func (s *Schema) Clone() *Schema {
	c := &Schema{HasIDs: s.HasIDs}
	c.Root = s.Root.clone(nil)
	c.collectLeaves()
	return c
}

func (n *Node) clone(parent *Node) *Node {
	c := *n
	c.Parent = parent
	c.Children = nil
	if len(n.Children) > 0 {
		c.Children = make([]*Node, len(n.Children))
		for i, child := range n.Children {
			c.Children[i] = child.clone(&c)
		}
	}
	return &c
}

// collectLeaves lists the leaves in order; their Leaf numbers are kept.
func (s *Schema) collectLeaves() {
	s.Leaves = s.Root.appendLeaves(nil)
}

func (n *Node) appendLeaves(dst []*Node) []*Node {
	if n.Kind == KindLeaf {
		return append(dst, n)
	}
	for _, child := range n.Children {
		dst = child.appendLeaves(dst)
	}
	return dst
}

// firstLeaf returns a leaf at or below n that has the fewest repetition levels,
// or nil if there is none.
func (n *Node) firstLeaf() *Node {
	var best *Node
	for _, leaf := range n.appendLeaves(nil) {
		if best == nil || leaf.MaxRep < best.MaxRep {
			best = leaf
		}
	}
	return best
}
