package merge

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// nestedText writes a struct, list, map or variant column as compact JSON,
// assembled from the levels of its leaves. Levels that contradict each other
// between leaves, or end early, are ErrCorrupt.
type nestedText struct {
	root   *nestedNode
	leaves []*nestedLeaf
	csv    *csvForm // nil: JSON
	null   []byte
	buf    []byte
	json   []byte // one row's JSON before it becomes a CSV field
}

// nestedNode is a node of the column with the leaves below it.
type nestedNode struct {
	*pqfile.Node
	key       []byte // `"name":` in a struct
	keyQuotes int
	children  []*nestedNode
	leaves    []*nestedLeaf
	leaf      *nestedLeaf // a leaf itself
	object    bool        // map with string keys
}

// nestedLeaf walks the entries of one leaf of a batch.
type nestedLeaf struct {
	node  *pqfile.Node
	texts *leafText // nil for the two leaves of a variant
	sizes *leafLengths
	vec   *pqfile.Vector
	entry int // next entry
	value int // next value
}

// newNestedText returns the formatter of a nested column.
func newNestedText(n *pqfile.Node, csv *csvForm) (*nestedText, error) {
	t := &nestedText{csv: csv, null: []byte("null")}
	if csv != nil {
		t.null = csv.null
	}
	var err error
	t.root, err = t.build(n, false)
	return t, err
}

// build makes the tree of n's formatters, leaves in the view's order.
func (t *nestedText) build(n *pqfile.Node, variant bool) (*nestedNode, error) {
	m := &nestedNode{Node: n, key: append(appendJSONString(nil, []byte(n.Name)), ':')}
	m.keyQuotes = bytes.Count(m.key, []byte{'"'})
	first := len(t.leaves)
	if n.Kind == pqfile.KindLeaf {
		m.leaf = &nestedLeaf{node: n}
		if !variant {
			texts, err := newLeafText(n, nil)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", n.Name, err)
			}
			if m.leaf.sizes, err = newLeafLengths(n, nil); err != nil {
				return nil, err
			}
			m.leaf.texts = texts
		}
		t.leaves = append(t.leaves, m.leaf)
	}
	for _, child := range n.Children {
		c, err := t.build(child, n.Kind == pqfile.KindVariant)
		if err != nil {
			return nil, err
		}
		m.children = append(m.children, c)
	}
	m.leaves = t.leaves[first:len(t.leaves):len(t.leaves)]
	switch n.Kind {
	case pqfile.KindVariant:
		if len(m.children) != 2 || m.children[0].leaf == nil || m.children[1].leaf == nil {
			return nil, fmt.Errorf("variant %q is shredded: %w", n.Name, ErrUnsupported)
		}
		slices.SortFunc(m.children, func(a, b *nestedNode) int { return len(b.Name) - len(a.Name) }) // metadata, value
	case pqfile.KindMap:
		if len(m.children) != 2 {
			return nil, fmt.Errorf("map %q: %w", n.Name, ErrCorrupt)
		}
		m.object = m.children[0].leaf != nil && m.children[0].leaf.texts.form.kind == scalarString
	case pqfile.KindList:
		if len(m.children) != 1 {
			return nil, fmt.Errorf("list %q: %w", n.Name, ErrCorrupt)
		}
	}
	return m, nil
}

// format makes the cells of a batch.
func (t *nestedText) format(c *cells, rows int, vectors []*pqfile.Vector) error {
	for i, l := range t.leaves {
		l.vec, l.entry, l.value = vectors[i], 0, 0
		if l.texts != nil {
			if err := l.texts.load(l.vec); err != nil {
				return err
			}
		}
	}
	t.buf = append(t.buf[:0], t.null...)
	err := t.eachRow(rows, func(i int) error { return t.appendRow(c, i) })
	c.text = t.buf
	return err
}

