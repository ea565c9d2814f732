package merge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Explain implements Explainer: one line for every row group and chunk.
func (v *parquetView) Explain(ctx context.Context, w io.Writer) error {
	l, err := v.layout(ctx)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if l.whole != nil {
		fmt.Fprintf(b, "%d bytes: %s as it is\n", l.length, l.whole.Location())
		return b.Flush()
	}
	fmt.Fprintf(b, "%d bytes, %d row groups\n", l.length, len(l.footer.groups))
	for i := range l.footer.groups {
		g := &l.footer.groups[i]
		fmt.Fprintf(b, "row group %d: %d rows, %d bytes at %d\n", i, g.rows, g.bytes, g.offset)
		for _, s := range g.sources {
			fmt.Fprintf(b, "  from row group %d of %s: %d of %d rows\n", s.rowGroup, s.in.file.Path, s.live, s.rows)
		}
		for j := range g.chunks {
			c := &g.chunks[j]
			fmt.Fprintf(b, "  %s: %s, %d bytes at %d", strings.Join(l.footer.view.Leaves[j].Path, "."), c.kind, c.size, c.offset)
			if c.kind == rewrittenChunk {
				fmt.Fprint(b, " ", c.runs[0].how())
			}
			if len(c.runs) > 1 {
				fmt.Fprintf(b, ", %d runs", len(c.runs))
			}
			if c.reason != "" {
				fmt.Fprintf(b, " (%s)", c.reason)
			}
			fmt.Fprintln(b)
		}
	}
	fmt.Fprintf(b, "footer: %d bytes at %d\n", l.footer.length, l.length-l.footer.length)
	return b.Flush()
}
