package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/twmb/avro"

	"github.com/icefs/icefs/internal/source"
)

// maxAvroHeader bounds what is read of a file to find its header.
const maxAvroHeader = 16 << 20

// orderedMaps returns an Avro file whose schema calls every map an array of
// pairs, which is how Iceberg writes maps of other keys. Both are encoded alike,
// but the library decodes maps without their order.
func orderedMaps(ctx context.Context, obj source.Object) (io.Reader, error) {
	head := make([]byte, min(obj.Size(), maxAvroHeader))
	if _, err := obj.ReadAt(ctx, head, 0); err != nil {
		return nil, err
	}
	magic := []byte("Obj\x01")
	if !bytes.HasPrefix(head, magic) {
		return nil, fmt.Errorf("no Avro file: %w", ErrCorrupt)
	}
	form, err := avro.Parse(`{"type":"map","values":"bytes"}`)
	if err != nil {
		return nil, err
	}
	metadata := map[string][]byte{}
	rest, err := form.Decode(head[len(magic):], &metadata)
	if err != nil {
		return nil, fmt.Errorf("Avro header: %w: %w", ErrCorrupt, err)
	}
	var schema any
	d := json.NewDecoder(bytes.NewReader(metadata["avro.schema"]))
	d.UseNumber()
	if err := d.Decode(&schema); err != nil {
		return nil, fmt.Errorf("Avro schema: %w: %w", ErrCorrupt, err)
	}
	pairs := 0
	if metadata["avro.schema"], err = json.Marshal(mapsToPairs(schema, &pairs)); err != nil {
		return nil, err
	}
	out, err := form.AppendEncode(magic, metadata)
	if err != nil {
		return nil, err
	}
	read := int64(len(head) - len(rest))
	return io.MultiReader(bytes.NewReader(out), io.NewSectionReader(readerAt{ctx, obj}, read, obj.Size()-read)), nil
}

// mapsToPairs rewrites a schema; n counts the records it makes, for their names.
func mapsToPairs(schema any, n *int) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = mapsToPairs(s[i], n)
		}
	case map[string]any:
		for _, key := range []string{"type", "items", "values", "fields"} {
			if inner, ok := s[key]; ok {
				s[key] = mapsToPairs(inner, n)
			}
		}
		if s["type"] != "map" {
			return s
		}
		*n++
		key := map[string]any{"name": "key", "type": "string"}
		value := map[string]any{"name": "value", "type": s["values"]}
		if id, ok := s["key-id"]; ok {
			key["field-id"] = id
		}
		if id, ok := s["value-id"]; ok {
			value["field-id"] = id
		}
		pair := map[string]any{"type": "record", "name": fmt.Sprintf("pair_of_map_%d", *n), "fields": []any{key, value}}
		return map[string]any{"type": "array", "logicalType": "map", "items": pair}
	}
	return schema
}
