package kafka

import (
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
)

func TestTopicOfAMessage(t *testing.T) {
	t.Parallel()
	cases := []struct {
		template, key, kind, want string
		ok                        bool
	}{
		{"outbox.event.{routing_key}", "orders", "", "outbox.event.orders", true},
		{"{routing_key}", "orders", "", "orders", true},
		{"{routing_key}.{type}", "a_B-1", "placed", "a_B-1.placed", true},
		{"fixed", "orders", "", "fixed", true},
		{"{routing_key}", ".", "", ".", false},
		{"{routing_key}", "..", "", "..", false},
		{"{routing_key}.", ".", "", "..", false},
		{"x.{routing_key}", "two words", "", "x.two words", false},
		{"x.{routing_key}", "ä", "", "x.ä", false},
		{"x.{routing_key}", "a/b", "", "x.a/b", false},
		{"x.{routing_key}", "a\x00", "", "x.a\x00", false},
		{"{routing_key}", strings.Repeat("a", 249), "", strings.Repeat("a", 249), true},
		{"{routing_key}", strings.Repeat("a", 250), "", strings.Repeat("a", 250), false},
	}
	for _, c := range cases {
		parsed, err := parseTopic(c.template)
		if err != nil {
			t.Errorf("%q: %v", c.template, err)
			continue
		}
		m := &relay.Message{Claim: relay.Claim{RoutingKey: c.key, Type: c.kind}}
		if name, ok := parsed.name(m); name != c.want || ok != c.ok {
			t.Errorf("%q of %q: %q, %v, want %q, %v", c.template, c.key, name, ok, c.want, c.ok)
		}
	}
}

func TestIllegalTopicFails(t *testing.T) {
	t.Parallel()
	sink := newSink(t, []string{"127.0.0.1:1"}, nil)
	o := sink.Send(t.Context(), newMessage("two words", "a"))
	if wantKind(t, o, relay.KindFail, "invalid", `"two words"`); !o.Ours {
		t.Errorf("nothing went out: %+v", o)
	}
	if o.Reason != relay.Rejected {
		t.Errorf("reason %s, want rejected", o.Reason)
	}
}
