package merge

import "context"

// Summary tells what a Parquet view is made of.
type Summary struct {
	Rows    int64 // visible
	Deleted int64 // rows of its data files that are not visible
	// Whole says that the view is one data file, byte for byte.
	Whole bool
	// Column chunks by what they are; all 0 if Whole.
	Raw, Synthesized, Rewritten int
}

// Summarizer is a View that can tell what it is made of, from footers and
// deletes alone.
type Summarizer interface {
	View
	Summary(ctx context.Context) (Summary, error)
}

var _ Summarizer = (*parquetView)(nil)

// Summary implements Summarizer.
func (v *parquetView) Summary(ctx context.Context) (Summary, error) {
	l, err := v.layout(ctx)
	if err != nil {
		return Summary{}, err
	}
	return l.summary, nil
}

// summaryOf sums up row groups of data files of so many rows.
func summaryOf(groups []group, rows int64) Summary {
	s := Summary{}
	for i := range groups {
		g := &groups[i]
		s.Rows += g.rows
		for j := range g.chunks {
			switch g.chunks[j].kind {
			case rawChunk:
				s.Raw++
			case synthesizedChunk:
				s.Synthesized++
			default:
				s.Rewritten++
			}
		}
	}
	s.Deleted = rows - s.Rows
	return s
}
