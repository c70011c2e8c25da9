package dialect

import (
	"context"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// again tries what was in flight or locked when its turn came.
func (s *stepping) again(ctx context.Context, most int) (finished bool, wait time.Duration, err error) {
	before := s.affected
	var found []Listed
	for _, m := range s.TakeLater(most) {
		found = append(found, Listed{ID: m.ID, Seq: m.Seq})
	}
	if err := s.change(ctx, found); err != nil {
		return false, 0, err
	}
	if s.affected == before {
		s.Tries++
		wait = relay.LaterPause
	}
	if finished, _, err = s.end(ctx, len(s.Later) == 0); finished {
		wait = 0
	}
	return finished, wait, err
}

// end tells whether an operation is applied, after a step.
func (s *stepping) end(ctx context.Context, all bool) (finished bool, wait time.Duration, err error) {
	if all {
		err = s.addUnmatched(ctx)
	}
	return all || s.op.Order.Reached(s.affected), 0, err
}

// skip counts messages that are left as they are, but for those that it comes back to.
func (s *stepping) skip(why relay.Skip, of []relay.Candidate) {
	for _, c := range of {
		if c.State != relay.InFlight || !s.PutOff(s.op, relay.Later{ID: c.ID, Seq: c.Seq}) {
			s.Add(why, 1)
		}
	}
}

// skipLocked does that with messages whose rows others hold.
func (s *stepping) skipLocked(found []Listed, candidates []relay.Candidate) {
	ours := make(map[string]bool, len(candidates))
	for _, c := range candidates {
		ours[c.ID] = true
	}
	for _, m := range found {
		if !ours[m.ID] && !s.PutOff(s.op, relay.Later{ID: m.ID, Seq: m.Seq}) {
			s.Add(relay.SkipLocked, 1)
		}
	}
}
