package merge

// CSV returns the view of all rows as CSV.
func (e *Engine) CSV(s Scan) View { panic("skeleton") }

// JSONL returns the view of all rows as JSON Lines.
func (e *Engine) JSONL(s Scan) View { panic("skeleton") }
