package pqfile

import (
	"slices"
	"strconv"
	"strings"
)

// writer is what created_by says: "parquet-mr version 1.12.3 (build …)".
type writer struct {
	app     string
	version [3]int
	known   bool // the version could be read
}

func parseWriter(createdBy string) writer {
	app, rest, found := strings.Cut(createdBy, " version ")
	w := writer{app: strings.TrimSpace(app)}
	if !found {
		return w
	}
	parts := strings.SplitN(strings.TrimPrefix(rest, "v"), ".", 3)
	for i, part := range parts {
		end := strings.IndexFunc(part, func(c rune) bool { return c < '0' || c > '9' })
		if end < 0 {
			end = len(part)
		}
		v, err := strconv.Atoi(part[:end])
		if err != nil {
			return w
		}
		w.version[i] = v
	}
	w.known = len(parts) == 3
	return w
}

func (w writer) before(major, minor, patch int) bool {
	return slices.Compare(w.version[:], []int{major, minor, patch}) < 0
}

// shortChunks: parquet-mr before 1.2.9 left the dictionary page's header out of
// total_compressed_size (PARQUET-816).
func (w writer) shortChunks() bool {
	return w.app == "parquet-mr" && w.known && w.before(1, 2, 9)
}

// carriesPrefix: parquet-mr before 1.8.0 let the first value of a
// DELTA_BYTE_ARRAY page share a prefix with the last one of the page before
// (PARQUET-246). A file without a readable writer may be one of these.
func (w writer) carriesPrefix() bool {
	switch w.app {
	case "":
		return true
	case "parquet-mr":
		return !w.known || w.before(1, 8, 0)
	}
	return false
}

// lyingV2: Arrow C++ before 3.0 wrote is_compressed = false on V2 pages that
// were compressed (ARROW-17100).
func (w writer) lyingV2() bool {
	return (w.app == "parquet-cpp" || w.app == "parquet-cpp-arrow") && (!w.known || w.before(3, 0, 0))
}

// shortDictionaries: DuckDB before 1.0 left the header of the dictionary page out
// of data_page_offset. It did not name its version then.
func (w writer) shortDictionaries() bool {
	return w.app == "DuckDB" && (!w.known || w.before(1, 0, 0))
}

// trusts reports whether a chunk can be decoded by the format's rules alone.
func (w writer) trusts(m *ColumnMetaData) bool {
	if w.shortChunks() || w.lyingV2() && m.Codec != Uncompressed {
		return false
	}
	return !w.carriesPrefix() || !slices.Contains(m.Encodings, DeltaByteArray)
}
