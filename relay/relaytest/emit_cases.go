package relaytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func emitCases() []storeCase {
	return []storeCase{
		{"of a done message, once, with all its fields", emitDone},
		{"of a done message beside the row of its long answer", emitAnswer},
		{"of a message that fails, by whatever way", emitFailed},
		{"of a message that an operator cancels", emitCancelled},
		{"of both lives of a message", emitReplayed},
		{"of nothing that stays pending", emitPending},
		{"under the aggregatetype that is given", emitAggregateType},
		{"once, however often it is settled", emitTwice},
		{"of nothing whose lease is lost", emitLost},
		{"of a locked row when it is free, and of the others at once", emitLocked},
		{"once, where two settlements of one batch race", emitRace},
		{"of each of a large batch, with its own values", emitMany},
		{"whatever is in its texts", emitTexts},
		{"where the tables refuse it: that message alone is left", emitRefused},
	}
}

const results = "charge_result" // the type of what tells

var telling = relay.Emit{Type: results}

// emit lets a try tell of its end.
func emit(t *relay.Try) { t.Policy.Emit = telling }

// told claims the messages of the routing key that tell of others, and gives them by the id that each tells of.
func (s *suite) told(routingKey string) map[string]relay.Message {
	s.Helper()
	byID := map[string]relay.Message{}
	claims := s.claim(relay.Quota{RoutingKey: routingKey, Limit: 1000})
	for _, m := range s.load(claims...) {
		byID[s.payload(m)["id"].(string)] = m
	}
	if len(byID) != len(claims) {
		s.Fatalf("%d messages tell of %d others, want one of each", len(claims), len(byID))
	}
	return byID
}

// payload is the JSON object that a message tells.
func (s *suite) payload(m relay.Message) (fields map[string]any) {
	s.Helper()
	if err := json.Unmarshal(m.Payload, &fields); err != nil {
		s.Fatalf("the payload %q: %v", m.Payload, err)
	}
	return fields
}

