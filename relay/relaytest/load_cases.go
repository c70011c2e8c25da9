package relaytest

import (
	"bytes"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func loadCases() []storeCase {
	return []storeCase{
		{"gives every payload byte for byte", loadPayloads},
		{"tells a NULL key from an empty one", loadKeys},
		{"gives the wire key: send_id if set, else id", loadWireKey},
		{"gives headers and all else as they were written", loadFields},
		{"does not care for the order it is asked in", loadOrder},
		{"leaves out what is no longer ours", loadNotOurs},
		{"leaves out a message asked for under another lease of ours", loadCrossed},
		{"changes nothing, and waits for no lock", loadLocked},
		{"of nothing is nothing", loadNothing},
	}
}

// load reads claims through relay a and gives the messages by id.
func (s *suite) load(claims ...relay.Claim) map[string]relay.Message {
	s.Helper()
	messages, err := s.a.Load(s.Context(), claims)
	s.must("Load", err)
	byID := map[string]relay.Message{}
	for _, m := range messages {
		byID[m.ID] = m
	}
	if len(byID) != len(messages) {
		s.Fatalf("Load gave a message twice: %d messages of %d ids", len(messages), len(byID))
	}
	return byID
}

func loadPayloads(s *suite) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	payloads := [][]byte{
		nil,
		{},
		[]byte(`{"id": 7,  "a": "ü😀"}`), every,
		{0},
		[]byte("\\x00ff \\"), []byte(" \r\n\t "),
		bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
	}
	seeds := make([]Seed, len(payloads))
	for i, p := range payloads {
		seeds[i] = Seed{Type: orders, Payload: p}
	}
	id := s.Insert(seeds...)
	claims := s.claim(ofOrders)
	got := s.load(claims...)
	for i, want := range payloads {
		m, ok := got[id[i]]
		if !ok || !bytes.Equal(m.Payload, want) || (m.Payload == nil) != (want == nil) {
			s.Errorf("payload %d of %d bytes (nil: %v) came back as %d bytes (nil: %v)",
				i, len(want), want == nil, len(m.Payload), m.Payload == nil)
		}
		if n := claims[slices.IndexFunc(claims, func(c relay.Claim) bool { return c.ID == id[i] })].Bytes; n != len(want)+2 {
			s.Errorf("the claim of payload %d says %d bytes, want %d and 2 of headers", i, n, len(want))
		}
	}
}

func loadKeys(s *suite) {
	keys := []*string{nil, new(""), new("42"), new("ключ 😀")}
	seeds := make([]Seed, len(keys))
	for i, k := range keys {
		seeds[i] = Seed{Type: orders, AggregateID: k}
	}
	id := s.Insert(seeds...)
	got := s.load(s.claim(ofOrders)...)
	for i, want := range keys {
		if m := got[id[i]]; (m.AggregateID == nil) != (want == nil) || want != nil && *m.AggregateID != *want {
			s.Errorf("aggregateid %d came back as another: nil %v, want nil %v", i, m.AggregateID == nil, want == nil)
		}
		if m := got[id[i]]; m.AggregateType != nil {
			s.Errorf("a NULL aggregatetype came back as %q", *m.AggregateType)
		}
	}
}

func loadWireKey(s *suite) {
	const sendID = "01900000-0000-7000-8000-0000000000aa"
	id := s.Insert(Seed{Type: orders}, Seed{Type: orders, SendID: sendID})
	got := s.load(s.claim(ofOrders)...)
	if w := got[id[0]].WireKey; w != id[0] {
		s.Errorf("the wire key is %q, want the id %s", w, id[0])
	}
	if w := got[id[1]].WireKey; w != sendID {
		s.Errorf("the wire key is %q, want the send_id %s", w, sendID)
	}
}

func loadFields(s *suite) {
	const headers = `{ "z": "1", "a":"ü", "z2" : "\u0041"}`
	id := s.Insert(
		Seed{
			ID: "01900000-0000-7000-8000-0000000000bb", Type: orders, AggregateType: new("order"), AggregateID: new("42"),
			Payload: []byte("x"), ContentType: "text/plain; charset=cp1252", SchemaVersion: 3, Headers: headers,
			Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Age: time.Hour,
		},
		Seed{Type: "order"},
	)
	claims := s.claim(relay.Quota{RoutingKey: "order", Limit: 2})
	got := s.load(claims...)
	for i, id := range id {
		claim := claims[slices.IndexFunc(claims, func(c relay.Claim) bool { return c.ID == id })]
		m := got[id]
		s.between("created_at", m.CreatedAt, s.row(id).CreatedAt, s.row(id).CreatedAt)
		want := relay.Message{
			Claim: claim, WireKey: id, ContentType: "application/json", RawHeaders: "{}", CreatedAt: m.CreatedAt,
		}
		if i == 0 {
			want.AggregateType, want.AggregateID, want.Payload = new("order"), new("42"), []byte("x")
			want.ContentType, want.RawHeaders = "text/plain; charset=cp1252", headers
			want.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		}
		if d := difference(m, want); d != "" {
			s.Error(d)
		}
	}
}

func loadOrder(s *suite) {
	id := s.Insert(repeat(20, Seed{Type: orders})...)
	claims := slices.Concat(s.claim(relay.Quota{RoutingKey: orders, Limit: 10}), s.claim(ofOrders))
	slices.Reverse(claims)
	got := s.load(claims...)
	for _, c := range claims {
		if m := got[c.ID]; m.Claim != c {
			s.Errorf("message %s came back with claim %+v, want %+v", c.ID, m.Claim, c)
		}
	}
	s.sameIDs("Load", ids(claims), id...)
}

func loadNotOurs(s *suite) {
	s.Insert(repeat(4, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	s.settle(done(claims[0]), relay.Release(claims[1]), relay.Release(claims[2]))
	fresh := s.claim(relay.Quota{RoutingKey: orders, ID: claims[2].ID, Limit: 1})
	got := s.load(claims...)
	if _, ok := got[claims[3].ID]; !ok || len(got) != 1 {
		s.Errorf("Load gave %d messages, want only the one still in flight under its lease", len(got))
	}
	if got := s.load(fresh...); len(got) != 1 {
		s.Errorf("Load under the new lease gave %d messages, want 1", len(got))
	}
	absent := claims[3]
	absent.ID = "01900000-0000-7000-8000-000000000000"
	if got := s.load(absent); len(got) != 0 {
		s.Errorf("Load of an absent message gave %d", len(got))
	}
}

func loadCrossed(s *suite) {
	first, beside, second := s.crossed()
	first.Lease = second.Lease
	got := s.load(first, beside, second)
	if _, ok := got[first.ID]; ok || len(got) != 2 {
		s.Errorf("Load gave %d messages, want the two that are asked for under their own lease", len(got))
	}
}

func loadLocked(s *suite) {
	c := s.claimed(Seed{})
	before := s.row(c.ID)
	defer s.Lock(c.ID)()
	if got := s.load(c); len(got) != 1 {
		s.Fatalf("Load of a locked message gave %d, want 1", len(got))
	}
	s.unchanged(before)
}

func loadNothing(s *suite) {
	if got := s.load(); len(got) != 0 {
		s.Fatalf("Load of nothing gave %d messages", len(got))
	}
}
