package deletes

import "bytes"

// codeMap numbers distinct values with codes from 1 in the order they came. It
// is an open-addressing hash table, at most half full; the caller hashes, so
// that a value is hashed once for many maps. A slot is 0 if free, else the hash
// in its upper and the code in its lower 32 bits: a value that is not there is
// mostly told from the slots alone.
type codeMap struct {
	slots []uint64 // a power of two of them
	n     int
}

// minSlots is the least size of a map that holds anything.
const minSlots = 16

// reserve makes room for one more value.
func (m *codeMap) reserve() {
	if 2*(m.n+1) <= len(m.slots) {
		return
	}
	old := m.slots
	m.slots = make([]uint64, max(minSlots, 2*len(old)))
	for _, s := range old {
		if s != 0 {
			m.slots[m.free(uint32(s>>32))] = s
		}
	}
}

// free returns the slot where a value of hash h, which is not in m, belongs.
func (m *codeMap) free(h uint32) uint32 {
	mask := uint32(len(m.slots) - 1)
	i := h & mask
	for m.slots[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// add gives the next code to a value that is not in m.
func (m *codeMap) add(h uint32) uint32 {
	m.reserve()
	m.n++
	m.slots[m.free(h)] = uint64(h)<<32 | uint64(m.n)
	return uint32(m.n)
}

// intMap is a codeMap of integers.
type intMap struct {
	codeMap
	keys []uint64 // by code-1
}

// find returns the code of k, 0 if it has none.
func (m *intMap) find(h uint32, k uint64) uint32 {
	if m.n == 0 {
		return 0
	}
	mask := uint32(len(m.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := m.slots[i]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == h && m.keys[uint32(s)-1] == k {
			return uint32(s)
		}
	}
}

// insert returns the code of k, a new one if it has none.
func (m *intMap) insert(h uint32, k uint64) uint32 {
	if code := m.find(h, k); code != 0 {
		return code
	}
	m.keys = append(m.keys, k)
	return m.add(h)
}

func (m *intMap) size() int64 { return 8 * int64(cap(m.slots)+cap(m.keys)) }

// byteMap is a codeMap of byte strings, which it copies into one arena.
type byteMap struct {
	codeMap
	arena []byte
	ends  []uint64 // ends[code-1] is where the code's bytes end
}

// value is the bytes of a code.
func (m *byteMap) value(code uint32) []byte {
	start := uint64(0)
	if code > 1 {
		start = m.ends[code-2]
	}
	return m.arena[start:m.ends[code-1]]
}

func (m *byteMap) find(h uint32, k []byte) uint32 {
	if m.n == 0 {
		return 0
	}
	mask := uint32(len(m.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := m.slots[i]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == h && bytes.Equal(m.value(uint32(s)), k) {
			return uint32(s)
		}
	}
}

func (m *byteMap) insert(h uint32, k []byte) uint32 {
	if code := m.find(h, k); code != 0 {
		return code
	}
	m.arena = append(m.arena, k...)
	m.ends = append(m.ends, uint64(len(m.arena)))
	return m.add(h)
}

// extremes returns the least and the greatest value, nil if there is none.
func (m *byteMap) extremes() (least, greatest []byte) {
	for code := range uint32(m.n) {
		v := m.value(code + 1)
		if code == 0 || bytes.Compare(v, least) < 0 {
			least = v
		}
		if code == 0 || bytes.Compare(v, greatest) > 0 {
			greatest = v
		}
	}
	return least, greatest
}

func (m *byteMap) size() int64 {
	return 8*int64(cap(m.slots)+cap(m.ends)) + int64(cap(m.arena))
}
