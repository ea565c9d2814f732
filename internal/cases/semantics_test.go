package cases

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
)

// TestSemantics executes the examples of docs/semantics.md.
func TestSemantics(t *testing.T) {
	doc, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	section := ""
	lines := strings.Split(string(doc), "\n")
	for i := 0; i < len(lines); i++ {
		if name, ok := strings.CutPrefix(lines[i], "## "); ok {
			section = name
		}
		if lines[i] != "```example" {
			continue
		}
		start := i + 1
		for i++; lines[i] != "```"; i++ {
		}
		examples++
		t.Run(fmt.Sprintf("%s, line %d", section, start), func(t *testing.T) {
			e := &example{T: t, files: map[string]*fixture.File{}}
			for _, line := range lines[start:i] {
				e.run(line)
			}
			if e.shown == 0 {
				t.Error("the example shows nothing")
			}
		})
	}
	if examples < 7 {
		t.Errorf("%d examples found", examples)
	}
}

// example is a table in the making, line by line.
type example struct {
	*testing.T
	columns []iceberg.NestedField
	table   *fixture.Table
	files   map[string]*fixture.File
	shown   int
}

func (e *example) run(line string) {
	e.Helper()
	head, rest, _ := strings.Cut(line, ":")
	words := strings.Fields(head)
	switch {
	case words[0] == "columns":
		e.create(strings.TrimPrefix(line, "columns "))
	case words[0] == "append":
		commit(e.table, func(tx *fixture.Tx) { e.files[words[1]] = tx.Append(e.rows(rest, e.columns)...) })
	case head == "remove "+words[len(words)-1]:
		commit(e.table, func(tx *fixture.Tx) { tx.Remove(e.files[words[1]]) })
	case words[0] == "upgrade":
		e.table.Upgrade(e.number(words[1]))
	case strings.HasPrefix(head, "position delete "):
		commit(e.table, func(tx *fixture.Tx) { tx.DeletePositions(e.files[words[2]], e.positions(rest)...) })
	case words[0] == "vector":
		commit(e.table, func(tx *fixture.Tx) { tx.DeleteVector(e.files[words[1]], e.positions(rest)...) })
	case strings.HasPrefix(head, "equality delete "):
		keys := e.named(words[2])
		var ids []int
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		commit(e.table, func(tx *fixture.Tx) { tx.DeleteEqual(ids, e.rows(rest, keys)...) })
	case words[0] == "shows":
		e.shows(words[1:], rest)
	default:
		e.Fatalf("not understood: %s", line)
	}
}

func (e *example) create(columns string) {
	types := map[string]iceberg.Type{"long": iceberg.PrimitiveTypes.Int64, "string": iceberg.PrimitiveTypes.String}
	for i, c := range strings.Split(columns, ", ") {
		name, typ, _ := strings.Cut(c, " ")
		e.columns = append(e.columns, iceberg.NestedField{ID: i + 1, Name: name, Type: types[typ]})
	}
	e.table = fixture.New(e.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0, e.columns...)})
}

// named finds columns by a comma-separated list of names.
func (e *example) named(list string) []iceberg.NestedField {
	var found []iceberg.NestedField
	for _, name := range strings.Split(list, ",") {
		for _, c := range e.columns {
			if c.Name == name {
				found = append(found, c)
			}
		}
	}
	if len(found) != strings.Count(list, ",")+1 {
		e.Fatalf("unknown columns: %s", list)
	}
	return found
}

// rows parses "1,one; 2,two"; an empty field is NULL.
func (e *example) rows(text string, columns []iceberg.NestedField) []fixture.Row {
	e.Helper()
	var rows []fixture.Row
	for _, r := range strings.Split(text, ";") {
		row := fixture.Row{}
		fields := strings.Split(strings.TrimSpace(r), ",")
		if len(fields) != len(columns) {
			e.Fatalf("%q has %d fields, want %d", r, len(fields), len(columns))
		}
		for i, f := range fields {
			switch {
			case f == "":
			case columns[i].Type == iceberg.PrimitiveTypes.Int64:
				row[columns[i].Name] = e.number(f)
			default:
				row[columns[i].Name] = f
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (e *example) positions(text string) []int64 {
	var out []int64
	for _, p := range strings.Split(text, ",") {
		out = append(out, int64(e.number(strings.TrimSpace(p))))
	}
	return out
}

func (e *example) number(text string) int {
	e.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		e.Fatal(err)
	}
	return n
}

// shows compares all views of main's snapshot, or of the n-th one.
func (e *example) shows(at []string, rows string) {
	e.Helper()
	var id int64
	if len(at) == 2 {
		id = e.table.Snapshots()[e.number(at[1])-1].ID
	}
	var text strings.Builder
	for i, c := range e.columns {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(c.Name)
	}
	text.WriteByte('\n')
	for _, r := range strings.Split(rows, ";") {
		text.WriteString(strings.TrimSpace(r) + "\n")
	}
	o := open(e.T, e.table)
	o.shows(o.scan(id, nil), text.String())
	e.shown++
}