// tells demands that a message tells of the original as it is now, and is else as one that the application wrote.
func (s *suite) tells(m relay.Message, e relay.Emit, original relay.Message) {
	s.Helper()
	r := s.row(original.ID)
	at := r.DoneAt
	if r.State == relay.Failed {
		at = r.FailedAt
	}
	want := map[string]any{
		"id": r.ID, "type": original.Type, "state": string(r.State), "reason": orNil(string(r.Reason)), "result": orNil(r.Result),
		"attempts": float64(r.Attempts), "replays": float64(r.Replays), "at": at.UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
	if got := s.payload(m); !maps.Equal(got, want) {
		s.Errorf("the payload is %v, want %v", got, want)
	}
	type rest struct {
		Type, AggregateType, AggregateID, Traceparent, ContentType, Headers, WireKey string
		Version, Attempts                                                            int
	}
	got := rest{
		m.Type, text(m.AggregateType), text(m.AggregateID), m.Traceparent, m.ContentType, m.RawHeaders, m.WireKey,
		m.SchemaVersion, m.Attempts,
	}
	wanted := rest{e.Type, "NULL", text(original.AggregateID), original.Traceparent, "application/json", "{}", m.ID, 1, 0}
	if e.AggregateType != "" {
		wanted.AggregateType = text(&e.AggregateType)
	}
	if got != wanted {
		s.Errorf("the message that tells is %+v, want %+v", got, wanted)
	}
	if m.ID == original.ID || m.Seq <= original.Seq {
		s.Errorf("the message that tells has id %s and seq %d, those of the original are %s and %d", m.ID, m.Seq, original.ID, original.Seq)
	}
}

func text(t *string) string {
	if t == nil {
		return "NULL"
	}
	return fmt.Sprintf("%q", *t)
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// nothing demands that no message tells of any other.
func (s *suite) nothing(what string) {
	s.Helper()
	if got := s.told(results); len(got) != 0 {
		s.Errorf("%s: %d messages tell of it, want none", what, len(got))
	}
}

// toTell claims a message, and gives it as it is loaded.
func (s *suite) toTell(seed Seed) relay.Message {
	s.Helper()
	c := s.claimed(seed)
	return s.load(c)[c.ID]
}

// one demands that one message tells, of the original.
func (s *suite) one(original relay.Message) {
	s.Helper()
	got := s.told(results)
	if m, ok := got[original.ID]; ok && len(got) == 1 {
		s.tells(m, telling, original)
		return
	}
	s.Errorf("%d messages tell, want one, of %s", len(got), original.ID)
}

func emitDone(s *suite) {
	m := s.toTell(Seed{
		AggregateID: new("42"), Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Headers: `{"a":"b"}`, Payload: []byte("secret"), ContentType: "text/plain", SchemaVersion: 7, Attempts: 3,
	})
	s.settle(decide(relay.Done("3@99"), emit)(m.Claim))
	s.one(m)
	if got := s.Attempts(m.ID); len(got) != 0 {
		s.Errorf("outbox_attempt has %+v of a done with a short answer, want no row", got)
	}
	bare := s.toTell(Seed{})
	s.settle(decide(relay.Done(""), emit)(bare.Claim))
	s.one(bare)
}

func emitAnswer(s *suite) {
	m := s.toTell(Seed{})
	s.settle(decide(relay.Outcome{Kind: relay.KindDone, Result: "3@99", Answer: strings.Repeat("ä", 200), Status: 201}, emit)(m.Claim))
	s.one(m)
	if got := s.Attempts(m.ID); len(got) != 1 || got[0].Attempt != 1 || got[0].Status != 201 {
		s.Errorf("outbox_attempt has %+v, want one row of the first attempt and status 201", got)
	}
}

func emitFailed(s *suite) {
	admitting := func(a *relay.Admission) { a.Policy.Emit = telling }
	for _, end := range []struct {
		seed   Seed
		settle func(relay.Claim) relay.Settlement
		reason relay.Reason
	}{
		{Seed{Attempts: 19}, decide(exhausted, emit), relay.Exhausted},
		{Seed{}, decide(rejected, emit), relay.Rejected},
		{Seed{Attempts: 19}, decide(unknown, emit), relay.Unknowable},
		{Seed{Expires: -time.Second}, admit(admitting), relay.Expired},
		{Seed{Lapses: 4}, admit(admitting), relay.LeaseLost},
	} {
		m := s.toTell(end.seed)
		s.settle(end.settle(m.Claim))
		s.one(m)
		if r := s.row(m.ID); r.Reason != end.reason {
			s.Errorf("the message failed for %q, want %q", r.Reason, end.reason)
		}
	}
}

func emitCancelled(s *suite) {
	seeds := []Seed{{Type: orders, AggregateID: new("42")}, {Type: orders, Delay: time.Hour}, {Type: refunds}}
	all := s.Insert(seeds...)
	cancel := func(o relay.Operation) {
		s.Helper()
		judge := func(c relay.Candidate) relay.Verdict {
			v := relay.Judge(o, c, relay.Dedupe{})
			if v.Effect == relay.Withdrawn && c.Type == orders {
				v.Emit = relay.Emit{Type: results, AggregateType: "tellers"}
			}
			return v
		}
		if step, err := s.a.Operate(s.Context(), o, judge, 500); err != nil || !step.Finished {
			s.Fatalf("Operate: %+v, %v", step, err)
		}
	}
	filter := fmt.Sprintf(`{"ids":[%q,%q,%q]}`, all[0], all[1], all[2])
	cancel(s.ordered(Ordered{Op: relay.OpCancel, Filter: filter, DryRun: true}))
	if got := s.told("tellers"); len(got) != 0 {
		s.Errorf("a dry run wrote %d messages", len(got))
	}
	cancel(s.order(relay.OpCancel, filter))
	cancel(s.order(relay.OpCancel, filter))
	got := s.told("tellers")
	if len(got) != 2 {
		s.Fatalf("%d messages tell, want those of the two that have it so", len(got))
	}
	for i, id := range all[:2] {
		m := relay.Message{Claim: relay.Claim{ID: id, Seq: s.row(id).Seq, Type: orders}, AggregateID: seeds[i].AggregateID}
		s.tells(got[id], relay.Emit{Type: results, AggregateType: "tellers"}, m)
	}
	s.states(relay.Failed, all...)
}

func emitReplayed(s *suite) {
	m := s.toTell(Seed{Attempts: 5})
	s.settle(decide(rejected, emit)(m.Claim))
	s.one(m)
	s.apply(s.order(relay.OpReplay, ofID(m.ID)), 1, nil)
	again := s.claimOf(m.ID, orders)
	s.settle(decide(relay.Done("x"), emit)(again))
	s.one(m)
	if r := s.row(m.ID); r.Replays != 1 || r.Attempts != 1 {
		s.Errorf("the message has %d replays and %d attempts, want 1 and 1", r.Replays, r.Attempts)
	}
}

func emitPending(s *suite) {
	for name, settle := range map[string]func(relay.Claim) relay.Settlement{
		"retry": decide(exhausted, emit), "unknown": decide(unknown, emit), "release": relay.Release,
		"unsent": decide(relay.Unsent("refused", "no"), emit), "cut off": decide(unknown, func(t *relay.Try) { emit(t); cutOff(t) }),
		"no policy": admit(noPolicy),
	} {
		c := s.claimed(Seed{})
		s.settle(settle(c))
		s.states(relay.Pending, c.ID)
		s.nothing(name)
	}
}

func emitAggregateType(s *suite) {
	s.Insert(Seed{Type: orders, AggregateType: new("charges"), AggregateID: new("")})
	c := s.claim(relay.Quota{RoutingKey: "charges", Limit: 1})[0]
	m, e := s.load(c)[c.ID], relay.Emit{Type: results, AggregateType: "tellers"}
	s.settle(decide(relay.Done("x"), func(t *relay.Try) { t.Policy.Emit = e })(c))
	s.nothing("a message of another routing key")
	got := s.told("tellers")
	if len(got) != 1 {
		s.Fatalf("%d messages tell, want 1", len(got))
	}
	s.tells(got[c.ID], e, m)
}
