package deletes

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// intMap numbers distinct integers with codes from 1 in the order they came. It
// hashes with open addressing, at most half full, and a seed of its own, so that
// no file can be made whose keys all collide. The zero value is empty.
type intMap struct {
	seed  uint64
	keys  []uint64
	codes []uint32 // 0 = free
	n     int
}

// minSlots is the least size of a map that holds anything; sizes are powers of
// two.
const minSlots = 16

// mix spreads a key over 64 bits (the finalizer of MurmurHash3).
func mix(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}

// code returns the code of k, 0 if it has none and is not to be inserted.
func (m *intMap) code(k uint64, insert bool) uint32 {
	if len(m.codes) == 0 {
		if !insert {
			return 0
		}
		m.seed = rand.Uint64()
		m.resize(minSlots)
	}
	mask := uint64(len(m.codes) - 1)
	i := m.slot(k)
	for ; m.codes[i] != 0; i = (i + 1) & mask {
		if m.keys[i] == k {
			return m.codes[i]
		}
	}
	if !insert {
		return 0
	}
	if 2*(m.n+1) > len(m.codes) {
		m.resize(2 * len(m.codes))
		return m.code(k, true)
	}
	m.n++
	m.keys[i], m.codes[i] = k, uint32(m.n)
	return uint32(m.n)
}

// slot is where the search for k begins. The seed is mixed in twice: the second
// time it decides the bits that a table keeps of the first hash.
func (m *intMap) slot(k uint64) uint64 {
	hi, lo := bits.Mul64(mix(k^m.seed), m.seed|1)
	return (hi ^ lo) & uint64(len(m.codes)-1)
}

func (m *intMap) resize(slots int) {
	keys, codes := m.keys, m.codes
	m.keys, m.codes = make([]uint64, slots), make([]uint32, slots)
	mask := uint64(slots - 1)
	for j, code := range codes {
		if code == 0 {
			continue
		}
		i := m.slot(keys[j])
		for m.codes[i] != 0 {
			i = (i + 1) & mask
		}
		m.keys[i], m.codes[i] = keys[j], code
	}
}

// each calls f with every key, in no order.
func (m *intMap) each(f func(k uint64)) {
	for i, code := range m.codes {
		if code != 0 {
			f(m.keys[i])
		}
	}
}

func (m *intMap) size() int64 { return 12 * int64(cap(m.codes)) }

// byteMap is an intMap of byte strings, which it copies into one arena.
type byteMap struct {
	seed   maphash.Seed
	slots  []uint32 // codes; 0 = free
	arena  []byte
	ends   []uint64 // ends[code-1] is where the code's bytes end
	hashes []uint64 // by code-1
	n      int
}

func (m *byteMap) code(k []byte, insert bool) uint32 {
	if len(m.slots) == 0 {
		if !insert {
			return 0
		}
		m.seed = maphash.MakeSeed()
		m.slots = make([]uint32, minSlots)
	}
	h := maphash.Bytes(m.seed, k)
	mask := uint64(len(m.slots) - 1)
	i := h & mask
	for ; m.slots[i] != 0; i = (i + 1) & mask {
		if code := m.slots[i]; m.hashes[code-1] == h && bytes.Equal(m.value(code), k) {
			return code
		}
	}
	if !insert {
		return 0
	}
	if 2*(m.n+1) > len(m.slots) {
		m.grow()
		return m.code(k, true)
	}
	m.n++
	m.arena = append(m.arena, k...)
	m.ends = append(m.ends, uint64(len(m.arena)))
	m.hashes = append(m.hashes, h)
	m.slots[i] = uint32(m.n)
	return uint32(m.n)
}

// value is the bytes of a code.
func (m *byteMap) value(code uint32) []byte {
	start := uint64(0)
	if code > 1 {
		start = m.ends[code-2]
	}
	return m.arena[start:m.ends[code-1]]
}

func (m *byteMap) grow() {
	m.slots = make([]uint32, 2*len(m.slots))
	mask := uint64(len(m.slots) - 1)
	for c, h := range m.hashes {
		i := h & mask
		for m.slots[i] != 0 {
			i = (i + 1) & mask
		}
		m.slots[i] = uint32(c + 1)
	}
}

// extremes returns the least and the greatest value, nil if there is none.
func (m *byteMap) extremes() (least, greatest []byte) {
	for c := range m.hashes {
		v := m.value(uint32(c + 1))
		if c == 0 || bytes.Compare(v, least) < 0 {
			least = v
		}
		if c == 0 || bytes.Compare(v, greatest) > 0 {
			greatest = v
		}
	}
	return least, greatest
}

func (m *byteMap) size() int64 {
	return 4*int64(cap(m.slots)) + int64(cap(m.arena)) + 8*int64(cap(m.ends)+cap(m.hashes))
}
