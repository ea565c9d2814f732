package warehouse

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// avroKind is how a value is encoded.
type avroKind uint8

const (
	avroNull avroKind = iota
	avroBool
	avroInt // int, long and enum
	avroFloat
	avroDouble
	avroBytes // bytes and string
	avroFixed
	avroRecord
	avroArray
	avroMap
	avroUnion
)

// avroType is a type of a schema.
type avroType struct {
	kind    avroKind
	name    string // Avro's: "int", "string", …
	logical string
	scale   int // of decimals
	size    int // of fixed
	fields  []avroField
	element *avroType   // of an array, values of a map
	options []*avroType // of a union
}

type avroField struct {
	name string
	id   int // field id, -1 if none
	typ  *avroType
}

// maxAvroDepth bounds the nesting of a schema; names may refer to themselves.
const maxAvroDepth = 32

// avroNames are the named types of a schema by their full names.
type avroNames map[string]*avro.SchemaNode

// define adds a named type and returns its namespace, which that of the record
// around it is if it has none of its own.
func (names avroNames) define(n *avro.SchemaNode) (space string) {
	full, space := n.Name, n.Namespace
	if at := strings.LastIndexByte(n.Name, '.'); at >= 0 {
		space = n.Name[:at]
	} else if space != "" {
		full = space + "." + n.Name
	}
	names[full] = n
	return space
}

// find returns the type that a name stands for within a namespace, nil if there
// is none: a short name is of that namespace before it is of none.
func (names avroNames) find(name, space string) *avro.SchemaNode {
	if !strings.Contains(name, ".") && space != "" {
		if n := names[space+"."+name]; n != nil {
			return n
		}
	}
	return names[name]
}

// newAvroType compiles a schema, within a namespace.
func newAvroType(n *avro.SchemaNode, names avroNames, space string, depth int) (*avroType, error) {
	if depth > maxAvroDepth {
		return nil, errors.New("schema nested too deep")
	}
	if n.Name != "" {
		space = names.define(n)
	}
	child := func(n *avro.SchemaNode) (*avroType, error) { return newAvroType(n, names, space, depth+1) }
	t := &avroType{name: n.Type, logical: n.LogicalType, scale: n.Scale, size: n.Size}
	if t.logical == "" {
		t.logical, _ = n.Props["logicalType"].(string)
	}
	var err error
	switch n.Type {
	case "null":
		t.kind = avroNull
	case "boolean":
		t.kind = avroBool
	case "int", "long", "enum":
		t.kind = avroInt
	case "float":
		t.kind = avroFloat
	case "double":
		t.kind = avroDouble
	case "bytes", "string":
		t.kind = avroBytes
	case "fixed":
		t.kind = avroFixed
	case "array":
		t.kind = avroArray
		if t.element, err = child(n.Items); err == nil && t.element.empty() {
			err = errors.New("items of no bytes")
		}
	case "map":
		t.kind = avroMap
		t.element, err = child(n.Values)
	case "record", "error":
		t.kind = avroRecord
		for i := range n.Fields {
			f := avroField{name: n.Fields[i].Name, id: -1}
			if id, ok := n.Fields[i].Props["field-id"].(int64); ok {
				f.id = int(id)
			}
			if f.typ, err = child(&n.Fields[i].Type); err != nil {
				return nil, err
			}
			t.fields = append(t.fields, f)
		}
	case "union":
		t.kind = avroUnion
		for i := range n.Branches {
			option, err := child(&n.Branches[i])
			if err != nil {
				return nil, err
			}
			t.options = append(t.options, option)
		}
	default:
		if known := names.find(n.Type, space); known != nil {
			return child(known)
		}
		return nil, fmt.Errorf("type %q", n.Type)
	}
	return t, err
}

// empty reports whether values of the type take no bytes.
func (t *avroType) empty() bool {
	switch t.kind {
	case avroNull:
		return true
	case avroFixed:
		return t.size <= 0
	case avroRecord:
		for i := range t.fields {
			if !t.fields[i].typ.empty() {
				return false
			}
		}
		return true
	}
	return false
}

// cursor reads Avro's binary encoding. The first read past the end, or of a
// malformed number, sets failed, and all later ones give zero values.
type cursor struct {
	buf    []byte
	at     int
	failed bool
}

func (d *cursor) fail() {
	d.failed = true
	d.at = len(d.buf)
}

// long reads a zigzag varint of up to 64 bits.
func (d *cursor) long() int64 {
	var v uint64
	for shift := 0; shift < 64 && d.at < len(d.buf); shift += 7 {
		b := d.buf[d.at]
		d.at++
		if shift == 63 && b > 1 { // more than 64 bits
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(v>>1) ^ -int64(v&1)
		}
	}
	d.fail()
	return 0
}

// take returns the next n bytes.
func (d *cursor) take(n int) []byte {
	if n < 0 || n > len(d.buf)-d.at {
		d.fail()
		return nil
	}
	b := d.buf[d.at : d.at+n]
	d.at += n
	return b
}

// bytes reads a length and so many bytes.
func (d *cursor) bytes() []byte {
	n := d.long()
	if n < 0 || n > int64(len(d.buf)-d.at) {
		d.fail()
		return nil
	}
	return d.take(int(n))
}

// items reads the head of a block of array items or map entries; 0 ends them. A
// negative count is followed by the block's size. More items than bytes left
// are refused: those of manifests take some.
func (d *cursor) items() int {
	n := d.long()
	if n < 0 {
		n = -n
		d.long()
	}
	if n < 0 || n > int64(len(d.buf)-d.at) {
		d.fail()
		return 0
	}
	return int(n)
}

// option reads which type of a union follows; other types are their own. It is
// of kind avroNull, with d failed, if there is no such type.
func (d *cursor) option(t *avroType) *avroType {
	if t.kind != avroUnion {
		return t
	}
	i := d.long()
	if i < 0 || i >= int64(len(t.options)) {
		d.fail()
		return &avroType{}
	}
	return t.options[i]
}

// skip passes over a value.
func (d *cursor) skip(t *avroType) {
	switch t.kind {
	case avroUnion:
		d.skip(d.option(t))
	case avroBool:
		d.take(1)
	case avroInt:
		d.long()
	case avroFloat:
		d.take(4)
	case avroDouble:
		d.take(8)
	case avroBytes:
		d.bytes()
	case avroFixed:
		d.take(t.size)
	case avroRecord:
		for i := range t.fields {
			d.skip(t.fields[i].typ)
		}
	case avroArray, avroMap:
		for n := d.items(); n > 0; n = d.items() {
			for range n {
				if t.kind == avroMap {
					d.bytes()
				}
				d.skip(t.element)
			}
		}
	}
}
