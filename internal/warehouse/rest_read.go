package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxNames bounds how many names one namespace is listed with: ten times the
// largest catalogs known, and a memory that can be borne.
const maxNames = 2_000_000

// pages lists what a paged part of the API names, page by page. A server that
// knows no pages sends all in one.
func (c *restCatalog) pages(ctx context.Context, where string, query url.Values, page any, next func() (names []string, token string, err error)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		token, n := "", 0
		for {
			query.Set("pageToken", token)
			query.Set("pageSize", c.pageSize)
			if _, err := c.get(ctx, where+"?"+query.Encode(), nil, page); err != nil {
				yield("", err)
				return
			}
			names, following, err := next()
			if err != nil {
				yield("", fmt.Errorf("catalog %s: %w", redactURL(where), err))
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if following == "" {
				return
			}
			if n += len(names); seen[following] || n > maxNames {
				yield("", fmt.Errorf("%w: catalog %s: a listing without end", ErrCorrupt, redactURL(where)))
				return
			}
			seen[following] = true
			token = following
		}
	}
}

// namespaces implements remote.
func (c *restCatalog) namespaces(ctx context.Context, parent []string) ([]string, error) {
	query := url.Values{}
	if len(parent) > 0 {
		separator, err := url.PathUnescape(c.separator)
		if err != nil {
			separator = c.separator
		}
		query.Set("parent", strings.Join(parent, separator))
	}
	var page struct {
		Namespaces [][]string `json:"namespaces"`
		Next       string     `json:"next-page-token"`
	}
	next := func() (names []string, token string, err error) {
		for _, levels := range page.Namespaces {
			// Some servers list the whole subtree: what is deeper is listed below.
			if len(levels) <= len(parent) || !slices.Equal(levels[:len(parent)], parent) {
				return nil, "", fmt.Errorf("%w: %q is named as a namespace of %q", ErrCorrupt, levels, parent)
			}
			names = append(names, levels[len(parent)])
		}
		token = page.Next
		page.Namespaces, page.Next = nil, ""
		return names, token, nil
	}
	var all []string
	for name, err := range c.pages(ctx, c.base+"/namespaces", query, &page, next) {
		if err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// tables implements remote.
func (c *restCatalog) tables(ctx context.Context, namespace []string) iter.Seq2[string, error] {
	if len(namespace) == 0 {
		return func(func(string, error) bool) {} // tables have a namespace
	}
	var page struct {
		Identifiers []struct {
			Name string `json:"name"`
		} `json:"identifiers"`
		Next string `json:"next-page-token"`
	}
	next := func() (names []string, token string, err error) {
		for _, id := range page.Identifiers {
			names = append(names, id.Name)
		}
		token = page.Next
		page.Identifiers, page.Next = nil, ""
		return names, token, nil
	}
	return c.pages(ctx, c.pathOf(namespace, "tables"), url.Values{}, &page, next)
}

// table implements remote. The answer holds the metadata itself, and what is
// needed to read the table's files.
func (c *restCatalog) table(ctx context.Context, namespace []string, name, tag string) (found, error) {
	if len(namespace) == 0 {
		return found{}, fmt.Errorf("%w: a table of a REST catalog has a namespace", ErrGone)
	}
	var header http.Header
	if tag != "" {
		header = http.Header{"If-None-Match": {tag}}
	}
	var raw []byte
	got, err := c.get(ctx, c.pathOf(namespace, "tables", name), header, &raw)
	if errors.Is(err, errUnchanged) {
		return found{unchanged: true}, nil
	}
	if err != nil {
		return found{}, err
	}
	var answer struct {
		Location    string              `json:"metadata-location"`
		Metadata    json.RawMessage     `json:"metadata"`
		Config      jsonStrings         `json:"config"`
		Credentials []storageCredential `json:"storage-credentials"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return found{}, fmt.Errorf("%w: not the JSON of a table: %w", ErrCorrupt, err)
	}
	if answer.Location == "" {
		return found{}, fmt.Errorf("%w: an answer without a metadata location", ErrCorrupt)
	}
	f := found{location: answer.Location, inline: answer.Metadata, tag: got.Get("ETag"), access: maps.Clone(c.properties)}
	maps.Copy(f.access, answer.Config)
	f.vended = len(answer.Credentials) > 0 || vends(answer.Config)
	for _, cred := range answer.Credentials {
		f.granted = append(f.granted, cred.Prefix)
	}
	maps.Copy(f.access, bestCredential(answer.Credentials, answer.Location))
	return f, nil
}

// storageCredential is what a server lends for the locations below a prefix.
type storageCredential struct {
	Prefix string      `json:"prefix"`
	Config jsonStrings `json:"config"`
}

// bestCredential is that of the longest prefix of a location.
func bestCredential(list []storageCredential, location string) jsonStrings {
	best := -1
	for i, c := range list {
		if strings.HasPrefix(location, c.Prefix) && (best < 0 || len(c.Prefix) > len(list[best].Prefix)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return list[best].Config
}

// vends reports whether a table's configuration holds credentials, as servers
// lent them before there were storage-credentials.
func vends(config jsonStrings) bool {
	for key := range config {
		for _, lent := range []string{"s3.access-key-id", "s3.session-token", "gcs.oauth2.token", "adls.sas-token"} {
			if strings.HasPrefix(key, lent) {
				return true
			}
		}
	}
	return false
}
