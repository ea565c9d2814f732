package snapshot

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// PartitionKey returns a string that is equal for two files exactly if they are
// of the same spec and the same partition: values compare by field id, NULL
// equals NULL, floats by bits with one NaN. Integers of any width compare by
// value, as do floats, since a manifest written before a promotion has the
// narrower type. fieldIDs are the spec's, in its order (FieldIDs); nil takes
// those of the partition.
func PartitionKey(specID int, fieldIDs []int, partition map[int]any) string {
	return string(appendPartition(make([]byte, 0, 64), specID, fieldIDs, partition))
}

// appendPartition appends what PartitionKey returns.
func appendPartition(key []byte, specID int, fieldIDs []int, partition map[int]any) []byte {
	if fieldIDs == nil {
		fieldIDs = slices.Sorted(maps.Keys(partition))
	}
	key = binary.AppendVarint(key, int64(specID))
	for _, id := range fieldIDs {
		key = binary.AppendVarint(key, int64(id))
		key = appendValue(key, partition[id])
	}
	return key
}

// FieldIDs returns the partition field ids of a spec, in its order.
func FieldIDs(spec iceberg.PartitionSpec) []int {
	ids := make([]int, 0, spec.NumFields())
	for _, field := range spec.Fields() {
		ids = append(ids, field.FieldID)
	}
	return ids
}

// appendValue appends a self-delimiting encoding of a partition value.
func appendValue(key []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(key, 'n')
	case bool:
		if v {
			return append(key, 't')
		}
		return append(key, 'f')
	case int32:
		return appendInt(key, int64(v))
	case int64:
		return appendInt(key, v)
	case int:
		return appendInt(key, int64(v))
	case iceberg.Date:
		return appendInt(key, int64(v))
	case iceberg.Time:
		return appendInt(key, int64(v))
	case iceberg.Timestamp:
		return appendInt(key, int64(v))
	case iceberg.TimestampNano:
		return appendInt(key, int64(v))
	case float32:
		return appendFloat(key, float64(v))
	case float64:
		return appendFloat(key, v)
	case string:
		return appendBytes(key, 's', []byte(v))
	case []byte:
		return appendBytes(key, 'b', v)
	case uuid.UUID:
		return appendBytes(key, 'b', v[:])
	case iceberg.DecimalLiteral:
		return appendBytes(key, 'd', []byte(iceberg.Decimal(v).String()))
	case iceberg.Decimal:
		return appendBytes(key, 'd', []byte(v.String()))
	default:
		return appendBytes(key, '?', fmt.Appendf(nil, "%T %v", v, v))
	}
}

func appendInt(key []byte, v int64) []byte {
	return binary.AppendVarint(append(key, 'i'), v)
}

func appendFloat(key []byte, v float64) []byte {
	if v != v {
		v = math.NaN()
	}
	return binary.BigEndian.AppendUint64(append(key, 'r'), math.Float64bits(v))
}

func appendBytes(key []byte, tag byte, v []byte) []byte {
	key = binary.AppendUvarint(append(key, tag), uint64(len(v)))
	return append(key, v...)
}

// comparablePath returns the one spelling of a path that paths are compared
// by: /x for file:/x and file:///x, any other path as it is.
func comparablePath(path string) string {
	if !strings.HasPrefix(path, "file:/") {
		return path
	}
	path = path[len("file:"):]
	if strings.HasPrefix(path, "///") {
		path = path[2:]
	}
	return path
}
