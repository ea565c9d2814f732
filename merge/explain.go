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
	l, err := v.built(ctx)
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
				fmt.Fprint(b, " ", c.how())
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

// how tells of what a rewritten chunk consists.
func (c *chunk) how() string {
	how, runs, pages := "", 0, 0
	for _, s := range c.segments {
		switch s := s.(type) {
		case *rewrite:
			if runs++; runs == 1 {
				how = s.how()
			}
		case *keptPages:
			pages += len(s.pages)
		}
	}
	if runs > 1 {
		how += fmt.Sprintf(", %d runs", runs)
	}
	if pages > 0 {
		how = strings.TrimPrefix(how+fmt.Sprintf(", %d pages as stored", pages), ", ")
	}
	return how
}
