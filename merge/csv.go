package merge

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/icefs/icefs/internal/pqfile"
)

// CSV returns the view of all rows as CSV: RFC 4180 in UTF-8 with \n line ends,
// a header line by default, NULL as an empty unquoted field and the empty
// string as "". In a one-column table both are "", for a blank line would be
// dropped by readers. A table without columns has a blank line for its header
// and for every row.
func (e *Engine) CSV(s Scan) View {
	opt := e.opt.CSV
	return e.text(s, func(view *pqfile.Schema) (*textForm, error) { return newCSVForm(view, opt) })
}

// mayBeScalar reports whether a text of NULL could also be that of a number, a
// boolean, a time or bytes.
func mayBeScalar(null string) bool {
	switch null {
	case "", "NULL", "null", "NA", "N/A", `\N`, "-":
		return false
	case "true", "false", "NaN", "Infinity", "-Infinity":
		return true
	}
	return strings.Trim(null, "0123456789abcdefTZ+-.: ") == ""
}

// newCSVForm returns the CSV format of a view schema.
func newCSVForm(view *pqfile.Schema, opt CSVOptions) (*textForm, error) {
	if opt.Delimiter == 0 {
		opt.Delimiter = ','
	}
	if opt.Delimiter >= 0x80 || strings.IndexByte("\"\r\n\x00", opt.Delimiter) >= 0 {
		return nil, fmt.Errorf("CSV delimiter %q: %w", opt.Delimiter, ErrUnsupported)
	}
	if csvSpecial([]byte(opt.Null), opt.Delimiter) {
		return nil, fmt.Errorf("CSV text %q for NULL would have to be quoted: %w", opt.Null, ErrUnsupported)
	}
	names := columnNames(view)
	c := &csvForm{delim: opt.Delimiter, null: []byte(opt.Null)}
	scalar := []byte("0123456789abcdefghijklmnopqrstuvwxyzINTZ+-.: ")
	c.quoteAll = bytes.IndexByte(scalar, opt.Delimiter) >= 0 || mayBeScalar(opt.Null)
	if len(names) == 1 && opt.Null == "" {
		c.null = []byte(`""`)
	}
	f := &textForm{name: "csv", csv: c, after: []byte("\n"), options: fmt.Sprintf("csv null=%q delimiter=%q", opt.Null, opt.Delimiter)}
	for i := range names {
		before := []byte{opt.Delimiter}
		f.before = append(f.before, before[:min(i, 1)])
	}
	if opt.BOM {
		f.head = append(f.head, "\uFEFF"...)
	}
	if !opt.NoHeader {
		for i, name := range names {
			f.head = appendCSV(append(f.head, f.before[i]...), name, c)
		}
		f.head = append(f.head, '\n')
	}
	return f.seal(), nil
}
