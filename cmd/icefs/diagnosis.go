package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/merge"
)

// switchedOff are the ways of making a view that --layout-options turns off, for
// comparing them: the rows are the same without. Those of the layout change
// bytes, and so inode numbers; "kernel" and "cache" do not.
type switchedOff []string

// The ways that can be turned off.
const (
	waySplice   = "splice"   // stored chunks served as they are
	wayCoalesce = "coalesce" // tiny row groups put together
	wayPages    = "pages"    // chunks laid out page by page
	wayKernel   = "kernel"   // passthrough and splice(2)
	wayCache    = "cache"    // the memory cache, but for offCacheBytes
)

// offCacheBytes is too little for anything but a few small values.
const offCacheBytes = 64 << 10

func (s *switchedOff) add(set *pflag.FlagSet) {
	known := []string{waySplice, wayCoalesce, wayPages, wayKernel, wayCache}
	set.Var(&textFlag{"", "LIST", func(text string) error {
		*s = nil
		for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
			name, found := strings.CutSuffix(item, "=off")
			if !found || !slices.Contains(known, name) {
				return fmt.Errorf("want some of %s=off", strings.Join(known, "=off, "))
			}
			if !slices.Contains(*s, name) {
				*s = append(*s, name)
			}
		}
		slices.Sort(*s)
		return nil
	}}, "layout-options", "turn off ways of making views, for diagnosis")
	set.MarkHidden("layout-options") // it exists: no error
}

func (s switchedOff) has(way string) bool { return slices.Contains(s, way) }

// apply sets the options of the layout.
func (s switchedOff) apply(o *merge.Options) {
	o.NoSplice, o.NoCoalesce, o.NoPages = s.has(waySplice), s.has(wayCoalesce), s.has(wayPages)
}

// cacheBytes is the memory cache's part of a budget.
func (s switchedOff) cacheBytes(memory int64) int64 {
	if s.has(wayCache) {
		return offCacheBytes
	}
	return int64(merge.CacheShare * float64(memory))
}

// identity spells out what changes bytes; empty by default.
func (s switchedOff) identity() string {
	changing := slices.DeleteFunc(slices.Clone(s), func(way string) bool { return way == wayKernel || way == wayCache })
	if len(changing) == 0 {
		return ""
	}
	return " without=" + strings.Join(changing, ",")
}
