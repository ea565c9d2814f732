package merge

import (
	"bytes"
	"unicode/utf8"
)

// lenCSV is the length of what appendCSV appends.
func lenCSV(field []byte, o *csvForm) int {
	if len(field) > 0 && !csvSpecial(field, o.delim) && (len(o.null) == 0 || !bytes.Equal(field, o.null)) {
		return len(field)
	}
	return len(field) + bytes.Count(field, []byte{'"'}) + 2
}

// lenJSONString is the length of what appendJSONString appends, and how many
// quotes are in it.
func lenJSONString(b []byte) (length, quotes int) {
	if jsonPlain(b) {
		return len(b) + 2, 2
	}
	length, quotes = len(b)+2, 2
	for i := 0; i < len(b); {
		c := b[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				length += len("\uFFFD") - 1
			}
			i += size
			continue
		}
		i++
		switch {
		case c >= 0x20 && c != '"' && c != '\\':
		case c == '"':
			length++
			quotes++
		case c == '\\', c == '\b', c == '\f', c == '\n', c == '\r', c == '\t':
			length++
		default:
			length += len(`\u0000`) - 1
		}
	}
	return length, quotes
}
