package warehouse

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/icefs/icefs/internal/source"
)

// relocate returns the prefix maps of a table whose metadata was found in the
// folder found, none if that is the folder it was written for.
//
// A folder that was moved as a whole ends as it ended before: the longest common
// suffix of a metadata folder as written and as found tells how far up, and what
// is above it is mapped. Without a common suffix the folder and its parent are
// mapped as they are. A table that was moved and then written again has several
// such folders. Folders of data elsewhere that this does not lead to are
// looked for below the allowed paths by their longest suffix that exists there.
func relocate(ctx context.Context, reach *source.Files, found string, b baked) []source.Prefix {
	var prefixes []source.Prefix
	add := func(from, to string) {
		p := source.Prefix{From: from, To: to}
		if !slices.Contains(prefixes, p) {
			prefixes = append(prefixes, p)
		}
	}
	for _, folder := range b.metadata {
		if isSameFolder(folder, found) {
			continue
		}
		from, to, common := commonSuffix(folder, found)
		add(from, to)
		if common == 0 {
			add(folderOf(folder), folderOf(found))
		}
	}
	if len(b.metadata) == 0 || isSameFolder(b.metadata[0], found) {
		return prefixes // not moved since its last commit
	}
	for _, folder := range b.data {
		if reaches(ctx, reach, prefixes, folder) {
			continue
		}
		if target, ok := findBelow(reach.Roots(), folder, func(dir string) bool { return reach.IsDir(ctx, dir) }); ok {
			add(folder, target)
		}
	}
	for _, folder := range b.data {
		if data := join(folder, dataFolder); reach.InStore(data) && mapsToNothing(reach, prefixes, data) {
			add(data, data)
		}
	}
	return prefixes
}

// dataFolder is where most writers put data files, below the table's folder.
const dataFolder = "data"

// mapsToNothing reports whether prefixes map a folder in an object store to a local
// one that is not there: its table's metadata alone has been copied.
func mapsToNothing(reach *source.Files, prefixes []source.Prefix, folder string) bool {
	mapped := false
	for _, p := range prefixes {
		if target, ok := p.Apply(folder); ok {
			if source.IsURL(target) || reach.Local().IsDir(target) {
				return false
			}
			mapped = true
		}
	}
	return mapped
}

// placeOf is the one spelling of a location: a local path as such.
func placeOf(location string) string {
	if path, ok := source.LocalPath(location); ok {
		return path
	}
	return location
}

// isSameFolder reports whether a folder as written is the folder found.
func isSameFolder(written, found string) bool {
	path, ok := source.LocalPath(written)
	if !ok {
		return source.IsURL(found) && source.SameURL(written, found)
	}
	if path == found {
		return true
	}
	resolved, err := filepath.EvalSymlinks(found)
	return err == nil && path == resolved
}

// commonSuffix splits off the path elements that two folders end in, and
// returns what is before them and how many they are. The bucket of an object
// store counts as an element.
func commonSuffix(written, found string) (from, to string, common int) {
	from, to = source.Spelling(written), found
	for {
		i, j := strings.LastIndexByte(from, '/'), strings.LastIndexByte(to, '/')
		if i < 0 || j < 0 || from[i:] != to[j:] || len(from) == i+1 {
			return orRoot(from), orRoot(to), common
		}
		from, to = from[:i], to[:j]
		common++
	}
}

// orRoot restores the slash of an empty path and of a bare scheme.
func orRoot(prefix string) string {
	if prefix == "" || strings.HasSuffix(prefix, ":/") {
		return prefix + "/"
	}
	return prefix
}

// reaches reports whether the prefixes lead to a folder that exists.
func reaches(ctx context.Context, reach *source.Files, prefixes []source.Prefix, folder string) bool {
	for _, p := range prefixes {
		if target, ok := p.Apply(folder); ok && reach.IsDir(ctx, target) {
			return true
		}
	}
	return false
}

// findBelow returns the path below one of the folders, taken in order, that ends
// in the longest possible part of a location and exists.
func findBelow(roots []string, location string, exists func(string) bool) (string, bool) {
	_, rest, hasScheme := strings.Cut(location, "://")
	if !hasScheme {
		rest = source.Spelling(location)
	}
	for _, root := range roots {
		for suffix := strings.Trim(rest, "/"); suffix != ""; {
			if target := root + "/" + suffix; exists(target) {
				return target, true
			}
			_, suffix, _ = strings.Cut(suffix, "/")
			suffix = strings.TrimLeft(suffix, "/")
		}
	}
	return "", false
}
