package deletes

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"github.com/icefs/icefs/internal/pqfile"
)

// hasher hashes key values for every set of a Resolver. Its seeds are random, so
// that no file can be made whose keys all collide.
type hasher struct {
	ints  uint64
	bytes maphash.Seed
}

func newHasher() hasher {
	seed := maphash.MakeSeed()
	return hasher{ints: maphash.String(seed, "integers"), bytes: seed}
}

// int hashes an integer by one folded 128-bit product.
func (h hasher) int(k uint64) uint32 {
	hi, lo := bits.Mul64(k^h.ints, 0x9E3779B97F4A7C15)
	lo ^= hi
	return uint32(lo>>32) ^ uint32(lo)
}

// hashedValues are the values of a column that are not NULL, or those of its
// dictionary, hashed once for all key sets that they are looked up in.
type hashedValues struct {
	hashes []uint32
	ints   []uint64       // columns that keep integers
	bytes  *pqfile.Values // the others
}

// at is the i-th value of a byte column.
func (v *hashedValues) at(i int) []byte {
	b := v.bytes
	if b.Type == pqfile.FixedLenByteArray {
		return b.Fixed[i*b.Width : (i+1)*b.Width]
	}
	return b.Data[b.Offsets[i]:b.Offsets[i+1]]
}

// keepsInts reports whether a leaf's values are kept as integers: those of up
// to 8 bytes, fixed-length ones aside.
func keepsInts(leaf *pqfile.Node) bool {
	return leaf.Type != pqfile.ByteArray && leaf.Type != pqfile.FixedLenByteArray
}

// load takes values that are not dictionary-coded.
func (v *hashedValues) load(h hasher, leaf *pqfile.Node, from *pqfile.Values) {
	n := from.N
	v.hashes = slices.Grow(v.hashes[:0], n)[:n]
	v.bytes = from
	if !keepsInts(leaf) {
		for i := range v.hashes {
			v.hashes[i] = uint32(maphash.Bytes(h.bytes, v.at(i)))
		}
		return
	}
	v.ints = slices.Grow(v.ints[:0], n)[:n]
	integerKeys(v.ints, leaf.Type, from)
	for i, k := range v.ints {
		v.hashes[i] = h.int(k)
	}
}

// integerKeys writes values as the integers that they are compared by.
func integerKeys(dst []uint64, t pqfile.Type, from *pqfile.Values) {
	switch t {
	case pqfile.Boolean:
		for i := range dst {
			dst[i] = uint64(from.Bools[i])
		}
	case pqfile.Int32:
		for i := range dst {
			dst[i] = uint64(binary.LittleEndian.Uint32(from.Fixed[4*i:]))
		}
	case pqfile.Int64:
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint64(from.Fixed[8*i:])
		}
	case pqfile.Float:
		for i := range dst {
			dst[i] = floatKey(binary.LittleEndian.Uint32(from.Fixed[4*i:]))
		}
	case pqfile.Double:
		for i := range dst {
			dst[i] = doubleKey(binary.LittleEndian.Uint64(from.Fixed[8*i:]))
		}
	}
}

// floatKey and doubleKey compare as Java's Float.compare and Double.compare do:
// all NaNs are one value, and -0.0 is another than 0.0.
func floatKey(b uint32) uint64 {
	if f := math.Float32frombits(b); f != f {
		return uint64(math.Float32bits(float32(math.NaN())))
	}
	return uint64(b)
}

func doubleKey(b uint64) uint64 {
	if f := math.Float64frombits(b); f != f {
		return math.Float64bits(math.NaN())
	}
	return b
}

// columnBatch is a run of rows of one key column.
type columnBatch struct {
	leaf    *pqfile.Node
	rows    int
	present int     // rows that are not NULL
	def     []uint8 // levels, if any row is NULL
	repeat  bool    // values has one value, for all rows that are present
	values  *hashedValues
	index   []uint32 // dictionary-coded: the value of the i-th row present is values' index[i]
	dict    *pqfile.Values

	plain, coded hashedValues // memory of values
}

// load takes a vector of rows. It is used until the next load.
func (b *columnBatch) load(h hasher, rows int, v *pqfile.Vector) error {
	b.rows, b.present, b.def, b.repeat, b.index = rows, rows, nil, v.Repeat, nil
	if v.Def != nil {
		b.present = 0
		for _, d := range v.Def {
			if int(d) == b.leaf.MaxDef {
				b.present++
			}
		}
		if b.present < rows {
			b.def = v.Def
		}
	}
	values := v.Values.N
	if v.Repeat && b.present > 0 {
		values = b.present * v.Values.N // one value stands for all
	} else if v.Repeat {
		values = 0
	}
	if v.Rep != nil || v.Def != nil && len(v.Def) != rows || values != b.present {
		return fmt.Errorf("internal error: key column %q: %d levels and %d values in %d rows", b.leaf.Name, len(v.Def), v.Values.N, rows)
	}
	if v.Values.Dict == nil {
		b.plain.load(h, b.leaf, &v.Values)
		b.values = &b.plain
		return nil
	}
	if b.dict != v.Values.Dict {
		b.coded.load(h, b.leaf, v.Values.Dict)
		b.dict = v.Values.Dict
	}
	b.values, b.index = &b.coded, v.Values.Index
	return nil
}

// keyBatch is a run of rows of all key columns.
type keyBatch struct {
	hash    hasher
	columns []columnBatch
	rows    int
}

func newKeyBatch(h hasher, leaves []*pqfile.Node) *keyBatch {
	b := &keyBatch{hash: h, columns: make([]columnBatch, len(leaves))}
	for i, leaf := range leaves {
		b.columns[i].leaf = leaf
	}
	return b
}

func (b *keyBatch) load(rows int, cols []*pqfile.Vector) error {
	b.rows = rows
	for i := range b.columns {
		if err := b.columns[i].load(b.hash, rows, cols[i]); err != nil {
			return err
		}
	}
	return nil
}
