package deletes

import "math/bits"

// keyFilter tells most hashes that no key has from those that one has: each key
// sets two bits of one word (a blocked Bloom filter). The hash's upper bits
// choose the word, its lower twelve the bits. It is small enough for a
// processor's cache where the keys are not, and nearly all rows end here.
type keyFilter struct {
	words []uint64 // a power of two of them
	shift uint8
}

// keysPerWord gives each key 16 bits: about one in fifty other hashes passes.
const keysPerWord = 4

// newKeyFilter returns a filter for n keys.
func newKeyFilter(n int) keyFilter {
	width := bits.Len(uint(max(n-1, 0) / keysPerWord))
	return keyFilter{words: make([]uint64, 1<<width), shift: uint8(32 - width)}
}

func (f *keyFilter) add(h uint32) {
	f.words[h>>f.shift] |= 1<<(h&63) | 1<<(h>>6&63)
}

// has reports whether a key may have the hash.
func (f *keyFilter) has(h uint32) bool {
	m := uint64(1)<<(h&63) | 1<<(h>>6&63)
	return f.words[h>>f.shift]&m == m
}

// weight is how many bits are set: more for more distinct hashes.
func (f *keyFilter) weight() (n int) {
	for _, w := range f.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// keyProbe tells rows that have no key of some key sets by hashes alone. It is
// shared by all data files that are matched with the same sets. Immutable.
type keyProbe struct {
	keys    int
	columns []keyFilter // of the values of each column
	whole   keyFilter   // of the hashes of whole keys; of one column, that column's
	order   []int       // the columns, those with the most distinct values first
}

func newKeyProbe(h hasher, sets []*keySet) *keyProbe {
	p := &keyProbe{}
	for _, s := range sets {
		p.keys += s.n
	}
	p.columns = make([]keyFilter, len(sets[0].columns))
	for i := range p.columns {
		p.columns[i] = newKeyFilter(p.keys)
	}
	if p.whole = p.columns[0]; len(p.columns) > 1 {
		p.whole = newKeyFilter(p.keys)
	}
	for _, s := range sets {
		for key := range s.n {
			whole := s.columns[0].hash(h, key)
			p.columns[0].add(whole)
			for i := range s.columns[1:] {
				hash := s.columns[i+1].hash(h, key)
				p.columns[i+1].add(hash)
				whole = fold(whole, hash)
			}
			p.whole.add(whole)
		}
	}
	p.order = byWeight(p.columns)
	return p
}

// byWeight returns the places of filters, the heaviest first.
func byWeight(filters []keyFilter) []int {
	weights := make([]int, len(filters))
	order := make([]int, 0, len(filters))
	for i := range filters {
		weights[i] = filters[i].weight()
		at := len(order)
		for at > 0 && weights[order[at-1]] < weights[i] {
			at--
		}
		order = append(order[:at], append([]int{i}, order[at:]...)...)
	}
	return order
}

// size is the heap kept.
func (p *keyProbe) size() int64 {
	n := 128 + 8*int64(len(p.whole.words))
	for i := range p.columns {
		n += 40 + 8*int64(len(p.columns[i].words))
	}
	return n
}
