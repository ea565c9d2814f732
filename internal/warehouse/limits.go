package warehouse

import "fmt"

// limits bound what one table's files may take, whatever they claim: parts of
// Options.MemoryBytes, but never so little that a table which is large for a good
// reason cannot be read.
type limits struct {
	// metadata is the bytes of a metadata file, decompressed, and of a manifest or
	// a manifest list, as stored. A table of 100,000 snapshots has 50 MB.
	metadata int64
	// schemas is the JSON of all schemas of a table together. A column takes some
	// 80 bytes, and several times that as values.
	schemas int64
	// manifest is what the entries of a manifest take as values: 200,000 with
	// metrics take some 60 MB.
	manifest int64
	// planned is the live files of a snapshot, deletes included. Each takes some 104
	// bytes beside its manifest's entry.
	planned int
}

const (
	defaultMemory = 1 << 30
	leastMetadata = 64 << 20
	leastManifest = 128 << 20
	leastPlanned  = 2 << 20
)

func newLimits(memory int64) limits {
	if memory <= 0 {
		memory = defaultMemory
	}
	metadata := max(memory/8, leastMetadata)
	return limits{
		metadata: metadata,
		schemas:  metadata / 4,
		manifest: max(memory/4, leastManifest),
		planned:  int(max(memory/256, leastPlanned)),
	}
}

// Bounds on the members of a metadata file, of which little JSON makes large
// values: each is ten times what is known to occur, or more.
const (
	maxProperties   = 1 << 16
	maxRefs         = 1 << 18
	maxSnapshots    = 1 << 20 // and entries of the log
	maxSpecs        = 1 << 14
	maxTableSchemas = 1 << 16
	// maxNesting bounds brackets in brackets: three for each struct in a struct.
	maxNesting = 512
	// maxSchemaWork bounds the length of a schema's JSON times its nesting: each
	// level is scanned again.
	maxSchemaWork = 256 << 20
)

// overCount refuses a member of a metadata file.
func overCount(what string, limit int) error {
	return fmt.Errorf("%w: more than %d %s", ErrUnsupported, limit, what)
}

// tooLarge refuses a file, or what comes of it, for what it takes.
func tooLarge(what string, limit int64) error {
	return fmt.Errorf("%w: %s takes more than %d MiB (a larger --memory allows more)", ErrUnsupported, what, limit>>20)
}

// nesting returns how deep brackets stand in brackets.
func nesting(text []byte) int {
	depth, deepest := 0, 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			end, err := skipString(text, at)
			if err != nil {
				return deepest
			}
			at = end - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}
