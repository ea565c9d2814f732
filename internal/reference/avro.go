package reference

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/internal/source"
)

// avroScalar is a value as the Avro library gives it.
type avroScalar struct{ v any }

// anode is a node of an Avro schema with its field ids.
type anode struct {
	kind     string // record, array, map, or a primitive
	names    []string
	ids      []int    // record: of fields; array: element; map: key and value
	children []*anode // the same
}

// avroRows reads the records of an Avro file. Fewer than its manifest counts are
// an error: the file may have been cut after a block.
func avroRows(ctx context.Context, obj source.Object, mapping iceberg.NameMapping, count int64) (iter.Seq2[Record, error], error) {
	file, schema, err := orderedMaps(bufio.NewReaderSize(io.NewSectionReader(readerAt{ctx, obj}, 0, obj.Size()), 1<<17))
	if err != nil {
		return nil, err
	}
	r, err := ocf.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	root, err := parseAvro(schema, map[string]*anode{})
	if err != nil {
		return nil, err
	}
	if !root.hasID() {
		if mapping == nil {
			return nil, fmt.Errorf("no field ids and no name mapping: %w", ErrUnsupported)
		}
		root.assign(mapping)
	}
	return func(yield func(Record, error) bool) {
		for n := int64(0); ; n++ {
			var row any
			err := r.Decode(&row)
			if err == io.EOF && n >= count {
				return
			}
			if err == io.EOF {
				err = fmt.Errorf("%d rows, the manifest says %d", n, count)
			}
			if err != nil {
				yield(nil, fmt.Errorf("%w: %w", ErrCorrupt, err))
				return
			}
			v, err := root.value(row)
			if rec, ok := v.(Record); err != nil || !ok || !yield(rec, nil) {
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}, nil
}

// parseAvro makes the tree of a schema; named types may be used again by name.
func parseAvro(raw json.RawMessage, named map[string]*anode) (*anode, error) {
	var union []json.RawMessage
	if json.Unmarshal(raw, &union) == nil {
		for _, branch := range union {
			if strings.TrimSpace(string(branch)) != `"null"` {
				return parseAvro(branch, named)
			}
		}
		return &anode{kind: "null"}, nil
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		if n := named[name]; n != nil {
			return n, nil
		}
		return &anode{kind: name}, nil
	}
	var t struct {
		Type              json.RawMessage
		Name, LogicalType string
		Items, Values     json.RawMessage
		ElementID         *int `json:"element-id"`
		KeyID             *int `json:"key-id"`
		ValueID           *int `json:"value-id"`
		Fields            []struct {
			Name string
			Type json.RawMessage
			ID   *int `json:"field-id"`
		}
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("Avro schema: %w: %w", ErrCorrupt, err)
	}
	if json.Unmarshal(t.Type, &name) != nil {
		return parseAvro(t.Type, named) // {"type": {…}}
	}
	n := &anode{kind: name}
	if t.Name != "" {
		named[t.Name] = n
	}
	add := func(name string, id *int, raw json.RawMessage) error {
		child, err := parseAvro(raw, named)
		if err != nil {
			return err
		}
		number := -1
		if id != nil {
			number = *id
		}
		n.names, n.ids, n.children = append(n.names, name), append(n.ids, number), append(n.children, child)
		return nil
	}
	switch name {
	case "record":
		for _, f := range t.Fields {
			if err := add(f.Name, f.ID, f.Type); err != nil {
				return nil, err
			}
		}
	case "array":
		if err := add("element", t.ElementID, t.Items); err != nil {
			return nil, err
		}
		if pair := n.children[0]; t.LogicalType == "map" && len(pair.children) == 2 {
			n.kind, n.names, n.ids, n.children = "pairs", pair.names, pair.ids, pair.children
		}
	case "map":
		if err := add("key", t.KeyID, json.RawMessage(`"string"`)); err != nil {
			return nil, err
		}
		if err := add("value", t.ValueID, t.Values); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *anode) hasID() bool {
	for i, c := range n.children {
		if n.ids[i] >= 0 || c.hasID() {
			return true
		}
	}
	return false
}

// assign gives fields the ids of a name mapping.
func (n *anode) assign(mapping []iceberg.MappedField) {
	for i, c := range n.children {
		for _, m := range mapping {
			for _, name := range m.Names {
				if name == n.names[i] {
					n.ids[i] = m.ID()
					c.assign(m.Fields)
				}
			}
		}
	}
}

// value turns a decoded value into Records, Lists and Maps of avroScalars.
func (n *anode) value(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	bad := fmt.Errorf("Avro %s decoded as %T: %w", n.kind, v, ErrUnsupported)
	switch n.kind {
	case "record":
		fields, ok := v.(map[string]any)
		if !ok {
			return nil, bad
		}
		rec := Record{}
		for i, name := range n.names {
			inner, err := n.children[i].value(fields[name])
			if err != nil {
				return nil, err
			}
			rec[n.ids[i]] = inner
		}
		return rec, nil
	case "array":
		items, ok := v.([]any)
		if !ok {
			return nil, bad
		}
		list := make(List, len(items))
		for i, item := range items {
			inner, err := n.children[0].value(item)
			if err != nil {
				return nil, err
			}
			list[i] = inner
		}
		return list, nil
	case "map", "pairs":
		return n.mapValue(v, bad)
	}
	return avroScalar{v}, nil
}

// mapValue reads both of Iceberg's forms of a map: Avro's own, as orderedMaps
// shows it, and an array of pairs.
func (n *anode) mapValue(v any, bad error) (any, error) {
	pairs, ok := v.([]any)
	if !ok {
		return nil, bad
	}
	m := make(Map, len(pairs))
	for i, item := range pairs {
		pair, ok := item.(map[string]any)
		if !ok {
			return nil, bad
		}
		key, err := n.children[0].value(pair[n.names[0]])
		if err != nil {
			return nil, err
		}
		value, err := n.children[1].value(pair[n.names[1]])
		if err != nil {
			return nil, err
		}
		m[i] = Entry{key, value}
	}
	return m, nil
}

// coerceAvro understands a decoded Avro value as a type.
func coerceAvro(typ iceberg.Type, s avroScalar) (any, error) {
	switch v := s.v.(type) {
	case bool, float64:
		return v, nil
	case int32:
		return constant(typ, v)
	case int64:
		return constant(typ, v)
	case float32:
		return constant(typ, v)
	case string:
		if _, ok := typ.(iceberg.UUIDType); ok {
			return uuid.Parse(v)
		}
		return v, nil
	case []byte:
		if _, ok := typ.(iceberg.UUIDType); ok && len(v) == 16 {
			return uuid.UUID(v), nil
		}
		return v, nil
	case [16]byte:
		return uuid.UUID(v), nil
	case *big.Rat:
		return avroDecimal(typ, v)
	case time.Duration:
		return iceberg.Time(v.Microseconds()), nil
	case time.Time:
		switch typ.(type) {
		case iceberg.DateType:
			return iceberg.Date(floorDiv(v.Unix(), 86400)), nil
		case iceberg.TimestampType, iceberg.TimestampTzType:
			return iceberg.Timestamp(v.UnixMicro()), nil
		case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
			return iceberg.TimestampNano(v.UnixNano()), nil
		}
	}
	return nil, fmt.Errorf("Avro %T as %s: %w", s.v, typ, ErrUnsupported)
}

// avroDecimal scales a fraction up to its unscaled number.
func avroDecimal(typ iceberg.Type, v *big.Rat) (any, error) {
	t, ok := typ.(iceberg.DecimalType)
	if ok {
		scaled := new(big.Rat).Mul(v, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale())), nil)))
		if scaled.IsInt() && scaled.Num().BitLen() <= 127 {
			return iceberg.Decimal{Val: decimal128.FromBigInt(scaled.Num()), Scale: t.Scale()}, nil
		}
	}
	return nil, fmt.Errorf("Avro decimal %s as %s: %w", v, typ, ErrUnsupported)
}

// textOf is a string of a delete file of either format.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case scalar:
		if b, ok := v.v.([]byte); ok {
			return string(b), nil
		}
	case avroScalar:
		if s, ok := v.v.(string); ok {
			return s, nil
		}
	}
	return "", fmt.Errorf("%T is no string: %w", v, ErrCorrupt)
}

// numberOf is a long of a delete file of either format.
func numberOf(v any) (int64, error) {
	switch v := v.(type) {
	case scalar:
		if n, ok := v.integer(); ok {
			return n, nil
		}
	case avroScalar:
		switch n := v.v.(type) {
		case int32:
			return int64(n), nil
		case int64:
			return n, nil
		}
	}
	return 0, fmt.Errorf("%T is no number: %w", v, ErrCorrupt)
}

// floorDiv divides rounding down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