// eachRow calls row for every row of a batch; it consumes the row's entries.
func (t *nestedText) eachRow(rows int, row func(i int) error) error {
	for i := range rows {
		for _, l := range t.leaves {
			if l.rep() > 0 {
				return fmt.Errorf("%q: a row begins inside a list: %w", l.node.Name, ErrCorrupt)
			}
		}
		if err := row(i); err != nil {
			return err
		}
	}
	for _, l := range t.leaves {
		if l.entry != l.entries(rows) || l.texts != nil && !l.vec.Repeat && l.value != l.vec.Values.N {
			return fmt.Errorf("%q: more entries than rows: %w", l.node.Name, ErrCorrupt)
		}
	}
	return nil
}

// appendRow makes the cell of row i.
func (t *nestedText) appendRow(c *cells, i int) error {
	start := len(t.buf)
	var err error
	if t.csv == nil {
		if t.buf, err = t.root.append(t.buf); err != nil {
			return err
		}
		c.start[i], c.end[i] = uint32(start), uint32(len(t.buf))
	} else {
		if t.json, err = t.root.append(t.json[:0]); err != nil {
			return err
		}
		if string(t.json) == "null" { // NULL, or a variant's null, which looks the same
			c.start[i], c.end[i] = 0, uint32(len(t.null))
			return nil
		}
		t.buf = appendCSV(t.buf, t.json, t.csv)
		c.start[i], c.end[i] = uint32(start), uint32(len(t.buf))
	}
	if uint64(len(t.buf)) > 1<<32-1 {
		return errLongBatch()
	}
	return nil
}

// entries is the number of entries of the leaf's vector.
func (l *nestedLeaf) entries(rows int) int {
	switch {
	case l.vec.Def != nil:
		return len(l.vec.Def)
	case l.vec.Rep != nil:
		return len(l.vec.Rep)
	}
	return rows
}

// rep is the repetition level of the next entry, 0 at the end.
func (l *nestedLeaf) rep() uint8 {
	if l.entry < len(l.vec.Rep) {
		return l.vec.Rep[l.entry]
	}
	return 0
}

// def is the definition level of the next entry.
func (l *nestedLeaf) def() (int, error) {
	if l.entry >= l.entries(l.vec.Rows) {
		return 0, fmt.Errorf("%q: fewer entries than rows: %w", l.node.Name, ErrCorrupt)
	}
	if l.vec.Def == nil {
		return l.node.MaxDef, nil
	}
	return int(l.vec.Def[l.entry]), nil
}

