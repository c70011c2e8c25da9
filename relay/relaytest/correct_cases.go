package relaytest

import (
	"time"

	"github.com/outboxd/outboxd/relay"
)

func correctCases() []storeCase {
	return []storeCase{
		{"of a message that nothing went out of changes the payload alone", correctInPlace},
		{"of a message that was sent is a new life under a new key", correctSent},
		{"of a failed message is a new life under a new key", correctFailed},
		{"where the old payload may have taken effect, by force only", correctUnknown},
		{"narrowed by a filter", correctNarrowed},
		{"of another payload than the one it was made from is left out", correctChanged},
		{"of an empty payload, or of none that there is", correctEmpty},
		{"comes back to what is in flight or locked when its turn comes", correctLater},
		{"of many messages goes on page by page", correctPages},
		{"of what is in flight or done is left out", correctSkips},
	}
}

const corrected = `{"corrected":true}`

// correct inserts an operation and its corrections.
func (s *suite) correct(filter string, of ...string) relay.Operation {
	s.Helper()
	o := s.order(relay.OpCorrect, filter)
	for _, id := range of {
		s.Correct(o.ID, id, []byte(corrected), nil)
	}
	return o
}

// payloads demands the body of a message and the one that the correction replaced.
func (s *suite) payloads(o relay.Operation, id, want, old string) {
	s.Helper()
	if got := string(s.Payload(id)); got != want {
		s.Errorf("the payload is %q, want %q", got, want)
	}
	if got := string(s.OldPayload(o.ID, id)); got != old {
		s.Errorf("the old payload is %q, want %q", got, old)
	}
}

func correctInPlace(s *suite) {
	id := s.Insert(Seed{Type: orders, Delay: time.Hour, Expires: 2 * time.Hour, Payload: []byte("old")})[0]
	other := s.Insert(Seed{Type: orders, Payload: []byte("other")})[0]
	before := s.rows(id, other)
	o := s.correct(`{}`, id)
	s.apply(o, 1, nil)
	s.unchanged(before...)
	s.payloads(o, id, corrected, "old")
	if got := string(s.Payload(other)); got != "other" {
		s.Errorf("the payload of another message is %q", got)
	}
}

func correctSent(s *suite) {
	c := s.claimed(Seed{Expires: time.Hour, Payload: []byte("old")})
	s.settle(dueAgain(c, "not charged, and yet it went out"))
	before := s.row(c.ID)
	o := s.correct(`{}`, c.ID)
	s.apply(o, 1, nil)
	after, want := s.row(c.ID), before
	want.Replays, want.SendID, want.DueAt = 1, after.SendID, after.DueAt
	s.equal(after, want)
	if after.SendID == "" || after.ExpiresAt.IsZero() {
		s.Errorf("send_id is %q, expires_at %v", after.SendID, after.ExpiresAt)
	}
	s.payloads(o, c.ID, corrected, "old")
}

func correctFailed(s *suite) {
	id := s.failed(Seed{Expires: time.Hour, Payload: []byte("old")}, exhausted)
	o := s.correct(`{}`, id)
	s.apply(o, 1, nil)
	row := s.row(id)
	if row.State != relay.Pending || row.SendID == "" || row.Replays != 1 || row.Attempts != 0 || !row.ExpiresAt.IsZero() {
		s.Errorf("the message is %+v", row)
	}
	s.payloads(o, id, corrected, "old")
	claims := s.claim(ofOrders)
	messages, err := s.a.Load(s.Context(), claims)
	s.must("Load", err)
	if len(messages) != 1 || string(messages[0].Payload) != corrected || messages[0].WireKey != row.SendID {
		s.Errorf("loaded %+v", messages)
	}
}

func correctUnknown(s *suite) {
	id := s.failed(Seed{Payload: []byte("old")}, unknown)
	before := s.row(id)
	o := s.correct(`{}`, id)
	s.apply(o, 0, skipping(relay.SkipUnknown, 1))
	s.unchanged(before)
	s.payloads(o, id, "old", "")
	o = s.correct(`{"force":true}`, id)
	s.apply(o, 1, nil)
	s.payloads(o, id, corrected, "old")
	if row := s.row(id); !row.UnknownSince.IsZero() || row.SendID == "" {
		s.Errorf("the message is %+v", row)
	}
}

