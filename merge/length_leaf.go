package merge

import (
	"fmt"
	"math"

	"github.com/icefs/icefs/internal/pqfile"
)

// lengths are the lengths of the texts of a run of values.
type lengths struct {
	each   []uint32 // nil: every text has same bytes
	same   uint32
	quotes []uint32 // quotes in each text; nil: every text has quote
	quote  uint32
	own    struct{ each, quotes []uint32 } // memory for each and quotes
}

// reset forgets the lengths and makes room for n.
func (s *lengths) reset(n int) {
	if cap(s.own.each) < n {
		s.own.each = make([]uint32, n)
	}
	s.each, s.same, s.quotes, s.quote = nil, 0, nil, 0
	s.own.each = s.own.each[:n]
}

// bytes is the memory kept.
func (s *lengths) bytes() int { return 4 * (cap(s.own.each) + cap(s.own.quotes)) }

// at is the length of text i.
func (s *lengths) at(i int) uint32 {
	if s.each == nil {
		return s.same
	}
	return s.each[i]
}

// quotesAt is the number of quotes in text i.
func (s *lengths) quotesAt(i int) uint32 {
	if s.quotes == nil {
		return s.quote
	}
	return s.quotes[i]
}

// total is the length of n texts together.
func (s *lengths) total(n int) uint64 {
	if s.each == nil {
		return uint64(n) * uint64(s.same)
	}
	total := uint64(0)
	for _, l := range s.each[:n] {
		total += uint64(l)
	}
	return total
}

// leafLengths tells how long the texts of a leaf are that leafText makes,
// without making them. Fields are used as in leafText.
type leafLengths struct {
	leafValues
	text    *leafText // makes the texts of which no formula tells the length
	powers  *[20]uint64
	of      *lengths // of the batch's values, or of their dictionary's
	plain   lengths
	dict    *pqfile.Values
	ofDict  lengths
	scratch []byte
}

// newLeafLengths returns what measures the texts of a leaf.
func newLeafLengths(n *pqfile.Node, csv *csvForm) (*leafLengths, error) {
	text, err := newLeafText(n, csv)
	if err != nil {
		return nil, err
	}
	return &leafLengths{text: text, powers: powersOfTen()}, nil
}

// release forgets everything borrowed.
func (l *leafLengths) release() {
	l.leafValues, l.dict = leafValues{}, nil
	l.text.release()
}

// load measures a batch's values.
func (l *leafLengths) load(v *pqfile.Vector) error {
	if err := l.take(v); err != nil {
		return err
	}
	if v.Values.Dict == nil {
		l.of = &l.plain
		return l.measure(l.of, &v.Values)
	}
	l.of = &l.ofDict
	if l.dict != v.Values.Dict {
		if err := l.measure(l.of, v.Values.Dict); err != nil {
			return err
		}
		l.dict = v.Values.Dict
	}
	return nil
}

// measure measures the texts of v into s.
func (l *leafLengths) measure(s *lengths, v *pqfile.Values) error {
	s.reset(v.N)
	if v.N == 0 {
		return nil
	}
	form := &l.text.form
	if err := form.accepts(v); err != nil {
		return err
	}
	if l.text.csv == nil {
		s.quote = form.jsonQuotes()
	}
	if l.text.csv != nil && l.text.csv.quoteAll && form.kind != scalarString {
		return l.measureTexts(s, v)
	}
	switch form.kind {
	case scalarString:
		l.measureStrings(s, v)
	case scalarUUID, scalarHex:
		l.measureBytes(s, v)
	case scalarDecimal:
		if v.Type != pqfile.Int32 && v.Type != pqfile.Int64 {
			return l.measureTexts(s, v)
		}
		l.measureNumbers(s, v)
	case scalarUnknown:
		return fmt.Errorf("a value of type unknown: %w", ErrCorrupt)
	default:
		l.measureNumbers(s, v)
	}
	if s.total(v.N) >= math.MaxUint32 {
		return errLongBatch()
	}
	return nil
}

// measureTexts formats the values and keeps the lengths alone.
func (l *leafLengths) measureTexts(s *lengths, v *pqfile.Values) error {
	_, off, err := l.text.texts(&l.text.own, v)
	if err != nil {
		return err
	}
	s.each = s.own.each
	for i := range s.each {
		s.each[i] = off[i+1] - off[i]
	}
	return nil
}

