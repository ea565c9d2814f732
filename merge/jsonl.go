package merge

import "github.com/icefs/icefs/internal/pqfile"

// JSONL returns the view of all rows as JSON Lines: one object a row with every
// column in schema order, NULL as null, and no escapes but those that JSON
// requires. A row of a table without columns is {}.
func (e *Engine) JSONL(s Scan) View {
	return e.text(s, newJSONLForm)
}

// newJSONLForm returns the JSON Lines format of a view schema.
func newJSONLForm(view *pqfile.Schema) (*textForm, error) {
	f := &textForm{name: "jsonl", options: "jsonl", after: []byte("}\n")}
	open := byte('{')
	for _, name := range columnNames(view) {
		f.before = append(f.before, append(appendJSONString([]byte{open}, name), ':'))
		open = ','
	}
	if len(f.before) == 0 {
		f.after = []byte("{}\n")
	}
	return f.seal(), nil
}
