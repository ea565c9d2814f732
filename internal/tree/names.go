package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// maxName is the longest name that Linux file systems accept, in bytes.
const maxName = 255

const upperHex = "0123456789ABCDEF"

// escapeName makes one path element of a catalog's name. Escaped as %XX, byte by
// byte: '/', control bytes (NUL included), '%', bytes that are not UTF-8, a
// leading dot, and every byte of "." and "..". Two names never escape to one.
// The result may be longer than maxName; see fitName.
func escapeName(name string) string {
	if plainName(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		bad := r == utf8.RuneError && n == 1
		dot := name[i] == '.' && (i == 0 || name == "..")
		if c := name[i]; bad || dot || c == '/' || c == '%' || c < 0x20 || c == 0x7f {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
			i++
			continue
		}
		b.WriteString(name[i : i+n])
		i += n
	}
	return b.String()
}

// unescapeName returns the name that escapes to one that is shown. ok is false if
// none does: the shown name is cut, marked, or of no entry.
func unescapeName(shown string) (name string, ok bool) {
	if plainName(shown) {
		return shown, true
	}
	var b strings.Builder
	for i := 0; i < len(shown); i++ {
		if shown[i] != '%' {
			b.WriteByte(shown[i])
			continue
		}
		if i+2 >= len(shown) {
			return "", false
		}
		c, err := hex.DecodeString(shown[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(c[0])
		i += 2
	}
	name = b.String()
	return name, escapeName(name) == shown && len(shown) <= maxName
}

// plainName reports whether escapeName leaves a name as it is.
func plainName(name string) bool {
	if name != "" && name[0] == '.' || !utf8.ValidString(name) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c == '/' || c == '%' || c < 0x20 || c == 0x7f {
			return false
		}
	}
	return true
}

// emptyName is how the empty name is shown.
const emptyName = "%"

// fitName appends suffix to an escaped name, and if the result were over maxName
// bytes cuts the name and puts "~" and 16 hex digits of the hash of original in
// its place. No escape and no character is cut in two.
func fitName(escaped, suffix, original string) string {
	if escaped == "" {
		escaped = emptyName
	}
	if len(escaped)+len(suffix) <= maxName {
		return escaped + suffix
	}
	sum := sha256.Sum256([]byte(original))
	tail := "~" + hex.EncodeToString(sum[:8]) + suffix
	n := max(maxName-len(tail), 0)
	for n > 0 && !utf8.RuneStart(escaped[n]) {
		n--
	}
	for back := 1; back <= 2 && back <= n; back++ {
		if escaped[n-back] == '%' {
			n -= back
			break
		}
	}
	return escaped[:n] + tail
}

// namer hands out the names of one folder, each once.
type namer struct{ taken map[string]bool }

func newNamer(reserved ...string) *namer {
	n := &namer{taken: make(map[string]bool)}
	for _, r := range reserved {
		n.taken[r] = true
	}
	return n
}

// assign takes the name for original, with as many suffixes as it needs to be
// unlike every name taken before.
func (n *namer) assign(escaped, original, suffix string) string {
	name := fitName(escaped, "", original)
	for more := suffix; n.taken[name]; more += suffix {
		name = fitName(escaped, more, original)
	}
	n.taken[name] = true
	return name
}

// free reports whether the name for original is not taken.
func (n *namer) free(escaped, original string) bool {
	return !n.taken[fitName(escaped, "", original)]
}
