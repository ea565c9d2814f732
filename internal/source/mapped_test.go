package source

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestPrefixApply(t *testing.T) {
	for _, c := range []struct{ from, to, location, want string }{
		{"/old/wh", "/new", "/old/wh/t/x", "/new/t/x"},
		{"file:/old/wh", "/new", "file:///old/wh/t/x", "/new/t/x"},
		{"file:///old/wh", "/new/", "/old/wh/t/x", "/new/t/x"},
		{"/old/wh", "/new", "/old/wh2/t/x", ""},
		{"/old/wh", "/new", "/old/wh", "/new/"},
		{"/", "/copy", "file:/old/x", "/copy/old/x"},
		{"s3://", "/objects", "s3://bucket/a/b", "/objects/bucket/a/b"},
		{"s3://bucket/wh", "/new", "s3://bucket/wh/t%20x", "/new/t%20x"},
		{"s3://bucket", "/new", "s3://bucket2/x", ""},
		{"s3a://bucket", "/new", "s3://bucket/x", ""},
	} {
		got, ok := Prefix{From: c.from, To: c.to}.Apply(c.location)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s -> %s: %s becomes %q, want %q", c.from, c.to, c.location, got, c.want)
		}
	}
}

func TestMappedOrder(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "new", "t", "both"), []byte("mapped"))
	write(t, filepath.Join(dir, "raw", "t", "both"), []byte("raw"))
	write(t, filepath.Join(dir, "raw", "t", "only"), []byte("raw"))
	write(t, filepath.Join(dir, "special", "both"), []byte("special"))
	l := newLocal(t, 0, dir)
	raw := dir + "/raw"
	for _, c := range []struct {
		prefixes []Prefix
		location string
		want     string
		err      error
	}{
		{[]Prefix{{raw, dir + "/new"}}, raw + "/t/both", "mapped", nil},
		{[]Prefix{{raw, dir + "/new"}}, raw + "/t/only", "raw", nil},
		{[]Prefix{{raw, dir + "/new"}, {raw + "/t", dir + "/special"}}, "file:" + raw + "/t/both", "special", nil},
		{[]Prefix{{raw, dir + "/gone"}, {raw + "/t", dir + "/gone"}}, raw + "/t/both", "raw", nil},
		{[]Prefix{{raw, "/etc"}}, raw + "/passwd", "", ErrNotFound},
		{[]Prefix{{"/elsewhere", "/etc"}}, "/elsewhere/passwd", "", ErrOutside},
		{[]Prefix{{"s3://b", dir + "/new"}}, "s3://b/t/none", "", ErrNotFound},
		{[]Prefix{{"s3://b", dir + "/new"}}, "s3://c/t/both", "", ErrUnsupported},
		{nil, raw + "/t/both", "raw", nil},
	} {
		o, err := Mapped(l, c.prefixes).Open(ctx, c.location)
		if !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%v: %s: %v, want %v", c.prefixes, c.location, err, c.err)
			continue
		}
		if err != nil {
			continue
		}
		p := make([]byte, o.Size())
		if _, err := o.ReadAt(ctx, p, 0); err != nil || string(p) != c.want {
			t.Errorf("%v: %s reads %q, %v, want %q", c.prefixes, c.location, p, err, c.want)
		}
		if o.Location() != c.location {
			t.Errorf("Location() = %q, want %q", o.Location(), c.location)
		}
		f, ok := o.(Filer)
		if !ok {
			t.Errorf("%s is no Filer", c.location)
			continue
		}
		if file, err := f.OpenFile(); err != nil {
			t.Error(err)
		} else {
			file.Close()
		}
	}
}