func correctNarrowed(s *suite) {
	failed := s.failed(Seed{Payload: []byte("old")}, exhausted)
	pending := s.Insert(Seed{Type: orders, Payload: []byte("old")})[0]
	o := s.correct(`{"state":"pending"}`, failed, pending)
	s.apply(o, 1, skipping("failed", 1))
	s.payloads(o, pending, corrected, "old")
	s.payloads(o, failed, "old", "")
}

// Two people mend the same messages from what they read. Who comes second does not undo the work of the first.
func correctChanged(s *suite) {
	ids := s.Insert(repeat(3, Seed{Type: orders, Payload: []byte("old")})...)
	first, second := s.order(relay.OpCorrect, `{}`), s.order(relay.OpCorrect, `{}`)
	s.Correct(first.ID, ids[0], []byte(corrected), []byte("old"))
	for _, id := range ids {
		s.Correct(second.ID, id, []byte("second"), []byte("old"))
	}
	s.apply(first, 1, nil)
	before := s.row(ids[0])
	s.apply(second, 2, skipping(relay.SkipChanged, 1))
	s.unchanged(before)
	s.payloads(first, ids[0], corrected, "old")
	s.payloads(second, ids[2], "second", "old")
	s.payloads(second, ids[0], corrected, "old")

	forced := s.order(relay.OpCorrect, `{"force":true}`)
	s.Correct(forced.ID, ids[0], []byte("forced"), []byte("old "))
	s.apply(forced, 0, skipping(relay.SkipChanged, 1))
}

// A message of a paused type is claimed and turned back now and then. Who corrects all of them means that one, too.
func correctLater(s *suite) {
	flying := s.claimed(Seed{Payload: []byte("old")})
	ids := s.Insert(repeat(2, Seed{Type: orders, Payload: []byte("old")})...)
	o := s.correct(`{}`, flying.ID, ids[0], ids[1])
	unlock := s.Lock(ids[0])
	if step := s.step(s.a, o, 500); step.Finished || step.Affected != 1 || step.Wait <= 0 {
		s.Fatalf("the first step is %+v", step)
	}
	unlock()
	if step := s.step(s.a, o, 1); step.Finished || step.Affected > 1 {
		s.Fatalf("the second step is %+v", step)
	}
	s.settle(dueAgain(flying, "turned back"))
	s.apply(o, 3, nil)
	for _, id := range append(ids, flying.ID) {
		s.payloads(o, id, corrected, "old")
	}
}

func correctEmpty(s *suite) {
	ids := s.Insert(Seed{Type: orders}, Seed{Type: orders, Payload: []byte("a")}, Seed{Type: orders, Payload: []byte("\x00\xff")})
	o := s.order(relay.OpCorrect, `{}`)
	for _, id := range ids {
		s.Correct(o.ID, id, []byte(corrected), []byte{})
	}
	s.Correct(o.ID, "00000000-0000-7000-8000-0000000000ff", []byte(corrected), nil)
	s.apply(o, 1, map[relay.Skip]int{relay.SkipChanged: 2, relay.SkipUnmatched: 1})
	if got := string(s.Payload(ids[0])); got != corrected {
		s.Errorf("the payload is %q", got)
	}
}

func correctPages(s *suite) {
	ids := s.Insert(repeat(10, Seed{Type: orders, Payload: []byte("old")})...)
	o := s.correct(`{}`, ids...)
	for steps := 0; !s.step(s.a, o, 3).Finished; steps++ {
		if steps > 10 {
			s.Fatal("the operation does not end")
		}
	}
	s.applied(o.ID, len(ids), nil)
	for _, id := range ids {
		s.payloads(o, id, corrected, "old")
	}
}

func correctSkips(s *suite) {
	finished, flying := s.claimed(Seed{Payload: []byte("old")}), s.claimed(Seed{Payload: []byte("old")})
	s.settle(done(finished))
	before := s.rows(finished.ID, flying.ID)
	o := s.correct(`{}`, finished.ID, flying.ID)
	s.apply(o, 0, map[relay.Skip]int{"done": 1, "in_flight": 1})
	s.unchanged(before...)
	s.payloads(o, flying.ID, "old", "")
}
