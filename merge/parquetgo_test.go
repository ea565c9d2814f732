package merge

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// The values of a row as parquet-go gives them come leaf by leaf in the order of
// the schema, a repeated leaf's values together. These functions take them off
// the front and build what arrowValue builds.

// parquetGoStruct takes the fields of a group, whose own definition level is def.
func parquetGoStruct(c *parquet.Column, row *parquet.Row, def int) map[string]any {
	out := make(map[string]any)
	for _, child := range c.Columns() {
		out[child.Name()] = parquetGoField(child, row, def)
	}
	return out
}

// parquetGoField takes an optional or required field.
func parquetGoField(c *parquet.Column, row *parquet.Row, def int) any {
	if c.Optional() {
		def++
	}
	first := (*row)[0]
	null := first.DefinitionLevel() < def
	switch {
	case c.Leaf():
		*row = (*row)[1:]
		if null {
			return nil
		}
		return parquetGoValue(c, first)
	case len(c.Columns()) == 1 && c.Columns()[0].Repeated() && len(c.Columns()[0].Columns()) == 1:
		return parquetGoList(c.Columns()[0].Columns()[0], row, def, null)
	}
	fields := parquetGoStruct(c, row, def)
	if null {
		return nil
	}
	return fields
}

// parquetGoList takes a list of leaves; def is the list's own level.
func parquetGoList(element *parquet.Column, row *parquet.Row, def int, null bool) any {
	if !element.Leaf() {
		return "no rule for nested lists"
	}
	out := []any{}
	for first := true; len(*row) > 0 && (*row)[0].Column() == element.Index() && (first || (*row)[0].RepetitionLevel() > 0); first = false {
		if (*row)[0].DefinitionLevel() == def || null {
			*row = (*row)[1:] // no element
			continue
		}
		out = append(out, parquetGoField(element, row, def+1))
	}
	if null {
		return nil
	}
	return out
}

func parquetGoValue(c *parquet.Column, v parquet.Value) any {
	if logical := c.Type().LogicalType(); logical != nil {
		switch typ := logical.Value.(type) {
		case *format.DateType:
			return time.Unix(int64(v.Int32())*86400, 0).UTC().Format("2006-01-02")
		case *format.DecimalType:
			return decimalOf(v.ByteArray(), int(typ.Scale))
		case *format.StringType:
			return string(v.ByteArray())
		}
	}
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		return json.Number(strconv.Itoa(int(v.Int32())))
	case parquet.Int64:
		return json.Number(strconv.FormatInt(v.Int64(), 10))
	case parquet.Float:
		return floatValue(float64(v.Float()))
	case parquet.Double:
		return floatValue(v.Double())
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return hex.EncodeToString(v.ByteArray())
	}
	return fmt.Sprintf("no rule for %v", v.Kind())
}

// decimalOf spells a big-endian two's complement number with a scale.
func decimalOf(b []byte, scale int) string {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
}
