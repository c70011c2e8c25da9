package relay

import "time"

// A correction comes back to what is in flight or locked when its turn comes, such as a message of a paused type that is
// looked at and turned back just then: who corrects all of them means that one, too. So many messages are kept for later at
// most, and so many steps, with LaterPause after each, may find nothing but such.
const (
	laterMost  = 200
	laterTries = 20

	LaterPause = 500 * time.Millisecond
)

// Later is a message that an operation comes back to.
type Later struct {
	ID  string `json:"id"`
	Seq int64  `json:"seq"`
}

// PutOff keeps a message for later. Where it does not, the message is left as it is.
func (p *Progress) PutOff(o Operation, m Later) bool {
	if o.Op != OpCorrect || o.DryRun || p.Tries >= laterTries || len(p.Later) >= laterMost {
		return false
	}
	p.Later = append(p.Later, m)
	return true
}

// TakeLater gives the next messages, at most so many, to come back to, once the walk is over; no longer kept for later.
func (p *Progress) TakeLater(most int) []Later {
	n := min(most, len(p.Later))
	next := p.Later[:n:n]
	p.Later = p.Later[n:]
	return next
}
