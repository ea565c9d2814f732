package merge

import (
	"math/big"

	"github.com/icefs/icefs/internal/pqfile"
)

// shape makes the schema that a view serves over its live files: the Iceberg
// schema's canonical form, in which
//
//   - a node is REQUIRED if its field is, or if it is in every live file;
//   - a decimal has the physical form of the Parquet files if they all share one
//     that fits its precision, so that its chunks can be served as they are.
//
// The inputs' projections must be onto base.
func shape(base *pqfile.Schema, inputs []*input) *pqfile.Schema {
	view := base.Clone()
	votes := make(map[*pqfile.Node]bool) // node of base -> REQUIRED in every file so far
	forms := make([]*pqfile.Node, len(base.Leaves))
	mixed := make([]bool, len(base.Leaves))
	live := false
	for _, in := range inputs {
		if !in.hasLive() {
			continue
		}
		live = true
		for i := range base.Leaves {
			vote(votes, base.Leaves[i], in.columns[i].Source)
			src := in.columns[i].Source
			switch {
			case src == nil || in.pq == nil: // nothing of it is served as it is
			case forms[i] == nil:
				forms[i] = src
			case forms[i].Type != src.Type || forms[i].TypeLength != src.TypeLength || forms[i].Logical != src.Logical:
				mixed[i] = true
			}
		}
	}
	if live {
		relax(view.Root, base.Root, votes)
	}
	for i, leaf := range view.Leaves {
		if forms[i] != nil && !mixed[i] {
			adoptDecimal(leaf, forms[i])
		}
	}
	view.Relevel()
	return view
}

// vote notes for a leaf and its ancestors whether one file has them REQUIRED.
// Without a source leaf nothing is known of the ancestors either: OPTIONAL.
func vote(votes map[*pqfile.Node]bool, leaf, source *pqfile.Node) {
	for n := leaf; n.Parent != nil; n = n.Parent {
		required := source != nil && source.Parent != nil && !source.Optional
		if before, ok := votes[n]; ok {
			required = required && before
		}
		votes[n] = required
		if source != nil {
			source = source.Parent
		}
	}
}

// relax makes nodes of the view REQUIRED that every live file has so. base is
// the tree the votes were taken on, of the same form.
func relax(view, base *pqfile.Node, votes map[*pqfile.Node]bool) {
	for i, n := range view.Children {
		if votes[base.Children[i]] && n.Logical.Kind != pqfile.LogicalUnknown {
			n.Optional = false
		}
		relax(n, base.Children[i], votes)
	}
}

// adoptDecimal gives a decimal leaf the stored form if readers accept it for
// the leaf's precision (parquet-format, LogicalTypes.md: INT32 holds 9 digits,
// INT64 18, n bytes floor(log10(2^(8n-1) - 1))).
func adoptDecimal(leaf, stored *pqfile.Node) {
	if leaf.Logical.Kind != pqfile.LogicalDecimal || stored.Logical.Kind != pqfile.LogicalDecimal ||
		leaf.Logical.Scale != stored.Logical.Scale {
		return
	}
	digits := 0
	switch stored.Type {
	case pqfile.Int32:
		digits = 9
	case pqfile.Int64:
		digits = 18
	case pqfile.FixedLenByteArray:
		digits = digitsOf(stored.TypeLength)
	}
	if digits >= int(leaf.Logical.Precision) {
		leaf.Type, leaf.TypeLength = stored.Type, stored.TypeLength
	}
}

// digitsOf is how many decimal digits always fit n bytes of two's complement.
func digitsOf(n int) int {
	if n <= 0 || n > 64 {
		return 0
	}
	largest := new(big.Int).Lsh(big.NewInt(1), uint(8*n-1))
	largest.Sub(largest, big.NewInt(1))
	return len(largest.String()) - 1
}
