package pqfile

import "fmt"

// A page is decoded as a whole, and a footer kept as one: what they may take is a
// part of Options.MemoryBytes, but never less than writers make for good reason
// (DuckDB's pages have up to 100 MB; a footer takes some 100 bytes for a column of a
// row group, and several times that as values).
const (
	defaultMemory = 1 << 30
	leastPage     = 128 << 20
	leastFooter   = 32 << 20
)

// limits divides up the budget: bytes that a footer has, and that decoding a page
// takes, at most.
func (o *Options) limits() (footer, page int64) {
	memory := o.MemoryBytes
	if memory <= 0 {
		memory = defaultMemory
	}
	return min(max(memory/16, leastFooter), maxFooter), max(memory/2, leastPage)
}

// checkPage refuses a page that would take too much memory when it is decoded,
// going by its header alone: run lengths make many values of few bytes.
func (c *Chunk) checkPage(h *PageHeader) error {
	entries, each := int64(h.entries()), int64(0)
	if c.Node.MaxRep > 0 {
		each++
	}
	if c.Node.MaxDef > 0 {
		each++
	}
	switch {
	case h.Data != nil:
		each += decodedWidth(h.Data.Encoding, c.Node)
	case h.DataV2 != nil:
		each += decodedWidth(h.DataV2.Encoding, c.Node)
	case h.Dictionary != nil:
		entries, each = int64(h.Dictionary.NumValues), decodedWidth(Plain, c.Node)
	}
	body := int64(max(h.UncompressedSize, h.CompressedSize))
	if cost := body + entries*each; cost > c.File.maxPage {
		return fmt.Errorf("%w: a page takes %d MiB when decoded, %d values of %d bytes (a larger --memory allows more)",
			ErrUnsupported, cost>>20, entries, body)
	}
	return nil
}

// decodedWidth is what a value takes beside its page's body when it is decoded.
func decodedWidth(e Encoding, n *Node) int64 {
	switch {
	case n.Type == Boolean:
		return 1
	case e == PlainDictionary || e == RLEDictionary, n.Type == ByteArray:
		return 4
	case e == DeltaBinaryPacked:
		return int64(fixedWidth(n))
	}
	return 0
}
