package merge

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/pqfile"
)

func TestQuoting(t *testing.T) {
	o := &csvForm{delim: ','}
	for in, want := range map[string]string{
		"": `""`, "x": "x", "\r": "\"\r\"", "\n": "\"\n\"", "\r\n": "\"\r\n\"", `"`: `""""`, `a"b"`: `"a""b"""`, " x": " x", "x ": "x ", "#x": "#x",
		"a,b": `"a,b"`, "a;b": "a;b", "\x00": "\x00", "\xff\xfe": "\xff\xfe", "NULL": "NULL", "aaaaaaaaaaaaaaaa\"": `"aaaaaaaaaaaaaaaa"""`,
		"aaaaaaa,aaaaaaaaa": `"aaaaaaa,aaaaaaaaa"`, "\t": "\t", "é#1": "é#1",
	} {
		if got := string(appendCSV(nil, []byte(in), o)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"": `""`, "x": `"x"`, `"\/`: `"\"\\/"`, "\b\f\n\r\t\x00\x1f\x7f": "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\"", "<&>": `"<&>"`,
		"\u2028é": "\"\u2028é\"", "a\xffb\xc3": "\"a\uFFFDb\uFFFD\"", "\xed\xa0\x80": "\"\uFFFD\uFFFD\uFFFD\"", "\uFFFD": "\"\uFFFD\"",
		"0123456789\n": `"0123456789\n"`, "0123456\x1f89012345": `"0123456\u001f89012345"`, "😀": `"😀"`,
	} {
		if got := string(appendJSONString(nil, []byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzCSVQuoting reads rows back with encoding/csv and by the letter of the
// rules: with any delimiter, any text of NULL that needs no quotes, and a byte
// order mark.
func FuzzCSVQuoting(f *testing.F) {
	f.Add("", "a,b", byte(','), "", false, true)
	f.Add("x\r\ny", `""`, byte(';'), "NULL", true, false)
	f.Add("\r", "\xff\n", byte('\t'), "-", false, false)
	f.Add("12345678", "1234567,\"", byte('7'), "8", true, true)
	f.Fuzz(func(t *testing.T, a, b string, delim byte, null string, bom, isNull bool) {
		schema := schemaOf(field(1, a, iceberg.PrimitiveTypes.String), field(2, b+"2", iceberg.PrimitiveTypes.String))
		vector := pqfile.Vector{Values: byteArrays(b)}
		if isNull {
			vector = pqfile.Vector{Def: []uint8{0}, Values: byteArrays()}
		}
		view, err := pqfile.ViewOf(schema)
		if err != nil {
			return
		}
		opt := CSVOptions{Null: null, Delimiter: delim, BOM: bom}
		if _, err := newCSVForm(view, opt); err != nil {
			return
		}
		if delim == 0 {
			delim = ','
		}
		text, err := formatted(t, schema, opt, false, 1, pqfile.Vector{Values: byteArrays(a)}, vector)
		if err != nil {
			t.Fatal(err)
		}
		text, marked := strings.CutPrefix(text, "\uFEFF")
		if marked != bom && !strings.HasPrefix(a, "\uFEFF") {
			t.Fatalf("%q: byte order mark %t, want %t", text, marked, bom)
		}
		o := &csvForm{delim: delim, null: []byte(null)}
		header := string(appendCSV(nil, []byte(a), o)) + string(delim) + string(appendCSV(nil, []byte(b+"2"), o)) + "\n"
		line, ok := strings.CutPrefix(text, header)
		if !ok {
			t.Fatalf("%q does not begin with %q", text, header)
		}
		cell, ok := strings.CutPrefix(line, string(appendCSV(nil, []byte(a), o))+string(delim))
		if !ok || isNull && cell != null+"\n" || !isNull && cell == null+"\n" {
			t.Fatalf("%q: NULL is %q, this one %t", line, null, isNull)
		}
		want := b
		if isNull {
			want = null
		}
		got, err := splitCSV(line, delim)
		if err != nil || len(got) != 2 || got[0] != a || got[1] != want {
			t.Fatalf("%q: %q %v, want %q and %q", line, got, err, a, want)
		}
		for _, s := range []string{a, b} {
			quoted := s == "" || s == null || strings.ContainsAny(s, "\"\r\n"+string(rune(delim)))
			if field := appendCSV(nil, []byte(s), o); (field[0] == '"') != quoted {
				t.Fatalf("%q is written as %q", s, field)
			}
		}
		// encoding/csv turns \r\n into \n, in quotes too, and refuses some delimiters.
		r := csv.NewReader(strings.NewReader(line))
		if r.Comma = rune(delim); delim == '\t' || delim == ',' || delim == ';' || delim == '|' {
			record, err := r.Read()
			plain := strings.NewReplacer("\r\n", "\n")
			if err != nil || record[0] != plain.Replace(a) || record[1] != plain.Replace(want) {
				t.Fatalf("encoding/csv reads %q from %q, want %q and %q: %v", record, line, a, want, err)
			}
		}
	})
}

// splitCSV reads one line by RFC 4180.
func splitCSV(s string, delim byte) (fields []string, err error) {
	for {
		var field strings.Builder
		if s[0] == '"' {
			for s = s[1:]; ; {
				i := strings.IndexByte(s, '"')
				if i < 0 {
					return nil, errors.New("no closing quote")
				}
				field.WriteString(s[:i])
				if s = s[i+1:]; s[0] != '"' {
					break
				}
				field.WriteByte('"')
				s = s[1:]
			}
		} else {
			i := strings.IndexAny(s, "\n"+string(rune(delim)))
			field.WriteString(s[:i])
			s = s[i:]
		}
		fields = append(fields, field.String())
		switch {
		case s == "\n":
			return fields, nil
		case s[0] != delim:
			return nil, fmt.Errorf("%q after a field", s)
		}
		s = s[1:]
	}
}

// FuzzJSONString reads strings back with encoding/json.
func FuzzJSONString(f *testing.F) {
	f.Add("")
	f.Add("a\"\\\x00\xff\u2028<>")
	f.Fuzz(func(t *testing.T, s string) {
		text := appendJSONString(nil, []byte(s))
		var got string
		if err := json.Unmarshal(text, &got); err != nil || !utf8.Valid(text) {
			t.Fatalf("%q: %v", text, err)
		}
		if want := string([]rune(s)); got != want {
			t.Fatalf("%q reads as %q, want %q", text, got, want)
		}
		if len(text) == len(s)+2 != (utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == '"' || r == '\\' })) &&
			utf8.ValidString(s) {
			t.Fatalf("%q is written as %q", s, text)
		}
	})
}

func TestVariants(t *testing.T) {
	metadata := "\x11\x02\x00\x01\x03abc" // sorted, names a and bc
	for _, c := range []struct{ value, want string }{
		{"\x00", "null"}, {"\x04", "true"}, {"\x08", "false"}, {"\x0c\xff", "-1"}, {"\x10\x00\x80", "-32768"}, {"\x14\x01\x00\x00\x00", "1"},
		{"\x18\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807"}, {"\x1c\x00\x00\x00\x00\x00\x00\xf8\x3f", "1.5"}, {"\x38\x00\x00\xc0\x7f", `"NaN"`},
		{"\x20\x02\x9c\xff\xff\xff", "-1.00"}, {"\x24\x00\x01\x00\x00\x00\x00\x00\x00\x00", "1"}, {"\x28\x01\x0f" + strings.Repeat("\x00", 15), "1.5"},
		{"\x2c\x00\x00\x00\x00", `"1970-01-01"`}, {"\x30\xff\xff\xff\xff\xff\xff\xff\xff", `"1969-12-31 23:59:59.999999Z"`}, {"\x34\x00\x00\x00\x00\x00\x00\x00\x00", `"1970-01-01 00:00:00"`},
		{"\x3c\x02\x00\x00\x00\xa2\x00", `"a200"`}, {"\x40\x02\x00\x00\x00\"x", `"\"x"`}, {"\x44\x01\x00\x00\x00\x00\x00\x00\x00", `"00:00:00.000001"`},
		{"\x48\xff\xff\xff\xff\xff\xff\xff\xff", `"1969-12-31 23:59:59.999999999Z"`}, {"\x4c\x00\x00\x00\x00\x00\x00\x00\x00", `"1970-01-01 00:00:00"`},
		{"\x50" + strings.Repeat("\xab", 16), `"abababab-abab-abab-abab-abababababab"`},
		{"\x09xy", `"xy"`}, {"\x01", `""`}, {"\x03\x00\x00", "[]"}, {"\x02\x00\x00", "{}"},
		{"\x03\x02\x00\x01\x03\x00\x0c\x05", "[null,5]"}, {"\x02\x02\x00\x01\x02\x00\x03\x0c\x07\x00", `{"a":null,"bc":7}`},
		{"\x13\x01\x00\x00\x00\x00\x01\x04", "[true]"}, {"\x42\x01\x00\x00\x00\x01\x00\x01\x04", `{"bc":true}`},
	} {
		got, err := appendVariant(nil, []byte(metadata), []byte(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%q: %s %v, want %s", c.value, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "\x0c", "\x0dxy", "\x03\x01\x00", "\x03\x01\x05\x06\x00", "\x02\x01\x09\x00\x01\x00", "\x40\xff\xff\xff\xff", "\x20\xff\x00\x00\x00\x00", "\x13\xff\xff\xff\x7f"} {
		if got, err := appendVariant(nil, []byte(metadata), []byte(bad)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %s %v", bad, got, err)
		}
	}
	for _, bad := range []string{"", "\x02", "\x01", "\x01\x05\x00", "\xc1\xff\xff\xff\xff\x00"} {
		if got, err := appendVariant(nil, []byte(bad), []byte("\x00")); !errors.Is(err, ErrCorrupt) {
			t.Errorf("metadata %q: %s %v", bad, got, err)
		}
	}
	if _, err := appendVariant(nil, []byte(metadata), []byte("\x54")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a type of a later version: %v", err)
	}
	// 64 arrays whose two entries are the same array would be 2^64 values.
	bomb := "\x00"
	for range 64 {
		bomb = "\x03\x02\x00\x00" + string(rune(len(bomb)&0x7f)) + bomb
	}
	if _, err := appendVariant(nil, []byte(metadata), []byte(bomb)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a bomb: %v", err)
	}
}

func FuzzVariant(f *testing.F) {
	f.Add([]byte("\x11\x02\x00\x01\x03abc"), []byte("\x02\x02\x00\x01\x02\x00\x03\x0c\x07\x00"))
	f.Fuzz(func(t *testing.T, metadata, value []byte) {
		text, err := appendVariant(nil, metadata, value)
		if err == nil && !json.Valid(text) {
			t.Fatalf("%q is not JSON", text)
		}
	})
}
