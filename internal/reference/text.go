package reference

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// TextOptions are the options that CSV views are made with.
type TextOptions struct {
	Null      string // text of NULL; "" = empty unquoted field
	Delimiter byte   // 0 = ','
	NoHeader  bool
	BOM       bool
}

// csvHeader is what precedes the rows.
func (o TextOptions) csvHeader(schema *iceberg.Schema) string {
	out := ""
	if o.BOM {
		out = "\uFEFF"
	}
	if o.NoHeader {
		return out
	}
	var names []string
	for _, f := range schema.Fields() {
		names = append(names, o.csvField(f.Name))
	}
	return out + strings.Join(names, o.delimiter()) + "\n"
}

func (o TextOptions) delimiter() string {
	if o.Delimiter == 0 {
		return ","
	}
	return string(rune(o.Delimiter))
}

// csvRow is a row's line.
func (o TextOptions) csvRow(schema *iceberg.Schema, rec Record) string {
	var cells []string
	for _, f := range schema.Fields() {
		v := rec[f.ID]
		cell := o.Null
		if v != nil && v != any(variantNull) {
			cell = o.csvField(plainText(f.Type, v))
		}
		if cell == "" && schema.NumFields() == 1 {
			cell = `""`
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, o.delimiter()) + "\n"
}

// csvField quotes a field that is not NULL where it has to be.
func (o TextOptions) csvField(s string) string {
	if s == "" || strings.ContainsAny(s, "\"\r\n"+o.delimiter()) || s == o.Null {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// jsonRow is a row's line.
func jsonRow(schema *iceberg.Schema, rec Record) string {
	return JSON(&iceberg.StructType{FieldList: schema.Fields()}, rec) + "\n"
}

// plainText is a value in a CSV cell.
func plainText(typ iceberg.Type, v any) string {
	switch v := v.(type) {
	case Record, List, Map, Variant:
		return JSON(typ, v)
	case string:
		return v
	}
	return strings.Trim(JSON(typ, v), `"`)
}

// JSON is a value as views write it in JSON.
func JSON(typ iceberg.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool, int32, int64:
		return fmt.Sprint(v)
	case float32:
		return floatText(float64(v), v)
	case float64:
		return floatText(v, v)
	case iceberg.Decimal:
		return decimalText(v)
	case iceberg.Date:
		return `"` + dateText(time.Unix(int64(v)*86400, 0).UTC()) + `"`
	case iceberg.Time:
		t := time.UnixMicro(int64(v)).UTC()
		return `"` + t.Format("15:04:05.999999") + `"`
	case iceberg.Timestamp:
		return `"` + timestampText(typ, floorDiv(int64(v), 1e6), (int64(v)%1e6+1e6)%1e6*1000) + `"`
	case iceberg.TimestampNano:
		return `"` + timestampText(typ, floorDiv(int64(v), 1e9), (int64(v)%1e9+1e9)%1e9) + `"`
	case string:
		return stringText(v)
	case uuid.UUID:
		return `"` + v.String() + `"`
	case Variant:
		return string(v)
	case []byte:
		return `"` + hex.EncodeToString(v) + `"`
	}
	return nestedText(typ, v)
}

// nestedText is a struct, list or map as JSON.
func nestedText(typ iceberg.Type, v any) string {
	var parts []string
	switch v := v.(type) {
	case Record:
		for _, f := range typ.(*iceberg.StructType).FieldList {
			parts = append(parts, stringText(f.Name)+":"+JSON(f.Type, v[f.ID]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case List:
		for _, e := range v {
			parts = append(parts, JSON(typ.(*iceberg.ListType).Element, e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case Map:
		t := typ.(*iceberg.MapType)
		_, byName := t.KeyType.(iceberg.StringType)
		for _, e := range v {
			key, value := JSON(t.KeyType, e.Key), JSON(t.ValueType, e.Value)
			if byName {
				parts = append(parts, key+":"+value)
			} else {
				parts = append(parts, `{"key":`+key+`,"value":`+value+`}`)
			}
		}
		if byName {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	panic(fmt.Sprintf("internal error: no text of %T", v))
}

// floatText is a number as encoding/json writes it; the others are words.
func floatText(f float64, exact any) string {
	switch {
	case math.IsNaN(f):
		return `"NaN"`
	case math.IsInf(f, 1):
		return `"Infinity"`
	case math.IsInf(f, -1):
		return `"-Infinity"`
	}
	b, err := json.Marshal(exact)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(b)
}

// decimalText has all digits of the scale.
func decimalText(d iceberg.Decimal) string {
	n := d.Val.BigInt()
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
		n.Neg(n)
	}
	digits := n.String()
	for len(digits) <= d.Scale {
		digits = "0" + digits
	}
	if d.Scale == 0 {
		return sign + digits
	}
	point := len(digits) - d.Scale
	return sign + digits[:point] + "." + digits[point:]
}

func dateText(t time.Time) string {
	year, month, day := t.Date()
	sign := ""
	if year < 0 {
		sign, year = "-", -year
	}
	return fmt.Sprintf("%s%04d-%02d-%02d", sign, year, month, day)
}

// timestampText is a moment, with a Z if its type has a zone.
func timestampText(typ iceberg.Type, seconds, nanos int64) string {
	t := time.Unix(seconds, nanos).UTC()
	out := dateText(t) + " " + t.Format("15:04:05.999999999")
	switch typ.(type) {
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		out += "Z"
	}
	return out
}

// stringText escapes what JSON requires and nothing else; bytes that are no
// UTF-8 become U+FFFD.
func stringText(s string) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s { // utf8.RuneError for each invalid byte
		switch escape := short[r]; {
		case escape != "":
			out.WriteString(escape)
		case r < 0x20:
			fmt.Fprintf(&out, `\u%04x`, r)
		case r == utf8.RuneError:
			out.WriteString("\uFFFD")
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
