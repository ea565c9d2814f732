package merge

import (
	"cmp"
	"path"
	"slices"
	"sync/atomic"
	"time"
)

// A measurement is told to the log once it has taken longMeasure, and again
// every time that it has taken as long again.
const longMeasure = 5 * time.Second

// Measuring is a text view that is being measured, for status.json.
type Measuring struct {
	Table    string    `json:"table"` // last element of its location
	Snapshot int64     `json:"snapshot"`
	Form     string    `json:"form"` // csv or jsonl
	Files    int       `json:"files"`
	Rows     int64     `json:"rows"`      // stored rows by the manifests, deleted ones included
	RowsDone int64     `json:"rows_done"` // of those; looked up or measured
	Started  time.Time `json:"started"`
}

// progress is a measurement under way.
type progress struct {
	Measuring
	done atomic.Int64
	long time.Duration
}

// Measuring returns the text views that are being measured, the longest at it
// first. Safe for concurrent use.
func (e *Engine) Measuring() []Measuring {
	s := &e.texts
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Measuring, 0, len(s.under))
	for _, p := range s.under {
		m := p.Measuring
		m.RowsDone = p.done.Load()
		list = append(list, m)
	}
	return list
}

// begin notes that a view is being measured. end has to be called; it is given
// the error that measuring ended with.
func (v *textView) begin(set *textSetup) (p *progress, end func(error)) {
	e, plan := v.engine, v.scan.Plan
	p = &progress{long: cmp.Or(e.texts.long, longMeasure), Measuring: Measuring{
		Table: path.Base(v.scan.Table.Location), Snapshot: plan.SnapshotID, Form: set.form.name,
		Files: len(plan.Files), Started: time.Now(),
	}}
	for i := range plan.Files {
		p.Rows += plan.Files[i].Records
	}
	s := &e.texts
	s.mu.Lock()
	s.under = append(s.under, p)
	s.mu.Unlock()
	stop := make(chan struct{})
	if e.opt.Log != nil {
		go p.tell(e, stop)
	}
	return p, func(err error) {
		close(stop)
		s.mu.Lock()
		s.under = slices.DeleteFunc(s.under, func(o *progress) bool { return o == p })
		s.mu.Unlock()
		if took := time.Since(p.Started); e.opt.Log != nil && err == nil && took >= p.long {
			e.opt.Log.Info("text view measured", p.fields("took", took.Round(time.Millisecond))...)
		}
	}
}

// tell logs a long measurement until stop.
func (p *progress) tell(e *Engine, stop <-chan struct{}) {
	wait := p.long
	for {
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		e.opt.Log.Info("measuring a text view for its size", p.fields("rows_done", p.done.Load())...)
		wait = time.Since(p.Started)
	}
}

// fields are those of a log line.
func (p *progress) fields(more ...any) []any {
	return append([]any{"table", p.Table, "snapshot", p.Snapshot, "form", p.Form, "files", p.Files, "rows", p.Rows}, more...)
}
