package dialect

import (
	"maps"
	"sync"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Unanswered are the leases whose claim ended in an error, as long as they may be asked for again. An empty answer to such
// a claim has to be made sure of: the server may still be at work on the first asking, whose rows are locked and were
// passed over. The zero value is ready for use, from several goroutines.
type Unanswered struct {
	mu    sync.Mutex
	until map[relay.LeaseID]time.Time
}

// Has tells whether the lease was asked for before, without an answer.
func (u *Unanswered) Has(lease relay.LeaseID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.until[lease]
	return ok
}

// Add notes a lease until that time.
func (u *Unanswered) Add(lease relay.LeaseID, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(u.until, func(_ relay.LeaseID, until time.Time) bool { return until.Before(now) })
	if u.until == nil {
		u.until = map[relay.LeaseID]time.Time{}
	}
	u.until[lease] = until
}