// measureNumbers measures booleans, numbers and times.
func (l *leafLengths) measureNumbers(s *lengths, v *pqfile.Values) {
	form := &l.text.form
	s.each = s.own.each
	out := s.each
	switch form.kind {
	case scalarBool:
		for i, c := range v.Bools[:v.N] {
			out[i] = 5 - min(uint32(c), 1) // false, true
		}
	case scalarInt32, scalarInt64:
		for i := range out {
			out[i] = lenInt(ticksOf(v, i), l.powers)
		}
	case scalarDecimal:
		for i := range out {
			out[i] = lenDecimal(ticksOf(v, i), form.scale, l.powers)
		}
	case scalarFloat, scalarDouble:
		l.measureFloats(s, v)
	case scalarDate:
		l.measureDates(s, v)
	case scalarTime:
		for i := range out {
			out[i] = s.quote + lenClock(ticksOf(v, i), form.units)
		}
	case scalarTimestamp:
		around := s.quote
		if form.utc {
			around++
		}
		least, greatest := plainTimestamps(form.units)
		for i := range out {
			out[i] = around + lenTimestamp(ticksOf(v, i), form.units, least, greatest)
		}
	}
}

// measureDates measures dates, which are equally long in the years 0 to 9999.
func (l *leafLengths) measureDates(s *lengths, v *pqfile.Values) {
	least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range v.N {
		x := ticksOf(v, i)
		least, greatest = min(least, x), max(greatest, x)
	}
	if least >= firstPlainDay && greatest <= lastPlainDay {
		s.each, s.same = nil, s.quote+plainDate
		return
	}
	for i := range s.each {
		s.each[i] = s.quote + lenDate(ticksOf(v, i))
	}
}

// measureFloats measures floats; JSON quotes the words among them. The few that
// are not plain are formatted into a scratch buffer.
func (l *leafLengths) measureFloats(s *lengths, v *pqfile.Values) {
	floats, json := l.text.floats, l.text.csv == nil
	for i := range s.each {
		f := floats.value(v, i)
		if p, ok := floats.plain(f); ok {
			s.each[i] = p.length(l.powers)
			continue
		}
		l.scratch = floats.append(l.scratch[:0], f, json)
		s.each[i] = uint32(len(l.scratch))
		if l.scratch[0] != '"' {
			continue
		}
		if s.quotes == nil {
			s.quotes = quoteless(&s.own.quotes, v.N)
		}
		s.quotes[i] = 2
	}
}

// quoteless returns n zeros in the memory of own.
func quoteless(own *[]uint32, n int) []uint32 {
	if cap(*own) < n {
		*own = make([]uint32, n)
	}
	*own = (*own)[:n]
	clear(*own)
	return *own
}

// measureStrings measures CSV fields or JSON strings: at once if no string has
// a byte that is written otherwise.
func (l *leafLengths) measureStrings(s *lengths, v *pqfile.Values) {
	s.each = s.own.each
	out, off := s.each, v.Offsets[:v.N+1]
	csv := l.text.csv
	if csv != nil {
		if len(csv.null) == 0 && !csvSpecial(v.Data[off[0]:off[v.N]], csv.delim) {
			for i := range out {
				if out[i] = off[i+1] - off[i]; out[i] == 0 {
					out[i] = 2
				}
			}
			return
		}
		for i := range out {
			out[i] = uint32(min(lenCSV(v.Data[off[i]:off[i+1]], csv), math.MaxUint32))
		}
		return
	}
	if jsonPlain(v.Data[off[0]:off[v.N]]) {
		for i := range out {
			out[i] = off[i+1] - off[i] + 2
		}
		return
	}
	s.quotes = quoteless(&s.own.quotes, v.N)
	for i := range out {
		n, quotes := lenJSONString(v.Data[off[i]:off[i+1]])
		out[i], s.quotes[i] = uint32(min(n, math.MaxUint32)), uint32(quotes)
	}
}

// measureBytes measures uuids and hex; CSV quotes empty ones.
func (l *leafLengths) measureBytes(s *lengths, v *pqfile.Values) {
	if v.Type != pqfile.ByteArray {
		s.same = s.quote + 2*uint32(v.Width)
		if l.text.form.kind == scalarUUID && v.Width == 16 {
			s.same += 4
		}
		if v.Width == 0 {
			s.same = 2
		}
		return
	}
	s.each = s.own.each
	for i := range s.each {
		n := uint64(s.quote) + 2*uint64(v.Offsets[i+1]-v.Offsets[i])
		if n == 0 {
			n = 2
		}
		s.each[i] = uint32(min(n, math.MaxUint32))
	}
}
