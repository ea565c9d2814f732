package merge

import (
	"fmt"

	"github.com/icefs/icefs/internal/pqfile"
)

// group is a row group of the view.
type group struct {
	sources []groupSource
	rows    int64 // visible
	chunks  []chunk
	offset  int64 // of the first chunk
	bytes   int64 // of all chunks, which need not follow one another
}

// chunkKind says how a chunk's bytes come about.
type chunkKind int

const (
	rawChunk chunkKind = iota
	synthesizedChunk
	rewrittenChunk
	releveledChunk // stored values, with levels put in front of every page
)

func (k chunkKind) String() string {
	return [...]string{"raw", "synthesized", "rewritten", "raw with levels"}[k]
}

// chunk is a column chunk of the view.
type chunk struct {
	kind   chunkKind
	reason string // why it is not raw
	stored *pqfile.Chunk
	codec  pqfile.Codec
	// segments are set for rewritten and releveled chunks, data for synthesized
	// ones.
	segments []segment
	data     []byte
	// runs are what statistics are computed of: all rows of a chunk that is not
	// served as stored, or of one whose statistics are wanted.
	runs []*rewrite
	// What the footer says, once the chunk is planned.
	offset       int64
	size         int64
	uncompressed int64
	values       int64 // entries, NULLs included
	dictionary   int64 // length of the dictionary page, header included; 0 if none
	encodings    []pqfile.Encoding
}

// classify decides what the chunk of one leaf is, from footers alone.
func (e *Engine) classify(sources []groupSource, leaf *pqfile.Node) (chunk, error) {
	if len(sources) > 1 {
		if missingEverywhere(sources, leaf.Leaf) {
			return chunk{kind: synthesizedChunk, reason: "missing in the files"}, nil
		}
		return chunk{kind: rewrittenChunk, reason: fmt.Sprintf("%d tiny row groups", len(sources))}, nil
	}
	s := sources[0]
	col := &s.in.columns[leaf.Leaf]
	if col.Source == nil {
		if col.Fill != nil {
			return chunk{kind: rewrittenChunk, reason: "counted from the row's position"}, nil
		}
		if col.Levels == nil {
			return chunk{kind: synthesizedChunk, reason: "missing in the file"}, nil
		}
		return chunk{kind: rewrittenChunk, reason: "missing in the file, below a nested column"}, nil
	}
	if s.in.pq == nil {
		return chunk{kind: rewrittenChunk, reason: "stored in Avro"}, nil
	}
	stored, err := s.in.pq.Chunk(s.rowGroup, col.Source)
	if err != nil {
		return chunk{}, err
	}
	if c := stored.Meta.Codec; !c.Decodable() {
		return chunk{}, fmt.Errorf("%w: %s: column %q is compressed with LZO (3) or an unknown codec: %d", ErrUnsupported, s.in.file.Path, leaf.Name, c)
	}
	if reason := e.whyNotRaw(s, col, stored); reason != "" {
		kind := rewrittenChunk
		if reason == storedRequired && !s.in.remote {
			kind = releveledChunk
		}
		return chunk{kind: kind, reason: reason, stored: stored}, nil
	}
	return chunk{kind: rawChunk, stored: stored}, nil
}

// storedRequired is the reason that leads to a releveled chunk.
const storedRequired = "stored as required"

// whyNotRaw tells what keeps a stored chunk from being served as it is.
func (e *Engine) whyNotRaw(s groupSource, col *pqfile.Column, stored *pqfile.Chunk) string {
	switch {
	case col.Shredding != nil:
		return "variant stored in pieces"
	case s.live < s.rows:
		return fmt.Sprintf("%d of %d rows deleted", s.rows-s.live, s.rows)
	case col.Convert.Kind != pqfile.ConvertNone:
		return "stored in another physical form"
	case col.Fill != nil:
		return "NULL stands for the row's own value"
	case stored.Meta.Codec == pqfile.LZ4:
		return "codec LZ4 with Hadoop framing"
	case !stored.TrustedWriter:
		return "writer needs special decoding"
	case e.opt.NoSplice:
		return "splicing is off"
	case col.AddsOptional && col.Leaf.MaxDef == 1:
		return storedRequired
	case !col.SameLevels:
		return "stored with other levels"
	}
	return ""
}

// missingEverywhere reports a leaf that no source stores or derives levels
// from, with one value (or NULL) in all of them.
func missingEverywhere(sources []groupSource, leaf int) bool {
	first := &sources[0].in.columns[leaf]
	for _, s := range sources {
		c := &s.in.columns[leaf]
		if c.Source != nil || c.Levels != nil || c.Fill != nil || !sameConstant(&c.Constant, &first.Constant) {
			return false
		}
	}
	return true
}

func sameConstant(a, b *pqfile.Values) bool {
	return a.N == b.N && string(a.Fixed) == string(b.Fixed) && string(a.Data) == string(b.Data) && string(a.Bools) == string(b.Bools)
}

// columnCodec chooses the codec of a leaf's rewritten and synthesized chunks:
// the one codec of its raw chunks, since some readers take a column's codec from
// the first row group; without raw chunks that of the first stored one. ok is
// false if raw chunks differ: then each chunk keeps its own.
func columnCodec(groups []group, leaf int) (codec pqfile.Codec, ok bool) {
	codec, raw, seen := pqfile.Uncompressed, false, false
	for g := range groups {
		c := &groups[g].chunks[leaf]
		if c.kind == rawChunk || c.kind == releveledChunk {
			if raw && c.stored.Meta.Codec != codec {
				return 0, false
			}
			codec, raw, seen = c.stored.Meta.Codec, true, true
			continue
		}
		if seen {
			continue
		}
		if first, found := storedCodec(&groups[g], leaf); found {
			codec, seen = first, true
		}
	}
	return storableCodec(codec), true
}

// storedCodec is the codec of the first source chunk of a leaf in a group.
func storedCodec(g *group, leaf int) (pqfile.Codec, bool) {
	for _, s := range g.sources {
		if m := s.meta(leaf); m != nil {
			return m.Codec, true
		}
	}
	return pqfile.Uncompressed, false
}

func storableCodec(c pqfile.Codec) pqfile.Codec {
	if storable(c) {
		return c
	}
	return pqfile.Uncompressed
}
