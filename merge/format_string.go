package merge

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Words of eight equal bytes, for scans that look at eight bytes at a time.
const (
	swarOnes = 0x0101010101010101
	swarHigh = 0x8080808080808080
)

// swarZero has a high bit set if and only if x has a zero byte.
func swarZero(x uint64) uint64 { return (x - swarOnes) &^ x & swarHigh }

// longField is the length from which on it is faster to look for one byte after
// another, with vector instructions.
const longField = 512

// csvSpecial reports whether b has a byte that makes a CSV field quoted: the
// delimiter, a quote, CR or LF.
func csvSpecial(b []byte, delim byte) bool {
	if len(b) >= longField {
		return bytes.IndexByte(b, delim) >= 0 || bytes.IndexByte(b, '"') >= 0 || bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, '\r') >= 0
	}
	d := swarOnes * uint64(delim)
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		if swarZero(w^d)|swarZero(w^swarOnes*'"')|swarZero(w^swarOnes*'\n')|swarZero(w^swarOnes*'\r') != 0 {
			return true
		}
		b = b[8:]
	}
	for _, c := range b {
		if c == delim || c == '"' || c == '\n' || c == '\r' {
			return true
		}
	}
	return false
}

// appendCSV appends a field that is not NULL: quoted only if it is empty, has a
// special byte, or would read as the text of NULL.
func appendCSV(dst, field []byte, o *csvForm) []byte {
	if len(field) > 0 && !csvSpecial(field, o.delim) && (len(o.null) == 0 || !bytes.Equal(field, o.null)) {
		return append(dst, field...)
	}
	dst = append(dst, '"')
	for {
		i := bytes.IndexByte(field, '"')
		if i < 0 {
			break
		}
		dst = append(dst, field[:i+1]...)
		dst = append(dst, '"')
		field = field[i+1:]
	}
	dst = append(dst, field...)
	return append(dst, '"')
}

// jsonPlain reports whether b stands in a JSON string as it is: ASCII without
// quotes, backslashes and control characters.
func jsonPlain(b []byte) bool {
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		control := (w - swarOnes*0x20) &^ w & swarHigh
		if control|w&swarHigh|swarZero(w^swarOnes*'"')|swarZero(w^swarOnes*'\\') != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// appendJSONString appends b as a JSON string: quotes, backslashes and control
// characters escaped, each byte that is not UTF-8 replaced by U+FFFD,
// everything else (U+2028 and <>& too) as it is.
func appendJSONString(dst, b []byte) []byte {
	dst = append(dst, '"')
	if jsonPlain(b) {
		dst = append(dst, b...)
		return append(dst, '"')
	}
	start := 0
	for i := 0; i < len(b); {
		c := b[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, b[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = appendEscape(append(dst, b[start:i]...), c)
		i++
		start = i
	}
	dst = append(dst, b[start:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return appendHex(append(dst, '\\', 'u', '0', '0'), []byte{c})
}
