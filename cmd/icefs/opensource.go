package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/icefs/icefs/internal/warehouse"
)

// catalogOf returns the properties of the catalog that SOURCE names; nil if it is
// a path or a URL.
func catalogOf(src string, given map[string]string, user catalogConfigs) (map[string]string, error) {
	if _, err := os.Stat(src); err == nil || strings.Contains(src, "://") || strings.HasPrefix(src, "file:") {
		return nil, nil
	}
	props, err := user.find(src)
	if errors.Is(err, errNoCatalog) {
		switch {
		case given["uri"] != "" || given["type"] != "":
			props, err = map[string]string{}, nil
		case strings.ContainsAny(src, "/."):
			return nil, nil // a path that does not exist
		}
	}
	if err != nil {
		return nil, err
	}
	all := maps.Clone(props)
	maps.Copy(all, given)
	return all, nil
}

// openCatalog opens SOURCE; given are the properties of flags.
func (s *session) openCatalog(ctx context.Context, given map[string]string) error {
	opt := warehouse.Options{
		AllowPaths:  s.opt.allowPaths,
		Remotes:     s.stores,
		Refresh:     catalogRefresh(s.opt.refresh),
		Cache:       s.memory,
		Properties:  given,
		Timeout:     s.opt.timeout,
		MemoryBytes: s.opt.memory,
		Log:         s.log,
		Stats:       &s.warehouse,
	}
	props, err := catalogOf(s.source, given, userCatalogs())
	if err != nil {
		return err
	}
	ctx = warehouse.WithPatience(ctx, openPatience)
	if props != nil {
		s.catalog, err = warehouse.OpenCatalog(ctx, s.source, props, opt)
	} else {
		s.catalog, err = warehouse.Open(ctx, s.source, opt)
	}
	return err
}

// openPatience is how long a catalog that does not answer is waited for when it
// is opened: a mistyped address should not cost a minute.
const openPatience = 10 * time.Second

// The kernel keeps what may change for a part of --refresh, the catalog keeps it
// for the rest: what is shown is never older than the whole.
const maxKernelRefresh = time.Second

func kernelRefresh(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return min(d/4, maxKernelRefresh)
}

// catalogRefresh also turns 0, "at every call", into what Options take for it.
func catalogRefresh(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return d - kernelRefresh(d)
}
