package merge

import "github.com/icefs/icefs/internal/pqfile"

func (e *Engine) text(s Scan, form func(*pqfile.Schema) (*textForm, error)) View { panic("skeleton") }
