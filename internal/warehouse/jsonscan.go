package warehouse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Table metadata is mostly snapshots: with ten thousand of them, encoding/json
// takes most of the time until the table can be listed. So the text is cut into
// members and elements by a scan for brackets and quotes, and only values that
// are used are decoded. What is skipped is checked no further than that.

var errJSON = errors.New("malformed JSON")

// errNested is of JSON that no writer makes.
var errNested = fmt.Errorf("JSON nested deeper than %d", maxNesting)

// members calls f with the key and the text of every member of an object.
func members(object []byte, f func(key, value []byte) error) error {
	return scanItems(object, '{', '}', f)
}

// elements calls f with the text of every element of an array; null has none.
func elements(array []byte, f func(value []byte) error) error {
	if isNull(array) {
		return nil
	}
	return scanItems(array, '[', ']', func(_, value []byte) error { return f(value) })
}

func isNull(value []byte) bool { return string(value) == "null" }

// scanItems splits an object or an array.
func scanItems(text []byte, opening, closing byte, f func(key, value []byte) error) error {
	at := skipSpace(text, 0)
	if at == len(text) || text[at] != opening {
		return errJSON
	}
	if at = skipSpace(text, at+1); at < len(text) && text[at] == closing {
		return endOfText(text, at+1)
	}
	for {
		var key []byte
		if opening == '{' {
			end, err := skipString(text, at)
			if err != nil {
				return err
			}
			if key, err = keyText(text[at:end]); err != nil {
				return err
			}
			if at = skipSpace(text, end); at == len(text) || text[at] != ':' {
				return errJSON
			}
			at = skipSpace(text, at+1)
		}
		end, err := skipValue(text, at)
		if err != nil {
			return err
		}
		if err := f(key, text[at:end:end]); err != nil {
			return err
		}
		if at = skipSpace(text, end); at == len(text) {
			return errJSON
		}
		switch text[at] {
		case closing:
			return endOfText(text, at+1)
		case ',':
			at = skipSpace(text, at+1)
		default:
			return errJSON
		}
	}
}

// endOfText reports anything but white space from at on.
func endOfText(text []byte, at int) error {
	if skipSpace(text, at) != len(text) {
		return errJSON
	}
	return nil
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skipString returns the end of the string that begins at a quote.
func skipString(text []byte, at int) (int, error) {
	if at >= len(text) || text[at] != '"' {
		return 0, errJSON
	}
	for at++; at < len(text); at++ {
		switch text[at] {
		case '"':
			return at + 1, nil
		case '\\':
			at++
		}
	}
	return 0, errJSON
}

// skipValue returns the end of the value at a place.
func skipValue(text []byte, at int) (int, error) {
	var open []byte // closing brackets to come
	for start := at; at < len(text); {
		switch c := text[at]; c {
		case '"':
			end, err := skipString(text, at)
			if err != nil {
				return 0, err
			}
			at = end
		case '{', '[':
			if len(open) == maxNesting {
				return 0, errNested
			}
			open = append(open, c+2) // '}' and ']' in ASCII
			at++
			continue
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return 0, errJSON
			}
			open = open[:len(open)-1]
			at++
		case ',', ':', ' ', '\n', '\t', '\r':
			if len(open) == 0 {
				return 0, errJSON
			}
			at++
			continue
		default:
			at = skipScalar(text, at)
		}
		if len(open) == 0 {
			if at == start {
				return 0, errJSON
			}
			return at, nil
		}
	}
	return 0, errJSON
}

// skipScalar returns the end of a number or a literal.
func skipScalar(text []byte, at int) int {
	for at < len(text) {
		switch text[at] {
		case ',', ':', '{', '}', '[', ']', '"', ' ', '\n', '\t', '\r':
			return at
		}
		at++
	}
	return at
}

// keyText decodes a string that is a key.
func keyText(value []byte) ([]byte, error) {
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], nil
	}
	text, err := jsonText(value)
	return []byte(text), err
}

// jsonText decodes a string.
func jsonText(value []byte) (string, error) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : n-1]), nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err
}

// jsonInt decodes a whole number.
func jsonInt(value []byte) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, errJSON
	}
	return n, nil
}
