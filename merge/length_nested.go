package merge

import (
	"bytes"
	"math"
	"strings"

	"github.com/icefs/icefs/internal/pqfile"
)

// jsonSize is how long a piece of JSON is, and what makes it longer as a CSV
// field.
type jsonSize struct {
	bytes  uint64
	quotes uint64
	nulls  int  // NULLs written
	commas bool // one stands outside strings, or a string may have one
}

// null reports whether the piece is null and nothing else.
func (s *jsonSize) null() bool { return s.bytes == uint64(len("null")) && s.nulls == 1 }

// add counts structure that has commas and quotes but no NULL.
func (s *jsonSize) add(bytes, quotes int) {
	s.bytes += uint64(bytes)
	s.quotes += uint64(quotes)
}

// countable reports whether the fields' lengths follow from the sizes of their
// JSON: whether a field is quoted depends on quotes and commas alone, since no
// other delimiter of those stands outside strings, and none reads as NULL.
func countable(csv *csvForm) bool {
	return csv == nil || strings.IndexByte(",;|\t", csv.delim) >= 0 && (len(csv.null) == 0 || csv.null[0] == '"')
}

// addLengths adds the lengths of a batch's cells to sum.
func (t *nestedText) addLengths(sum []int, vectors []*pqfile.Vector) error {
	for i, l := range t.leaves {
		l.vec, l.entry, l.value = vectors[i], 0, 0
		if l.sizes != nil {
			if err := l.sizes.load(l.vec); err != nil {
				return err
			}
		}
	}
	total := uint64(len(t.null))
	return t.eachRow(len(sum), func(i int) error {
		var s jsonSize
		if err := t.measure(t.root, &s); err != nil {
			return err
		}
		n := s.bytes
		switch {
		case t.csv == nil:
		case s.null():
			sum[i] += len(t.null)
			return nil
		case s.quotes > 0 || s.commas && t.csv.delim == ',':
			n += s.quotes + 2
		}
		if total += n; total > math.MaxUint32 {
			return errLongBatch()
		}
		sum[i] += int(n)
		return nil
	})
}

// measure adds the size of the node's next value, as nestedNode.append writes
// it.
func (t *nestedText) measure(n *nestedNode, s *jsonSize) error {
	if len(n.leaves) == 0 {
		s.add(len("{}"), 0)
		return nil
	}
	d, err := n.leaves[0].def()
	if err != nil {
		return err
	}
	if n.Optional && d < n.Present {
		s.add(len("null"), 0)
		s.nulls++
		return n.skip(n.Present - 1)
	}
	switch n.Kind {
	case pqfile.KindLeaf:
		return n.leaf.measure(s, d)
	case pqfile.KindList, pqfile.KindMap:
		return t.measureEntries(n, s, d)
	case pqfile.KindVariant:
		if t.json, err = n.appendVariant(t.json[:0]); err != nil {
			return err
		}
		s.add(len(t.json), bytes.Count(t.json, []byte{'"'}))
		s.commas = s.commas || bytes.IndexByte(t.json, ',') >= 0
		if string(t.json) == "null" {
			s.nulls++
		}
		return nil
	}
	s.add(len("{}")+len(n.children)-1, 0)
	s.commas = s.commas || len(n.children) > 1
	for _, c := range n.children {
		s.add(len(c.key), c.keyQuotes)
		if err := t.measure(c, s); err != nil {
			return err
		}
	}
	return nil
}

// measure adds the size of the leaf's next entry, which is at level d.
func (l *nestedLeaf) measure(s *jsonSize, d int) error {
	at, err := l.take(&l.sizes.leafValues, d)
	if err != nil {
		return err
	}
	s.bytes += uint64(l.sizes.of.at(at))
	s.quotes += uint64(l.sizes.of.quotesAt(at))
	return nil
}

// measureEntries adds the size of a list or a map whose first leaf is at level d.
func (t *nestedText) measureEntries(n *nestedNode, s *jsonSize, d int) error {
	s.add(len("[]"), 0)
	if d < n.Entry {
		return n.skip(n.Entry - 1)
	}
	for {
		if err := t.measureEntry(n, s); err != nil {
			return err
		}
		more, err := n.more()
		if err != nil || !more {
			return err
		}
		s.add(len(","), 0)
		s.commas = true
	}
}

// measureEntry adds the size of one entry of a list or map.
func (t *nestedText) measureEntry(n *nestedNode, s *jsonSize) error {
	if n.Kind == pqfile.KindList {
		return t.measure(n.children[0], s)
	}
	key, value := n.children[0], n.children[1]
	if !n.object {
		s.add(len(`{"key":,"value":}`), 4)
		if err := t.measure(key, s); err != nil {
			return err
		}
		return t.measure(value, s)
	}
	d, err := key.leaf.def()
	if err != nil {
		return err
	}
	if err := key.leaf.measure(s, d); err != nil {
		return err
	}
	s.add(len(":"), 0)
	return t.measure(value, s)
}
