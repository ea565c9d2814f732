package reference

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// maxAvroHeader bounds what is read to find the end of a header.
const maxAvroHeader = 16 << 20

// orderedMaps reads an Avro file as one whose maps are arrays of records with
// the fields key and value. The bytes of both are the same, but the library
// tells the order of an array only. The schema returned is the file's own.
func orderedMaps(file io.Reader) (io.Reader, json.RawMessage, error) {
	h := &avroHeader{r: file}
	magic := h.bytes(4)
	var meta bytes.Buffer
	var schema json.RawMessage
	entries := int64(0)
	for count := h.long(); count != 0 && h.err == nil; count = h.long() {
		if count < 0 { // then the block's length follows
			count = -count
			h.long()
		}
		for ; count > 0 && h.err == nil; count-- {
			key := string(h.bytes(h.long()))
			value := h.bytes(h.long())
			if key == "avro.schema" {
				schema = value
				var err error
				if value, err = pairsForMaps(value); err != nil {
					return nil, nil, err
				}
			}
			entries++
			meta.Write(avroBytes([]byte(key)))
			meta.Write(avroBytes(value))
		}
	}
	sync := h.bytes(16)
	if h.err != nil || string(magic) != "Obj\x01" {
		return nil, nil, fmt.Errorf("Avro header: %w: %v", ErrCorrupt, h.err)
	}
	head := append([]byte(nil), magic...)
	head = binary.AppendVarint(head, entries)
	head = append(append(head, meta.Bytes()...), 0)
	return io.MultiReader(bytes.NewReader(append(head, sync...)), file), schema, nil
}

// avroBytes is Avro's form of bytes: their number as a zigzag varint, and they.
func avroBytes(b []byte) []byte { return append(binary.AppendVarint(nil, int64(len(b))), b...) }

// avroHeader reads a header without a byte more.
type avroHeader struct {
	r    io.Reader
	read int64
	err  error
}

func (h *avroHeader) bytes(n int64) []byte {
	if h.err == nil && (n < 0 || h.read+n > maxAvroHeader) {
		h.err = fmt.Errorf("%d bytes are too many", n)
	}
	if h.err != nil {
		return nil
	}
	h.read += n
	b := make([]byte, n)
	_, h.err = io.ReadFull(h.r, b)
	return b
}

// ReadByte makes it an io.ByteReader, for varints.
func (h *avroHeader) ReadByte() (byte, error) {
	b := h.bytes(1)
	if h.err != nil {
		return 0, h.err
	}
	return b[0], nil
}

func (h *avroHeader) long() int64 {
	n, err := binary.ReadVarint(h)
	if h.err == nil {
		h.err = err
	}
	return n
}

// pairsForMaps replaces the map types of a schema.
func pairsForMaps(schema json.RawMessage) (json.RawMessage, error) {
	var tree any
	if err := json.Unmarshal(schema, &tree); err != nil {
		return nil, fmt.Errorf("Avro schema: %w: %w", ErrCorrupt, err)
	}
	maps := 0
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for key, inner := range v {
				if key == "type" || key == "items" || key == "values" || key == "fields" {
					v[key] = walk(inner)
				}
			}
			if v["type"] == "map" {
				maps++
				return map[string]any{"type": "array", "items": map[string]any{
					"type": "record", "name": fmt.Sprintf("icefs_map_%d", maps), "fields": []any{
						map[string]any{"name": "key", "type": "string"}, map[string]any{"name": "value", "type": v["values"]},
					},
				}}
			}
		}
		return v
	}
	out, err := json.Marshal(walk(tree))
	return out, err
}
