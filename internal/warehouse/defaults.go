package warehouse

import (
	"bytes"
	"encoding/json"

	"github.com/apache/iceberg-go"
)

// exactDefaults gives a schema's initial defaults the numbers of its JSON:
// iceberg-go decodes them through float64, which rounds longs from 2^53 on.
// Numbers become json.Number; all else stays.
func exactDefaults(s *iceberg.Schema, raw []byte) (*iceberg.Schema, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	defaults := map[int]any{}
	collectDefaults(doc, defaults)
	if len(defaults) == 0 {
		return s, nil
	}
	return iceberg.NewSchemaWithIdentifiers(s.ID, s.IdentifierFieldIDs, withDefaults(s.Fields(), defaults)...), nil
}

// collectDefaults gathers numeric initial defaults by field id, whatever the
// depth of their field. Recursion is as deep as the JSON, which the decoder
// bounds.
func collectDefaults(v any, defaults map[int]any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collectDefaults(e, defaults)
		}
	case map[string]any:
		if id, ok := v["id"].(json.Number); ok {
			if n, ok := v["initial-default"].(json.Number); ok {
				if id, err := id.Int64(); err == nil {
					defaults[int(id)] = n
				}
			}
		}
		for key, e := range v {
			if key != "initial-default" && key != "write-default" {
				collectDefaults(e, defaults)
			}
		}
	}
}

// withDefaults copies fields with the defaults put in, at every depth.
func withDefaults(fields []iceberg.NestedField, defaults map[int]any) []iceberg.NestedField {
	out := make([]iceberg.NestedField, len(fields))
	for i, f := range fields {
		if d, ok := defaults[f.ID]; ok {
			f.InitialDefault = d
		}
		f.Type = typeWithDefaults(f.Type, defaults)
		out[i] = f
	}
	return out
}

func typeWithDefaults(t iceberg.Type, defaults map[int]any) iceberg.Type {
	switch t := t.(type) {
	case *iceberg.StructType:
		return &iceberg.StructType{FieldList: withDefaults(t.FieldList, defaults)}
	case *iceberg.ListType:
		c := *t
		c.Element = typeWithDefaults(t.Element, defaults)
		return &c
	case *iceberg.MapType:
		c := *t
		c.KeyType, c.ValueType = typeWithDefaults(t.KeyType, defaults), typeWithDefaults(t.ValueType, defaults)
		return &c
	}
	return t
}
