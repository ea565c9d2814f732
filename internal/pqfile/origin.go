package pqfile

import (
	"encoding/binary"

	"github.com/apache/iceberg-go"
)

// Reserved field ids of metadata columns (Iceberg spec, "Reserved Field IDs").
// The ids of _row_id and _last_updated_sequence_number are iceberg-go's.
const (
	FileFieldID   = 2147483646 // _file, string: path of the file that a row is stored in
	PosFieldID    = 2147483645 // _pos, long: position of a row in it
	SpecIDFieldID = 2147483643 // _spec_id, int: partition spec of the file
)

// Origin is what a data file's manifest entry says about all of its rows; the
// values of metadata columns follow from it.
type Origin struct {
	Path       string // as the manifest spells it
	SpecID     int
	Sequence   int64 // data sequence number
	FirstRowID int64 // -1 = none: rows have no id but a stored one
}

// Fill gives an INT64 column values where the file has none: row r of the file
// has First + r, or First alone if Each is not set.
type Fill struct {
	First int64
	Each  bool
}

// metadata projects a metadata column: _file, _pos and _spec_id from where the
// file stands, whatever it stores; the lineage columns as stored and, where that
// is NULL or missing, as the file's rows inherit them (Iceberg spec, "Row
// Lineage"). It returns false for any other column.
func (p *projector) metadata(v *Node, path []step) (bool, error) {
	o := p.target.Origin
	if o == nil || len(path) != 1 {
		return false, nil
	}
	switch v.FieldID {
	case FileFieldID:
		return true, p.constant(v, iceberg.PrimitiveTypes.String, o.Path)
	case SpecIDFieldID:
		return true, p.constant(v, iceberg.PrimitiveTypes.Int32, o.SpecID)
	case PosFieldID:
		return true, p.inherit(v, path, nil, &Fill{Each: true})
	case iceberg.RowIDFieldID, iceberg.LastUpdatedSequenceNumberFieldID:
	default:
		return false, nil
	}
	stored, err := p.child(path[0].file, v.FieldID)
	if err != nil {
		return true, err
	}
	var fill *Fill
	switch {
	case o.FirstRowID < 0:
	case v.FieldID == iceberg.RowIDFieldID:
		fill = &Fill{First: o.FirstRowID, Each: true}
	default:
		fill = &Fill{First: o.Sequence}
	}
	return true, p.inherit(v, path, stored, fill)
}

// constant projects a column that has one value in all rows.
func (p *projector) constant(v *Node, t iceberg.Type, value any) error {
	c, err := constantOf(t, v, value)
	if err != nil {
		return err
	}
	p.set(v, Column{DefMap: []uint8{0}}, uint8(v.MaxDef), c)
	return nil
}

// inherit projects a column of which the file may store values (stored, or
// nil); fill is nil if its rows inherit none.
func (p *projector) inherit(v *Node, path []step, stored *Node, fill *Fill) error {
	col := &p.columns[v.Leaf]
	switch {
	case stored != nil:
		if err := p.match(append(path, step{v, stored})); err != nil {
			return err
		}
		if stored.MaxDef > 0 {
			col.Fill = fill
		}
	case fill == nil:
		p.set(v, Column{DefMap: []uint8{0}}, 0, noValue(v))
	case !fill.Each:
		value := Values{Type: Int64, Width: 8, N: 1, Fixed: binary.LittleEndian.AppendUint64(nil, uint64(fill.First))}
		p.set(v, Column{DefMap: []uint8{0}}, uint8(v.MaxDef), value)
	default:
		p.set(v, Column{DefMap: []uint8{0}}, uint8(v.MaxDef), noValue(v))
		col.Fill = fill
	}
	return nil
}

// Complete gives values to the NULLs of v, the rows from position first of a
// flat INT64 column. v then has plain values for all rows; they are appended to
// buf, which is returned.
func (f *Fill) Complete(v *Vector, first int64, buf []byte) []byte {
	vals := &v.Values
	if v.Rows == vals.N && v.Def == nil {
		return buf
	}
	x, step := f.First, int64(0)
	if f.Each {
		x, step = f.First+first, 1
	}
	from, next := len(buf), 0
	buf = extend(buf, 8*v.Rows)
	for i := from; i < len(buf); i += 8 {
		binary.LittleEndian.PutUint64(buf[i:], uint64(x))
		x += step
	}
	for i, level := range v.Def {
		if level > 0 {
			copy(buf[from+8*i:from+8*i+8], int64Bytes(vals, next))
			next++
		}
	}
	v.Values = Values{Type: Int64, Width: 8, N: v.Rows, Fixed: buf[from:]}
	v.Def, v.Repeat = nil, false
	return buf
}

// int64Bytes is value i as it is stored.
func int64Bytes(v *Values, i int) []byte {
	if v.Dict != nil {
		v, i = v.Dict, int(v.Index[i])
	}
	return v.Fixed[8*i : 8*i+8]
}
