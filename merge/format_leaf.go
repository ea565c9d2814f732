package merge

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/icefs/icefs/internal/pqfile"
)

// csvForm is how CSV fields are written; a nil *csvForm means JSON values.
type csvForm struct {
	delim byte
	null  []byte // text of NULL; empty = empty unquoted field
	// quoteAll says that the delimiter can stand in numbers or times, so that
	// their fields are checked too.
	quoteAll bool
}

// leafText turns the values of one leaf into texts, one batch after another.
// Text k of a batch belongs to value k of its vector; a dictionary's texts are
// made once, a constant's once a batch. A value's text begins with text[:null],
// the text of NULL, so that texts and NULLs share one buffer.
type leafText struct {
	leafValues
	form   scalar
	floats *floatText // of floats
	csv    *csvForm   // nil: JSON
	null   []byte

	text []byte
	off  []uint32 // text i is text[off[i]:off[i+1]]

	own    textBuffer
	dict   *pqfile.Values // whose texts dictAt holds
	dictT  textBuffer
	dictAt struct {
		text []byte
		off  []uint32
	}
}

// release forgets everything borrowed.
func (l *leafText) release() {
	l.leafValues = leafValues{}
	l.text, l.off = nil, nil
	l.dict, l.dictAt.text, l.dictAt.off = nil, nil, nil
}

// leafValues are a leaf's values of a batch, and which text each has.
type leafValues struct {
	values *pqfile.Values
	index  []uint32 // dictionary-coded: value k has text index[k]
	repeat bool     // every value has text 0
}

// take makes a batch's values current.
func (l *leafValues) take(v *pqfile.Vector) error {
	l.values, l.repeat, l.index = &v.Values, v.Repeat, v.Values.Index
	if v.Repeat && v.Values.N > 1 {
		return fmt.Errorf("constant of %d values: %w", v.Values.N, ErrCorrupt)
	}
	if v.Values.Dict == nil {
		l.index = nil
	}
	return nil
}

// textBuffer is the memory that texts are written to, reused by each batch.
type textBuffer struct {
	text []byte
	off  []uint32
}

// bytes is the memory kept.
func (b *textBuffer) bytes() int { return cap(b.text) + 4*cap(b.off) }

// reset empties the buffer but for the text of NULL.
func (b *textBuffer) reset(null []byte) {
	b.text = append(b.text[:0], null...)
	b.off = append(b.off[:0], uint32(len(null)))
}

// newLeafText returns the formatter of a leaf.
func newLeafText(n *pqfile.Node, csv *csvForm) (*leafText, error) {
	form, err := scalarOf(n)
	if err != nil {
		return nil, err
	}
	l := &leafText{form: form, csv: csv, null: []byte("null")}
	switch form.kind {
	case scalarFloat:
		l.floats = newFloatText(32)
	case scalarDouble:
		l.floats = newFloatText(64)
	}
	if csv != nil {
		l.null = csv.null
	}
	return l, nil
}

// load makes the texts of a batch's values. They are valid until the next load
// and no longer than the vector.
func (l *leafText) load(v *pqfile.Vector) error {
	err := l.take(v)
	if err != nil {
		return err
	}
	if v.Values.Dict == nil {
		l.text, l.off, err = l.texts(&l.own, &v.Values)
		return err
	}
	if l.dict != v.Values.Dict {
		l.dictAt.text, l.dictAt.off, err = l.texts(&l.dictT, v.Values.Dict)
		if err != nil {
			return err
		}
		l.dict = v.Values.Dict
	}
	l.text, l.off = l.dictAt.text, l.dictAt.off
	return nil
}

// at returns which text value k of the batch has.
func (l *leafValues) at(k int) int {
	if l.repeat {
		k = 0
	}
	if l.index != nil {
		return int(l.index[k])
	}
	return k
}

// count is the number of values of the batch; without bound for a constant.
func (l *leafValues) count() int {
	if l.repeat && l.values.N == 1 {
		return math.MaxInt
	}
	return l.values.N
}

