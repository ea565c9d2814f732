package merge

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/icefs/icefs/internal/pqfile"
)

// synthesize makes the chunk of a column that the sources lack: every row has
// the same entry, so that a page of one run of levels (and, for a value, a
// dictionary of one entry and one run of indexes) says it all.
func (c *chunk) synthesize(g *group, leaf *pqfile.Node) error {
	if g.rows > math.MaxInt32 {
		return fmt.Errorf("%w: column %q: %d rows in one row group", ErrUnsupported, leaf.Name, g.rows)
	}
	col := &g.sources[0].in.columns[leaf.Leaf]
	value, def := &col.Constant, col.DefMap[0] // every row has that level
	present := int(def) == leaf.MaxDef
	if present && value.N == 0 {
		return fmt.Errorf("%w: column %q is required, has no default, and the file lacks it", ErrCorrupt, leaf.Name)
	}
	f := pageForm{leaf: leaf, codec: c.codec}
	body := []byte{}
	if leaf.MaxRep > 0 {
		body = appendOneRun(body, g.rows, 0)
	}
	if leaf.MaxDef > 0 {
		body = appendOneRun(body, g.rows, def)
	}
	out := []byte{}
	switch {
	case present && leaf.Type == pqfile.Boolean:
		bits := make([]byte, (g.rows+7)/8)
		if value.Bools[0] != 0 {
			for i := range bits {
				bits[i] = 0xff
			}
		}
		body = append(body, bits...)
	case present:
		entry := appendPlain(nil, leaf.Type, value, 0, 1)
		f.dict, f.dictN, f.dictBytes = true, 1, int64(len(entry))
		h := f.dictionaryHeader()
		out = appendStored(h.Append(out), f.codec, nil, entry)
		body = append(body, byte(f.indexWidth()))
		body = append(binary.AppendUvarint(body, uint64(g.rows)<<1), 0)
	}
	c.dictionary = int64(len(out))
	h := pqfile.PageHeader{
		Type:             pqfile.DataPage,
		UncompressedSize: int32(len(body)),
		CompressedSize:   int32(storedSize(f.codec, int64(len(body)))),
		Data: &pqfile.DataPageHeader{
			NumValues:          int32(g.rows),
			Encoding:           f.encoding(false),
			DefinitionEncoding: pqfile.RLE,
			RepetitionEncoding: pqfile.RLE,
		},
	}
	c.data = appendStored(h.Append(out), f.codec, nil, body)
	c.size, c.values, c.encodings = int64(len(c.data)), g.rows, f.encodings()
	c.uncompressed = c.size
	return nil
}

// appendOneRun appends levels of n equal entries as a V1 page has them.
func appendOneRun(dst []byte, n int64, level uint8) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = append(binary.AppendUvarint(dst, uint64(n)<<1), level)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}