// append appends the JSON of the node's next value.
func (n *nestedNode) append(dst []byte) ([]byte, error) {
	if len(n.leaves) == 0 {
		return append(dst, "{}"...), nil
	}
	d, err := n.leaves[0].def()
	if err != nil {
		return dst, err
	}
	if n.Optional && d < n.Present {
		return append(dst, "null"...), n.skip(n.Present - 1)
	}
	switch n.Kind {
	case pqfile.KindLeaf:
		return n.leaf.append(dst, d)
	case pqfile.KindList, pqfile.KindMap:
		return n.appendEntries(dst, d)
	case pqfile.KindVariant:
		return n.appendVariant(dst)
	}
	dst = append(dst, '{')
	for i, c := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = c.append(append(dst, c.key...)); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// skip consumes the one entry of each leaf below a NULL or an empty list. Its
// parent is present, so all have the level d.
func (n *nestedNode) skip(d int) error {
	for _, l := range n.leaves {
		if e, err := l.def(); err != nil || e != d {
			return fmt.Errorf("%q: levels contradict its siblings': %w", l.node.Name, ErrCorrupt)
		}
		l.entry++
	}
	return nil
}

// append appends the value of the leaf's next entry, which is at level d.
func (l *nestedLeaf) append(dst []byte, d int) ([]byte, error) {
	at, err := l.take(&l.texts.leafValues, d)
	if err != nil {
		return dst, err
	}
	return append(dst, l.texts.text[l.texts.off[at]:l.texts.off[at+1]]...), nil
}

// take returns which text the next entry has, which is at level d, and passes
// over it.
func (l *nestedLeaf) take(values *leafValues, d int) (int, error) {
	if d != l.node.MaxDef || l.value >= values.count() {
		return 0, fmt.Errorf("%q: definition level %d without a value: %w", l.node.Name, d, ErrCorrupt)
	}
	at := values.at(l.value)
	l.entry++
	l.value++
	return at, nil
}

// appendEntries appends a list or a map whose first leaf is at level d.
func (n *nestedNode) appendEntries(dst []byte, d int) ([]byte, error) {
	opening, closing := byte('['), byte(']')
	if n.object {
		opening, closing = '{', '}'
	}
	dst = append(dst, opening)
	if d < n.Entry {
		return append(dst, closing), n.skip(n.Entry - 1)
	}
	for {
		var err error
		if dst, err = n.appendEntry(dst); err != nil {
			return dst, err
		}
		more, err := n.more()
		if err != nil {
			return dst, err
		}
		if !more {
			return append(dst, closing), nil
		}
		dst = append(dst, ',')
	}
}

// more reports whether the list or map has another entry.
func (n *nestedNode) more() (bool, error) {
	more := int(n.leaves[0].rep()) == n.Repeat
	for _, l := range n.leaves[1:] {
		if (int(l.rep()) == n.Repeat) != more {
			return false, fmt.Errorf("%q: lists of other lengths than its siblings': %w", l.node.Name, ErrCorrupt)
		}
	}
	return more, nil
}

// appendEntry appends one entry of a list or map.
func (n *nestedNode) appendEntry(dst []byte) ([]byte, error) {
	if n.Kind == pqfile.KindList {
		return n.children[0].append(dst)
	}
	key, value := n.children[0], n.children[1]
	var err error
	if !n.object {
		if dst, err = key.append(append(dst, `{"key":`...)); err != nil {
			return dst, err
		}
		if dst, err = value.append(append(dst, `,"value":`...)); err != nil {
			return dst, err
		}
		return append(dst, '}'), nil
	}
	d, err := key.leaf.def()
	if err != nil {
		return dst, err
	}
	if dst, err = key.leaf.append(dst, d); err != nil {
		return dst, err
	}
	return value.append(append(dst, ':'))
}

// appendVariant appends a variant from its metadata and value leaves. A variant
// without a value is a variant null.
func (n *nestedNode) appendVariant(dst []byte) ([]byte, error) {
	metadata, err := n.children[0].leaf.bytes()
	if err != nil {
		return dst, err
	}
	value, err := n.children[1].leaf.bytes()
	if err != nil {
		return dst, err
	}
	if value == nil {
		return append(dst, "null"...), nil
	}
	if metadata == nil {
		return dst, fmt.Errorf("%q: variant without metadata: %w", n.Name, ErrCorrupt)
	}
	return appendVariant(dst, metadata, value)
}

// bytes returns the next entry of a byte-array leaf, nil for NULL.
func (l *nestedLeaf) bytes() ([]byte, error) {
	d, err := l.def()
	if err != nil {
		return nil, err
	}
	l.entry++
	if d != l.node.MaxDef {
		return nil, nil
	}
	v, k := &l.vec.Values, l.value
	if l.vec.Repeat {
		k = 0
	}
	if k >= v.N {
		return nil, fmt.Errorf("%q: a level without a value: %w", l.node.Name, ErrCorrupt)
	}
	l.value++
	if v.Dict != nil {
		v, k = v.Dict, int(v.Index[k])
	}
	if v.Type != pqfile.ByteArray {
		return nil, fmt.Errorf("%q: variant of physical type %d: %w", l.node.Name, v.Type, ErrCorrupt)
	}
	from, to := v.Offsets[k], v.Offsets[k+1]
	return v.Data[from:to:to], nil
}
