package merge

import (
	"context"
	"github.com/apache/iceberg-go"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// openFooter returns the parsed footer of a data file, through the cache.
func (e *Engine) openFooter(ctx context.Context, obj source.Object) (*pqfile.File, error) {
	v, err := e.cached(ctx, "footer|"+obj.Version(), func(ctx context.Context) (any, int64, error) {
		f, err := pqfile.Open(ctx, obj, pqfile.Options{Stats: e.opt.Stats})
		if err != nil {
			return nil, 0, err
		}
		return f, f.FootprintBytes(), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*pqfile.File), nil
}

// identityConstants returns the values that identity partitions give to columns
// by source field id (Iceberg spec, "Column Projection").
func identityConstants(t *snapshot.Table, f *snapshot.DataFile) map[int]any {
	spec, ok := t.Specs[f.SpecID]
	if !ok {
		return nil
	}
	var out map[int]any
	for _, field := range spec.Fields() {
		if _, ok := field.Transform.(iceberg.IdentityTransform); !ok {
			continue
		}
		v, ok := f.Partition[field.FieldID]
		if !ok {
			continue
		}
		if out == nil {
			out = make(map[int]any)
		}
		out[field.SourceID()] = v
	}
	return out
}
