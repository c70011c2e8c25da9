package main

import (
	"fmt"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// What a repeat can show.
const (
	agrees     = "agrees"     // it was answered as the first send
	differs    = "DIFFERS"    // it was answered in another way
	unanswered = "unanswered" // no answer came, or one that says: not now
)

// comparison is what a repeat came to, beside what the first send did.
type comparison struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	DoneAt  dialect.Time `json:"done_at"`
	Verdict string       `json:"verdict"`
	Then    string       `json:"then"`
	Now     string       `json:"now"`
}

// compare holds the outcome of a repeat against the first send. Both answers are as the table keeps them: a reference, and a
// longer answer beside it where there was one.
func (m sentOnce) compare(o relay.Outcome) comparison {
	c := comparison{ID: m.ID, Type: m.Type, DoneAt: m.done, Then: m.result}
	kept := relay.Decide(relay.Try{Claim: m.Claim, Outcome: o}).Row()
	switch {
	case o.Kind == relay.KindUnknown || o.Kind == relay.KindUnsent || o.Class == "throttled":
		c.Verdict, c.Now = unanswered, failureWords(o, kept)
	case o.Kind != relay.KindDone:
		c.Verdict, c.Now = differs, failureWords(o, kept)
	case kept.Result == m.result && kept.Answer == m.answer && (m.status == 0 || m.status == o.Status):
		c.Verdict, c.Now = agrees, kept.Result
	case kept.Result == m.result && kept.Answer == m.answer:
		c.Verdict, c.Now = differs, fmt.Sprintf("%s (status %d, and %d then)", kept.Result, o.Status, m.status)
	case kept.Result == m.result:
		c.Verdict, c.Now = differs, kept.Result+" (what follows it is another answer)"
	default:
		c.Verdict, c.Now = differs, kept.Result
	}
	return c
}

// failureWords says what a send came to that was not done.
func failureWords(o relay.Outcome, kept relay.Row) string {
	return fmt.Sprintf("%s, %s: %s", o.Kind, kept.ErrorClass, kept.LastError)
}
