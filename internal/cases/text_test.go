package cases

import (
	stdcsv "encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

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

// Dates and times read the same wherever the server is: those with a zone in
// UTC, the others as they were written.
func TestZones(t *testing.T) {
	p := iceberg.PrimitiveTypes
	fields := []iceberg.NestedField{
		{ID: 1, Name: "d", Type: p.Date}, {ID: 2, Name: "tm", Type: p.Time}, {ID: 3, Name: "ts", Type: p.Timestamp},
		{ID: 4, Name: "tz", Type: p.TimestampTz}, {ID: 5, Name: "ns", Type: p.TimestampNs}, {ID: 6, Name: "tzns", Type: p.TimestampTzNs},
		{ID: 7, Name: "l", Type: &iceberg.ListType{ElementID: 8, Element: p.TimestampTz}},
	}
	tab := fixture.New(t.TempDir(), fixture.Options{Schema: iceberg.NewSchema(0, fields...), FormatVersion: 3})
	var rows []fixture.Row
	for _, at := range []string{"1848-03-15 09:23:59.764999", "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2026-03-08 02:30:00"} {
		row := fixture.Row{"d": at[:10], "tm": at[11:], "ts": at, "tz": at, "l": []any{at}}
		if at[0] != '0' && at[0] != '9' { // nanoseconds reach from 1677 to 2262
			row["ns"], row["tzns"] = at, at
		}
		rows = append(rows, row)
	}
	rows = append(rows, fixture.Row{"tm": "00:00:00.000001", "ns": "1969-12-31 23:59:59.999999999", "tzns": "1969-12-31 23:59:59.999999999"})
	var f *fixture.File
	commit(tab, func(tx *fixture.Tx) {
		f = tx.Append(rows...)
		tx.AppendFile(fixture.FileOptions{Parquet: &fixture.ParquetOptions{Int96: true}}, fixture.Row{"tz": "1969-12-31 23:59:59.999999", "ts": "1848-03-15 09:23:59.764999"})
	})
	commit(tab, func(tx *fixture.Tx) { tx.DeleteVector(f, 4) })
	lines := []string{"d,tm,ts,tz,ns,tzns,l",
		`1848-03-15,09:23:59.764999,1848-03-15 09:23:59.764999,1848-03-15 09:23:59.764999Z,1848-03-15 09:23:59.764999,1848-03-15 09:23:59.764999Z,"[""1848-03-15 09:23:59.764999Z""]"`,
		`1969-12-31,23:59:59.999999,1969-12-31 23:59:59.999999,1969-12-31 23:59:59.999999Z,1969-12-31 23:59:59.999999,1969-12-31 23:59:59.999999Z,"[""1969-12-31 23:59:59.999999Z""]"`,
		`0001-01-01,00:00:00,0001-01-01 00:00:00,0001-01-01 00:00:00Z,,,"[""0001-01-01 00:00:00Z""]"`,
		`9999-12-31,23:59:59.999999,9999-12-31 23:59:59.999999,9999-12-31 23:59:59.999999Z,,,"[""9999-12-31 23:59:59.999999Z""]"`,
		`,00:00:00.000001,,,1969-12-31 23:59:59.999999999,1969-12-31 23:59:59.999999999Z,`,
		`,,1848-03-15 09:23:59.764999,1969-12-31 23:59:59.999999Z,,,`,
	}
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	var first []string
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("west", -5*3600), time.FixedZone("east", 13*3600+1800)} {
		time.Local = zone
		o := open(t, tab)
		o.rows(lines...)
		_, all := o.views(o.scan(0, nil))
		var bytes []string
		for _, v := range all {
			bytes = append(bytes, csv(t, v))
		}
		if first == nil {
			first = bytes
		}
		for i := range bytes {
			if bytes[i] != first[i] {
				t.Errorf("%s: view %d has other bytes than in UTC", zone, i)
			}
		}
	}
}