// texts formats v into b, or returns v's own bytes where they are the texts.
func (l *leafText) texts(b *textBuffer, v *pqfile.Values) ([]byte, []uint32, error) {
	if l.form.kind == scalarString && v.Type == pqfile.ByteArray && v.N > 0 && len(v.Data) >= leastBorrowed && l.borrows(v) {
		return v.Data, v.Offsets[:v.N+1], nil
	}
	b.reset(l.null)
	if v.N == 0 {
		return b.text, b.off, nil
	}
	if err := l.appendTexts(b, v); err != nil {
		return nil, nil, err
	}
	if uint64(len(b.text)) > math.MaxUint32 {
		return nil, nil, errLongBatch()
	}
	if l.csv != nil && l.csv.quoteAll && l.form.kind != scalarString {
		l.requote(b)
	}
	b.text = slices.Grow(b.text, 2*cellCopy)
	return b.text, b.off, nil
}

// leastBorrowed is the least size of strings that are not copied: the cells at
// the end of a text without room behind it are slow to copy (see putCell).
const leastBorrowed = 4 << 10

// errLongBatch is the error of a batch whose texts' offsets pass 32 bits.
func errLongBatch() error {
	return fmt.Errorf("more than 4 GiB of text in one batch: %w", ErrUnsupported)
}

// borrows reports whether strings are CSV fields as they are: none is empty or
// has a special byte, and NULL has no text of its own.
func (l *leafText) borrows(v *pqfile.Values) bool {
	if l.csv == nil || len(l.csv.null) > 0 {
		return false
	}
	for i := range v.N {
		if v.Offsets[i] == v.Offsets[i+1] {
			return false
		}
	}
	return !csvSpecial(v.Data[v.Offsets[0]:v.Offsets[v.N]], l.csv.delim)
}

// requote rewrites the texts of b as CSV fields, quoted where they have to be.
func (l *leafText) requote(b *textBuffer) {
	var q textBuffer
	q.reset(l.null)
	for i := range len(b.off) - 1 {
		q.text = appendCSV(q.text, b.text[b.off[i]:b.off[i+1]], l.csv)
		q.off = append(q.off, uint32(len(q.text)))
	}
	*b = q
}

// appendTexts appends the texts of all values, one loop a kind.
func (l *leafText) appendTexts(b *textBuffer, v *pqfile.Values) error {
	if err := l.form.accepts(v); err != nil {
		return err
	}
	b.off = slices.Grow(b.off, v.N)
	t, off := b.text, b.off[len(b.off):len(b.off)+v.N]
	switch l.form.kind {
	case scalarBool:
		for i, c := range v.Bools[:v.N] {
			t = strconv.AppendBool(t, c != 0)
			off[i] = uint32(len(t))
		}
	case scalarInt32:
		for i := range off {
			t = appendInt(t, int64(int32(le32(v.Fixed, i))))
			off[i] = uint32(len(t))
		}
	case scalarInt64:
		for i := range off {
			t = appendInt(t, int64(le64(v.Fixed, i)))
			off[i] = uint32(len(t))
		}
	case scalarFloat, scalarDouble:
		for i := range off {
			t = l.floats.append(t, l.floats.value(v, i), l.csv == nil)
			off[i] = uint32(len(t))
		}
	case scalarDate, scalarTime, scalarTimestamp:
		t = l.appendTimes(t, off, v)
	case scalarString:
		t = l.appendStrings(t, off, v)
	case scalarUUID, scalarHex:
		t = l.appendBytes(t, off, v)
	case scalarDecimal:
		var err error
		if t, err = l.appendDecimals(t, off, v); err != nil {
			return err
		}
	case scalarUnknown:
		return fmt.Errorf("a value of type unknown: %w", ErrCorrupt)
	}
	b.text, b.off = t, b.off[:len(b.off)+v.N]
	return nil
}

