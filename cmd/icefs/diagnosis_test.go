package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/merge"
)

func TestLayoutOptions(t *testing.T) {
	for _, c := range []struct {
		text     string
		off      []string // nil = refused
		identity string
	}{
		{"splice=off", []string{"splice"}, " without=splice"},
		{"splice=off,coalesce=off,splice=off", []string{"coalesce", "splice"}, " without=coalesce,splice"},
		{"kernel=off,cache=off", []string{"cache", "kernel"}, ""},
		{"kernel=off,coalesce=off", []string{"coalesce", "kernel"}, " without=coalesce"},
		{"pages=off", []string{"pages"}, " without=pages"},
		{"splice", nil, ""},
		{"splice=on", nil, ""},
		{"speed=off", nil, ""},
	} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var off switchedOff
		off.add(set)
		err := set.Parse([]string{"--layout-options", c.text})
		if (err != nil) != (c.off == nil) || err == nil && !slices.Equal(off, c.off) || err == nil && off.identity() != c.identity {
			t.Errorf("%q: %v, identity %q, %v", c.text, off, off.identity(), err)
		}
		var o merge.Options
		if off.apply(&o); o.NoSplice != slices.Contains(c.off, "splice") || o.NoCoalesce != slices.Contains(c.off, "coalesce") || o.NoPages != slices.Contains(c.off, "pages") {
			t.Errorf("%q: %+v", c.text, o)
		}
	}
}
