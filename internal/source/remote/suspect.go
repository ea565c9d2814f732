package remote

import (
	"sync"
	"sync/atomic"
	"time"
)

// suspectAgain is how soon an object's bytes may be fetched anew again: a file
// that is damaged in the store costs its readers no more than that.
const suspectAgain = time.Second

// suspected counts how often what was kept of an object was found damaged. From
// then on it is not looked for in memory, where keys have the count, nor on disk,
// where what is fetched anew takes its place. Safe for concurrent use.
type suspected struct {
	round atomic.Int64
	mu    sync.Mutex
	at    time.Time // of the last round; guarded by mu
}

// Suspect implements source.Suspected. Readers that meet the same damage at a
// time read again together.
func (o *object) Suspect() bool {
	s := &o.suspected
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.at) > suspectAgain {
		s.at = now
		s.round.Add(1)
		o.stores.opt.Log.Warn("damaged bytes are fetched again", "object", o.location)
	}
	return true
}