// types returns the physical types of a text form, as a set of bits.
func (s scalar) types() int {
	switch s.kind {
	case scalarBool:
		return 1 << pqfile.Boolean
	case scalarInt32, scalarDate, scalarUnknown:
		return 1 << pqfile.Int32
	case scalarInt64, scalarTimestamp:
		return 1 << pqfile.Int64
	case scalarTime:
		return 1<<pqfile.Int32 | 1<<pqfile.Int64
	case scalarFloat:
		return 1 << pqfile.Float
	case scalarDouble:
		return 1 << pqfile.Double
	case scalarString:
		return 1 << pqfile.ByteArray
	case scalarUUID:
		return 1 << pqfile.FixedLenByteArray
	case scalarHex:
		return 1<<pqfile.ByteArray | 1<<pqfile.FixedLenByteArray
	}
	return 1<<pqfile.Int32 | 1<<pqfile.Int64 | 1<<pqfile.ByteArray | 1<<pqfile.FixedLenByteArray
}

// accepts returns an error if values of v's physical type have no text.
func (s scalar) accepts(v *pqfile.Values) error {
	if s.types()&(1<<v.Type) == 0 {
		return fmt.Errorf("physical type %d: %w", v.Type, ErrUnsupported)
	}
	return nil
}

// jsonQuotes is how many quotes stand around a value in JSON, but for the words
// among floats.
func (s scalar) jsonQuotes() uint32 {
	switch s.kind {
	case scalarDate, scalarTime, scalarTimestamp, scalarString, scalarUUID, scalarHex:
		return 2
	}
	return 0
}

// appendTimes appends dates, times and timestamps; JSON quotes them.
func (l *leafText) appendTimes(t []byte, off []uint32, v *pqfile.Values) []byte {
	for i := range off {
		x := ticksOf(v, i)
		if l.csv == nil {
			t = append(t, '"')
		}
		switch l.form.kind {
		case scalarDate:
			t = appendDate(t, x)
		case scalarTime:
			t = appendClock(t, x, l.form.units)
		default:
			t = appendTimestamp(t, x, l.form.units, l.form.utc)
		}
		if l.csv == nil {
			t = append(t, '"')
		}
		off[i] = uint32(len(t))
	}
	return t
}

// appendStrings appends strings as CSV fields or JSON strings.
func (l *leafText) appendStrings(t []byte, off []uint32, v *pqfile.Values) []byte {
	for i := range off {
		if s := v.Data[v.Offsets[i]:v.Offsets[i+1]]; l.csv != nil {
			t = appendCSV(t, s, l.csv)
		} else {
			t = appendJSONString(t, s)
		}
		off[i] = uint32(len(t))
	}
	return t
}

// appendBytes appends uuids and hex; JSON quotes them, CSV quotes empty ones.
func (l *leafText) appendBytes(t []byte, off []uint32, v *pqfile.Values) []byte {
	for i := range off {
		var b []byte
		if v.Type == pqfile.ByteArray {
			b = v.Data[v.Offsets[i]:v.Offsets[i+1]]
		} else {
			b = v.Fixed[i*v.Width : (i+1)*v.Width]
		}
		quoted := l.csv == nil || len(b) == 0
		if quoted {
			t = append(t, '"')
		}
		if l.form.kind == scalarUUID && len(b) == 16 {
			t = appendUUID(t, b)
		} else {
			t = appendHex(t, b)
		}
		if quoted {
			t = append(t, '"')
		}
		off[i] = uint32(len(t))
	}
	return t
}

// appendDecimals appends decimals of any physical form.
func (l *leafText) appendDecimals(t []byte, off []uint32, v *pqfile.Values) ([]byte, error) {
	var err error
	for i := range off {
		switch v.Type {
		case pqfile.Int32, pqfile.Int64:
			t = appendDecimal(t, ticksOf(v, i), l.form.scale)
		case pqfile.ByteArray:
			t, err = appendDecimalBytes(t, v.Data[v.Offsets[i]:v.Offsets[i+1]], l.form.scale)
		default:
			t, err = appendDecimalBytes(t, v.Fixed[i*v.Width:(i+1)*v.Width], l.form.scale)
		}
		if err != nil {
			return nil, err
		}
		off[i] = uint32(len(t))
	}
	return t, nil
}
