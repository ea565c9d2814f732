package reference

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// checkStatistics compares a row group's footer statistics of flat columns with
// its values: where there are any, they are exact. A part that is its source
// file as it is has the statistics of that file's writer.
func (f *parquetFile) checkStatistics(g int, rows []Record) error {
	if !strings.HasPrefix(f.MetaData().GetCreatedBy(), "icefs ") {
		return nil
	}
	for i, n := range f.root.children {
		if n.kind != pleaf {
			continue
		}
		chunk, err := f.MetaData().RowGroup(g).ColumnChunk(n.leaf)
		if err != nil {
			return different("row group %d: %v", g, err)
		}
		if set, err := chunk.StatsSet(); err != nil || !set {
			continue
		}
		stats, err := chunk.Statistics()
		if err != nil || stats == nil {
			continue
		}
		nulls := int64(0)
		var least, most any
		nan := false
		for _, rec := range rows {
			s, ok := rec[n.key(i)].(scalar)
			if !ok {
				nulls++
				continue
			}
			nan = nan || isNaN(s.v)
			if least == nil || order(n, s.v, least) < 0 {
				least = s.v
			}
			if most == nil || order(n, s.v, most) > 0 {
				most = s.v
			}
		}
		switch {
		case !stats.HasNullCount() && n.optional || stats.HasNullCount() && stats.NullCount() != nulls:
			return different("row group %d, column %s: null_count is %d, has to be %d", g, n.name, stats.NullCount(), nulls)
		case stats.HasMinMax() != (least != nil) || nan:
			return different("row group %d, column %s: statistics have min and max: %t, NaN: %t", g, n.name, stats.HasMinMax(), nan)
		case least == nil:
			continue
		}
		if lower, upper, known := extremes(stats); known && (order(n, lower, least) != 0 || order(n, upper, most) != 0) {
			return different("row group %d, column %s: statistics are %v to %v, have to be %v to %v", g, n.name, lower, upper, least, most)
		}
	}
	return nil
}

// extremes are min and max in the form of stored values.
func extremes(stats metadata.TypedStatistics) (lower, upper any, known bool) {
	switch s := stats.(type) {
	case *metadata.BooleanStatistics:
		return s.Min(), s.Max(), true
	case *metadata.Int32Statistics:
		return s.Min(), s.Max(), true
	case *metadata.Int64Statistics:
		return s.Min(), s.Max(), true
	case *metadata.Float32Statistics:
		return s.Min(), s.Max(), true
	case *metadata.Float64Statistics:
		return s.Min(), s.Max(), true
	case *metadata.ByteArrayStatistics:
		return []byte(s.Min()), []byte(s.Max()), true
	case *metadata.FixedLenByteArrayStatistics:
		return []byte(s.Min()), []byte(s.Max()), true
	}
	return nil, nil, false
}

// order compares stored values as statistics do.
func order(n *pnode, a, b any) int {
	switch a := a.(type) {
	case bool:
		switch {
		case a == b.(bool):
			return 0
		case a:
			return 1
		}
		return -1
	case int32:
		return cmp.Compare(a, b.(int32))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float32:
		return cmp.Compare(a, b.(float32))
	case float64:
		return cmp.Compare(a, b.(float64))
	case []byte:
		if _, decimal := n.stored.LogicalType().(schema.DecimalLogicalType); decimal && len(a) > 0 && len(b.([]byte)) > 0 {
			if c := cmp.Compare(int8(a[0]), int8(b.([]byte)[0])); c != 0 { // the sign first
				return c
			}
		}
		return bytes.Compare(a, b.([]byte))
	case parquet.Int96:
		return 0 // has no order
	}
	return 0
}

func isNaN(v any) bool {
	switch v := v.(type) {
	case float32:
		return v != v
	case float64:
		return v != v
	}
	return false
}
