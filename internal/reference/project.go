package reference

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icefs/icefs/snapshot"
)

// projector reads records of one data file under Iceberg schemas.
type projector struct {
	table *snapshot.Table
	// constants are the file's identity-partition values by source field id.
	constants map[int]any
	defaults  map[int]json.RawMessage // initial defaults of the table's fields
}

// newProjector returns the projector of a data file.
func newProjector(t *snapshot.Table, f *snapshot.DataFile, defaults map[int]json.RawMessage) *projector {
	p := &projector{table: t, constants: map[int]any{}, defaults: defaults}
	spec := t.Specs[f.SpecID]
	for _, field := range spec.Fields() {
		if _, identity := field.Transform.(iceberg.IdentityTransform); identity {
			if v, known := f.Partition[field.FieldID]; known {
				p.constants[field.SourceID()] = v
			}
		}
	}
	return p
}

// initialDefaults finds the initial defaults in a table's metadata, where
// numbers still have all their digits.
func initialDefaults(metadata []byte) (map[int]json.RawMessage, error) {
	defaults := map[int]json.RawMessage{}
	if len(metadata) == 0 {
		return defaults, nil
	}
	var walk func(raw json.RawMessage) error
	walk = func(raw json.RawMessage) error {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || raw[0] == '"' {
			return nil // a primitive type
		}
		var t struct {
			Fields []struct {
				ID      int             `json:"id"`
				Type    json.RawMessage `json:"type"`
				Initial json.RawMessage `json:"initial-default"`
			} `json:"fields"`
			Element, Key, Value json.RawMessage
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		for _, f := range t.Fields {
			if len(f.Initial) > 0 && string(f.Initial) != "null" {
				defaults[f.ID] = f.Initial
			}
			if err := walk(f.Type); err != nil {
				return err
			}
		}
		for _, inner := range []json.RawMessage{t.Element, t.Key, t.Value} {
			if err := walk(inner); err != nil {
				return err
			}
		}
		return nil
	}
	var m struct {
		Schema  json.RawMessage   `json:"schema"`
		Schemas []json.RawMessage `json:"schemas"`
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return nil, fmt.Errorf("table metadata: %w: %w", ErrCorrupt, err)
	}
	for _, s := range append(m.Schemas, m.Schema) {
		if err := walk(s); err != nil {
			return nil, fmt.Errorf("table metadata: %w: %w", ErrCorrupt, err)
		}
	}
	return defaults, nil
}

// record reads a stored record under fields.
func (p *projector) record(fields []iceberg.NestedField, stored Record) (Record, error) {
	out := Record{}
	for _, f := range fields {
		v, err := p.field(f, stored)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		out[f.ID] = v
	}
	return out, nil
}

// field reads one field: what is stored, else the partition's value, else the
// initial default, else NULL.
func (p *projector) field(f iceberg.NestedField, stored Record) (any, error) {
	v, found := stored[f.ID]
	if found {
		if v == nil && f.Required {
			return nil, fmt.Errorf("required, but NULL: %w", ErrCorrupt)
		}
		return p.cast(f.Type, v)
	}
	if _, unknown := f.Type.(iceberg.UnknownType); unknown {
		return nil, nil
	}
	if v, found := p.constants[f.ID]; found {
		return constant(f.Type, v)
	}
	if raw, found := p.defaults[f.ID]; found {
		return defaultValue(f.Type, raw)
	}
	if f.Required {
		return nil, fmt.Errorf("required, but not stored and without a default: %w", ErrCorrupt)
	}
	return nil, nil
}

// cast reads a stored value as a type.
func (p *projector) cast(typ iceberg.Type, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch t := typ.(type) {
	case *iceberg.StructType:
		if rec, ok := v.(Record); ok {
			return p.record(t.FieldList, rec)
		}
	case *iceberg.ListType:
		if list, ok := v.(List); ok {
			return p.list(t, list)
		}
	case *iceberg.MapType:
		if m, ok := v.(Map); ok {
			return p.mapValue(t, m)
		}
	case iceberg.VariantType:
		if rec, ok := v.(Record); ok {
			return variantValue(rec)
		}
	default:
		switch v := v.(type) {
		case scalar:
			return coerce(typ, v)
		case avroScalar:
			return coerceAvro(typ, v)
		}
	}
	return nil, fmt.Errorf("stored %T as %s: %w", v, typ, ErrUnsupported)
}

func (p *projector) list(t *iceberg.ListType, list List) (any, error) {
	out := make(List, len(list))
	for i, e := range list {
		v, err := p.cast(t.Element, e)
		if err != nil {
			return nil, err
		}
		if v == nil && t.ElementRequired {
			return nil, fmt.Errorf("required element is NULL: %w", ErrCorrupt)
		}
		out[i] = v
	}
	return out, nil
}

func (p *projector) mapValue(t *iceberg.MapType, m Map) (any, error) {
	out := make(Map, len(m))
	for i, e := range m {
		key, err := p.cast(t.KeyType, e.Key)
		if err != nil {
			return nil, err
		}
		value, err := p.cast(t.ValueType, e.Value)
		if err != nil {
			return nil, err
		}
		if key == nil || value == nil && t.ValueRequired {
			return nil, fmt.Errorf("required key or value is NULL: %w", ErrCorrupt)
		}
		out[i] = Entry{key, value}
	}
	return out, nil
}

// valueOf reads a field anywhere in a row, dropped or not, in the type it has
// in the newest schema that has it. A field in a struct that is NULL is NULL.
func (p *projector) valueOf(stored Record, id int) (any, error) {
	path := p.path(id)
	if path == nil {
		return nil, fmt.Errorf("no schema of the table has field %d: %w", id, ErrCorrupt)
	}
	for i, f := range path {
		if i == len(path)-1 {
			f.Required = false
			return p.field(f, stored)
		}
		inner, ok := stored[f.ID].(Record)
		if !ok {
			return nil, nil
		}
		stored = inner
	}
	return nil, nil
}

// path lists the fields from the root to one, by the newest schema that has it.
func (p *projector) path(id int) []iceberg.NestedField {
	var newest *iceberg.Schema
	var found []iceberg.NestedField
	for _, s := range p.table.Schemas {
		if path := pathIn(s.Fields(), id); path != nil && (newest == nil || s.ID > newest.ID) {
			newest, found = s, path
		}
	}
	return found
}

func pathIn(fields []iceberg.NestedField, id int) []iceberg.NestedField {
	for _, f := range fields {
		if f.ID == id {
			return []iceberg.NestedField{f}
		}
		if st, ok := f.Type.(*iceberg.StructType); ok {
			if rest := pathIn(st.FieldList, id); rest != nil {
				return append([]iceberg.NestedField{f}, rest...)
			}
		}
	}
	return nil
}

// defaultValue reads a default in JSON single-value form.
func defaultValue(typ iceberg.Type, raw json.RawMessage) (any, error) {
	text := string(raw)
	var s string
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
	}
	bad := func(err error) (any, error) {
		return nil, fmt.Errorf("initial default %s of %s: %w: %v", text, typ, ErrUnsupported, err)
	}
	switch t := typ.(type) {
	case iceberg.BooleanType:
		v, err := strconv.ParseBool(text)
		return v, err
	case iceberg.Int32Type:
		v, err := strconv.ParseInt(text, 10, 32)
		return int32(v), err
	case iceberg.Int64Type:
		v, err := strconv.ParseInt(text, 10, 64)
		return v, err
	case iceberg.Float32Type:
		v, err := strconv.ParseFloat(text, 32)
		return float32(v), err
	case iceberg.Float64Type:
		v, err := strconv.ParseFloat(text, 64)
		return v, err
	case iceberg.DecimalType:
		d, err := decimal128.FromString(s, int32(t.Precision()), int32(t.Scale()))
		return iceberg.Decimal{Val: d, Scale: t.Scale()}, err
	case iceberg.StringType:
		return s, nil
	case iceberg.UUIDType:
		return uuid.Parse(s)
	case iceberg.BinaryType, iceberg.FixedType:
		return hex.DecodeString(s)
	case iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		v, err := defaultTime(typ, s)
		if err != nil {
			return bad(err)
		}
		return v, nil
	}
	return bad(nil)
}

// defaultTime reads an ISO date, time or timestamp.
func defaultTime(typ iceberg.Type, s string) (any, error) {
	layout := "2006-01-02T15:04:05.999999999"
	switch typ.(type) {
	case iceberg.DateType:
		layout = time.DateOnly
	case iceberg.TimeType:
		layout = "15:04:05.999999999"
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		layout += "Z07:00"
	}
	t, err := time.Parse(layout, strings.Replace(s, " ", "T", 1))
	if err != nil {
		return nil, err
	}
	switch typ.(type) {
	case iceberg.DateType:
		return iceberg.Date(t.Unix() / 86400), nil // no fraction: exact before 1970 too
	case iceberg.TimeType:
		return iceberg.Time(int64(t.Hour()*3600+t.Minute()*60+t.Second())*1e6 + int64(t.Nanosecond()/1000)), nil
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNano(t.UnixNano()), nil
	}
	return iceberg.Timestamp(t.UnixMicro()), nil
}
