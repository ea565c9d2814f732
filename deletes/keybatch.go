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

// byteString hashes a value that is kept as bytes.
func (h hasher) byteString(b []byte) uint32 { return uint32(maphash.Bytes(h.bytes, b)) }

// nullHash stands for the hash of NULL.
const nullHash = 0x9E3779B9

// fold adds the hash of a column's value to that of the columns before.
func fold(hash, column uint32) uint32 {
	x := (hash ^ column) * 0x9E3779B1
	return x ^ x>>16
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
			v.hashes[i] = h.byteString(v.at(i))
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
	leaf   *pqfile.Node
	rows   int
	places []int32 // each row's place among the rows present, -1 for NULL; nil if none is NULL
	repeat bool    // values has one value, for all rows that are present
	values *hashedValues
	index  []uint32 // dictionary-coded: the value of the i-th row present is values' index[i]
	dict   *pqfile.Values

	plain, coded hashedValues // memory of values
	memory       []int32      // of places
	passes       []bool       // which of dict's values pass the filter of a keyProbe; empty if not asked yet
}

// load takes a vector of rows. It is used until the next load.
func (b *columnBatch) load(h hasher, rows int, v *pqfile.Vector) error {
	b.rows, b.places, b.repeat, b.index = rows, nil, v.Repeat, nil
	present := rows
	if v.Def != nil {
		present = b.place(v.Def)
		if present < rows {
			b.places = b.memory
		}
	}
	values := v.Values.N
	if v.Repeat && present > 0 {
		values = present * v.Values.N // one value stands for all
	} else if v.Repeat {
		values = 0
	}
	if v.Rep != nil || v.Def != nil && len(v.Def) != rows || values != present {
		return fmt.Errorf("internal error: key column %q: %d levels and %d values in %d rows", b.leaf.Name, len(v.Def), v.Values.N, rows)
	}
	if v.Values.Dict == nil {
		b.plain.load(h, b.leaf, &v.Values)
		b.values = &b.plain
		return nil
	}
	if b.dict != v.Values.Dict {
		b.coded.load(h, b.leaf, v.Values.Dict)
		b.dict, b.passes = v.Values.Dict, b.passes[:0]
	}
	b.values, b.index = &b.coded, v.Values.Index
	return nil
}

// place finds each row's place among those present, and returns how many are.
func (b *columnBatch) place(def []uint8) int {
	b.memory = slices.Grow(b.memory[:0], len(def))[:len(def)]
	n := int32(0)
	for row, d := range def {
		b.memory[row] = -1
		if int(d) == b.leaf.MaxDef {
			b.memory[row] = n
			n++
		}
	}
	return int(n)
}

// value returns where in values a row's value is, -1 if it is NULL.
func (b *columnBatch) value(row int) int {
	if b.places != nil {
		if row = int(b.places[row]); row < 0 {
			return -1
		}
	}
	switch {
	case b.repeat:
		return 0
	case b.index != nil:
		return int(b.index[row])
	}
	return row
}

func (b *columnBatch) hash(row int) uint32 {
	if v := b.value(row); v >= 0 {
		return b.values.hashes[v]
	}
	return nullHash
}

// appendPassing appends the rows whose values pass a filter, always the same
// one while a dictionary is.
func (b *columnBatch) appendPassing(dst []int32, f *keyFilter) []int32 {
	switch {
	case b.places != nil || b.repeat:
		for row := range b.rows {
			if f.has(b.hash(row)) {
				dst = append(dst, int32(row))
			}
		}
	case b.index != nil:
		passes := b.dictionary(f)
		for row, x := range b.index {
			if passes[x] {
				dst = append(dst, int32(row))
			}
		}
	default:
		for row, hash := range b.values.hashes {
			if f.has(hash) {
				dst = append(dst, int32(row))
			}
		}
	}
	return dst
}

// dictionary tells which values of the dictionary pass the filter.
func (b *columnBatch) dictionary(f *keyFilter) []bool {
	if len(b.passes) < len(b.coded.hashes) {
		for _, hash := range b.coded.hashes {
			b.passes = append(b.passes, f.has(hash))
		}
	}
	return b.passes
}

// keepPassing keeps those of rows whose values pass a filter.
func (b *columnBatch) keepPassing(rows []int32, f *keyFilter) []int32 {
	kept := rows[:0]
	for _, row := range rows {
		if f.has(b.hash(int(row))) {
			kept = append(kept, row)
		}
	}
	return kept
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

// load takes all columns of a batch of rows.
func (b *keyBatch) load(rows rowBatch) error {
	b.rows = rows.rows
	for i := range b.columns {
		if err := b.loadColumn(i, rows); err != nil {
			return err
		}
	}
	return nil
}

// loadColumn takes one column of a batch of rows.
func (b *keyBatch) loadColumn(i int, rows rowBatch) error {
	v, err := rows.column(i)
	if err != nil {
		return err
	}
	return b.columns[i].load(b.hash, rows.rows, v)
}

// hashOf is the hash of a row's key: of one column that of its value.
func (b *keyBatch) hashOf(row int) uint32 {
	hash := b.columns[0].hash(row)
	for i := range b.columns[1:] {
		hash = fold(hash, b.columns[i+1].hash(row))
	}
	return hash
}
