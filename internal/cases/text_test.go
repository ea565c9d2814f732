package cases

import (
	stdcsv "encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/viewtest"
)

// Every text round-trips through CSV by RFC 4180: line breaks of all kinds,
// quotes, blanks at the ends, what looks like a comment, the empty text beside
// NULL; and names of columns with all that.
func TestQuoting(t *testing.T) {
	p := iceberg.PrimitiveTypes
	names := []string{"a,b", `say "x"`, "two\nlines"}
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: names[0], Type: p.String},
		iceberg.NestedField{ID: 2, Name: names[1], Type: p.String},
		iceberg.NestedField{ID: 3, Name: names[2], Type: p.Int32},
	)})
	values := []struct{ text, field string }{
		{"a\rb", "\"a\rb\""}, {"a\nb", "\"a\nb\""}, {"a\r\nb", "\"a\r\nb\""}, {"\r", "\"\r\""}, {"\n", "\"\n\""},
		{`"`, `""""`}, {`a"b`, `"a""b"`}, {`""`, `""""""`}, {",", `","`}, {"", `""`},
		{"NULL", "NULL"}, {`\N`, `\N`}, {"tab\there", "tab\there"}, {"'", "'"}, {"a;b", "a;b"},
	}
	rows, lines := []fixture.Row{}, []string{"\"a,b\",\"say \"\"x\"\"\",\"two\nlines\""}
	for i, v := range values {
		rows = append(rows, fixture.Row{names[0]: v.text, names[2]: i}, fixture.Row{names[1]: v.text})
		lines = append(lines, fmt.Sprintf("%s,,%d", v.field, i), fmt.Sprintf(",%s,", v.field))
	}
	rows, lines = append(rows, fixture.Row{}), append(lines, ",,")
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
	check := func(lines ...string) {
		t.Helper()
		o := open(t, tab)
		o.showsRows(o.scan(0, nil), strings.Join(lines, "\n")+"\n", int64(len(lines)-1))
	}
	check(lines...)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0) })
	check(append([]string{lines[0]}, lines[2:]...)...)
}

// Blanks and # at a text's ends reach readers that would strip them or take the
// line for a comment.
func TestBlanksAndHashes(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	texts := []string{" x", "x ", " ", "#x", "\tx", "\ufeffx", "x\u00a0", "'"}
	var rows []fixture.Row
	for i, s := range texts {
		rows = append(rows, fixture.Row{"id": i, "s": s})
	}
	commit(tab, func(tx *fixture.Tx) { tx.Append(rows...) })
	o := open(t, tab)
	views, all := o.views(o.scan(0, nil))
	for _, v := range all {
		viewtest.Check(t, v)
	}
	got, err := stdcsv.NewReader(strings.NewReader(string(viewtest.Bytes(t, views.CSV)))).ReadAll()
	if err != nil || len(got) != len(texts)+1 {
		t.Fatalf("%q, %v", got, err)
	}
	for i, s := range texts {
		if got[i+1][1] != s {
			t.Errorf("%q is read as %q", s, got[i+1][1])
		}
	}
	if report := o.report(o.scan(0, nil), views); len(report.Problems) > 0 || report.Rows != int64(len(texts)) {
		t.Errorf("report: %+v", *report)
	}
}

// The first text that needs quotes comes late: readers that guess from the first
// lines are told by the rules that quotes may come.
func TestLateQuote(t *testing.T) {
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: idAndText()})
	rows, lines := words(1, 3005)
	rows[2999]["s"], lines[2999] = "late \"quote\",\nhere", "3000,\"late \"\"quote\"\",\nhere\""
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) { f = tx.Append(rows...) })
	check := func(lines []string) {
		t.Helper()
		o := open(t, tab)
		o.showsRows(o.scan(0, nil), "id,s\n"+strings.Join(lines, "\n")+"\n", int64(len(lines)))
	}
	check(lines)
	commit(tab, func(tx *fixture.Tx) { tx.DeletePositions(f, 0, 3004) })
	check(lines[1:3004])
}
