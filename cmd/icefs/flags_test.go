package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/icefs/icefs/merge"
)

func TestSizeFlag(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  int64
		shown string
	}{{"1GiB", 1 << 30, "1GiB"}, {"10GiB", 10 << 30, "10GiB"}, {"512MiB", 512 << 20, "512MiB"}, {"1500", 1500, "1.5KiB"}, {"2 MB", 2e6, "1.9MiB"}, {"0", 0, "0B"}} {
		var n int64
		f := sizeFlag{&n}
		if err := f.Set(c.text); err != nil || n != c.want || f.String() != c.shown {
			t.Errorf("%q is %d bytes, shown %q, %v", c.text, n, f.String(), err)
		}
	}
	var n int64
	for _, bad := range []string{"", "GiB", "-1", "1XB", "99999999999GiB"} {
		if err := (sizeFlag{&n}).Set(bad); err == nil {
			t.Errorf("%q is %d bytes", bad, n)
		}
	}
}

func TestSharedFlags(t *testing.T) {
	var o options
	set := newFlags("ls")
	o.add(set)
	if err := set.Parse([]string{"--csv-delimiter", `\t`, "--csv-header=false", "--statistics", "all", "--views", "csv", "--log-level", "warn"}); err != nil {
		t.Fatal(err)
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	if want := (merge.CSVOptions{Delimiter: '\t', NoHeader: true}); o.csv != want {
		t.Errorf("CSV options %+v, want %+v", o.csv, want)
	}
	if o.statistics != merge.StatisticsAll || !o.show.CSV || o.show.Parquet {
		t.Errorf("%+v", o)
	}
	if o.csvIdentity() == (&options{}).csvIdentity() || o.parquetIdentity() == (&options{}).parquetIdentity() {
		t.Error("options that change bytes do not change the identity")
	}
}

func TestMetadataColumnsFlag(t *testing.T) {
	for args, want := range map[string][]string{"": nil, "--metadata-columns": merge.AllMetadataColumns(), "--metadata-columns=_pos,_file": {"_file", "_pos"}} {
		var o options
		set := newFlags("ls")
		o.add(set)
		if err := set.Parse(strings.Fields(args)); err != nil || !slices.Equal(o.metadata, want) {
			t.Errorf("%q: %q, %v", args, o.metadata, err)
		}
		none := options{}
		for name, same := range map[string]bool{
			"Parquet": o.parquetIdentity() == none.parquetIdentity(),
			"CSV":     o.csvIdentity() == none.csvIdentity(),
			"JSONL":   o.columnsIdentity() == none.columnsIdentity(),
		} {
			if same != (want == nil) {
				t.Errorf("%q: identity of %s is the default's: %t", args, name, same)
			}
		}
	}
}

func TestMountOptions(t *testing.T) {
	parse := func(args ...string) (mountOptions, options, error) {
		var m mountOptions
		var o options
		set := newFlags("mount")
		m.add(set)
		o.add(set)
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		err := m.apply(set)
		return m, o, err
	}
	m, o, err := parse("-o", "ro,noexec,allow_other,uid=7,x-initrd.mount,csv_delimiter=;", "-o", "_netdev,memory=100MiB")
	if err != nil || !m.allowOther || *m.uid.id != 7 || o.csv.Delimiter != ';' || o.memory != 100<<20 || !slices.Equal(m.flags, []string{"noexec"}) {
		t.Errorf("%+v %+v %v", m, o, err)
	}
	for _, bad := range []string{"rw", "suid", "dev", "frob", "uid", "uid=x", "options=ro", "memory=1"} {
		m, o, err := parse("-o", bad)
		if err == nil {
			err = o.check()
		}
		if err == nil {
			t.Errorf("-o %s gives %+v", bad, m)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"/wh/a b", "/wh/a b"},
		{"s3://bucket/wh", "s3://bucket/wh"},
		{"s3://key:secret@bucket/wh?token=abc&catalog=c", "s3://redacted@bucket/wh?catalog=c&token=redacted"},
		{"rest://x/%zz?password=p", "(a URL)"},
	} {
		if got := redact(c.src); got != c.want {
			t.Errorf("redact(%q) = %q, want %q", c.src, got, c.want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		p, dir string
		want   bool
	}{{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a", "/", true}} {
		if got := within(c.p, c.dir); got != c.want {
			t.Errorf("within(%q, %q) = %t", c.p, c.dir, got)
		}
	}
}
