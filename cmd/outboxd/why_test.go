package main

import (
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// noon is when whoever was woken asks.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// at is a time so far from noon.
func at(d time.Duration) *dialect.Time { return &dialect.Time{Time: noon.Add(d)} }

func age(d time.Duration) *dialect.Age { a := dialect.Age(d); return &a }

// message is one in a state, with what else is said of it.
func message(state relay.State, changes ...func(*dialect.Message)) dialect.Message {
	m := dialect.Message{
		ID: "m1", Type: "charge", RoutingKey: "charges", SchemaVersion: 2, State: string(state), CreatedAt: *at(-10 * time.Minute),
	}
	switch state {
	case relay.Pending:
		m.DueAt = at(-2 * time.Second)
	case relay.InFlight:
		m.LeaseID = 7
	case relay.Finished:
		m.DoneAt, m.LeaseID, m.Attempts = at(-time.Minute), 7, 1
	case relay.Failed:
		m.FailedAt, m.LeaseID, m.Attempts = at(-time.Minute), 7, 1
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// due moves it.
func due(d time.Duration) func(*dialect.Message) {
	return func(m *dialect.Message) { m.DueAt = at(d) }
}

// erred is one that was under a lease, and has an error.
func erred(attempts int, class, words string) func(*dialect.Message) {
	return func(m *dialect.Message) {
		m.LeaseID, m.Attempts, m.ErrorClass = 7, attempts, new(class)
		if words != "" {
			m.LastError = new(words)
		}
	}
}

func lapses(n int) func(*dialect.Message) {
	return func(m *dialect.Message) { m.LeaseID, m.Lapses, m.UnknownSince = -1, n, at(-time.Hour) }
}

func unknown(since time.Duration) func(*dialect.Message) {
	return func(m *dialect.Message) { m.UnknownSince = at(since) }
}

func failed(reason relay.Reason) func(*dialect.Message) {
	return func(m *dialect.Message) { m.Reason = new(string(reason)) }
}

// send is a recorded one, which took a second.
func send(attempt int, what relay.What, class, words string, since time.Duration) dialect.Attempt {
	a := dialect.Attempt{Attempt: attempt, Relay: "a", StartedAt: *at(since), Duration: dialect.Age(time.Second), Outcome: string(what)}
	if class != "" {
		a.ErrorClass, a.Error = new(class), new(words)
	}
	return a
}

// answering is a send with what it was answered.
func answering(a dialect.Attempt, status int, answer string) dialect.Attempt {
	a.Status, a.Answer = &status, &answer
	return a
}

// alive are relays that have the destinations billing and crm.
func alive(names ...string) (relays []dialect.RelayStatus) {
	for _, name := range names {
		relays = append(relays, dialect.RelayStatus{Name: name, Host: "h", SeenFor: dialect.Age(time.Second), Destinations: []string{"billing", "crm"}})
	}
	return relays
}

// only are relays that have one destination.
func only(destination string, names ...string) []dialect.RelayStatus {
	relays := alive(names...)
	for i := range relays {
		relays[i].Destinations = []string{destination}
	}
	return relays
}

func breaker(relay, name, state string) dialect.BreakerStatus {
	return dialect.BreakerStatus{Relay: relay, Name: name, State: state, Failures: 5, LastError: "refused: connection refused", Age: dialect.Age(2 * time.Second)}
}

// toBilling is a plan with a budget of 3 and a memory of a day.
func toBilling(versions ...int) *plan {
	return &plan{
		destination: "billing", cap: 30 * time.Second, dedupe: relay.Dedupe{Window: 24 * time.Hour},
		policy: relay.Policy{Budget: 3, Timeout: 20 * time.Second, Versions: versions},
	}
}

// What is said where there is no configuration.
const (
	ifRouted = ", if it has a route for routing key charges"
	askFile  = "; which destination takes it, and for how long that remembers keys, only the configuration says: add -c FILE"
	blindKey = ": a receiver that remembers it drops what it did before, and one that does not does the work again"
)

// TestExplain holds every state and cause to what a person is told.
func TestExplain(t *testing.T) {
	t.Parallel()
	cases := pendingCases()
	cases = append(cases, obstacleCases()...)
	cases = append(cases, inFlightCases()...)
	cases = append(cases, finalCases()...)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.facts.now = noon
			got := explain(c.facts)
			if got.Why != c.why {
				t.Errorf("why:\n%s\nwant\n%s", got.Why, c.why)
			}
			if got.Next != c.next {
				t.Errorf("next:\n%s\nwant\n%s", got.Next, c.next)
			}
			if commands := strings.Join(got.Commands, "\n"); commands != strings.Join(c.commands, "\n") {
				t.Errorf("commands:\n%s\nwant\n%s", commands, strings.Join(c.commands, "\n"))
			}
		})
	}
}

// explained is a case: facts, and what is said of them.
type explained struct {
	name      string
	facts     facts
	why, next string
	commands  []string
}
