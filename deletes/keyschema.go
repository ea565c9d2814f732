package deletes

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/snapshot"
)

// keySchema is the schema that the key columns of equality deletes are read
// with, from delete files and data files alike: the columns of one set of ids,
// with the structs above them, each in the widest type it ever had. Everything
// is optional: NULL is a key like any other.
type keySchema struct {
	ids     []int // ascending, each once
	schema  *iceberg.Schema
	view    *pqfile.Schema
	mapping iceberg.NameMapping
	// identity tells key schemas apart in cache keys.
	identity string
}

// equalityIDs returns the key of a delete file in canonical order. A file
// without any would delete every row, which nobody can mean.
func equalityIDs(del *snapshot.DataFile) ([]int, error) {
	if len(del.EqualityIDs) == 0 {
		return nil, fmt.Errorf("%w: %s: equality deletes without equality ids", ErrCorrupt, del.Path)
	}
	ids := slices.Clone(del.EqualityIDs)
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// maxSchemas bounds a schemaMemo, which keeps tables from being collected.
const maxSchemas = 32

// schemaMemo remembers key schemas of the tables in use: each of a table's data
// files asks for them. Safe for concurrent use.
type schemaMemo struct {
	mu      sync.Mutex
	schemas map[schemaKey]*keySchema
}

type schemaKey struct {
	table *snapshot.Table
	ids   string
}

func (m *schemaMemo) get(t *snapshot.Table, ids []int) (*keySchema, error) {
	key := schemaKey{t, fmt.Sprint(ids)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.schemas[key]; k != nil {
		return k, nil
	}
	k, err := newKeySchema(t, ids)
	if err != nil {
		return nil, err
	}
	if m.schemas == nil || len(m.schemas) >= maxSchemas {
		m.schemas = make(map[schemaKey]*keySchema)
	}
	m.schemas[key] = k
	return k, nil
}

// newKeySchema looks the ids up in all schemas the table ever had: a key column
// may have been dropped, renamed or promoted since.
func newKeySchema(t *snapshot.Table, ids []int) (*keySchema, error) {
	root := &keyNode{}
	for _, id := range ids {
		path, err := keyPath(t, id)
		if err != nil {
			return nil, err
		}
		root.insert(path)
	}
	seen := make(map[int]bool)
	if !root.unique(seen) {
		return nil, fmt.Errorf("schemas of the table disagree on the place of a column of key %v: %w", ids, ErrCorrupt)
	}
	k := &keySchema{ids: ids, schema: iceberg.NewSchema(0, root.fields()...), mapping: t.NameMapping}
	view, err := pqfile.ViewOf(k.schema)
	if err != nil {
		return nil, err
	}
	if len(view.Leaves) != len(ids) {
		return nil, fmt.Errorf("equality on columns %v, not all of which hold one value: %w", ids, ErrUnsupported)
	}
	k.view = view
	schema, err := json.Marshal(k.schema)
	if err != nil {
		return nil, fmt.Errorf("key schema %v: %w", ids, err)
	}
	mapping, err := json.Marshal(k.mapping)
	if err != nil {
		return nil, fmt.Errorf("name mapping: %w", err)
	}
	k.identity = fmt.Sprintf("%x", sha256.Sum256(append(append(schema, 0), mapping...)))
	return k, nil
}

// target is what a file is read as. Constants are a data file's.
func (k *keySchema) target(constants map[int]any) pqfile.Target {
	return pqfile.Target{Schema: k.schema, View: k.view, NameMapping: k.mapping, Constants: constants}
}

// keyNode is a struct on the way to key columns, or one of them.
type keyNode struct {
	field    iceberg.NestedField
	children []*keyNode
}

// insert adds the fields of a path below n.
func (n *keyNode) insert(path []iceberg.NestedField) {
	if len(path) == 0 {
		return
	}
	i := slices.IndexFunc(n.children, func(c *keyNode) bool { return c.field.ID == path[0].ID })
	if i < 0 {
		i = len(n.children)
		n.children = append(n.children, &keyNode{field: path[0]})
	}
	n.children[i].insert(path[1:])
}

// unique reports whether no id stands in two places.
func (n *keyNode) unique(seen map[int]bool) bool {
	for _, c := range n.children {
		if seen[c.field.ID] || !c.unique(seen) {
			return false
		}
		seen[c.field.ID] = true
	}
	return true
}

// fields returns the Iceberg fields below n. A dropped and a later column may
// share a name, which nothing reads: ids replace names.
func (n *keyNode) fields() []iceberg.NestedField {
	fields := make([]iceberg.NestedField, 0, len(n.children))
	for _, c := range n.children {
		f := c.field
		if slices.ContainsFunc(fields, func(o iceberg.NestedField) bool { return o.Name == f.Name }) {
			f.Name = fmt.Sprintf("%s#%d", f.Name, f.ID)
		}
		if len(c.children) > 0 {
			f.Type = &iceberg.StructType{FieldList: c.fields()}
		}
		fields = append(fields, f)
	}
	return fields
}

// keyPath finds the fields from the root down to a key column, in the widest type
// that any schema of the table gives it. Place and initial default never change.
func keyPath(t *snapshot.Table, id int) ([]iceberg.NestedField, error) {
	var path []iceberg.NestedField
	var widest iceberg.Type
	visit := func(s *iceberg.Schema) error {
		found := findPath(s.Fields(), id)
		if found == nil {
			return nil
		}
		leaf := found[len(found)-1]
		if _, primitive := leaf.Type.(iceberg.PrimitiveType); !primitive {
			return fmt.Errorf("equality on column %d %q, a %s: %w", id, leaf.Name, leaf.Type, ErrUnsupported)
		}
		if path == nil {
			path, widest = found, leaf.Type
			return nil
		}
		w, ok := wider(widest, leaf.Type)
		if !ok {
			return fmt.Errorf("column %d was %s and %s: %w", id, widest, leaf.Type, ErrUnsupported)
		}
		widest = w
		return nil
	}
	for _, s := range t.Schemas {
		if err := visit(s); err != nil {
			return nil, err
		}
	}
	if path == nil {
		return nil, fmt.Errorf("equality on column %d, which no schema of the table has: %w", id, ErrCorrupt)
	}
	path[len(path)-1].Type = widest
	return path, nil
}

// findPath returns the fields from one of fields down to a field id, through
// structs only, all made optional; nil if it is not there.
func findPath(fields []iceberg.NestedField, id int) []iceberg.NestedField {
	for _, f := range fields {
		f.Required, f.Doc, f.WriteDefault = false, "", nil
		if f.ID == id {
			return []iceberg.NestedField{f}
		}
		s, ok := f.Type.(*iceberg.StructType)
		if !ok {
			continue
		}
		if path := findPath(s.FieldList, id); path != nil {
			return append([]iceberg.NestedField{f}, path...)
		}
	}
	return nil
}

// wider returns the type of two that a promotion leads to (Iceberg spec,
// "Schema Evolution").
func wider(a, b iceberg.Type) (iceberg.Type, bool) {
	if a.Equals(b) || promotes(b, a) {
		return a, true
	}
	return b, promotes(a, b)
}

func promotes(from, to iceberg.Type) bool {
	switch f := from.(type) {
	case iceberg.UnknownType:
		return true
	case iceberg.Int32Type:
		return to.Equals(iceberg.PrimitiveTypes.Int64)
	case iceberg.Float32Type:
		return to.Equals(iceberg.PrimitiveTypes.Float64)
	case iceberg.DateType:
		return to.Equals(iceberg.PrimitiveTypes.Timestamp) || to.Equals(iceberg.PrimitiveTypes.TimestampNs)
	case iceberg.DecimalType:
		t, ok := to.(iceberg.DecimalType)
		return ok && t.Scale() == f.Scale() && t.Precision() > f.Precision()
	}
	return false
}

// identityConstants are the values that the data file's partition gives to
// source columns which the file may not store.
func identityConstants(t *snapshot.Table, data *snapshot.DataFile) map[int]any {
	spec, ok := t.Specs[data.SpecID]
	if !ok || len(data.Partition) == 0 {
		return nil
	}
	constants := make(map[int]any)
	for _, f := range spec.Fields() {
		if _, identity := f.Transform.(iceberg.IdentityTransform); !identity {
			continue
		}
		if v, ok := data.Partition[f.FieldID]; ok {
			constants[f.SourceID()] = v
		}
	}
	return constants
}
