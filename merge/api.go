package merge

// Parquet returns the view of all rows as one Parquet file.
func (e *Engine) Parquet(s Scan) View { panic("skeleton") }

// Part returns the view of one data file's visible rows, s.Plan.Files[i].
func (e *Engine) Part(s Scan, i int) View { panic("skeleton") }
